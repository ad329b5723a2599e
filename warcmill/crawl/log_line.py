"""Write a line of crawl.log as Heritrix writes it: `formats.crawllog` describes and reads it."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

from warcmill.formats.crawllog import CrawlRecord

_json = json.JSONEncoder(separators=(",", ":")).encode
_GAP = re.compile(r"[\x00-\x20\x7f-\xa0]")  # in a column it would begin the next, or the next line


def render(record: CrawlRecord, warc: str = "", offset: int = 0) -> bytes:
    """Return the line of a URI, whose first record is at this offset of the WARC; '' for none."""
    where = {"warcFilename": warc, "warcFileOffset": offset} if warc else {}
    size = {} if record.content_size is None else {"contentSize": record.content_size}
    columns = (
        record.logged,
        f"{_number(record.status):>5}",
        f"{_number(record.size):>10}",
        *map(_column, (record.uri, record.hops, record.via, record.mime, record.thread)),
        *map(_column, (record.fetched, record.digest, record.source, ",".join(record.annotations))),
        _json({**size, **where}),
    )
    return (" ".join(columns) + "\n").encode("utf-8", "backslashreplace")


def moment(seconds: float) -> str:
    """A time as the first column has it: `2026-11-21T08:17:37.003Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def begun(started: float, finished: float) -> str:
    """The ninth column: the start in 17 digits and the milliseconds that it took, `20261121081736467+29`."""
    text = moment(started)
    digits = text[:4] + text[5:7] + text[8:10] + text[11:13] + text[14:16] + text[17:19] + text[20:23]
    return f"{digits}+{max(0, round((finished - started) * 1000))}"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _column(text: str | None) -> str:
    return _GAP.sub(lambda gap: f"%{ord(gap[0]):02X}", text) if text else "-"
