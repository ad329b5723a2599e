"""formats/tar_writer: Python's tarfile and GNU tar read back what was written; a changed file breaks the stream."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
import tracemalloc
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packing.packages import HOSTILE

from warcmill.base import digests
from warcmill.errors import Mismatch
from warcmill.formats.sip import tar as tar_writer
from warcmill.formats.sip.tar import CHUNK, RECORD, TarMember, TarStream, file_chunks, size_of

MTIME = 1476920668
LONG = "weekly.20161019234428.final/data/weekly.20161019234428.final/representations/warcs/data/"
CONTENTS = {
    "bagit.txt": b"BagIt-Version: 1.0\n",
    "empty": b"",
    "x" * 100: b"as long as a ustar name can be",
    "x" * 101: b"one more",
    "a block": bytes(512),
    "a block and a byte": bytes(513),
    "chunks": bytes(range(256)) * (CHUNK // 100),
    **{f"{LONG}{name}": name.encode() for name in HOSTILE},
}


def member(name: str, data: bytes) -> TarMember:
    return TarMember(name, len(data), hashlib.sha512(data).hexdigest(), file_chunks(partial(io.BytesIO, data)))


def written(contents: dict[str, bytes], reads: int = CHUNK) -> bytes:
    tar = TarStream([member(name, data) for name, data in contents.items()], MTIME)
    return b"".join(iter(partial(tar.read, reads), b""))


def read_back(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {one.name: file.read() for one in tar if (file := tar.extractfile(one))}


def test_python_reads_back_every_name_and_byte() -> None:
    data = written(CONTENTS)
    assert read_back(data) == CONTENTS
    assert len(data) == size_of((name, len(content)) for name, content in CONTENTS.items())
    assert len(data) % RECORD == 0
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        facts = {(one.uid, one.gid, one.uname, one.gname, one.mode, one.mtime, one.type) for one in tar}
    assert facts == {(0, 0, "root", "root", 0o644, MTIME, tarfile.REGTYPE)}


def test_gnu_tar_reads_back_every_name_and_byte(tmp_path: Path) -> None:
    told = subprocess.run(["tar", "-xf", "-", "-C", tmp_path], input=written(CONTENTS), capture_output=True, check=True)
    assert told.stderr == b""
    there = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert there == CONTENTS


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=300).filter(
            lambda name: not name.endswith("/")
        ),
        st.binary(max_size=1500),
        max_size=4,
    )
)
def test_any_names_and_contents(contents: dict[str, bytes]) -> None:
    data = written(contents)
    assert read_back(data) == contents
    assert len(data) == size_of((name, len(content)) for name, content in contents.items())


@pytest.mark.parametrize("length", range(985, 1002))
def test_a_record_counts_its_own_length(length: int) -> None:
    """Where the count gets one more digit."""
    name = "n" * length
    assert read_back(written({name: b"x"})) == {name: b"x"}


@pytest.mark.parametrize("size", [8 * 1024**3 - 1, 8 * 1024**3, 50 * 10**12])
def test_a_size_beyond_eight_gibibytes_is_in_the_header(size: int) -> None:
    """Only the header is read: the content would take minutes."""
    tar = TarStream([TarMember("a.warc.gz", size, "", partial(iter, (b"first bytes",)))], MTIME)
    begin = tar.read(CHUNK) + bytes(2 * tarfile.BLOCKSIZE)
    with tarfile.open(fileobj=io.BytesIO(begin)) as archive:
        one = archive.next()
    assert one
    assert (one.name, one.size) == ("a.warc.gz", size)
    told = subprocess.run(["tar", "-tvf", "-"], input=begin, capture_output=True, check=False).stdout
    assert told.split()[2] == b"%d" % size, "GNU tar reads the header, then misses the content"
    assert size_of([("a.warc.gz", size)]) - size in range(2 * 512, 2 * 512 + RECORD + 4 * 512)


def test_an_empty_tar_is_one() -> None:
    assert read_back(written({})) == {}
    assert len(written({})) == size_of([]) == RECORD


def test_the_same_members_give_the_same_bytes_however_they_are_read() -> None:
    assert len({written(CONTENTS, reads) for reads in (777, 4096, CHUNK, 10 * CHUNK)}) == 1


@pytest.mark.parametrize(
    ("now", "what"),
    [
        (b"changed", "sha512 of 'a.warc'"),
        (b"shrunk", "size of 'a.warc'"),
        (b"has grown", "size of 'a.warc'"),
        (b"", "size of 'a.warc'"),
    ],
)
def test_a_member_that_changed_breaks_the_stream(now: bytes, what: str) -> None:
    once = b"as it w"
    changed = TarMember("a.warc", len(once), hashlib.sha512(once).hexdigest(), file_chunks(lambda: io.BytesIO(now)))
    tar = TarStream([changed, member("next", b"never read")], MTIME)
    with pytest.raises(Mismatch, match=what):
        digests.drain(tar)
    assert tar.read(CHUNK) == b"", "after the fault nothing follows, least of all an end that looks whole"


def test_a_file_is_opened_when_its_turn_comes_and_closed_after_it() -> None:
    opened: list[io.BytesIO] = []

    def source() -> io.BytesIO:
        opened.append(io.BytesIO(b"x"))
        return opened[-1]

    digest = hashlib.sha512(b"x").hexdigest()
    tar = TarStream((TarMember(name, 1, digest, file_chunks(source)) for name in "ab"), MTIME)
    assert not opened
    while tar.read(CHUNK):
        assert len([file for file in opened if not file.closed]) <= 1
    assert [file.closed for file in opened] == [True, True]


def test_memory_stays_flat() -> None:
    size = 64 * CHUNK
    block = bytes(CHUNK)
    digest = hashlib.sha512(bytes(size)).hexdigest()

    def blocks() -> Iterator[bytes]:
        for _ in range(64):
            yield block

    tar = TarStream([TarMember("large", size, digest, blocks)], MTIME)
    tracemalloc.start()
    while tar.read(CHUNK):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * CHUNK


def test_the_header_is_the_one_of_posix() -> None:
    """Against tarfile's own writer, where both can say it in ustar."""
    one = tarfile.TarInfo("a.warc.gz")
    one.size, one.mtime, one.uname, one.gname = 513, MTIME, "root", "root"
    assert tar_writer._header("a.warc.gz", 513, MTIME) == one.tobuf(tarfile.USTAR_FORMAT)
