"""Turn CDXJ lines into a table with the columns of Common Crawl's URL index, and write it as Parquet.

Names and types are those of the "cc-index-table" schema. Three things differ: `warc_record_offset` and
`warc_record_length` have 64 bits, as our WARCs have no limit; `text_length` and `virus_hit` are our own. A column that
a CDXJ line says nothing about is there, and empty.

It needs the extra `columns`: import this module only where a table is made or read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from warcmill.errors import BadInput
from warcmill.formats import cdxj_table
from warcmill.formats.cdxj_table import WORD
from warcmill.formats.host_columns import HOST_COLUMNS
from warcmill.formats.url_columns import url_columns

GROUP = 1 << 15  # rows written at a time: with long URLs some 50 MB
_MS = pa.timestamp("ms", tz="UTC")
SCHEMA = pa.schema(
    [
        pa.field("url_surtkey", pa.string(), nullable=False),
        pa.field("url", pa.string(), nullable=False),
        *(pa.field(name, WORD) for name in HOST_COLUMNS),
        ("url_protocol", WORD),
        ("url_port", pa.int32()),
        ("url_path", pa.string()),
        ("url_query", pa.string()),
        ("fetch_time", _MS),
        ("fetch_status", pa.int16()),
        ("fetch_redirect", WORD),
        ("content_digest", pa.string()),
        ("content_mime_type", WORD),
        ("content_mime_detected", WORD),
        ("content_charset", WORD),
        ("content_languages", WORD),
        ("content_truncated", WORD),
        ("warc_filename", WORD),
        ("warc_record_offset", pa.int64()),
        ("warc_record_length", pa.int64()),
        ("warc_segment", WORD),
        ("text_length", pa.int64()),
        ("virus_hit", WORD),
    ]
)
_OF_FEW_VALUES = ["url_port", "fetch_time", "fetch_status", *(field.name for field in SCHEMA if field.type == WORD)]
_SHA1 = "sha1:"


class Known(NamedTuple):
    """What other steps know about a capture: the length of its text in characters, and the virus found in it."""

    text_length: int | None = None
    virus_hit: str | None = None


NOTHING = Known()
About = Callable[[str, int], Known]  # of a capture, by the stored name of its WARC and its offset there


def write(batches: Iterable[Sequence[bytes]], segment: str, about: About | None, file: IO[bytes]) -> int:
    """Write batches of sorted CDXJ lines as one Parquet file; return how many lines. `segment` names their stage.

    `about` is None where no other step knows anything. BadInput for a line that is not CDXJ.
    """
    order = parquet.SortingColumn.from_ordering(SCHEMA, [("url_surtkey", "ascending")])
    style: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True, "sorting_columns": order}
    style |= {"use_dictionary": _OF_FEW_VALUES, "store_schema": False}  # readers need not know that of our tables
    written = 0
    with parquet.ParquetWriter(file, SCHEMA, **style) as writer:
        for group in _groups(batches):
            writer.write_table(table(group, segment, about), row_group_size=GROUP)
            written += len(group)
    return written


def _groups(batches: Iterable[Sequence[bytes]]) -> Iterator[list[bytes]]:
    held = list[bytes]()
    for batch in batches:
        held += batch
        while len(held) >= GROUP:
            yield held[:GROUP]
            del held[:GROUP]
    if held:
        yield held


def read(file: IO[bytes]) -> Iterator[dict[str, object]]:
    """Yield each row of a Parquet file as a dict; its checksums are compared."""
    for batch in parquet.ParquetFile(file, page_checksum_verification=True).iter_batches():
        yield from batch.to_pylist()


def table(lines: Sequence[bytes], segment: str, about: About | None) -> pa.Table:
    """A table of some captures, in the order given."""
    found = cdxj_table.parse(lines)
    made = {
        "url_surtkey": found["key"],
        **url_columns(found["url"]),
        "fetch_time": _times(found["date"]),
        "fetch_status": found["status"],
        "content_digest": _without_sha1(found["digest"]),
        "content_mime_type": found["mime"],
        "content_truncated": found["truncated"],
        "warc_filename": found["filename"],
        "warc_record_offset": found["offset"],
        "warc_record_length": found["length"],
        "warc_segment": pa.repeat(segment, len(lines)).dictionary_encode(),
        **_known(found, about),
    }
    columns = [made[field.name] if field.name in made else pa.nulls(len(lines), field.type) for field in SCHEMA]
    return pa.table(columns, schema=SCHEMA)


def _known(found: pa.Table, about: About | None) -> dict[str, pa.Array]:
    """What other steps know."""
    if about is None:
        return {}
    known = [*map(about, found["filename"].to_pylist(), found["offset"].to_pylist())]
    return {
        "text_length": pa.array([one.text_length for one in known], pa.int64()),
        "virus_hit": pa.array([one.virus_hit for one in known], pa.string()).dictionary_encode(),
    }


def _without_sha1(digests: pa.ChunkedArray) -> pa.ChunkedArray:
    if pc.all(pc.starts_with(digests, _SHA1)).as_py():
        return pc.binary_replace_slice(digests, 0, len(_SHA1), "")
    return pc.replace_substring_regex(digests, f"^{_SHA1}", "")


def _times(dates: pa.ChunkedArray) -> pa.ChunkedArray:
    """The times of 14 digits each, of which many captures share one: each is read once.

    The 30th of February, which a WARC may have, is the 1st or 2nd of March.
    """
    coded = dates.combine_chunks().dictionary_encode()
    try:
        times = pc.strptime(coded.dictionary, format="%Y%m%d%H%M%S", unit="ms").cast(_MS)
        return times.take(coded.indices)
    except pa.ArrowInvalid as error:
        raise BadInput("CDXJ", f"not a line: {error}") from error
