"""The files of a dump: every row that is written is read back, by us and by the standard library alone."""

from __future__ import annotations

import gzip
import io
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from warcmill.errors import BadInput
from warcmill.formats.pypi import dump
from warcmill.formats.pypi.dump import DistributionRow, DistType, ListedFile, ProjectState
from warcmill.formats.pypi.lives import DistributionLife

texts = st.none() | st.text()
lists = st.none() | st.lists(st.text()).map(tuple)
rows = st.builds(
    DistributionRow, st.text(), st.text(), texts, st.sampled_from(DistType), st.text(), lists, lists, texts, lists
)
files = st.builds(ListedFile, st.text(), st.text(), texts, st.none() | st.integers(0), texts, texts, texts)
states = st.builds(ProjectState, st.text(), st.none() | st.integers(0), st.booleans(), st.lists(files).map(tuple))


def written(some: list[DistributionRow] | list[ProjectState]) -> bytes:
    return b"".join(dump.written(map(dump.row_line, some)))


@given(st.lists(rows))
def test_rows_are_read_back(some: list[DistributionRow]) -> None:
    data = written(some)
    assert [*dump.rows_of(io.BytesIO(data), "d")] == some
    assert json.loads(gzip.decompress(data)) == [row.to_json() for row in some]
    assert written(some) == data


@given(st.lists(states))
def test_states_are_read_back(some: list[ProjectState]) -> None:
    data = written(some)
    assert [*dump.states_of(io.BytesIO(data), "d")] == some
    assert json.loads(gzip.decompress(data)) == [row.to_json() for row in some]


def test_half_of_a_surrogate_pair_in_a_name_is_kept() -> None:
    """As a tar's name has it that is not UTF-8."""
    odd = DistributionRow("a\udcff", "a", None, DistType.SDIST, "0" * 64, None, None, None, ("m\udcff",))
    assert list(dump.rows_of(io.BytesIO(written([odd])), "p")) == [odd]
    listed = ListedFile("a\udcff", "u", None, 1, None, None, None)
    for life in (DistributionLife(listed, 1, None, odd), DistributionLife(listed, 1, 2, None)):
        assert DistributionLife.parse(life.encode()) == life


def test_a_row_of_an_earlier_version_keeps_its_bytes() -> None:
    line = (
        b'{"dist_type": "WHEEL", "filename": "a-1-py3-none-any.whl", "modules": null, "project": "a", '
        b'"requires": null, "requires_dist": [], "requires_python": null, "sha256": "00", "version": "1"}'
    )
    (row,) = dump.rows_of(io.BytesIO(b"".join(dump.written([line]))), "d")
    assert row.metadata is None
    assert dump.row_line(row) == line
    assert b"metadata" not in msgspec.json.encode(row)
    kept = replace(row, metadata=("Name: a",))
    assert list(dump.rows_of(io.BytesIO(written([kept])), "d")) == [kept]


def test_a_dump_has_a_row_a_line() -> None:
    lines = [b'{"a": 1}', b'{"b": 2}']
    assert gzip.decompress(b"".join(dump.written(lines))) == b'[\n{"a": 1},\n{"b": 2}\n]\n'
    assert gzip.decompress(b"".join(dump.written([]))) == b"[\n\n]\n"
    assert [*dump.lines_of(io.BytesIO(b"".join(dump.written([]))), "d")] == []


@given(st.lists(rows, min_size=1, max_size=3), st.data())
def test_a_cut_dump_is_refused(some: list[DistributionRow], data: st.DataObject) -> None:
    whole = written(some)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(BadInput):
        [*dump.rows_of(io.BytesIO(whole[:cut]), "d")]


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"[\n", b"[\n{}\n", b"{}\n]\n", b"[\n{}\n]\n{}\n", b"[\n[1]\n]\n", b"[\n{\n]\n", b"[\n{}\n]\n"],
)
def test_what_is_no_dump_is_refused(content: bytes) -> None:
    with pytest.raises(BadInput):
        [*dump.rows_of(io.BytesIO(gzip.compress(content)), "d")]


def test_bytes_after_the_end_are_refused_and_a_row_is_bounded() -> None:
    with pytest.raises(BadInput, match="after the end"):
        [*dump.lines_of(io.BytesIO(b"".join(dump.written([])) + b"x"), "d")]
    long = gzip.compress(b"[\n" + bytes(dump.LONGEST_ROW + 2))
    with pytest.raises(BadInput, match="a row has more than"):
        [*dump.lines_of(io.BytesIO(long), "d")]
