"""The server of `warcmill serve`, by ASGI: a request is parsed, its role looked up, its route's view answers."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route as StarletteRoute

from warcmill.errors import BadInput, NotReady, WarcmillError
from warcmill.model import Json
from warcmill.web import rendering
from warcmill.web.access import Role, User, parse_cookies
from warcmill.web.hidden import HiddenNames
from warcmill.web.request import GUARDS, Answer, Asked, MovedTo, RefusedRequest, SentBytes, ShownPage
from warcmill.web.routes import POST, ROUTES, Route
from warcmill.web.served import Served

HTML, JSON = "text/html; charset=utf-8", "application/json"
FORM_TYPE = "application/x-www-form-urlencoded"  # as browsers send ours; others name a charset of their own
FIELDS, VALUES = 20, 1000  # names in a request, and values of all of them
_HOST = re.compile(r"([\w.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{0,5})?", re.ASCII)
log = logging.getLogger(__name__)


def application(served: Served) -> Starlette:
    """The ASGI application that serves the pages."""
    routes = [
        StarletteRoute(route.path, partial(_answered, served, route), methods=list(route.methods)) for route in ROUTES
    ]
    handlers: dict[Any, Any] = {HTTPException: partial(_unrouted, served), Exception: _bug}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return app


async def _answered(served: Served, route: Route, request: Request) -> Response:
    """The answer to a request, whatever is wrong with it."""
    if misdirected := _misdirected(served, request):
        return _response(route, _unparsed(request), misdirected)
    try:
        user = await _user(served, request, route.role)
        asked = await _parsed(served, route, user, request)
    except BadInput as error:
        refused = RefusedRequest(HTTPStatus.BAD_REQUEST, str(error))
        return _response(route, _unparsed(request, user, served), refused)
    except WarcmillError as error:
        log.error("the tokens of %s: %s", _path(request), error)
        why = "the folder of the state does not answer; the log of this server has the reason"
        return _response(route, _unparsed(request), RefusedRequest(HTTPStatus.SERVICE_UNAVAILABLE, why))
    return await run_in_threadpool(_viewed, served, route, asked)


def _viewed(served: Served, route: Route, asked: Asked) -> Response:
    """Run the view, and show what it answers: in a thread, as both may read files."""
    if refused := _refused(route, asked):
        return _response(route, asked, refused)
    try:
        asked = replace(asked, hidden=_hidden(served, route, asked))
    except WarcmillError as error:
        return _response(route, asked, _unanswered(asked, error))
    answer = _view(served, route, asked)
    return _response(route, asked, answer if asked.sees_hidden else _for_readers(asked.hidden, answer))


def _hidden(served: Served, route: Route, asked: Asked) -> HiddenNames:
    """The names of what is hidden now. Where the decisions cannot be read, readers get no answer, and others one
    without marks: they can fix it."""
    if route.role is Role.NOBODY:  # nothing of the archive is there
        return HiddenNames()
    try:
        return HiddenNames(served.archive.hidden_prefixes())
    except WarcmillError as error:
        if not asked.sees_hidden:
            raise
        log.error("what is hidden is not marked: %s", error)
        return HiddenNames()


def _for_readers(hidden: HiddenNames, answer: Answer) -> Answer:
    """An answer without the names of what is hidden."""
    match answer:
        case ShownPage(answer=found, shown=shown) if not answer.is_of_index:
            return replace(answer, answer=hidden.without(found), shown=hidden.without(shown))
        case RefusedRequest(why=why):
            return replace(answer, why=hidden.without(why))
        case MovedTo(to) if hidden.are_in(to):
            return RefusedRequest(HTTPStatus.NOT_FOUND, "the archive does not show this address")
    return answer


def _refused(route: Route, asked: Asked) -> RefusedRequest | None:
    if asked.user.role >= route.role:
        return None
    if asked.user.role is Role.NOBODY:
        why = "the token is missing, or is not that of this server; open the address that 'warcmill serve' printed"
        return RefusedRequest(HTTPStatus.FORBIDDEN, f"{why}, or sign in")
    return RefusedRequest(
        HTTPStatus.FORBIDDEN, f"this needs the role {route.role.word}; yours is {asked.user.role.word}"
    )


def _view(served: Served, route: Route, asked: Asked) -> Answer:
    try:
        return route.view(served, asked)
    except BadInput as error:
        return RefusedRequest(HTTPStatus.BAD_REQUEST, str(error))
    except NotReady as error:
        return RefusedRequest(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
    except WarcmillError as error:
        return _unanswered(asked, error)


def _unanswered(asked: Asked, error: WarcmillError) -> RefusedRequest:
    log.error("%s: %s", asked.path, error)
    why = "the archive does not answer; the log of this server has the reason"
    return RefusedRequest(HTTPStatus.SERVICE_UNAVAILABLE, f"{why}: {error}" if asked.sees_hidden else why)


def _misdirected(served: Served, request: Request) -> RefusedRequest | None:
    host = request.headers.get("host", "")
    if host and not _HOST.fullmatch(host.strip()):
        return RefusedRequest(HTTPStatus.BAD_REQUEST, "the Host header is not a name of a host, with or without a port")
    if host_name(host) != urlsplit(served.replay.address).hostname:
        return None
    why = "this name is that of replay, which must not get the cookie; open the address that serve printed"
    return RefusedRequest(HTTPStatus.MISDIRECTED_REQUEST, why)


async def _user(served: Served, request: Request, least: Role) -> User:
    """The user of a request. Unavailable if the tokens cannot be read, unless the route is open to everyone."""
    headers = dict(request.headers.items())
    cookies = parse_cookies(headers.get("cookie", ""))
    try:
        return await run_in_threadpool(served.access.user_of, _peer(request), headers, cookies)
    except WarcmillError:
        if least is Role.NOBODY:
            return User()
        raise


def _peer(request: Request) -> str:
    return request.client.host if request.client else ""


async def _parsed(served: Served, route: Route, user: User, request: Request) -> Asked:
    """Parse a request, or raise BadInput."""
    headers = request.headers
    is_proxy = served.access.proxies.is_one(_peer(request))
    host = (headers.get("x-forwarded-host") if is_proxy else "") or headers.get("host", "")
    scheme = (headers.get("x-forwarded-proto") if is_proxy else "") or str(request.scope["scheme"])
    names = {name: str(value) for name, value in request.path_params.items()}
    path, posted, may = _path(request), request.method in POST, user.role >= route.role
    lists = _fields(_query(request)) if not posted else await _form(request, route.body) if may else {}
    fields = {name: values[-1] for name, values in lists.items()}
    form = ""
    if posted:
        _check_origin(headers.get("origin", ""), host)
        if route.is_signed and may:
            form = served.forms.name_of(fields.get("form", ""), user, path)
    is_secure = scheme == "https" or served.replay.address.startswith("https:")
    is_from_elsewhere = not posted and headers.get("sec-fetch-site") == "cross-site"
    base, accept, part = f"{scheme}://{host}", headers.get("accept", ""), headers.get("range", "")
    return Asked(
        request.method, path, names, fields, user, form, base, is_secure, is_from_elsewhere, accept, part, lists=lists,
        has_groups=bool(served.groups()), has_documents=served.has_documents(),
    )  # fmt: skip


def _unparsed(request: Request, user: User | None = None, served: Served | None = None) -> Asked:
    """A request that could not be parsed, to be refused: in JSON if it asked for that."""
    fields = {"format": "json"} if "format=json" in _query(request).split("&") else {}
    has_groups, has_documents = bool(served and served.groups()), bool(served and served.has_documents())
    return Asked(
        request.method, _path(request), {}, fields, user or User(), has_groups=has_groups, has_documents=has_documents
    )


def _path(request: Request) -> str:
    """The path: not by `request.url`, which fails where a query or a Host header is invalid."""
    return str(request.scope["path"])


def _query(request: Request) -> str:
    """The fields of the address, encoded; bytes that are not UTF-8 become U+FFFD."""
    return bytes(request.scope["query_string"]).decode("utf-8", "replace")


def _fields(query: str) -> Mapping[str, list[str]]:
    try:
        return _in_lists("the address", parse_qsl(query, keep_blank_values=True, max_num_fields=VALUES))
    except ValueError as error:
        raise BadInput("the address", f"it has more than {VALUES} values") from error


async def _form(request: Request, most: int) -> Mapping[str, list[str]]:
    length = request.headers.get("content-length", "")
    if not re.fullmatch("[0-9]{1,9}", length) or int(length) > most:
        raise BadInput("the form", f"its Content-Length is not a number up to {most}")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM_TYPE:
        raise BadInput("the form", f"its Content-Type is not {FORM_TYPE}")
    try:
        async with request.form(max_files=0, max_fields=VALUES, max_part_size=most) as form:
            pairs = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    except HTTPException as error:
        raise BadInput("the form", str(error.detail)) from error
    return _in_lists("the form", pairs)


def _in_lists(what: str, pairs: Iterable[tuple[str, str]]) -> Mapping[str, list[str]]:
    """The values of each field, in their order."""
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    if len(found) > FIELDS:
        raise BadInput(what, f"it has more than {FIELDS} fields")
    return found


def _check_origin(origin: str, host: str) -> None:
    """BadInput for a post that a page of another site sent, or whose sender is not known."""
    if not host or origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
        raise BadInput("the form", "it was sent from another site's page; open it on this server, and send it again")


def host_name(host: str) -> str:
    """The name in a Host header, without its port; '' if it is invalid."""
    try:
        return (urlsplit(f"//{host.strip()}").hostname or "").removesuffix(".")
    except ValueError:
        return ""


def _response(route: Route, asked: Asked, answer: Answer) -> Response:
    match answer:
        case MovedTo(to, cookie):
            more = {"Set-Cookie": cookie} if cookie else {}
            return Response(b"", HTTPStatus.SEE_OTHER, {**GUARDS, "Location": to, **more})
        case SentBytes(pieces, type_, length, status, more):
            headers = {**GUARDS, **more} | ({"Content-Length": str(length)} if length is not None else {})
            if isinstance(pieces, bytes):
                return Response(pieces, status, headers, type_)
            return StreamingResponse(pieces, status, headers, type_)
        case RefusedRequest(status, why):
            if asked.in_json:
                return _json_refusal(status, why)
            is_nobody = status is HTTPStatus.FORBIDDEN and asked.user.role is Role.NOBODY
            return _html(asked, "refusal.html", {"status": status, "why": why, "sign_in": is_nobody}, status)
        case ShownPage(found, shown, status):
            if asked.in_json or not route.template:
                return _json(found, status)
            return _html(asked, route.template, {"answer": found, **shown}, status)


def _json_refusal(status: HTTPStatus, why: str) -> Response:
    return _json({"error": rendering.cut(why)}, status)


def _json(answer: Mapping[str, Json], status: HTTPStatus) -> Response:
    return Response(f"{json.dumps(answer, sort_keys=True)}\n".encode(), status, GUARDS, JSON)


def _html(asked: Asked, template: str, values: Mapping[str, object], status: HTTPStatus) -> Response:
    user = asked.user
    rows = [row for row in ROUTES if row.menu and user.role >= row.role]
    rows = [row for row in rows if asked.has_groups or not row.of_groups]
    rows = [row for row in rows if asked.has_documents or not row.of_documents]
    menu = [{"path": row.path, "label": row.menu} for row in rows]
    frame: dict[str, object] = {
        "asked": asked,
        "menu": menu,
        "here": max(
            (row["path"] for row in menu if f"{asked.path}/".startswith(f"{row['path']}/")), key=len, default=""
        ),
        "who": {"name": user.name, "role": user.role.word} if user.role else None,
        "written": "",
    }
    marked = asked.hidden if asked.sees_hidden else HiddenNames()
    text = rendering.render(template, marked, **{**frame, **values})
    return Response(text.encode("utf-8", "replace"), status, GUARDS, HTML)


async def _unrouted(served: Served, request: Request, error: HTTPException) -> Response:
    """404 and 405."""
    whys = {
        HTTPStatus.NOT_FOUND: "this address is not one of this server",
        HTTPStatus.METHOD_NOT_ALLOWED: f"this address does not take {request.method}",
    }
    status = HTTPStatus(error.status_code)
    refusal = RefusedRequest(status, whys.get(status, str(error.detail)))
    response = _response(ROUTES[0], _unparsed(request, await _user(served, request, Role.NOBODY), served), refusal)
    response.headers.update(error.headers or {})
    return response


async def _bug(request: Request, _: Exception) -> Response:
    why = "a fault of Warcmill itself; the log of this server has its traceback: please report it"
    return _response(ROUTES[0], _unparsed(request), RefusedRequest(HTTPStatus.INTERNAL_SERVER_ERROR, why))
