"""Serve the pages on loopback, with limits: waitress reads requests, and keeps slow clients from holding a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from waitress.server import create_server

from warcmill.errors import Unavailable
from warcmill.web.app import App
from warcmill.web.replay import LOOPBACK

LARGEST_HEAD = 32_768  # bytes of a request's line and headers
LARGEST_BODY = 1_024  # nothing is posted here
CONNECTIONS = 100
IDLE_SECONDS = 30
THREADS = 4


def serve(app: App, port: int, started: Callable[[], None]) -> None:
    """Serve until a signal. `started` is called once the port is ours; Unavailable if another program has it."""
    server = create(app, port, THREADS)
    try:
        started()
        server.run()
    finally:
        server.close()


def create(app: Callable[..., Any], port: int, threads: int, sockets: dict[int, Any] | None = None) -> Any:
    """A server of waitress that has its port, or any free one for 0; Unavailable if another program has it."""
    try:
        return create_server(
            app,
            map=sockets,
            host=LOOPBACK,
            port=port,
            threads=threads,
            connection_limit=CONNECTIONS,
            channel_timeout=IDLE_SECONDS,
            max_request_header_size=LARGEST_HEAD,
            max_request_body_size=LARGEST_BODY,
            ident="",
        )
    except OSError as error:
        why = f"{error.strerror}; end the program that has it, or set another port: [serve] port"
        raise Unavailable(f"port {port} of {LOOPBACK}", why) from error
