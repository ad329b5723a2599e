"""The role of `warcmill run` that answers Scrapy Cluster's REST clients: who may ask, and where it listens."""

from __future__ import annotations

import argparse
import socket
import time
from collections.abc import Callable
from threading import Event

from starlette.requests import Request

from commands.console import requests
from commands.console.show import err
from tasks.config import sections
from tasks.config.requests import PORT, RestAddress, rest_address
from tasks.line import open_line
from warcmill.errors import BadConfig
from warcmill.requests.compat import REST
from warcmill.requests.monitor import log_of
from warcmill.requests.rest import RestService, is_of_this_machine
from warcmill.requests.settings import RequestsPlace
from warcmill.web import access, server
from warcmill.web.access import Role, WebAccess

_ALIVE = 10.0  # seconds between two signs of life


def run(args: argparse.Namespace) -> int:
    """Serve until a signal."""
    _service(requests.place_of(args), args.port)(None)
    return 0


def run_beside_requests(args: argparse.Namespace) -> int:
    """Take requests and serve, in one process, until a signal."""
    return requests.run(args, lambda place: _service(place, args.port))


def _service(place: RequestsPlace, given: int | None) -> Callable[[Event | None], None]:
    """The service: it runs until an event, or until a signal if there is none. `given` is its port, unless None."""
    address, values = rest_address(), place.values()
    port = given or (values["FLASK_PORT"] if values["FLASK_PORT"] != PORT else address.port)
    judge, log = _judge(address), log_of(values)("rest-service")
    where = f"http://{f'[{address.listen}]' if ':' in address.listen else address.listen}:{port}/"

    def serve(ended: Event | None) -> None:
        service = RestService(place, log, judge, _SignsOfLife(place))
        service.start()
        try:
            server.serve(
                service.app(), address.listen, port, lambda: err(f"{where} answers; Ctrl-C ends it"), "--port", ended
            )
        finally:
            service.close()

    return serve


class _Judge:
    """Lets everyone of this machine ask; with tokens, an operator feed and a reader look."""

    def __init__(self, address: RestAddress, tokens: WebAccess | None) -> None:
        self._address, self._tokens = address, tokens

    def __call__(self, request: Request, feeds: bool) -> bool:
        if self._address.is_loopback:
            return is_of_this_machine(request.headers.get("host", ""))
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        is_bearer = kind.lower() == "bearer"
        own = self._address.tokens.get(access.digest_of(secret.strip()), Role.NOBODY) if is_bearer else Role.NOBODY
        role = own
        if not own and self._tokens:
            role = self._tokens.user_of("", dict(request.headers.items()), {}).role
        return role >= (Role.OPERATOR if feeds else Role.READER)


def _judge(address: RestAddress) -> _Judge:
    """The judge of requests; BadConfig where others than this machine may ask, and there is no token.

    A machine without the archive has no state with tokens: its tokens are in token_file.
    """
    if address.is_loopback:
        return _Judge(address, None)
    state = open_line().state.store if sections.value("warcmill", "store") else None
    usable = address.tokens or (state and any(not one.why and not one.is_over for one in access.tokens(state)))
    if not usable:
        why = f"is {address.listen}, which other machines reach, and there are no tokens: 'warcmill serve token add"
        raise BadConfig("[requests] rest_listen", f"{why} NAME --role operator' makes one")
    return _Judge(address, WebAccess(state, "") if state else None)


class _SignsOfLife:
    """Writes a sign of life into the accounts, now and then."""

    def __init__(self, place: RequestsPlace) -> None:
        self._place, self._seconds = place, place.values()["HEARTBEAT_TIMEOUT"]
        self._next = 0.0

    def __call__(self, name: str) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + min(_ALIVE, self._seconds / 3)
            accounts = self._place.open_accounts()
            try:
                accounts.live(REST, socket.gethostname(), name, self._seconds)
            finally:
                accounts.close()
