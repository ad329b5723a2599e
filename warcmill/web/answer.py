"""An answer, and the headers that every answer has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from warcmill.model import Json

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


@dataclass(frozen=True, slots=True)
class Answer:
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


def in_json(document: Mapping[str, Json], status: HTTPStatus = HTTPStatus.OK) -> Answer:
    """A document for programs."""
    return Answer(status, f"{json.dumps(document, sort_keys=True)}\n".encode(), JSON)


def moved(to: str, *more: tuple[str, str]) -> Answer:
    """The way to another address; it is plain ASCII."""
    return Answer(HTTPStatus.SEE_OTHER, more=(("Location", to), *more))
