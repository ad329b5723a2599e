"""Asks an application of the pages as uvicorn asks it, without a socket: an address, a role, an answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from starlette.types import ASGIApp, Message

HOST = "127.0.0.1:8090"
PIECE = 1 << 16


@dataclass(frozen=True)
class WebAnswer:
    """What came back. `headers` are in the order in which they were sent."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def document(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str:
        return dict(self.headers).get(name.lower(), "")


def ask(
    app: ASGIApp,
    path: str,
    fields: Mapping[str, str | Sequence[str]] | None = None,
    method: str = "GET",
    posted: Mapping[str, str | Sequence[str]] | None = None,
    headers: Mapping[str, str] | None = None,
    query: bytes | None = None,
    document: bytes | None = None,
    sent_form: bytes = b"",
) -> WebAnswer:
    """Send a request to `path`, which is not quoted yet, and return the answer. `posted` are the fields of a form; one
    with several values has a list of them.

    `query`: the fields of the address as they are sent, in place of `fields`. `document`: what a program posts, in
    pieces, without saying how long it is. `sent_form`: a form as it is sent, in place of `posted`.
    """
    form = urlencode(posted, doseq=True).encode() if posted is not None else sent_form
    body = document if document is not None else form
    sent = {"host": HOST, **(headers or {})}
    method = "POST" if document is not None else method
    if posted is not None:
        method = "POST"
        sent = {"content-type": "application/x-www-form-urlencoded", "content-length": str(len(body)), **sent}
        sent.setdefault("origin", f"http://{sent['host']}")
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": path, "raw_path": quote(path).encode(),
        "query_string": urlencode(fields or {}, doseq=True).encode() if query is None else query,
        "root_path": "", "headers": [(name.lower().encode(), text.encode("latin-1")) for name, text in sent.items()],
        "client": ("127.0.0.1", 50_000), "server": ("127.0.0.1", 8090),
    }  # fmt: skip
    got: list[Message] = []
    pieces = [body[at : at + PIECE] for at in range(0, len(body), PIECE)] or [b""]

    async def receive() -> Message:
        if not pieces:  # the client waits for its answer, and does not hang up
            await asyncio.Event().wait()
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message: Message) -> None:
        got.append(message)

    asyncio.run(app(scope, receive, send))
    begin, *rest = got
    shown = [(name.decode().lower(), text.decode("latin-1")) for name, text in begin["headers"]]
    return WebAnswer(begin["status"], shown, b"".join(message.get("body", b"") for message in rest))
