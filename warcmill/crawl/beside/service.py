"""The requests of another engine, over HTTP on loopback: `POST /render` has a page rendered, and returns its links.

    {"url": "https://www.example.org/", "warc_prefix": "daily-rendered-20161019234428"}
    200 {"links": [...], "notes": [...], "status": 200, "warc_prefix": "..."}      the WARC is closed
    400 no such request    401 no token    403 it may not be fetched    502 no answer came
    503 the disk takes nothing, or no browser starts

Each error is `{"error": WHY}`; nothing of the page is kept then, and the engine fetches it by itself.
"""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Mapping
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from warcmill.base.escapes import printable
from warcmill.crawl.beside.page import NotFetched, PageRenderer
from warcmill.errors import BadInput, WarcmillError
from warcmill.layout import is_prefix
from warcmill.model import Json

PATH = "/render"
LARGEST = 1 << 16  # bytes of a request
log = logging.getLogger(__name__)


def application(renderer: PageRenderer, token: str) -> Starlette:
    """The application: who asks has to send the token, as `Authorization: Bearer` or in the address."""

    async def render(request: Request) -> Response:
        given = request.headers.get("authorization", "").partition("Bearer ")[2] or request.query_params.get(
            "token", ""
        )
        if not hmac.compare_digest(given.encode("utf-8", "replace"), token.encode()):
            return _error(HTTPStatus.UNAUTHORIZED, "send the token of the address that 'warcmill render serve' printed")
        url = "-"
        try:
            url, prefix = _asked(await _body(request))
            found = await renderer.render(url, prefix)
        except BadInput as error:
            return _error(HTTPStatus.BAD_REQUEST, str(error))
        except (WarcmillError, OSError) as error:
            log.error("%s: %s", printable(url), printable(str(error)))
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        if isinstance(found, NotFetched):
            log.info("%s: %s", printable(url), printable(found.why))
            return _error(HTTPStatus.FORBIDDEN if found.final else HTTPStatus.BAD_GATEWAY, found.why)
        log.info("%s: %d, %d links %s", printable(url), found.status, len(found.links), " ".join(found.notes))
        links: list[Json] = [*found.links]
        notes: list[Json] = [*found.notes]
        return _json(HTTPStatus.OK, {"status": found.status, "links": links, "notes": notes, "warc_prefix": prefix})

    return Starlette(routes=[Route(PATH, render, methods=["POST"])])


async def _body(request: Request) -> bytes:
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > LARGEST:
            raise BadInput(PATH, f"the request is larger than {LARGEST:,} bytes")
    return bytes(data)


def _asked(data: bytes) -> tuple[str, str]:
    """The URL and the prefix that are asked for."""
    try:
        asked = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadInput(PATH, "the request is not JSON") from error
    if not isinstance(asked, dict) or asked.keys() != {"url", "warc_prefix"}:
        raise BadInput(PATH, 'the request is not {"url": URL, "warc_prefix": PREFIX}')
    url, prefix = asked["url"], asked["warc_prefix"]
    if not isinstance(url, str) or not isinstance(prefix, str):
        raise BadInput(PATH, "'url' and 'warc_prefix' are texts")
    if not is_prefix(prefix):
        why = "'warc_prefix' has 4 to 200 of A-Z a-z 0-9 . _ ~ = + @ -, and begins with a letter or digit"
        raise BadInput(PATH, why)
    return url, prefix


def _error(status: HTTPStatus, why: str) -> Response:
    return _json(status, {"error": printable(why)})


def _json(status: HTTPStatus, document: Mapping[str, Json]) -> Response:
    text = json.dumps(document, ensure_ascii=True, sort_keys=True)
    return Response(text, status, media_type="application/json", headers={"Cache-Control": "no-store"})
