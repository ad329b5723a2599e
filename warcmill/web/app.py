"""The server of `warcmill serve`, by ASGI: a request is parsed, its role looked up, its route's view answers."""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route as StarletteRoute

from warcmill.errors import BadInput, NotReady, WarcmillError
from warcmill.model import Json
from warcmill.web import rendering
from warcmill.web.access import Role, User, parse_cookies
from warcmill.web.handover import multipart
from warcmill.web.handover.files import WebUpload
from warcmill.web.hidden import HiddenNames
from warcmill.web.request import (
    GUARDS,
    POLICY,
    Answer,
    Asked,
    MovedTo,
    RefusedBody,
    RefusedRequest,
    SentBytes,
    ShownPage,
)
from warcmill.web.routes import FORM_TYPE, JSON, LARGEST_FORM, LARGEST_SCRIPT, POST, ROUTES, TEXT, Route
from warcmill.web.served import Served

HTML = "text/html; charset=utf-8"
FILES_TYPE = "multipart/form-data"
FIELDS, LISTED_FIELDS, VALUES = 20, 40, 1000  # names in a request, in a form with files; values of all of them
LARGE_AT_ONCE = 2  # documents of more than LARGEST_SCRIPT that are in memory
READ_OF_REFUSED = 1 << 26  # bytes of a document
AGAIN = "10"  # seconds after which a program may try again
_HOST = re.compile(r"([\w.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{0,5})?", re.ASCII)
_KEY = re.compile(r"[\x21-\x7e]{0,200}")
_TODO: Mapping[HTTPStatus, str] = {
    HTTPStatus.FORBIDDEN: "use a token that has the role: 'warcmill serve token add' makes one",
    HTTPStatus.NOT_FOUND: "look at the pages above this address for what is there",
    HTTPStatus.CONFLICT: "look at what is there first",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "send it in parts",
    HTTPStatus.SERVICE_UNAVAILABLE: "send the same again in a minute",
    HTTPStatus.INTERNAL_SERVER_ERROR: "report it",
}
_large = threading.BoundedSemaphore(LARGE_AT_ONCE)
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
    except WarcmillError as error:
        log.error("the tokens of %s: %s", _path(request), error)
        why = "the folder of the state does not answer; the log of this server has the reason"
        return _response(route, _unparsed(request), RefusedRequest(HTTPStatus.SERVICE_UNAVAILABLE, why))
    try:
        with _room(route, user, request):
            asked = await _parsed(served, route, user, request)
            return await run_in_threadpool(_viewed, served, route, asked)
    except BadInput as error:
        refused = RefusedRequest(HTTPStatus.BAD_REQUEST, str(error), error.path)
    except RefusedBody as error:
        refused = error.answer
    except WarcmillError as error:  # of the disk that an upload goes to
        log.error("%s: %s", _path(request), error)
        refused = RefusedRequest(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
    except ClientDisconnect:
        refused = RefusedRequest(HTTPStatus.BAD_REQUEST, "it broke off before its end")  # which nobody reads
    return _response(route, _unparsed(request, user, served), refused)


@contextmanager
def _room(route: Route, user: User, request: Request) -> Iterator[None]:
    """Memory for a large document, while the block runs."""
    length = request.headers.get("content-length", "")
    has_little = re.fullmatch("[0-9]{1,9}", length) and int(length) <= LARGEST_FORM
    is_small = has_little or route.body <= LARGEST_SCRIPT
    if is_small or request.method not in POST or user.role < route.least(request.method):
        yield
        return
    if not _large.acquire(blocking=False):
        why = f"{LARGE_AT_ONCE} others of this size are being taken; send it again in some seconds"
        raise RefusedBody(HTTPStatus.SERVICE_UNAVAILABLE, why)
    try:
        yield
    finally:
        _large.release()


def _viewed(served: Served, route: Route, asked: Asked) -> Response:
    """Run the view, and show what it answers: in a thread, as both may read files."""
    if refused := _refused(route, asked):
        return _response(route, asked, refused)
    try:
        asked = replace(asked, hidden=_hidden(served, route, asked))
    except WarcmillError as error:
        return _response(route, asked, _unanswered(asked, error))
    answer = _view(served, route, asked)
    response = _response(route, asked, answer if asked.sees_hidden else _for_readers(asked.hidden, answer))
    if route.frames:
        place = urlsplit(served.replay.address)
        response.headers["Content-Security-Policy"] = f"{POLICY}; frame-src {place.scheme}://{place.netloc}"
    return response


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
    least = route.least(asked.method)
    if asked.user.role >= least:
        return None
    if asked.user.role is Role.NOBODY:
        why = "the token is missing, or is not that of this server; open the address that 'warcmill serve' printed"
        return RefusedRequest(HTTPStatus.FORBIDDEN, f"{why}, or sign in")
    return RefusedRequest(HTTPStatus.FORBIDDEN, f"this needs the role {least.word}; yours is {asked.user.role.word}")


def _view(served: Served, route: Route, asked: Asked) -> Answer:
    try:
        return route.view(served, asked)
    except BadInput as error:
        return RefusedRequest(HTTPStatus.BAD_REQUEST, str(error), error.path)
    except NotReady as error:
        return RefusedRequest(HTTPStatus.SERVICE_UNAVAILABLE, str(error), error.what)
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
    path, posted, may = _path(request), request.method in POST, user.role >= route.least(request.method)
    is_document = posted and _is_document(route, request)
    if posted and not (is_document and "origin" not in headers):
        _check_origin(headers.get("origin", ""), host)
    lists, upload = dict[str, list[str]](), ""
    files: Mapping[str, bytes] = {}
    document = await _document(route, request, may=may) if is_document else None
    if not posted:
        lists = _fields(_query(request))
    elif may and route.upload:
        lists, upload = await multipart.take(request, partial(_begun, served, route, user, path))
    elif may and not is_document:
        lists, files = await _form(request, route)
    fields = {name: values[-1] for name, values in lists.items()}
    is_signed = route.is_signed and posted and may and not is_document
    form = served.forms.name_of(fields.get("form", ""), user, path) if is_signed else ""
    once = headers.get("idempotency-key", "")
    if not _KEY.fullmatch(once):
        raise BadInput("Idempotency-Key", "it is not up to 200 printable characters of ASCII without spaces")
    is_secure = scheme == "https" or served.replay.address.startswith("https:")
    is_from_elsewhere = not posted and headers.get("sec-fetch-site") == "cross-site"
    base, accept, part = f"{scheme}://{host}", headers.get("accept", ""), headers.get("range", "")
    return Asked(
        request.method, path, names, fields, user, form, base, is_secure, is_from_elsewhere, accept, part, lists=lists,
        has_groups=bool(served.groups()), has_documents=served.has_documents(), document=document, once=once,
        files=files, upload=upload,
    )  # fmt: skip


def _unparsed(request: Request, user: User | None = None, served: Served | None = None) -> Asked:
    """A request that could not be parsed, to be refused: in JSON if it asked for that."""
    is_json = "format=json" in _query(request).split("&") or _media_type(request)[0] == JSON
    fields, accept = {"format": "json"} if is_json else {}, request.headers.get("accept", "")
    has_groups, has_documents = bool(served and served.groups()), bool(served and served.has_documents())
    return Asked(
        request.method, _path(request), {}, fields, user or User(), accept=accept, has_groups=has_groups,
        has_documents=has_documents,
    )  # fmt: skip


def _path(request: Request) -> str:
    """The path: not by `request.url`, which fails where a query or a Host header is invalid."""
    return str(request.scope["path"])


def _query(request: Request) -> str:
    """The fields of the address, encoded; bytes that are not UTF-8 become U+FFFD."""
    return bytes(request.scope["query_string"]).decode("utf-8", "replace")


def _fields(query: str) -> dict[str, list[str]]:
    try:
        return _in_lists("the address", parse_qsl(query, keep_blank_values=True, max_num_fields=VALUES))
    except ValueError as error:
        raise BadInput("the address", f"it has more than {VALUES} values") from error


def _media_type(request: Request) -> tuple[str, str]:
    """The media type of what is posted, and its charset; '' without one."""
    kind, _, more = request.headers.get("content-type", "").partition(";")
    pairs = (one.partition("=") for one in more.split(";"))
    charsets = [value.strip().strip('"').lower() for name, _, value in pairs if name.strip().lower() == "charset"]
    return kind.strip().lower(), charsets[0] if charsets else ""


def _is_document(route: Route, request: Request) -> bool:
    """True if a program posts, and no form: also what is not taken here, where documents are."""
    return (_media_type(request)[0] != FORM_TYPE or FORM_TYPE not in route.takes) and route.takes != (FORM_TYPE,)


async def _document(route: Route, request: Request, *, may: bool) -> bytes:
    """The document that a program posts. One that is refused is read, too, and not kept: a client that is sending would
    not read why."""
    wrong = _fault_of(route, request) if may else None
    pieces, size, length = list[bytes](), 0, request.headers.get("content-length", "")
    if re.fullmatch("[0-9]{1,18}", length) and int(length) > READ_OF_REFUSED:
        size = int(length)
    else:
        async for piece in request.stream():
            size += len(piece)
            if size <= route.body and may and not wrong:
                pieces.append(piece)
            if size > READ_OF_REFUSED:
                break
    if may and (wrong or size > route.body):
        raise wrong or RefusedBody(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"it is longer than {route.body:,} bytes")
    return b"".join(pieces)


def _fault_of(route: Route, request: Request) -> RefusedBody | None:
    """Why a document is not taken, by its headers. No page of another site can post one: a browser asks us before it
    sends JSON, or a Bearer token, and we do not answer that."""
    (kind, charset), headers = _media_type(request), request.headers
    if kind not in route.takes or charset not in ("", "utf-8", "utf8"):
        types = " or ".join(one for one in route.takes if one != FORM_TYPE)
        return RefusedBody(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"its Content-Type is not {types}, in UTF-8")
    if headers.get("content-encoding", "identity").lower() != "identity":
        return RefusedBody(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "its Content-Encoding is not identity; send it as it is")
    if kind == TEXT and headers.get("authorization", "").partition(" ")[0].lower() != "bearer":
        return RefusedBody(HTTPStatus.FORBIDDEN, "it needs the header Authorization: Bearer TOKEN, and takes no cookie")
    return None


def _begun(served: Served, route: Route, user: User, path: str, fields: multipart.Fields, sent: str) -> WebUpload:
    """The file that comes with a form, once the fields before it were checked: before that, nothing is kept."""
    last = {name: values[-1] for name, values in fields.items()}
    name = served.forms.name_of(last.get("form", ""), user, path)
    named = route.upload(served, last, sent) if route.upload else sent
    return WebUpload(served.state.store, name, named, served.largest_upload)


async def _form(request: Request, route: Route) -> tuple[dict[str, list[str]], Mapping[str, bytes]]:
    """The values of each field, and the files, of a route that takes some."""
    most, length = route.body, request.headers.get("content-length", "")
    if not re.fullmatch("[0-9]{1,9}", length) or int(length) > most:
        raise BadInput("the form", f"its Content-Length is not a number up to {most}")
    wanted = (FORM_TYPE, FILES_TYPE) if route.files else (FORM_TYPE,)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() not in wanted:
        raise BadInput("the form", f"its Content-Type is not {' or '.join(wanted)}")
    try:
        async with request.form(max_files=route.files, max_fields=VALUES, max_part_size=most) as form:
            pairs = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
            files = {name: await one.read() for name, one in form.items() if not isinstance(one, str)}
    except HTTPException as error:
        raise BadInput("the form", str(error.detail)) from error
    return _in_lists("the form", pairs, LISTED_FIELDS if route.files else FIELDS), files


def _in_lists(what: str, pairs: Iterable[tuple[str, str]], most: int = FIELDS) -> dict[str, list[str]]:
    """The values of each field, in their order."""
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    if len(found) > most:
        raise BadInput(what, f"it has more than {most} fields")
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
            if asked.in_json or route.in_json:
                return _json_refusal(answer)
            is_nobody = status is HTTPStatus.FORBIDDEN and asked.user.role is Role.NOBODY
            return _html(asked, "refusal.html", {"status": status, "why": why, "sign_in": is_nobody}, status)
        case ShownPage(found, shown, status):
            if asked.in_json or not route.template:
                return _json(found, status)
            return _html(asked, route.template, {"answer": found, **shown}, status)


def _json_refusal(refused: RefusedRequest) -> Response:
    """A refusal for programs: as a sentence, and apart what is wrong, why, and what to do."""
    status, what, sentence = refused.status, refused.what, rendering.cut(refused.why)
    why = sentence.removeprefix(f"{what}: ").removeprefix(f"{what} is not ready: ")
    todo = _TODO.get(status, "correct the request, and send it again")
    more = {"Retry-After": AGAIN} if status is HTTPStatus.SERVICE_UNAVAILABLE else {}
    return _json({"error": sentence, "todo": todo, "what": rendering.cut(what), "why": why}, status, more)


def _json(answer: Mapping[str, Json], status: HTTPStatus, more: Mapping[str, str] = MappingProxyType({})) -> Response:
    return Response(f"{json.dumps(answer, sort_keys=True)}\n".encode(), status, {**GUARDS, **more}, JSON)


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
