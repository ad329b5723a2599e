"""Tars, against `tarfile`: every format and coding, and files that are wrong."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import tarfile
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill.errors import BadInput
from warcmill.formats.pypi import tar_reader
from warcmill.formats.pypi.tar_reader import TarReader

FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]
PACK = {"": bytes, "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
letters = st.characters(min_codepoint=33, max_codepoint=0x3FF, blacklist_characters="/\\")
paths = st.lists(st.text(letters, min_size=1, max_size=60), min_size=1, max_size=6).map("/".join)
ascii_paths = st.from_regex(r"[a-z]{1,20}(/[a-z_]{1,20}){0,3}\.py", fullmatch=True)


def tarred(some: dict[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        for name, content in some.items():
            folder = tarfile.TarInfo(f"folder-{len(name)}")
            folder.type = tarfile.DIRTYPE
            archive.addfile(folder)
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def contents(data: bytes, coding: str = "") -> dict[str, bytes]:
    reader = TarReader(io.BytesIO(data), "a.tar", coding)
    return {member.name: reader.read(1 << 20) for member in reader if member.is_file}


@given(st.dictionaries(paths, st.binary(max_size=3_000), min_size=1, max_size=5), st.sampled_from(FORMATS[1:]))
def test_members_are_those_that_tarfile_finds(some: dict[str, bytes], form: int) -> None:
    assert contents(tarred(some, form)) == some


@given(st.dictionaries(ascii_paths, st.binary(max_size=3_000), min_size=1, max_size=5), st.sampled_from(sorted(PACK)))
def test_every_coding_is_undone(some: dict[str, bytes], coding: str) -> None:
    data = PACK[coding](tarred(some, tarfile.USTAR_FORMAT))
    assert contents(data, coding) == some
    if coding:
        assert contents(data + bytes(700), coding) == some, "padding does not count"


def test_a_stream_of_several_gzip_members_is_one_tar() -> None:
    data = tarred({"a": bytes(5_000), "b": b"2"})
    assert contents(gzip.compress(data[:3_000]) + gzip.compress(data[3_000:]), "gz") == {"a": bytes(5_000), "b": b"2"}


def test_what_is_not_read_of_a_member_is_skipped() -> None:
    reader = TarReader(io.BytesIO(tarred({"a": b"12345" * 1_000, "b": b"6"})), "a.tar")
    assert [reader.read(3) for member in reader if member.is_file] == [b"123", b"6"]


@given(st.dictionaries(ascii_paths, st.binary(max_size=900), min_size=1, max_size=3), st.data())
def test_no_damage_raises_anything_else(some: dict[str, bytes], data: st.DataObject) -> None:
    coding = data.draw(st.sampled_from(sorted(PACK)))
    whole = bytearray(PACK[coding](tarred(some)))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    for damaged in (bytes(whole), bytes(whole[: data.draw(st.integers(0, len(whole)))])):
        with contextlib.suppress(BadInput):
            contents(damaged, coding)


@pytest.mark.parametrize("coding", ["gz", "bz2", "xz"])
def test_a_cut_stream_and_a_wrong_checksum_are_refused(coding: str) -> None:
    data = PACK[coding](tarred({"a": bytes(range(256)) * 40}))
    with pytest.raises(BadInput):
        contents(data[:-9], coding)
    if coding == "gz":
        with pytest.raises(BadInput):
            contents(data[:-8] + bytes(8), coding)


@pytest.mark.parametrize("kind", [b"x", b"g", b"L"])
def test_a_bomb_of_a_header_takes_no_memory(kind: bytes) -> None:
    info = tarfile.TarInfo("bomb")
    info.type, info.size = kind, 600 << 20
    data = gzip.compress(info.tobuf(tarfile.USTAR_FORMAT) + b"1" * (8 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(BadInput, match="a header of the tar has 629,145,600 bytes"):
            contents(data, "gz")
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_bomb_of_zeros_ends_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tar_reader, "LARGEST", 10 << 20)
    info = tarfile.TarInfo("bomb")
    info.size = 9 << 20
    data = gzip.compress(info.tobuf() + bytes(12 << 20))
    with pytest.raises(BadInput, match="it is a bomb"):
        contents(data, "gz")


@pytest.mark.parametrize(
    "record", [b"10 path=x", b"99999 path=x\n", b"0 path=x\n", b"abc\n", b"17 size=-1000000\n", b"14 size=1e999\n"]
)
def test_a_damaged_pax_header_is_refused(record: bytes) -> None:
    info = tarfile.TarInfo("pax")
    info.type, info.size = b"x", len(record)
    body = record + bytes(-len(record) % 512)
    with pytest.raises(BadInput):
        contents(info.tobuf(tarfile.USTAR_FORMAT) + body + tarred({"a": b"1"})[512:])


def test_the_limit_on_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tar_reader, "MOST_MEMBERS", 3)
    with pytest.raises(BadInput, match="more than 3 members"):
        contents(tarred({"a": b"1", "b": b"2"}))


@pytest.mark.parametrize("data", [b"", bytes(1_024), b"<html>" * 200, b"\x80" * 512])
def test_what_is_no_tar_is_refused(data: bytes) -> None:
    with pytest.raises(BadInput):
        contents(data)
    with pytest.raises(BadInput):
        contents(data, "gz")
