"""Requests and answers of the pages: the roles of the routes, the fields of a request, an answer's headers. Pure.

Everything in a request is hostile, and limited. The role `replay` is pywb's, which asks for the WARCs of a store on
another host.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

from warcmill.errors import BadInput
from warcmill.model import Json
from warcmill.versions import search
from warcmill.versions.search import MOST, Query

Role = Literal["anyone", "reader", "replay"]
WARCS = "/warcs/"  # and what is below it: on a port of its own, see warcs.py
ROUTES: Mapping[str, Role] = {
    "/": "reader",
    "/search": "reader",
    "/capture": "reader",
    "/style.css": "anyone",
    "/healthz": "anyone",
    WARCS: "replay",
}
METHODS = ("GET", "HEAD")
SHORTEST = 16  # characters of a token
HTML, CSS, JSON = "text/html; charset=utf-8", "text/css; charset=utf-8", "application/json"
_POLICY = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
# Nothing is loaded, run or framed but our own style sheet, and no other site gets the address of a page.
GUARDS = (
    ("Content-Security-Policy", _POLICY),
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
)
LONGEST = 1_000  # characters of the words that are asked for
WORDS = 32
PAGES = 50  # of results
LONGEST_URL = 8_000
_FIELDS = 20
_TERM = re.compile(r'"([^"]*)"?|([^\s"]+)')
_HOST = re.compile(r"[\w.-]{1,253}(:[0-9]{1,5})?")
_URL = re.compile(r"(https?://)?[\w-]+(\.[\w-]+)*\.?(:[0-9]{1,5})?([/?#]\S*)?", re.IGNORECASE)
_SECOND = re.compile(r"[0-9]{14}")


@dataclass(frozen=True, slots=True)
class Token:
    """The secret of the readers. `cookie` is the name of the cookie that keeps it in a browser."""

    secret: str
    cookie: str

    def is_in(self, request: PageRequest) -> bool:
        """True if a request shows it: in its cookie, or in an Authorization header."""
        return self._is(request.cookies.get(self.cookie, "")) or self._is(request.bearer)

    def is_in_url(self, request: PageRequest) -> bool:
        """True if it is in the URL, as `warcmill serve` prints it: only to be changed for a cookie."""
        return self._is(request.fields.get("token", ""))

    def _is(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "replace"), self.secret.encode())

    def cookie_header(self, *, secure: bool) -> tuple[str, str]:
        """The header that gives a browser the cookie: no script reads it, no other site's page sends it."""
        words = f"{self.cookie}={self.secret}; Path=/; HttpOnly; SameSite=Strict"
        return "Set-Cookie", f"{words}; Secure" if secure else words


def new_secret() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(24)


def name_of_replay(secret: str) -> str:
    """A name for what is replayed, from which the token does not follow. Another site's page cannot guess it."""
    return hmac.new(secret.encode(), b"replay", sha256).hexdigest()[:24]


def role_of(request: PageRequest, token: Token) -> Role:
    """The role of who asks."""
    return "reader" if token.is_in(request) else "anyone"


def may(role: Role, path: str) -> bool:
    """True if a role may ask for a route."""
    return ROUTES[path] in ("anyone", role)


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """A status, a body, and headers of its own."""

    status: HTTPStatus
    body: bytes = b""
    type: str = HTML
    more: tuple[tuple[str, str], ...] = ()

    @property
    def line(self) -> str:
        """The status as WSGI takes it."""
        return f"{self.status.value} {self.status.phrase}"

    @property
    def headers(self) -> list[tuple[str, str]]:
        """All headers."""
        return [("Content-Type", self.type), ("Content-Length", str(len(self.body))), *GUARDS, *self.more]


def in_json(document: Mapping[str, Json], status: HTTPStatus = HTTPStatus.OK) -> PageAnswer:
    """A document for programs."""
    return PageAnswer(status, f"{json.dumps(document, sort_keys=True)}\n".encode(), JSON)


def moved(to: str, *more: tuple[str, str]) -> PageAnswer:
    """The way to another address; it is plain ASCII."""
    return PageAnswer(HTTPStatus.SEE_OTHER, more=(("Location", to), *more))


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request. `bearer` is the token of its Authorization header."""

    method: str
    path: str
    host: str
    fields: Mapping[str, str]
    cookies: Mapping[str, str]
    bearer: str

    @property
    def in_json(self) -> bool:
        """True if the answer is for a program."""
        return self.fields.get("format") == "json"


@dataclass(frozen=True, slots=True)
class Search:
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

    @property
    def is_url(self) -> bool:
        """True if it can be nothing but a URL: words with a point or a stroke between them are words too."""
        return bool(self.url) and self.words.lower().startswith(("http://", "https://"))

    @property
    def times(self) -> tuple[str, str]:
        """The first and the last time that are asked for, as digits; each may be ''."""
        return self.first.replace("-", ""), self.last.replace("-", "")

    @property
    def skipped(self) -> int:
        """The number of results on the pages before."""
        return (self.page - 1) * MOST


def parse(environ: Mapping[str, Any]) -> PageRequest:
    """Parse a WSGI environment, or raise BadInput."""
    try:
        text = environ.get("QUERY_STRING", "")
        fields = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_FIELDS))
    except ValueError as error:
        raise BadInput("the address", f"it has more than {_FIELDS} fields") from error
    kind, _, secret = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    return PageRequest(
        environ["REQUEST_METHOD"],
        environ.get("PATH_INFO", "/"),
        environ.get("HTTP_HOST", ""),
        fields,
        _cookies(environ.get("HTTP_COOKIE", "")),
        secret.strip() if kind.lower() == "bearer" else "",
    )


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
    site, first, last = _site(fields), _day(fields, "from"), _day(fields, "to")
    query = Query(words, site, first.replace("-", ""), last.replace("-", "")) if words else None
    return Search(typed, site, first, last, _page(fields), query, url_of(typed))


def url_of(typed: str) -> str:
    """The typed words as a URL, with a scheme; '' if it is none: `https://example.org/`, `example.org/page`."""
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
    """The time and the URL of a capture, or BadInput."""
    time, url = fields.get("time", ""), fields.get("url", "")
    if not _SECOND.fullmatch(time):
        raise BadInput("time", "it is not 14 digits, such as 20161019234428")
    if not 0 < len(url) <= LONGEST_URL:
        raise BadInput("url", f"it has {len(url)} characters, not 1 to {LONGEST_URL}")
    return time, url


def host_name(host: str) -> str:
    """The name in a Host header, without its port; '' if it is none."""
    try:
        return (urlsplit(f"//{host.strip()}").hostname or "").removesuffix(".")
    except ValueError:
        return ""


def _site(fields: Mapping[str, str]) -> str:
    site = fields.get("site", "").strip()
    if site and not _HOST.fullmatch(site):
        raise BadInput("the site", "it is not a host such as www.example.org")
    return site


def _day(fields: Mapping[str, str], name: str) -> str:
    day = fields.get(name, "").strip()
    if day and not search.is_day(day):
        raise BadInput(name, "it is not a year, a month or a day, such as 2016-10-19")
    return day


def _page(fields: Mapping[str, str]) -> int:
    text = fields.get("page", "1")
    if not re.fullmatch(r"[0-9]{1,3}", text) or not 1 <= int(text) <= PAGES:
        raise BadInput("page", f"it is not a number from 1 to {PAGES}")
    return int(text)


def _cookies(text: str) -> Mapping[str, str]:
    """Names and values. Other programs on this host set cookies too: an odd one must not hide ours."""
    pairs = (part.strip().partition("=") for part in text.split(";"))
    return {name: value for name, _, value in pairs}
