"""The cookies of a crawl (RFC 6265): one jar each, bounded, and kept in the books. There are no logins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from warcmill.crawl.set_cookie import NEVER, SetCookie, parse
from warcmill.formats import surt

A_DOMAIN, A_JAR = 50, 3000  # cookies (section 6.1 asks for these at least)
LONGEST_HEADER = 8192

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Cookie:
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
        """What a later cookie must share to replace this one (5.3, step 11)."""
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

    def header(self, uri: str, now: float) -> str:
        """Return the value of `Cookie` for a request of this URI; '' for none (5.4)."""
        if not self._size:
            return ""
        secure, host, path = _parts(uri)
        fitting = [
            cookie
            for domain in _domains(host)
            for cookie in self._domains.get(domain, {}).values()
            if cookie.expires > now
            and (not cookie.host_only or cookie.domain == host)
            and (secure or not cookie.secure)
            and _path_matches(path, cookie.path)
        ]
        fitting.sort(key=lambda cookie: (-len(cookie.path), cookie.created))
        text, end = "; ".join(f"{cookie.name}={cookie.value}" for cookie in fitting), LONGEST_HEADER
        return text if len(text) <= end else text[: max(0, text.rfind("; ", 0, end))]

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
            host, where, wanted.name, wanted.value, expires, now, not domain or _is_shared(domain), wanted.secure
        )
    if not host.endswith(f".{domain}") or _is_shared(domain) or surt.is_address(host):
        return None
    return Cookie(domain, where, wanted.name, wanted.value, expires, now, False, wanted.secure)


@lru_cache(10_000)
def _is_shared(domain: str) -> bool:
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
