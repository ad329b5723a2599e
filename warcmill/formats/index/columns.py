"""CDXJ lines as a table with the columns of Common Crawl's URL index, written as Parquet. Pure but for its file.

Names and types are as in the "cc-index-table" schema. Three things differ: `warc_record_offset` and
`warc_record_length` have 64 bits, as our WARCs have no limit; `text_length` and `virus_hit` are our own. A column for
which a CDXJ line has no value is there, and empty.

Most lines have the same seven fields in the same order, and no escape: a reader of CSV cuts them at their quotes, in
a third of the time that a reader of JSON takes. All others are read as JSON.

It needs the extra `columns`: import this module only where a table is made or read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet
from pyarrow import json as arrow_json

from warcmill.errors import BadInput
from warcmill.formats.index.url_columns import HOST_COLUMNS, url_columns

WORD = pa.dictionary(pa.int32(), pa.string())  # a text that many lines share
_USUAL: dict[str, Any] = {
    "url": pa.string(),
    "mime": WORD,
    "status": pa.int16(),
    "digest": pa.string(),
    "length": pa.int64(),
    "offset": pa.int64(),
    "filename": WORD,
}  # the fields of most lines, in their order
_TYPES = {**_USUAL, "truncated": WORD, "key": pa.string(), "date": pa.string()}
_HEADER = b'"'.join(b"f%d" % number for number in range(4 * len(_USUAL) + 1)) + b"\n"
_USUAL_LINE = re.compile(
    rb'[^ "\\]+ \d+ \{' + rb", ".join(rb'"%s": "[^"\\]*"' % name.encode() for name in _USUAL) + rb"\}\n"
)
_ANOTHER = b"-\n"
_AT = {f"f{4 * number + 3}": name for number, name in enumerate(_USUAL)}  # the columns of a line that is cut at quotes
_NAMED_AT = {f"f{4 * number + 1}": name for number, name in enumerate(_USUAL)}
_CSV: dict[str, Any] = {
    "include_columns": ["f0", *_AT, *_NAMED_AT],
    "column_types": {
        "f0": pa.string(),
        **{at: _USUAL[name] for at, name in _AT.items()},
        **dict.fromkeys(_NAMED_AT, WORD),
    },
}
_TEXTS = pa.schema([(name, pa.string()) for name in _TYPES if name not in ("key", "date")])
_SURROGATE = b"\\ud"


def parse(lines: Sequence[bytes]) -> pa.Table:
    """The fields of some lines, empty where a line has none, and `key` and `date`. BadInput for what is not a line."""
    try:
        cut = _cut(lines) or _cut([line if _USUAL_LINE.fullmatch(line) else _ANOTHER for line in lines])
        if not cut:
            return _by_json(lines)
        found, others = cut
        if not others:
            return found
        usual = sorted(set(range(len(lines))).difference(others))
        both = pa.concat_tables([found, _by_json([lines[number] for number in others])]).unify_dictionaries()
        return both.take(pc.sort_indices(pa.array(usual + others))).combine_chunks()
    except pa.ArrowInvalid as error:
        raise BadInput("CDXJ", f"not a line: {error}") from error


def _cut(lines: Sequence[bytes]) -> tuple[pa.Table, list[int]] | None:
    """The fields of the usual lines, and the numbers of those with more quotes, or fewer; None if others are there."""
    document, others = b"".join((_HEADER, *lines)), list[int]()
    if b"\\" in document:
        return None

    def skip(row: csv.InvalidRow) -> str:
        others.append(row.number - 2)  # the header is the first row
        return "skip"

    reading = csv.ReadOptions(use_threads=False, block_size=len(document) + 1)
    cutting = csv.ParseOptions(delimiter='"', quote_char=False, escape_char=False, invalid_row_handler=skip)
    try:
        found = csv.read_csv(pa.BufferReader(document), reading, cutting, _converting(document)).combine_chunks()
    except pa.ArrowInvalid:
        return None
    if found.num_rows + len(others) != len(lines) or not _has_names(found):
        return None
    first = pc.split_pattern(found["f0"], " ")
    if pc.any(pc.not_equal(pc.list_value_length(first), 3)).as_py():
        return None
    made = {name: found[at] for at, name in _AT.items()}
    return _table(made | {"key": pc.list_element(first, 0), "date": pc.list_element(first, 1)}), others


def _converting(document: bytes) -> csv.ConvertOptions:
    """The conversion of fields to texts. The lines that we make are ASCII, and are not checked again field by field."""
    return csv.ConvertOptions(**_CSV, check_utf8=not document.isascii())


def _has_names(found: pa.Table) -> bool:
    """True if every field has the name that it has in the usual lines."""
    return found.num_rows > 0 and all(
        found[at].chunk(0).dictionary.to_pylist() == [name] for at, name in _NAMED_AT.items()
    )


def _by_json(lines: Sequence[bytes]) -> pa.Table:
    """The fields of any lines."""
    parts = [line.split(b" ", 2) for line in lines]
    if any(len(part) < len(("key", "date", "fields")) for part in parts):
        raise BadInput("CDXJ", "a line has no key, no date or no fields")
    found = _parsed([*map(itemgetter(2), parts)])
    made = {name: found[name] for name in found.column_names}
    for number, name in enumerate(("key", "date")):
        made[name] = pa.array([*map(itemgetter(number), parts)], pa.binary())
    return _table(made)


def _table(made: dict[str, Any]) -> pa.Table:
    rows = len(made["key"])
    columns = [_typed(made[name], kind) if name in made else pa.nulls(rows, kind) for name, kind in _TYPES.items()]
    return pa.table(columns, names=list(_TYPES)).combine_chunks()


def _typed(column: Any, kind: pa.DataType) -> Any:
    if column.type == kind:
        return column
    return column.dictionary_encode() if kind == WORD else column.cast(kind)


def _parsed(fields: Sequence[bytes]) -> pa.Table:
    """The fields of some lines, as texts."""
    document = b"".join(fields)
    if _SURROGATE in document.lower():
        document = b"".join(map(_readable, fields))
    reading = arrow_json.ReadOptions(use_threads=False, block_size=len(document) + 1)  # no line across two blocks
    known = arrow_json.ParseOptions(explicit_schema=_TEXTS, unexpected_field_behavior="ignore")
    found = arrow_json.read_json(pa.BufferReader(document), reading, known)
    if found.num_rows != len(fields):
        raise BadInput("CDXJ", f"{len(fields)} lines are {found.num_rows} documents")
    return found


def _readable(fields: bytes) -> bytes:
    """Half a surrogate pair is not a character, and Parquet has only characters: it becomes U+FFFD."""
    if _SURROGATE not in fields.lower():
        return fields
    text = json.dumps(json.loads(fields), ensure_ascii=False)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode() + b"\n"


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


class CaptureNotes(NamedTuple):
    """The facts of other steps about a capture: the length of its text in characters, and the virus found in it."""

    text_length: int | None = None
    virus_hit: str | None = None


About = Callable[[str, int], CaptureNotes]  # of a capture, by the stored name of its WARC and its offset there


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


def table(lines: Sequence[bytes], segment: str, about: About | None) -> pa.Table:
    """A table of some captures, in the order given."""
    found = parse(lines)
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
    """The facts that other steps know."""
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

    The 30th of February, which an extract of an older Warcmill may have, is the 1st or 2nd of March.
    """
    coded = dates.combine_chunks().dictionary_encode()
    try:
        times = pc.strptime(coded.dictionary, format="%Y%m%d%H%M%S", unit="ms").cast(_MS)
        return times.take(coded.indices)
    except pa.ArrowInvalid as error:
        raise BadInput("CDXJ", f"not a line: {error}") from error
