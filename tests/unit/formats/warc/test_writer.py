"""The files of one writer: their names, when a new one begins, and what is left after an error."""

from __future__ import annotations

import io
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from warcmill import layout
from warcmill.errors import Conflict, Mismatch, Unavailable
from warcmill.formats.warc import records
from warcmill.formats.warc.gate import examine
from warcmill.formats.warc.records import Block, Capture, Record
from warcmill.formats.warc.writer import WarcFiles, Writer, close_name

WRITER = Writer("daily", 4711, "crawler01")
PAGE = Capture("http://a.example/", "2026-11-21T08:17:37Z")


def record(data: bytes = b"a page") -> Record:
    return records.resource(PAGE, "text/plain", Block.of(data))


def begin(folder: Path, **more: int) -> WarcFiles:
    return WarcFiles(folder, WRITER, [("isPartOf", "daily")], **more)


def test_a_name_is_one_that_the_line_reads_a_serial_from(tmp_path: Path) -> None:
    files = begin(tmp_path, serial=7)
    files.append([record()])
    assert layout.warc_serial(files.name) == layout.Serial("daily", "4711~crawler01~0", 7)
    assert layout.is_warc_name(files.name)
    assert files.serial == 8


def test_a_file_is_open_until_it_is_closed_and_the_gate_reads_both(tmp_path: Path) -> None:
    files = begin(tmp_path)
    files.append([record(), record()])
    files.sync()
    name = files.name
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}.open"]
    assert whole_records(tmp_path / f"{name}.open") == 3
    assert files.close() == name
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert whole_records(tmp_path / name) == 3
    assert (files.name, files.close()) == ("", "")


def whole_records(path: Path) -> int:
    verdict = examine(io.BytesIO(path.read_bytes()), path.name)
    assert verdict.ok, verdict
    return verdict.records


def test_places_are_where_the_members_are(tmp_path: Path) -> None:
    files = begin(tmp_path)
    first, second = files.append([record(b"one"), record(b"two")])
    data = (tmp_path / f"{files.name}.open").read_bytes()
    assert first.offset + first.length == second.offset
    assert second.offset + second.length == files.length == len(data)
    member = data[second.offset : second.offset + second.length]
    assert b"two" in records.isal_zlib.decompress(member, 31)


def test_a_new_file_begins_at_the_size_and_never_within_one_group(tmp_path: Path) -> None:
    files = begin(tmp_path, size=600)
    groups = [files.append([record(os.urandom(300)), record(os.urandom(300))]) for _ in range(3)]
    assert [len({place.name for place in group}) for group in groups] == [1, 1, 1]
    assert [layout.warc_serial(group[0].name).number for group in groups] == [0, 1, 2]  # type: ignore[union-attr]
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".gz", ".gz", ".open"]


def test_a_record_that_cannot_be_made_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    files = begin(tmp_path)
    files.append([record()])
    before = files.length
    lost = records.resource(PAGE, "text/plain", Block(9, "sha1:x", lambda: (b"",)))
    with pytest.raises(Mismatch):
        files.append([record(), lost])
    assert files.length == before
    files.append([record()])
    assert whole_records(tmp_path / f"{files.name}.open") == 3


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    files = begin(tmp_path)
    files.append([record()])
    path = tmp_path / f"{files.name}.open"
    with file_size_limit(files.length + 200), pytest.raises(Unavailable, match="The record was not written"):
        files.append([record(), record(os.urandom(4_000))])
    assert whole_records(path) == 2
    files.append([record()])
    assert whole_records(path) == 3


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """A write beyond `size` bytes fails with EFBIG, after a part of it was written: as on a disk that is full."""
    ignored, limits = signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)


def test_no_file_is_made_when_the_place_is_not_the_right_one(tmp_path: Path) -> None:
    def refuse() -> None:
        raise Unavailable(str(tmp_path), "it has no .warcmill.json")

    files = WarcFiles(tmp_path, WRITER, [], before_file=refuse)
    with pytest.raises(Unavailable):
        files.append([record()])
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_gone_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"daily-.*\.open is unavailable"):
        begin(tmp_path / "gone").append([record()])


def test_closing_never_replaces_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.warc.gz.open").write_bytes(b"new")
    (tmp_path / "a.warc.gz").write_bytes(b"old")
    with pytest.raises(Conflict):
        close_name(tmp_path, "a.warc.gz")
    assert (tmp_path / "a.warc.gz").read_bytes() == b"old"
