"""Turn CDXJ lines into a table with the columns of Common Crawl's URL index, and write it as Parquet.

Names and types are those of the "cc-index-table" schema. Three things differ: `warc_record_offset` and
`warc_record_length` have 64 bits, as our WARCs have no limit; `text_length` and `virus_hit` are our own. A column that
a CDXJ line says nothing about is there, and empty.

It needs the extra `columns`: import this module only where a table is made or read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from itertools import islice
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json
from pyarrow import parquet

from warcmill.errors import BadInput
from warcmill.formats.host_columns import HOST_COLUMNS, host_columns

GROUP = 1 << 15  # rows written at a time: with long URLs some 50 MB
_MS = pa.timestamp("ms", tz="UTC")
SCHEMA = pa.schema(
    [
        pa.field("url_surtkey", pa.string(), nullable=False),
        pa.field("url", pa.string(), nullable=False),
        *(pa.field(name, pa.string()) for name in HOST_COLUMNS),
        ("url_protocol", pa.string()),
        ("url_port", pa.int32()),
        ("url_path", pa.string()),
        ("url_query", pa.string()),
        ("fetch_time", _MS),
        ("fetch_status", pa.int16()),
        ("fetch_redirect", pa.string()),
        ("content_digest", pa.string()),
        ("content_mime_type", pa.string()),
        ("content_mime_detected", pa.string()),
        ("content_charset", pa.string()),
        ("content_languages", pa.string()),
        ("content_truncated", pa.string()),
        ("warc_filename", pa.string()),
        ("warc_record_offset", pa.int64()),
        ("warc_record_length", pa.int64()),
        ("warc_segment", pa.string()),
        ("text_length", pa.int64()),
        ("virus_hit", pa.string()),
    ]
)
_FIELDS = ("url", "mime", "status", "digest", "length", "offset", "truncated", "filename")
_LINE = pa.schema([(name, pa.string()) for name in _FIELDS])
_SURROGATE = b"\\ud"
_URL = (
    r"^(?P<protocol>[A-Za-z][A-Za-z0-9+.-]*):"
    r"(?://(?:[^/?#@]*@)?(?P<host>\[[^\]]*\]|[^:/?#]*)(?::(?P<port>[0-9]{1,5})?)?)?"
    r"(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?"
)


class Known(NamedTuple):
    """What other steps know about a capture: the length of its text in characters, and the virus found in it."""

    text_length: int | None = None
    virus_hit: str | None = None


NOTHING = Known()
About = Callable[[str, int], Known]  # of a capture, by the stored name of its WARC and its offset there


def write(lines: Iterable[bytes], segment: str, about: About, file: IO[bytes]) -> int:
    """Write sorted CDXJ lines as one Parquet file; return how many. `segment` names their stage.

    BadInput for a line that is not CDXJ.
    """
    order = parquet.SortingColumn.from_ordering(SCHEMA, [("url_surtkey", "ascending")])
    style: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True, "sorting_columns": order}
    written = 0
    with parquet.ParquetWriter(file, SCHEMA, **style) as writer:
        for group in _groups(lines):
            writer.write_table(table(group, segment, about), row_group_size=GROUP)
            written += len(group)
    return written


def _groups(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    left = iter(lines)
    while group := list(islice(left, GROUP)):
        yield group


def read(file: IO[bytes]) -> Iterator[dict[str, object]]:
    """Yield each row of a Parquet file as a dict; its checksums are compared."""
    for batch in parquet.ParquetFile(file, page_checksum_verification=True).iter_batches():
        yield from batch.to_pylist()


def table(lines: Sequence[bytes], segment: str, about: About) -> pa.Table:
    """A table of some captures, in the order given."""
    keys, dates, fields = zip(*(line.split(b" ", 2) for line in lines), strict=True)
    found = _parsed(fields)
    offsets = found["offset"].cast(pa.int64())
    known = [about(*place) for place in zip(found["filename"].to_pylist(), offsets.to_pylist(), strict=True)]
    made = {
        "url_surtkey": _texts(keys),
        **_of_urls(found["url"]),
        "fetch_time": _times(_texts(dates)),
        "fetch_status": found["status"].cast(pa.int16()),
        "content_digest": pc.replace_substring_regex(found["digest"], "^sha1:", ""),
        "content_mime_type": found["mime"],
        "content_truncated": found["truncated"],
        "warc_filename": found["filename"],
        "warc_record_offset": offsets,
        "warc_record_length": found["length"].cast(pa.int64()),
        "warc_segment": pa.repeat(segment, len(lines)),
        "text_length": pa.array([one.text_length for one in known], pa.int64()),
        "virus_hit": pa.array([one.virus_hit for one in known], pa.string()),
    }
    empty = pa.nulls(len(lines), pa.string())
    return pa.table([made.get(name, empty) for name in SCHEMA.names], schema=SCHEMA)


def _texts(values: Sequence[bytes]) -> pa.Array:
    return pa.array(values, pa.binary()).cast(pa.string())


def _of_urls(urls: pa.Array) -> dict[str, pa.Array]:
    """The columns of some URLs."""
    parts = pc.extract_regex(urls, _URL)
    return {
        "url": urls,
        **_of_hosts(pc.utf8_lower(_part(parts, "host"))),
        "url_protocol": pc.utf8_lower(_part(parts, "protocol")),
        "url_port": _part(parts, "port").cast(pa.int32()),
        "url_path": _part(parts, "path"),
        "url_query": _part(parts, "query"),
    }


def _parsed(fields: Sequence[bytes]) -> pa.Table:
    """The fields of some lines, as texts: empty where a line has none."""
    document = b"".join(fields)
    if _SURROGATE in document.lower():
        document = b"".join(map(_readable, fields))
    reading = arrow_json.ReadOptions(use_threads=False, block_size=len(document) + 1)  # no line across two blocks
    known = arrow_json.ParseOptions(explicit_schema=_LINE, unexpected_field_behavior="ignore")
    try:
        found = arrow_json.read_json(BytesIO(document), reading, known)
    except pa.ArrowInvalid as error:
        raise BadInput("CDXJ", f"not a line: {error}") from error
    if found.num_rows != len(fields):
        raise BadInput("CDXJ", f"{len(fields)} lines are {found.num_rows} documents")
    return found.combine_chunks()


def _readable(fields: bytes) -> bytes:
    """Half a surrogate pair is no character, and Parquet has only characters: it becomes U+FFFD."""
    if _SURROGATE not in fields.lower():
        return fields
    text = json.dumps(json.loads(fields), ensure_ascii=False)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode() + b"\n"


def _part(parts: pa.Array, name: str) -> pa.Array:
    """One part of each URL; empty where there is none."""
    part = pc.struct_field(parts, name)
    return pc.if_else(pc.equal(part, ""), pa.scalar(None, pa.string()), part)


def _of_hosts(hosts: pa.Array) -> dict[str, pa.Array]:
    """The columns of the hosts: each different host is looked at once."""
    coded = hosts.combine_chunks().dictionary_encode()
    columns = zip(*map(host_columns, coded.dictionary.to_pylist()), strict=True)
    known = dict(zip(HOST_COLUMNS, columns, strict=False)) or dict.fromkeys(HOST_COLUMNS, ())
    return {name: pa.array(values, pa.string()).take(coded.indices) for name, values in known.items()}


def _times(dates: pa.Array) -> pa.Array:
    """The times of 14 digits each. The 30th of February, which a WARC may have, is the 1st or 2nd of March."""
    return pc.strptime(dates, format="%Y%m%d%H%M%S", unit="ms").cast(_MS)
