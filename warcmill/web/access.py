"""Who may ask for what: one table of role and route; and the token by which a reader is known.

`replay` is pywb, which asks for the WARCs of a store on another host.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from warcmill.web.asked import Request

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


@dataclass(frozen=True, slots=True)
class Token:
    """The secret of the readers. `cookie` is the name of the cookie that keeps it in a browser."""

    secret: str
    cookie: str

    def is_in(self, request: Request) -> bool:
        """True if a request shows it: in its cookie, or in an Authorization header."""
        return self._is(request.cookies.get(self.cookie, "")) or self._is(request.bearer)

    def is_in_url(self, request: Request) -> bool:
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


def role_of(request: Request, token: Token) -> Role:
    """The role of who asks."""
    return "reader" if token.is_in(request) else "anyone"


def may(role: Role, path: str) -> bool:
    """True if a role may ask for a route."""
    return ROUTES[path] in ("anyone", role)
