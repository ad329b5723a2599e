"""Who asks, and with which role: tokens, the cookie of a browser, the word of a proxy, the tokens of forms.

A token is shown once, when it is made; `{state}/web/tokens/NAME.json` has only its SHA-256. A token is 24 random
bytes, so that its plain digest gives nothing away. A cookie holds the token itself: a withdrawn token is refused at
the next request. `{state}/web/uses/NAME` has when a token was last used. Writes to these two folders alone.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import logging
import re
import secrets
import threading
import time
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from hashlib import sha256
from io import BytesIO

from msgspec import Struct, field

from warcmill.base import clock
from warcmill.errors import BadInput, Conflict, NotReady, WarcmillError
from warcmill.model import Json
from warcmill.stores import LocalStore

FOLDER, USES = "web/tokens", "web/uses"
USE_SECONDS = 60  # a use is written at most once in so many, of each token
SHORTEST = 16  # characters of a token
FORM_SECONDS = 12 * 3600  # a form may wait so long in an open page
USER_HEADER, GROUP_HEADER = "x-forwarded-user", "x-forwarded-groups"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_LARGEST = 4_096  # bytes of a file of a token
_FORM = re.compile(r"([0-9]{14}-[0-9a-f]{12})\.([0-9a-f]{64})")
log = logging.getLogger(__name__)
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Role(IntEnum):
    """The roles; each may do what those before it may."""

    NOBODY = 0
    READER = 1
    CURATOR = 2
    OPERATOR = 3

    @property
    def word(self) -> str:
        """The role as it is written: `reader`."""
        return self.name.lower()


ROLES = {role.word: role for role in Role if role is not Role.NOBODY}


class User(Struct, frozen=True):
    """Who asks. `name`: of the token, or as the proxy gave it; '' for nobody."""

    role: Role = Role.NOBODY
    name: str = ""


class TokenFile(Struct, frozen=True):
    """A token as its file has it. `until`: UTC text, '' without an end. `why`: the fault of a file that is broken."""

    name: str
    role: Role
    made: str
    until: str
    digest: str
    why: str = ""

    @property
    def is_over(self) -> bool:
        """True after its last day."""
        return bool(self.until) and self.until <= clock.now()


def new_secret() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(24)


def digest_of(secret: str) -> str:
    """The SHA-256 by which a token is kept."""
    return sha256(secret.encode("utf-8", "replace")).hexdigest()


def add_token(state: LocalStore, name: str, role: Role, days: int | None) -> str:
    """Make a token and keep its digest; return the token. Conflict if there is one of that name."""
    if not _NAME.fullmatch(name):
        raise BadInput(name, "it is not a name of 1 to 63 letters, digits, '_' and '-', the first a letter or a digit")
    if days is not None and not 0 < days <= 3_650:
        raise BadInput("--days", f"{days} is not a number from 1 to 3650")
    secret, made = new_secret(), datetime.now(UTC)
    until = clock.text(made + timedelta(days=days)) if days else ""
    members = {"made": clock.text(made), "name": name, "role": role.word, "sha256": digest_of(secret), "until": until}
    data = f"{json.dumps(members, sort_keys=True)}\n".encode()
    path = f"{FOLDER}/{name}.json"
    if not state.commit_new(path, BytesIO(data), len(data), lambda _: True):
        raise Conflict(path, f"there is a token of this name; first run: warcmill serve token withdraw {name}")
    return secret


def withdraw_token(state: LocalStore, name: str) -> None:
    """Remove a token, also one whose file is broken; NotReady if there is none of that name."""
    path = f"{FOLDER}/{name}.json"
    found = state.stat(path) if _NAME.fullmatch(name) else None
    if found is None:
        raise NotReady(name, "there is no token of this name; 'warcmill serve token list' has those that are there")
    state.remove(path, found)
    if used := state.stat(f"{USES}/{name}"):
        state.remove(used.path, used)


def as_document(state: LocalStore) -> dict[str, Json]:
    """The tokens for an answer: all that is kept of them but the digest, and when each was last used, to the minute;
    '' for never."""
    found: list[Json] = [
        {"made": one.made, "name": one.name, "role": one.role.word, "until": one.until, "used": _used(state, one.name),
         "why": one.why}
        for one in tokens(state)
    ]  # fmt: skip
    return {"tokens": found}


def _used(state: LocalStore, name: str) -> str:
    try:
        return state.read(f"{USES}/{name}", 20).decode("ascii", "replace")
    except NotReady:
        return ""


class LastUses:
    """Which tokens were used in the last minute, so that not each request writes."""

    def __init__(self) -> None:
        self._written: dict[str, float] = {}
        self._lock = threading.Lock()

    def note(self, state: LocalStore, token: TokenFile) -> None:
        """Write that a token is used now. A state that cannot be written keeps nobody out."""
        now = time.monotonic()
        with self._lock:
            if now - self._written.get(token.digest, now - USE_SECONDS) < USE_SECONDS:
                return
            self._written[token.digest] = now
        try:
            state.replace(f"{USES}/{token.name}", clock.now().encode())
        except WarcmillError as error:
            log.warning("%s/%s: that it is used was not written: %s", USES, token.name, error)


def tokens(state: LocalStore) -> Iterator[TokenFile]:
    """The tokens, by name. One that cannot be read opens nothing, and has its fault in `why`."""
    for entry in state.list(FOLDER):
        if entry.kind == "file" and entry.name.endswith(".json"):
            name = entry.name.removesuffix(".json")
            try:
                yield _token_of(name, json.loads(state.read(entry.path, _LARGEST)))
            except (ValueError, KeyError, TypeError) as error:
                yield TokenFile(name, Role.NOBODY, "", "", "", f"its file is broken: {error}")
            except NotReady:  # withdrawn while we look
                continue


def _token_of(name: str, members: Mapping[str, Json]) -> TokenFile:
    made, until, role, digest = (members[key] for key in ("made", "until", "role", "sha256"))
    if not (isinstance(made, str) and isinstance(until, str) and isinstance(role, str) and isinstance(digest, str)):
        raise TypeError("a value that is not text")
    return TokenFile(name, ROLES[role], made, until, digest)


class Proxies(Struct, frozen=True):
    """The proxies that authenticate people before us. Their headers count only from these addresses.

    `operators`, `curators`: users or groups.
    """

    networks: tuple[Network, ...] = ()
    user_header: str = USER_HEADER
    group_header: str = GROUP_HEADER
    operators: frozenset[str] = frozenset()
    curators: frozenset[str] = frozenset()

    def is_one(self, address: str) -> bool:
        """True if a connection comes from a proxy."""
        try:
            peer = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(peer in network for network in self.networks)

    def user(self, headers: Mapping[str, str]) -> User:
        """The user whom a proxy names; nobody if it names none."""
        name = headers.get(self.user_header, "").strip()
        if not name:
            return User()
        known = {name, *(group.strip() for group in headers.get(self.group_header, "").split(","))}
        role = Role.OPERATOR if known & self.operators else Role.CURATOR if known & self.curators else Role.READER
        return User(role, name)


class OneTime:
    """The token that a start without tokens prints. Signing in uses it up: a session of the browser takes its place."""

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self._sessions: set[str] = set()  # digests
        self._lock = threading.Lock()

    def exchange(self, secret: str) -> str:
        """Use the token up; return the session's secret, '' for another or a used one."""
        with self._lock:
            if not self.secret or not _same(secret, self.secret):
                return ""
            self.secret, session = "", new_secret()
            self._sessions.add(digest_of(session))
            return session

    def opens(self, secret: str) -> bool:
        """True for the token while it is unused, and for a session."""
        with self._lock:
            return bool(self.secret and _same(secret, self.secret)) or digest_of(secret) in self._sessions


class WebAccess(Struct, frozen=True):
    """All that gives a role. `cookie` is its name; `reader` is the token of luigi.cfg, '' without one."""

    state: LocalStore
    cookie: str
    reader: str = ""
    first: OneTime | None = None
    proxies: Proxies = field(default_factory=Proxies)
    uses: LastUses = field(default_factory=LastUses)

    def user_of(self, peer: str, headers: Mapping[str, str], cookies: Mapping[str, str]) -> User:
        """The user of a request, by a proxy, by its Authorization header, or by its cookie."""
        if self.proxies.is_one(peer) and (user := self.proxies.user(headers)).role:
            return user
        kind, _, secret = headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            secret = _password(secret)
        elif kind.lower() != "bearer":
            secret = cookies.get(self.cookie, "")
        return self.opened_by(secret.strip())

    def opened_by(self, secret: str) -> User:
        """The user whom a token stands for."""
        if not secret:
            return User()
        if self.first and self.first.opens(secret):
            return User(Role.OPERATOR, "one-time token")
        if self.reader and _same(secret, self.reader):
            return User(Role.READER, "token of luigi.cfg")
        digest = digest_of(secret)
        for token in tokens(self.state):
            if token.why:
                log.error("%s/%s.json: %s; withdraw it", FOLDER, token.name, token.why)
            elif hmac.compare_digest(token.digest.encode(), digest.encode()) and not token.is_over:
                self.uses.note(self.state, token)
                return User(token.role, token.name)
        return User()

    def signed_in(self, secret: str) -> str:
        """Return the value of the cookie for a browser that shows a token; '' if the token opens nothing."""
        if self.first and (session := self.first.exchange(secret)):
            return session
        return secret if self.opened_by(secret).role else ""

    def cookie_header(self, secret: str, *, secure: bool) -> str:
        """The Set-Cookie header: no script reads it, no other site's page sends it. '' takes the cookie away."""
        words = f"{self.cookie}={secret}; Path=/; HttpOnly; SameSite=Strict{'' if secret else '; Max-Age=0'}"
        return f"{words}; Secure" if secure else words


def parse_cookies(text: str) -> Mapping[str, str]:
    """Names and values. Other programs on this host set cookies too: an odd one must not hide ours."""
    pairs = (part.strip().partition("=") for part in text.split(";"))
    return {name: value for name, _, value in pairs}


class Forms(Struct, frozen=True):
    """One-time tokens of forms. Each names what its post will do, so that a form that is posted twice acts once."""

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def new(self, user: User, path: str) -> str:
        """A token for a form of this user, that is posted to this path."""
        name = f"{clock.stamp()}-{secrets.token_hex(6)}"
        return f"{name}.{self._seal(name, user, path)}"

    def name_of(self, token: str, user: User, path: str) -> str:
        """The name that a token gives to what is done; BadInput for one that is not ours, or too old."""
        match = _FORM.fullmatch(token)
        if not match or not _same(match[2], self._seal(match[1], user, path)):
            raise BadInput("the form", "it was not made by this server for this page; open the page, and send it again")
        made = datetime.strptime(match[1][:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        if datetime.now(UTC) - made > timedelta(seconds=FORM_SECONDS):
            raise BadInput("the form", "it is older than half a day; open the page, and send it again")
        return match[1]

    def _seal(self, name: str, user: User, path: str) -> str:
        return hmac.new(self.key, "\0".join((name, user.name, path)).encode("utf-8", "replace"), sha256).hexdigest()


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Addresses and networks such as 10.0.0.0/8; ValueError for what is neither."""
    return tuple(ipaddress.ip_network(text) for text in texts)


def _password(credentials: str) -> str:
    """The password of `USER:PASSWORD` (RFC 7617), whoever the user is; '' for another text."""
    try:
        return b64decode(credentials.strip(), validate=True).decode("utf-8").partition(":")[2]
    except ValueError:
        return ""


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode("utf-8", "replace"))
