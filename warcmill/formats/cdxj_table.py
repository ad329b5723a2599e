"""Parse CDXJ lines, many at a time, into a table with a column for each field.

Most lines have the same seven fields in the same order, and no escape: a reader of CSV cuts them at their quotes, in
a third of the time that a reader of JSON takes. All others are read as JSON.

It needs the extra `columns`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv
from pyarrow import json as arrow_json

from warcmill.errors import BadInput

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
    """The fields of some lines, empty where a line has none, and `key` and `date`. BadInput for what is no line."""
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
    """How fields become texts. The lines that we make are ASCII, which need not be checked again field by field."""
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
    """Half a surrogate pair is no character, and Parquet has only characters: it becomes U+FFFD."""
    if _SURROGATE not in fields.lower():
        return fields
    text = json.dumps(json.loads(fields), ensure_ascii=False)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode() + b"\n"
