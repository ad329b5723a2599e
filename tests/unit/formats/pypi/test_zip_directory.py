"""Zip directories, against `zipfile`: whole files, tails, zip64, and files that are wrong."""

from __future__ import annotations

import contextlib
import io
import struct
import tracemalloc
import zipfile
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill.errors import BadInput
from warcmill.formats.pypi import zip_directory
from warcmill.formats.pypi.zip_directory import TooEarly, ZipDirectory, ZipMember

names = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), min_size=1, max_size=30)
members = st.dictionaries(names, st.binary(max_size=2_000), max_size=8)
comments = st.binary(max_size=100).filter(lambda one: b"PK\5\6" not in one)
"""zipfile reads no archive whose comment has the signature of the end record (APPNOTE.TXT, 4.3.16)."""


def zipped(some: dict[str, bytes], before: bytes = b"", comment: bytes = b"") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = comment
        for name, content in some.items():
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=zipfile.ZIP_DEFLATED)
    return before + file.getvalue()


def opened(data: bytes, begin: int = 0) -> ZipDirectory:
    return ZipDirectory(io.BytesIO(data[begin:]), "a.zip", len(data), begin)


def contents(directory: ZipDirectory) -> dict[str, bytes]:
    return {member.name: b"".join(directory.read(member)) for member in directory}


@given(members, st.sampled_from([b"", b"#!/usr/bin/python\n"]), comments)
def test_members_are_those_that_zipfile_finds(some: dict[str, bytes], before: bytes, comment: bytes) -> None:
    data = zipped(some, before, comment)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        expected = {name: archive.read(name) for name in archive.namelist()}
    assert contents(opened(data)) == expected


@given(members, st.data())
def test_a_tail_gives_the_same_or_names_the_bytes_that_it_needs(some: dict[str, bytes], data: st.DataObject) -> None:
    whole = zipped(some)
    begin = data.draw(st.integers(0, len(whole)))
    for _ in range(20):
        try:
            assert contents(opened(whole, begin)) == contents(opened(whole))
        except TooEarly as early:
            needed = early.needed
        else:
            return
        assert 0 <= needed < begin
        begin = needed
    pytest.fail("it is never content")


@given(members.filter(bool), st.data())
def test_no_damage_raises_anything_else(some: dict[str, bytes], data: st.DataObject) -> None:
    whole = bytearray(zipped(some))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    for damaged in (bytes(whole), cut):
        with contextlib.suppress(BadInput):
            contents(opened(damaged))


def test_zip64_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100)
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 2)
    some = {f"m{number}.py": bytes(1_000) for number in range(9)}
    data = zipped(some)
    assert b"PK\6\6" in data
    assert b"PK\6\7" in data
    assert contents(opened(data)) == some
    assert contents(opened(data + b"")) == some


def large(number: int) -> bytes:
    """A zip with many empty members."""
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 0, 0, 0, 0, 0, 0, 1, 0) + b"x"
    directory = b"".join(
        struct.pack("<4s4B4H3L5H2L", b"PK\1\2", 20, 3, 20, 0, 0, 0, 0, 0, 0, 0, 0, len(name), 0, 0, 0, 0, 0, 0) + name
        for name in (b"member-%d.txt" % one for one in range(number))
    )
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, len(directory), len(local), 0)
    return local + directory + end


def test_a_million_members_take_no_memory() -> None:
    data = large(1_000_000)
    stream = io.BytesIO(data)
    tracemalloc.start()
    try:
        assert sum(1 for _ in ZipDirectory(stream, "a.zip", len(data))) == 1_000_000
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_bomb_is_not_read_beyond_its_declared_size() -> None:
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = packed.compress(bytes(50 << 20)) + packed.flush()
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 8, 0, 0, 0, len(body), 1_000, 1, 0) + b"x"
    member = ZipMember("x", 8, 0, 0, len(body), 1_000, 0)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0, 0, 0, len(local + body), 0)
    with pytest.raises(BadInput, match="longer than the directory has it"):
        for _ in opened(local + body + end).read(member):
            pass


@pytest.mark.parametrize("data", [b"", b"PK", b"PK\5\6", b"PK\5\6" + bytes(18) + b"more", bytes(70_000), b"<html>"])
def test_what_is_no_zip_is_refused(data: bytes) -> None:
    with pytest.raises(BadInput):
        list(opened(data))


def test_where_a_comment_could_begin_is_enough_to_see_that_it_is_no_zip() -> None:
    data = bytes(200_000)
    with pytest.raises(TooEarly) as early:
        opened(data, len(data) - 100)
    with pytest.raises(BadInput, match="no zip"):
        opened(data, early.value.needed)


def test_an_empty_zip_has_no_members() -> None:
    assert list(opened(b"PK\5\6" + bytes(18))) == []


def test_an_encrypted_member_is_refused() -> None:
    data = zipped({"a": b"1"})
    (member,) = opened(data)
    with pytest.raises(BadInput, match="encrypted"):
        list(opened(data).read(member._replace(flags=member.flags | 1)))
    with pytest.raises(BadInput, match="method 12"):
        list(opened(data).read(member._replace(method=12)))


def test_the_limit_on_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_directory, "MOST_MEMBERS", 3)
    with pytest.raises(BadInput, match="more than 3 members"):
        list(opened(large(4)))
