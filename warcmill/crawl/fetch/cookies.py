"""The cookies of a crawl (RFC 6265): one jar each, bounded, kept in the books; those of a `login` are not. Pure.

A fault in a `Set-Cookie` is passed over, as section 5.2 has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from warcmill.formats import surt

A_DOMAIN, A_JAR = 50, 3000  # cookies (section 6.1 asks for these at least)
LONGEST_HEADER = 8192

Key = tuple[str, str, str]

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


class Cookie(Struct, frozen=True):
    """A cookie that was kept; one whose `expires` has gone by is to be deleted. `host_only`: not for subdomains."""

    domain: str
    path: str
    name: str
    value: str
    expires: float
    created: float
    host_only: bool
    secure: bool

    @property
    def key(self) -> Key:
        """The key that a later cookie must share to replace this one (5.3, step 11)."""
        return self.domain, self.path, self.name


class Jar:
    """The cookies of one crawl."""

    def __init__(self, cookies: Iterable[Cookie] = ()) -> None:
        self._domains: dict[str, dict[Key, Cookie]] = {}  # in the order of their use
        self._size = 0
        for cookie in cookies:
            self._put(cookie)

    def __len__(self) -> int:
        return self._size

    @property
    def domains(self) -> list[str]:
        """The domains that it has cookies of."""
        return sorted(self._domains)

    @property
    def cookies(self) -> list[Cookie]:
        """All that it has."""
        return [cookie for found in self._domains.values() for cookie in found.values()]

    def receive(self, uri: str, headers: Sequence[str], now: float) -> list[Cookie]:
        """Take what an answer of this URI sets, and return what changed, to be kept in the books."""
        changed: dict[Key, Cookie] = {}
        for header in headers[-A_DOMAIN:]:  # those before would be dropped for these, at a cost each
            wanted = parse(header, now)
            cookie = wanted and _cookie(wanted, uri, now)
            if cookie:
                for one in self._take(cookie, now):
                    changed[one.key] = one
        return list(changed.values())

    def header(self, uri: str, now: float, login: Jar | None = None) -> str:
        """Return the value of `Cookie` for a request of this URI; '' without one (5.4). Of a cookie that a `login` has
        as well, the later one is sent."""
        found = self.fitting(uri, now)
        if login and (signing := login.fitting(uri, now)):
            newest = sorted([*signing, *found], key=lambda cookie: cookie.created)
            found = list({cookie.name: cookie for cookie in newest}.values())
        found.sort(key=lambda cookie: (-len(cookie.path), cookie.created))
        text, end = "; ".join(f"{cookie.name}={cookie.value}" for cookie in found), LONGEST_HEADER
        return text if len(text) <= end else text[: max(0, text.rfind("; ", 0, end))]

    def fitting(self, uri: str, now: float) -> list[Cookie]:
        """The cookies that a request of this URI gets."""
        if not self._size:
            return []
        secure, host, path = _parts(uri)
        return [
            cookie
            for domain in _domains(host)
            for cookie in self._domains.get(domain, {}).values()
            if cookie.expires > now
            and (not cookie.host_only or cookie.domain == host)
            and (secure or not cookie.secure)
            and _path_matches(path, cookie.path)
        ]

    def _take(self, cookie: Cookie, now: float) -> list[Cookie]:
        old = self._domains.get(cookie.domain, {}).get(cookie.key)
        if old:
            self._drop(old)
            cookie = replace(cookie, created=old.created)
        if cookie.expires <= now:
            return [cookie] if old else []
        gone = self._make_room(cookie.domain, now)
        self._put(cookie)
        return [*gone, cookie]

    def _make_room(self, domain: str, now: float) -> list[Cookie]:
        """Drop the expired, then the oldest, of a domain or a jar that is full (5.3, end); return them as expired."""
        gone: list[Cookie] = []
        if len(self._domains.get(domain, ())) >= A_DOMAIN:
            gone += self._drop_some(list(self._domains[domain].values()), now)
        if self._size >= A_JAR:
            gone += self._drop_some([one for cookies in self._domains.values() for one in cookies.values()], now)
        return [replace(one, expires=0.0) for one in gone]

    def _drop_some(self, cookies: list[Cookie], now: float) -> list[Cookie]:
        gone = [one for one in cookies if one.expires <= now] or [min(cookies, key=lambda one: one.created)]
        for one in gone:
            self._drop(one)
        return gone

    def _put(self, cookie: Cookie) -> None:
        cookies = self._domains.setdefault(cookie.domain, {})
        self._size += cookie.key not in cookies
        cookies[cookie.key] = cookie

    def _drop(self, cookie: Cookie) -> None:
        cookies = self._domains[cookie.domain]
        del cookies[cookie.key]
        self._size -= 1
        if not cookies:
            del self._domains[cookie.domain]


def _cookie(wanted: SetCookie, uri: str, now: float) -> Cookie | None:
    """The cookie as it is kept; None when its server may not set it."""
    _, host, path = _parts(uri)
    expires = NEVER if wanted.expires is None else wanted.expires
    where = wanted.path if wanted.path.startswith("/") else _default_path(path)
    domain = wanted.domain
    if domain == host or not domain:
        return Cookie(
            host, where, wanted.name, wanted.value, expires, now, not domain or is_shared(domain), wanted.secure
        )
    if not host.endswith(f".{domain}") or is_shared(domain) or surt.is_address(host):
        return None
    return Cookie(domain, where, wanted.name, wanted.value, expires, now, False, wanted.secure)


@lru_cache(10_000)
def is_shared(domain: str) -> bool:
    """True if names below a domain have different owners: a public suffix, or one label (the list's rule `*`)."""
    return "." not in domain or surt.is_public_suffix(domain)


def _parts(uri: str) -> tuple[bool, str, str]:
    """A canonical URI: is it https, its host, its path."""
    scheme, _, rest = uri.partition("://")
    authority, _, path = rest.partition("?")[0].partition("/")
    host = authority if authority.endswith("]") else authority.rpartition(":")[0] or authority
    return scheme == "https", host, f"/{path}"


def _default_path(path: str) -> str:
    return path.rpartition("/")[0] or "/"  # 5.1.4


def _path_matches(path: str, of_cookie: str) -> bool:
    """5.1.4: the same, or a folder above."""
    return path == of_cookie or (
        path.startswith(of_cookie) and (of_cookie.endswith("/") or path[len(of_cookie)] == "/")
    )


def _domains(host: str) -> list[str]:
    """A host and all domains that it is in."""
    labels = host.split(".")
    return [host] if surt.is_address(host) else [".".join(labels[place:]) for place in range(len(labels))]


class SetCookie(Struct, frozen=True):
    """A cookie as its server sets it. `expires` is in seconds since 1970, or None. Domain and path are as they came."""

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
    """Return the time of a cookie's date, in whichever order its parts come; None when it is invalid (5.1.1)."""
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
