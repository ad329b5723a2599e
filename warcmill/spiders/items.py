"""An item of a spider as a line of results.jsonl: of one that names who asked, by `appid` and `crawlid`. Pure.

It stands alone, as others read what it writes: names and forms are as in Scrapy Cluster's messages.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from itemadapter import ItemAdapter, is_item
from scrapy.http import Headers

from warcmill.crawl.books.books import CrawlResult
from warcmill.model import Json
from warcmill.requests.serving.results import ITEM
from warcmill.spiders.requests import APPID, CRAWLID

BODY, ENCODING, BASE64, TIME = "body", "encoding", "base64", "timestamp"


def result_of(item: object) -> CrawlResult | None:
    """The result that an item is; None for one that nobody has asked for."""
    if not is_item(item):
        return None
    found = ItemAdapter(item).asdict()
    if not (found.get(APPID) and found.get(CRAWLID)):
        return None
    body = found.get(BODY)
    if isinstance(body, bytes):
        found[BODY], coding = _body(body, str(found.get(ENCODING) or "utf-8"))
        found |= {ENCODING: coding} if coding == BASE64 or ENCODING in found else {}
    found.setdefault(TIME, datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds"))
    value = {str(name): _json(one) for name, one in found.items()}
    return CrawlResult(ITEM, value)


def _body(body: bytes, encoding: str) -> tuple[str, str]:
    """The text of a body, and its coding: base64 for a body that is not text."""
    try:
        return body.decode(encoding), encoding
    except (UnicodeDecodeError, LookupError):
        return base64.b64encode(body).decode("ascii"), BASE64


def _json(value: Any) -> Json:
    """A value as JSON has it: bytes as text, headers as a list for each name, and what it has no form for as text."""
    match value:
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case Headers():
            return {_text(name): [_text(one) for one in value.getlist(name)] for name in value}
        case Mapping():
            return {_text(name): _json(one) for name, one in value.items()}
        case list() | tuple() | set():
            return [_json(one) for one in value]
    try:
        return json.loads(json.dumps(value, allow_nan=False))  # type: ignore[no-any-return]
    except (TypeError, ValueError):
        return str(value)


def _text(name: object) -> str:
    return name.decode("latin-1") if isinstance(name, bytes) else str(name)
