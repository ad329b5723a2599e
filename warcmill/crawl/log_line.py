"""Write a line of crawl.log as Heritrix writes it: `formats.crawllog` describes and reads it."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from functools import lru_cache

from warcmill.formats.crawllog import CrawlRecord

_json = json.JSONEncoder().encode
_GAP = re.compile(r"[\x00-\x20\x7f-\xa0]")  # in a column it would begin the next, or the next line


def render(record: CrawlRecord, warc: str = "", offset: int = 0) -> bytes:
    """Return the line of a URI, whose first record is at this offset of the WARC; '' for none."""
    size = [] if record.content_size is None else [f'"contentSize":{record.content_size}']
    where = [f'"warcFilename":{_json(warc)}', f'"warcFileOffset":{offset}'] if warc else []
    texts = [record.uri, record.hops, record.via, record.mime, record.thread, record.fetched, record.digest]
    texts += [record.source, ",".join(record.annotations)]
    columns = [text or "-" for text in texts]
    if _GAP.search("".join(columns)):
        columns = [_GAP.sub(_escape, text) for text in columns]
    numbers = f"{_number(record.status):>5} {_number(record.size):>10}"
    line = f"{record.logged} {numbers} {' '.join(columns)} {{{','.join([*size, *where])}}}\n"
    return line.encode("utf-8", "backslashreplace")


def moment(seconds: float) -> str:
    """A time as the first column has it: `2026-11-21T08:17:37.003Z`."""
    part, whole = math.modf(seconds)
    microseconds = round(part * 1e6)  # as `datetime.fromtimestamp` rounds
    return f"{_second(int(whole) + microseconds // 1_000_000)}.{microseconds % 1_000_000 // 1000:03}Z"


def begun(started: float, finished: float) -> str:
    """The ninth column: the start in 17 digits and the milliseconds that it took, `20261121081736467+29`."""
    text = moment(started)
    digits = text[:4] + text[5:7] + text[8:10] + text[11:13] + text[14:16] + text[17:19] + text[20:23]
    return f"{digits}+{max(0, round((finished - started) * 1000))}"


def column(text: str) -> str:
    """Return a text as one column of a line."""
    return _GAP.sub(_escape, text) or "-"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


@lru_cache(1_000)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()


def _escape(gap: re.Match[str]) -> str:
    return f"%{ord(gap[0]):02X}"
