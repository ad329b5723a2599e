"""Searches and captures, parsed from the fields of a request. Pure. Every field is hostile, and limited."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlencode

from msgspec import Struct

from warcmill.errors import BadInput
from warcmill.formats import hosts
from warcmill.versions import search
from warcmill.versions.search import MOST, OTHER, Query

LONGEST = 1_000  # characters of the words that are asked for
WORDS = 32
PAGES = 50  # of results
LONGEST_URL = 8_000
TYPE_NAMES = {"html": "HTML", "pdf": "PDF", "text": "Plain text", OTHER: "Other"}
_TERM = re.compile(r'"([^"]*)"?|([^\s"]+)')
_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[^\s/?#@\\:]{1,500})(:[0-9]{1,5})?", re.IGNORECASE)
_LABEL, _DOT = r"[\w%\u00ad\u200c\u200d-]+", "[.\u3002\uff0e\uff61]"  # as hosts are spelled (UTS 46)
_URL = re.compile(
    rf"(https?://)?(?:\[[0-9a-f:.]+\]|{_LABEL}({_DOT}{_LABEL})*{_DOT}?)(:[0-9]{{1,5}})?([/?#]\S*)?", re.IGNORECASE
)
_SECOND = re.compile(r"[0-9]{14}")
_OFFSET = re.compile(r"[0-9]{1,18}")


class Search(Struct, frozen=True):
    """A search as it was typed, the query that it means, and which page of results; `query` is None without words.

    `url`: what was typed as a URL, with its scheme; '' for words. `is_url`: it can be nothing else.
    """

    words: str
    site: str
    first: str
    last: str
    page: int
    query: Query | None
    url: str = ""
    type: str = ""

    @property
    def is_url(self) -> bool:
        """True if it can be nothing but a URL: words with a point or a stroke between them are words too."""
        return bool(self.url) and self.words.lower().startswith(("http://", "https://"))

    @property
    def times(self) -> tuple[str, str]:
        """The first and the last time that are asked for, as digits; each may be ''."""
        return self.first.replace("-", ""), self.last.replace("-", "")

    def address(self, changed: Mapping[str, str]) -> str:
        """The address of these results with other fields, below this server: their first page, but for `page`."""
        fields = {"q": self.words, "site": self.site, "from": self.first, "to": self.last, "type": self.type}
        return "search?" + urlencode({name: value for name, value in {**fields, **changed}.items() if value})

    @property
    def types(self) -> list[tuple[str, str]]:
        """The types that can be asked for: word and name."""
        return [*TYPE_NAMES.items()]

    @property
    def skipped(self) -> int:
        """The number of results on the pages before."""
        return (self.page - 1) * MOST


def search_of(fields: Mapping[str, str]) -> Search:
    """The search of a request, or BadInput."""
    typed = _printable(fields.get("q", "")).strip()
    if len(typed) > LONGEST:
        raise BadInput("the words", f"they have {len(typed)} characters, {LONGEST} are the most")
    words = words_of(typed)
    if len(words) > WORDS:
        raise BadInput("the words", f"there are {len(words)}, {WORDS} are the most")
    if typed and not words:
        raise BadInput("the words", "there is no letter and no digit in them")
    site, first, last, type_ = _site(fields), _day(fields, "from"), _day(fields, "to"), _type(fields)
    if year := _year(fields, first, last):
        first = last = year
    query = Query(words, site, first.replace("-", ""), last.replace("-", ""), type_) if words else None
    return Search(typed, site, first, last, _page(fields), query, url_of(fields.get("q", "").strip()), type_)


def url_of(typed: str) -> str:
    """The typed words as a URL, with a scheme; '' if they are not a URL: `https://example.org/`, `example.org/page`."""
    match = _URL.fullmatch(typed)
    if not match or not (match[1] or match[2] or match[4]):  # one plain word
        return ""
    return typed if match[1] else f"http://{typed}"


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text; what is between quotation marks is one, a phrase."""
    terms = (phrase or word for phrase, word in _TERM.findall(_printable(text)))
    return tuple(term.strip() for term in terms if any(map(str.isalnum, term)))


def _printable(text: str) -> str:
    """The text with a blank for each control or invisible character."""
    return "".join(char if char.isprintable() else " " for char in text)


def capture_of(fields: Mapping[str, str]) -> tuple[str, str]:
    """The time and the URL of a capture, or BadInput. Without a time it is named by its record."""
    time, url = fields.get("time", ""), fields.get("url", "")
    if not _SECOND.fullmatch(time) and (time or "warc" not in fields):
        raise BadInput("time", "it is not 14 digits, such as 20161019234428")
    if not 0 < len(url) <= LONGEST_URL:
        raise BadInput("url", f"it has {len(url)} characters, not 1 to {LONGEST_URL}")
    return time, url


def record_of(fields: Mapping[str, str]) -> tuple[str, int]:
    """The WARC of a record and its offset there, or BadInput."""
    offset = fields.get("offset", "")
    if not _OFFSET.fullmatch(offset):
        raise BadInput("offset", "it is not a number of bytes")
    return fields.get("warc", ""), int(offset)


def is_site(text: str) -> bool:
    """True for a host, which may have a port."""
    match = _HOST.fullmatch(text)
    with suppress(ValueError):
        return bool(match and hosts.canonical(match[1]))
    return False


def _site(fields: Mapping[str, str]) -> str:
    site = fields.get("site", "").strip()
    if site and not is_site(site):
        raise BadInput("the site", "it is not a host such as www.example.org")
    return site


def _day(fields: Mapping[str, str], name: str) -> str:
    day = fields.get(name, "").strip()
    if day and not search.is_day(day):
        raise BadInput(name, "it is not a year, a month or a day, such as 2016-10-19")
    return day


def _year(fields: Mapping[str, str], first: str, last: str) -> str:
    year = fields.get("year", "").strip()
    if year and not (re.fullmatch("[0-9]{4}", year) and search.is_day(year)):
        raise BadInput("year", "it is not a year such as 2016")
    if year and (first or last):
        raise BadInput("year", "there is a from or a to as well; give the year, or those")
    return year


def _type(fields: Mapping[str, str]) -> str:
    word = fields.get("type", "").strip()
    if word and word not in TYPE_NAMES:
        raise BadInput("type", f"it is not one of {', '.join(TYPE_NAMES)}")
    return word


def _page(fields: Mapping[str, str]) -> int:
    text = fields.get("page", "1")
    if not re.fullmatch(r"[0-9]{1,3}", text) or not 1 <= int(text) <= PAGES:
        raise BadInput("page", f"it is not a number from 1 to {PAGES}")
    return int(text)
