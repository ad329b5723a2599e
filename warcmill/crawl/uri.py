"""A URI on its way through the crawl, and the one table of its moves; `Transitions.update()` alone makes them. Pure.

Beside it: its canonical form as browsers write it (WHATWG URL); its key without the ids of sessions that sites write
into URLs, in the forms that Heritrix leaves out, and those of more frameworks; and what a `data:` URI (RFC 2397) holds,
which needs no network.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

import ada_url
from msgspec import Struct, field

from warcmill.base import clock
from warcmill.errors import BadInput
from warcmill.formats import surt as surts

_PLAIN = "text/plain;charset=US-ASCII"
_SPACE = re.compile(rb"[\t\n\f\r ]")
_IN_BASE64 = re.compile(r";[ ]*base64\Z", re.IGNORECASE)


class Data(NamedTuple):
    """The media type of a `data:` URI and its bytes."""

    mime: str
    body: bytes


def read(uri: str) -> Data:
    """Return what a `data:` URI holds, as browsers read it; BadInput when it has no comma or its base64 is broken."""
    head, comma, body = uri.partition(":")[2].partition(",")
    if not comma:
        raise BadInput(shown(uri), "a data: URI without a comma")
    raw = unquote_to_bytes(body)
    mime = _IN_BASE64.sub("", head.strip())
    if mime != head.strip():
        raw = _decoded(_SPACE.sub(b"", raw), uri)
    return Data((_PLAIN.partition(";")[0] + mime if mime.startswith(";") else mime) or _PLAIN, raw)


def _decoded(text: bytes, uri: str) -> bytes:
    bare = text.rstrip(b"=") if len(text) % 4 == 0 else text
    try:
        return base64.b64decode(bare + b"=" * (-len(bare) % 4), validate=True)
    except binascii.Error as error:
        raise BadInput(shown(uri), f"a data: URI with broken base64: {error}") from error


_NODE = r"[\w.!~:+%-]{16,256}"  # servers of Java append the name of a machine
_OTHER = (
    r"(?:[0-9a-z]{26}|[0-9a-z]{32}|[0-9a-z]{40})"  # of a name that may be another one's: what PHP makes, and MD5, SHA-1
)
_IDS = re.compile(
    rf"(?P<before>[;?&])(?:jsessionid={_NODE}|(?:phpsessid|cgisessid|oscsid|oscadminid|zenid|xtcsid|wosid)=[0-9a-z,-]{{20,256}}"
    rf"|(?:sid|force_sid|sessid|sessionid|session_id)={_OTHER}|(?<=\.php\?)s=[0-9a-f]{{32}}"
    r"|aspsessionid[a-z]{8}=[a-z]{24}|cfid=[^&]{1,64}&cftoken=[^&]{1,64})(?P<after>[;?&/]|$)",
    re.IGNORECASE,
)
_IN_PAGES = re.compile(r"/\((?:[a-z]\([0-9a-z]{24}\)|[0-9a-z]{24})\)(?=/)", re.IGNORECASE)  # of ASP.NET, by its pages
_MORE = r"(?:[a-z]\([\w-]{1,512}\)){0,4}"
_IN_PATH = re.compile(rf"/\({_MORE}s\([0-9a-z]{{24}}\){_MORE}\)(?=/)", re.IGNORECASE)  # the same, for any page


def without_session(uri: str) -> str:
    """Return a canonical URI without the ids of sessions."""
    if "?" in uri or ";" in uri or "&" in uri:
        uri = _IDS.sub(_joined, uri)
    return _without_folder(uri) if "/(" in uri else uri


def _without_folder(uri: str) -> str:
    """Leave out an id that is a folder: one of a plain form where the page ends in `.aspx`."""
    path = uri.partition("?")[0]
    page = path.lower().rfind(".aspx")
    found = _IN_PATH.search(uri, 0, len(path)) or (_IN_PAGES.search(uri, 0, page) if page >= 0 else None)
    return uri[: found.start()] + uri[found.end() :] if found else uri


def _joined(match: re.Match[str]) -> str:
    """The text between the parts before and after an id: a `?` stays before the rest of a query."""
    before, after = match["before"], match["after"]
    if after == "&":
        return before if before in "?&" else after
    return after


class Status(StrEnum):
    """Where a URI stands."""

    CREATED = "Created"
    SCHEDULED = "Scheduled"
    SUSPENDED = "Suspended"
    DOWNLOADING = "Downloading"
    PARSING = "Parsing"
    PARSED = "Parsed"
    FAILED = "Failed"
    REMOVED = "Removed"

    __hash__ = str.__hash__  # that of an enum is a function of Python, and every move looks its statuses up


S = Status
MOVES: dict[Status, frozenset[Status]] = {
    S.CREATED: frozenset({S.SCHEDULED, S.SUSPENDED, S.FAILED, S.REMOVED}),
    S.SCHEDULED: frozenset({S.DOWNLOADING, S.SUSPENDED, S.FAILED, S.REMOVED}),
    S.SUSPENDED: frozenset({S.SCHEDULED, S.REMOVED}),
    # Back to Scheduled: it is tried again, or deferred. To Parsed: its holder had nothing to parse.
    S.DOWNLOADING: frozenset({S.PARSING, S.PARSED, S.SCHEDULED, S.SUSPENDED, S.FAILED, S.REMOVED}),
    S.PARSING: frozenset({S.PARSED, S.FAILED}),
    # Scheduled once more: it is visited again, or a person asks for it.
    S.PARSED: frozenset({S.SCHEDULED, S.REMOVED}),
    S.FAILED: frozenset({S.SCHEDULED, S.REMOVED}),
    S.REMOVED: frozenset(),
}
"""From each status to those that may follow."""

DONE = frozenset({S.PARSED, S.FAILED, S.REMOVED})
"""With these a visit ends."""


LONGEST_URI = 1 << 16
LONGEST_PAYLOAD = 1 << 16  # bytes, of its JSON, where a person or a page gives it
FOREVER = float(1 << 40)
"""A `not_before` that never comes: the URI is suspended."""

_SCHEMES = frozenset({"http", "https", "data", "dns"})
_SHOWN = 200
_CREDENTIALS = re.compile(r"\A([^/\\?#]*[/\\]{2,})[^/\\?#]*@")  # a browser takes \ for /


class Renew(Struct, frozen=True):
    """The case in which a URI that is known is taken again. One that was visited: if its last visit is older than `age`
    seconds (below 0: never), if it had another `tag`, or by `force`. One that waits, or is being fetched, is changed by
    `force` alone. `cancel`: in these cases it is removed instead."""

    age: float = -1.0
    tag: str = ""
    force: bool = False
    cancel: bool = False

    def takes(self, ended: int, tag: bytes, now: float) -> bool:
        """True if a URI is taken again whose last visit ended then, and whose tag has this digest."""
        return self.force or (bool(self.tag) and self.digest != tag) or 0 <= self.age < now - ended

    @property
    def digest(self) -> bytes:
        """The bytes by which a frontier knows the tag; b'' without one."""
        return blake2b(self.tag.encode("utf-8", "surrogatepass"), digest_size=8).digest() if self.tag else b""


class Uri(Struct, eq=False):
    """A URI to fetch, the reason, and the result. Times are seconds since 1970, 0 when there is none yet.

    `key` distinguishes it from others in its namespace `crawl`; it is the canonical URI unless its maker chose another.
    `queue` is what its politeness is kept by: host and port. A lower `priority` comes first.
    `payload` is JSON of its maker, kept through retries and restarts; `Fetch` reads how to fetch from it.
    `spider` names who visits it; '' is this crawler. `renew` has an offer of it judged if it is known; a
    frontier keeps only the digest of its tag.
    """

    key: str
    uri: str
    queue: str
    crawl: str = ""
    hops: str = ""
    via: str = ""
    source: str = ""
    priority: int = 0
    not_before: float = 0.0
    payload: str = ""
    status: Status = Status.CREATED
    cluster: str = ""
    host_ip: str = ""
    download_at: float = 0.0
    download_started: float = 0.0
    download_finished: float = 0.0
    http_status: int = 0
    hash: str = ""
    tries: int = 0
    updated: float = 0.0
    spider: str = ""
    renew: Renew | None = None

    @property
    def surt(self) -> str:
        """Its SURT, as scopes compare it; the URI itself when it has no host."""
        return surts.surt(self.uri) if self.uri.startswith(("http://", "https://")) else self.uri

    @property
    def ended(self) -> int:
        """When its last visit ended, in whole seconds."""
        return int(self.download_finished or self.updated)


def digest(crawl: str, key: str) -> bytes:
    """The 16 bytes by which a frontier knows a URI of a crawl."""
    return blake2b(f"{len(crawl)} {crawl} {key}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def waits(until: float) -> Status:
    """The status of a URI that waits until then."""
    return Status.SUSPENDED if until >= FOREVER else Status.SCHEDULED


def make(
    text: str, *, key: str = "", crawl: str = "", hops: str = "", via: str = "", source: str = "",
    priority: int = 0, not_before: float = 0.0, payload: str = "", cluster: str = "", spider: str = "",
    is_canonical: bool = False,
) -> Uri:  # fmt: skip
    """Return a new Uri from text as it stands on a page or in a seed list; BadInput when it cannot be fetched.

    `is_canonical`: the text was joined with its page as browsers do, so it is parsed no second time.
    """
    uri = text if is_canonical else _parsed(text)
    check(uri)
    if len(payload) > LONGEST_PAYLOAD // 4 and len(payload.encode()) > LONGEST_PAYLOAD:
        raise BadInput(shown(uri), f"its payload is larger than {LONGEST_PAYLOAD} bytes")
    return Uri(key or uri, uri, queue_of(uri), crawl, hops, via, source, priority, not_before, payload,
               Status.CREATED, cluster, spider=spider)  # fmt: skip


def canonical(text: str) -> str:
    """Return an absolute URI as browsers write it (WHATWG URL), without fragment.

    BadInput when it is invalid or too long, has credentials in it, or a scheme that is not fetched.
    """
    uri = _parsed(text)
    check(uri)
    return uri


def check(uri: str) -> None:
    """BadInput for a canonical URI that is not fetched: its scheme, its length, or credentials in it."""
    scheme, _, rest = uri.partition(":")
    if scheme not in _SCHEMES:
        raise BadInput(shown(uri), f"{scheme}: is not fetched, only {', '.join(sorted(_SCHEMES))}")
    if len(uri) > LONGEST_URI:
        raise BadInput(shown(uri), f"longer than {LONGEST_URI} bytes")
    if scheme[0] == "h" and "@" in rest.partition("?")[0].split("/", 3)[2]:
        raise BadInput(f"{scheme}: URI", "it has credentials in it, which are not shown here; logins are not supported")


def _parsed(text: str) -> str:
    try:
        return str(ada_url.normalize_url(text)).partition("#")[0]
    except (ValueError, UnicodeEncodeError) as error:
        raise BadInput(shown(text), "not a URI with scheme and host") from error


def queue_of(uri: str) -> str:
    """Return host and port of a canonical URI, without a default port: `example.org`, `example.org:8443`, `[::1]`.

    A `dns:` URI has the queue of the name that it asks for; a `data:` URI has none.
    """
    scheme, _, rest = uri.partition(":")
    if scheme == "dns":
        return rest.lower()
    return "" if scheme == "data" else rest[2:].partition("/")[0].partition("?")[0]


def without_credentials(text: str) -> str:
    """Return a URI as logs may keep it: without a name and a password before its host."""
    return _CREDENTIALS.sub(r"\1", text)


def shown(text: str) -> str:
    """Return a URI as messages show it: on one line, not too long."""
    plain = text.encode("utf-8", "backslashreplace").decode()
    safe = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in plain[: _SHOWN + 1])
    return safe if len(plain) <= _SHOWN else f"{safe[:_SHOWN]}..."


Action = Callable[[Uri, Status], None]
"""Called with the URI and the status that it moves to, or has moved to."""

_FIXED = frozenset({"key", "uri", "queue", "crawl", "status", "updated"})
_CHANGEABLE = frozenset(Uri.__struct_fields__) - _FIXED


class Transitions(Struct, frozen=True):
    """The moves of a crawl's URIs, with what is done before and after a move to a status.

    An action before that raises prevents the move: the URI is as it was. Statistics and the journal hear of a visit
    from the books, once it is durable: a move may still come to nothing.
    """

    before: Mapping[Status, Sequence[Action]] = field(default_factory=dict)
    after: Mapping[Status, Sequence[Action]] = field(default_factory=dict)
    now: Callable[[], float] = clock.steady

    def update(self, uri: Uri, to: Status, **changes: object) -> Status:
        """Move a URI, set its other fields, and return its status.

        BadInput for a move that is not in the table: nothing is changed.
        """
        check_move(uri, to)
        if changes and not changes.keys() <= _CHANGEABLE:
            raise TypeError(f"no update changes {', '.join(sorted(changes.keys() - _CHANGEABLE))}")
        for act in self.before.get(to, ()):
            act(uri, to)
        self._set(uri, to, changes)
        return to

    def _set(self, uri: Uri, to: Status, changes: dict[str, object]) -> None:
        uri.status, uri.updated = to, self.now()
        for name, value in changes.items():
            setattr(uri, name, value)
        for act in self.after.get(to, ()):
            act(uri, to)


def check_move(uri: Uri, to: Status) -> None:
    """BadInput, with what would be allowed, when no URI may move from its status to this one."""
    if to not in MOVES[uri.status]:
        allowed = ", ".join(sorted(MOVES[uri.status])) or "nothing"
        raise BadInput(shown(uri.key), f"no move from {uri.status} to {to}; from {uri.status} there is {allowed}")
