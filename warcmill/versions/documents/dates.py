"""The date of a publication in one form, from pages and files; it stands alone as texts have no part in it. Pure."""

from __future__ import annotations

import re
from datetime import date
from itertools import pairwise

from warcmill.versions.documents.texts import MONTHS, sharable

_NUMBERS = re.compile(r"\A(?:D:)?(1[4-9]\d\d|20\d\d)(?:[-/.]?(\d\d?)(?:[-/.]?(\d\d?))?)?(?![\d-])")
_COMPACT = re.compile(r"\A(?:D:)?((?:1[4-9]|20)\d\d)(\d\d)(\d\d)(?:T?\d|\Z)")
_TOKEN = re.compile(r"\d+|[^\W\d_]+")
_BACKWARDS = re.compile(r"\A(\d\d?)[./-](\d\d?)[./-]((?:1[4-9]|20)\d\d)(?!\d)")
_YEAR = re.compile(r"(?<!\d)(?:1[4-9]|20)\d\d(?!\d)")


def normal(text: str) -> str:
    """A date in its normal form; '' for a text that has none. Of 03/04/2023, which is read in two ways, the year."""
    text = text.strip()[:100]
    if found := _COMPACT.match(text) or _NUMBERS.match(text):
        return _of(*(int(part) if part else 0 for part in found.groups()))
    if found := _BACKWARDS.match(text):
        first, second, year = map(int, found.groups())
        if "." in text or first > 12:
            return _of(year, second, first)
        return _of(year, first, second) if second > 12 else str(year)
    years = _YEAR.findall(text)
    if not years or len(set(years)) > 1:
        return ""
    tokens = [sharable(one) for one in _TOKEN.findall(text)]
    month = next((MONTHS[one] for one in tokens if one in MONTHS), 0)
    return _of(int(years[0]), month, _day(tokens) if month else 0)


def _day(tokens: list[str]) -> int:
    """The number beside the name of the month."""
    beside = (
        pair for pair in pairwise([one for one in tokens if one not in _ENDINGS]) if not {*pair}.isdisjoint(MONTHS)
    )
    return next((int(one) for pair in beside for one in pair if one.isascii() and one.isdigit() and len(one) < 3), 0)


_ENDINGS = frozenset(("st", "nd", "rd", "th", "de", "of"))


def _of(year: int, month: int = 0, day: int = 0) -> str:
    """As much of a date as is one."""
    for parts in ((year, month, day), (year, month, 1)):
        try:
            found = date(*parts).isoformat()
        except ValueError:
            continue
        return found if parts[2] == day and day else found[:7]
    return f"{year:04}"
