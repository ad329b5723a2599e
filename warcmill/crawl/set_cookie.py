"""Read `Set-Cookie` (RFC 6265, section 5.2). Pure; what is wrong in it is passed over, as the standard says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

LONGEST = 4096  # bytes of name and value together (section 6.1)
LONGEST_ATTRIBUTE = 1024  # bytes; a longer one is passed over, as browsers do
NEVER = float(1 << 40)
"""When a cookie without expiry ends: with its crawl."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DELIMITERS = re.compile(r"[\x09\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+")  # 5.1.1
_TIME = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\D.*)?", re.ASCII)
_DAY = re.compile(r"(\d{1,2})(?:\D.*)?", re.ASCII)
_YEAR = re.compile(r"(\d{2,4})(?:\D.*)?", re.ASCII)
_is_whole = re.compile(r"-?\d++", re.ASCII).fullmatch
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class SetCookie:
    """What a server asks to be kept. `expires` in seconds since 1970, None: not said. Domain and path as they came."""

    name: str
    value: str
    expires: float | None = None
    domain: str = ""
    path: str = ""
    secure: bool = False


def parse(text: str, now: float) -> SetCookie | None:
    """Return the cookie of one header; None when it has no name, a control character, or is too long."""
    pair, *attributes = text.split(";")
    name, equals, value = pair.partition("=")
    name, value = name.strip(" \t"), value.strip(" \t")
    if not equals or not name or _CONTROL.search(pair) or len(name) + len(value) > LONGEST:
        return None
    found: dict[str, str] = {}
    for attribute in attributes:
        key, _, setting = attribute.partition("=")
        if len(setting) <= LONGEST_ATTRIBUTE:
            found[key.strip(" \t").lower()] = setting.strip(" \t")  # the last of a name counts (5.3)
    return SetCookie(
        name,
        value,
        _expires(found, now),
        found.get("domain", "").removeprefix(".").lower(),
        found.get("path", ""),
        "secure" in found,
    )


def _expires(found: dict[str, str], now: float) -> float | None:
    """Max-Age comes before Expires (5.3, step 3)."""
    age = found.get("max-age", "")
    if _is_whole(age):
        return 0.0 if age.startswith("-") or not int(age[:18]) else min(now + int(age[:18]), NEVER)
    return date(found["expires"]) if "expires" in found else None


def date(text: str) -> float | None:
    """Return the time of a cookie's date, in whichever order its parts come; None when it is none (5.1.1)."""
    time = day = month = year = None
    for token in _DELIMITERS.split(text):
        if time is None and (match := _TIME.fullmatch(token)):
            time = match
        elif day is None and (match := _DAY.fullmatch(token)):
            day = int(match[1])
        elif month is None and token[:3].lower() in _MONTHS:
            month = _MONTHS.index(token[:3].lower()) + 1
        elif year is None and (match := _YEAR.fullmatch(token)):
            year = int(match[1])
    if time is None or day is None or month is None or year is None:
        return None
    return _moment(_full(year), month, day, int(time[1]), int(time[2]), int(time[3]))


def _full(year: int) -> int:
    return year + 1900 if 70 <= year <= 99 else year + 2000 if year <= 69 else year


def _moment(*parts: int) -> float | None:
    if parts[0] < 1601:
        return None
    try:
        return datetime(*parts, tzinfo=UTC).timestamp()  # type: ignore[misc, arg-type]
    except ValueError:
        return None
