"""ISBNs and DOIs in a text, checked and normalised; and texts made fit to be kept. Pure.

An ISBN becomes its 13 digits, a DOI lower case. Patterns take linear time: each part of them has a bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST = 300  # characters of a text that is kept
_MOST_FOUND = 20  # identifiers of a text
_LONGEST = 20_000  # characters of a text that are cleaned, to keep MOST of them
_HYPHENS = "\u00ad\u2010\u2011\u2012\u2013\u2014\u2212"
_PLAIN_HYPHENS = str.maketrans(dict.fromkeys(_HYPHENS, "-"))
_LABELLED = re.compile(r"ISBN(?:[- ]?1[03])?[^0-9]{0,12}((?:[0-9][- ]?){9,12}[0-9Xx])(?![0-9])", re.IGNORECASE)
_THIRTEEN = re.compile(r"(?<![0-9.-])(97[89][- ]?[0-9](?:[- ]?[0-9]){9})(?![0-9])")
_BARE = re.compile(r"(?:urn:isbn:|isbn[: ]{0,2})?([0-9][0-9 -]{7,16}[0-9Xx])", re.IGNORECASE)
_DOI = re.compile(
    r"(?<![0-9.])10\.[0-9]{4,9}(?:\.[0-9]{1,9}){0,3}/"
    r"""[^\s"<>{}|\\^`\x00-\x1f\u200b-\u200f\u202a-\u202e\ud800-\udfff]{1,200}"""
)
_AFTER_DOI = ".,;:!?'\u2019\u201d\u00bb*"
_BRACKETS = {")": "(", "]": "["}
# Controls, and what would turn the letters of a page around: embeddings and overrides of direction.
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")


def cleaned(text: str, most: int = MOST) -> str:
    """A text in one line, without controls, of so many characters at most."""
    text = " ".join(text[:_LONGEST].split())
    if not text.isprintable():
        text = " ".join(_UNFIT.sub(" ", text).split())
    return text[:most].rstrip()


def texts(values: Iterable[str]) -> tuple[str, ...]:
    """Texts that are not empty, cleaned, each once."""
    return tuple(dict.fromkeys(filter(None, map(cleaned, values))))


def isbns(text: str) -> tuple[str, ...]:
    """The ISBNs of a text in which other numbers are too: those of 10 digits only after the word."""
    text = text.translate(_PLAIN_HYPHENS)
    found = [*_THIRTEEN.findall(text), *_LABELLED.findall(text)]
    return tuple(dict.fromkeys(filter(None, map(_checked, found))))[:_MOST_FOUND]


def isbn_of(value: str) -> str:
    """The ISBN that a value is, such as `urn:isbn:0-306-40615-2`; '' for another value, or one with a wrong digit."""
    match = _BARE.fullmatch(value.translate(_PLAIN_HYPHENS).strip()[:60])
    return _checked(match[1]) if match else ""


def _checked(written: str) -> str:
    digits = written.replace("-", "").replace(" ", "").upper()
    if len(digits) == 10 and digits[:9].isdecimal():
        weighed = sum((10 - at) * (10 if digit == "X" else int(digit)) for at, digit in enumerate(digits))
        body = f"978{digits[:9]}"
        return body + _last(body) if weighed % 11 == 0 else ""
    is_whole = len(digits) == 13 and digits.isdecimal() and digits.startswith(("978", "979"))
    return digits if is_whole and not digits.startswith("9790") and digits[12] == _last(digits[:12]) else ""


def _last(body: str) -> str:
    """The check digit of 12 digits (ISO 2108, annex A)."""
    return str(-sum(int(digit) * (3 if at % 2 else 1) for at, digit in enumerate(body)) % 10)


def dois(text: str) -> tuple[str, ...]:
    """The DOIs of a text."""
    if "10." not in text:
        return ()
    found = map(_trimmed, _DOI.findall(text.replace("\u200b", "")))
    return tuple(dict.fromkeys(doi for doi in found if not doi.endswith("/")))[:_MOST_FOUND]


def _trimmed(doi: str) -> str:
    """A DOI in lower case, without what ends its sentence."""
    while doi[-1] in _AFTER_DOI or (doi[-1] in _BRACKETS and doi.count(doi[-1]) > doi.count(_BRACKETS[doi[-1]])):
        doi = doi[:-1]
    return doi.lower()
