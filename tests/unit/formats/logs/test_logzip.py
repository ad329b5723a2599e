"""formats/logzip: the same members everywhere, evidence last, damage and change told by name."""

from __future__ import annotations

import errno
import gc
import hashlib
import io
import json
import subprocess
import sys
import tracemalloc
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warcmill.errors import BadInput, Mismatch
from warcmill.formats.logs import logzip
from warcmill.formats.logs.logzip import EVIDENCE, ListedLog, LogToPack, PackedLog

LOGS = Path(__file__).parents[3] / "data" / "sample" / "kind-first" / "logs" / "weekly" / "20261121081735"


def member(name: str, data: bytes, size: int | None = None) -> LogToPack:
    return LogToPack(name, len(data) if size is None else size, lambda: io.BytesIO(data))


def as_evidence(packed: list[PackedLog]) -> bytes:
    return json.dumps([[one.name, one.size, one.sha512, one.crc] for one in packed]).encode()


def packed_of(evidence: bytes) -> list[PackedLog]:
    return [PackedLog(*one) for one in json.loads(evidence)]


def zipped(*members: LogToPack) -> bytes:
    target = io.BytesIO()
    logzip.write(target, members, as_evidence)
    return target.getvalue()


def the_real_logs() -> list[LogToPack]:
    return [
        LogToPack(path.name, path.stat().st_size, lambda path=path: path.open("rb")) for path in sorted(LOGS.iterdir())
    ]  # type: ignore[misc]


def test_the_real_logs_there_and_back() -> None:
    stream = io.BytesIO(zipped(*the_real_logs()))
    packed = packed_of(logzip.evidence(stream))
    names = sorted(path.name for path in LOGS.iterdir())
    assert len(names) == 7
    for one, name in zip(packed, names, strict=True):
        data = (LOGS / name).read_bytes()
        assert one == PackedLog(name, len(data), hashlib.sha512(data).hexdigest(), zlib.crc32(data))
        with logzip.open_member(stream, name) as log:
            assert log.read() == data
    assert logzip.members(stream) == [ListedLog(one.name, one.size, one.crc) for one in packed]
    logzip.verify(stream, packed)


def test_any_unzip_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    path.write_bytes(zipped(*the_real_logs()))
    listed = subprocess.run([sys.executable, "-m", "zipfile", "-t", path], capture_output=True, text=True, check=True)
    assert "Done testing" in listed.stdout


def test_the_same_bytes_each_time_and_nothing_of_this_machine() -> None:
    once = zipped(*the_real_logs())
    assert zipped(*the_real_logs()) == once
    with zipfile.ZipFile(io.BytesIO(once)) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {info.external_attr for info in archive.infolist()} == {0o100644 << 16}
        assert {info.create_system for info in archive.infolist()} == {3}


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("crawl.log", zipfile.ZIP_DEFLATED),
        ("frontier.recover.gz", zipfile.ZIP_STORED),
        ("frontier.recover.gz.cp00001-20261121081902", zipfile.ZIP_STORED),
        ("frontier.recover.gz.lck", zipfile.ZIP_DEFLATED),
    ],
)
def test_what_the_engine_compressed_is_stored(name: str, method: int) -> None:
    with zipfile.ZipFile(io.BytesIO(zipped(member(name, b"x" * 1000)))) as archive:
        assert [(info.filename, info.compress_type) for info in archive.infolist()] == [
            (name, method), (EVIDENCE, zipfile.ZIP_STORED)
        ]  # fmt: skip


def test_a_stage_without_logs() -> None:
    stream = io.BytesIO(zipped())
    assert logzip.evidence(stream) == b"[]"
    assert logzip.members(stream) == []
    logzip.verify(stream, [])


@pytest.mark.parametrize(("size", "found"), [(9, "10 or more"), (11, "10"), (0, "10 or more")])
def test_a_log_that_changes_while_it_is_packed_is_reported(size: int, found: str) -> None:
    target = io.BytesIO()
    with pytest.raises(Mismatch, match=f"crawl.log .* expected {size}, found {found}"):
        logzip.write(target, [member("crawl.log", b"0123456789", size)], as_evidence)
    gc.collect()
    assert not zipfile.is_zipfile(target)


def test_an_endless_log_is_not_read_to_its_end() -> None:
    class Endless(io.RawIOBase):
        given = 0

        def read(self, size: int = -1, /) -> bytes:
            self.given += size
            return bytes(size)

    endless = Endless()
    with pytest.raises(Mismatch):
        logzip.write(io.BytesIO(), [LogToPack("crawl.log", 10, lambda: endless)], as_evidence)  # type: ignore[arg-type,return-value]
    assert endless.given == logzip.CHUNK


class Grudging(io.RawIOBase):
    """Takes at most 7 bytes a write, as a raw file may, and fails like a full disk after `room` bytes."""

    def __init__(self, room: int = 1 << 30) -> None:
        self.taken, self.room = io.BytesIO(), room

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        if self.taken.tell() >= self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.taken.write(bytes(data[:7]))

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.taken.tell()

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self.taken.seek(offset, whence)


def test_a_target_that_takes_little_at_a_time() -> None:
    target = Grudging()
    logzip.write(target, the_real_logs(), as_evidence)  # type: ignore[arg-type]
    assert target.taken.getvalue() == zipped(*the_real_logs())


def test_a_full_disk_at_any_point_leaves_no_zip() -> None:
    logs = [member("crawl.log", b"a line\n" * 20), member("frontier.recover.gz", b"0123456789")]
    targets = [Grudging(room) for room in range(0, len(zipped(*logs)) - 7, 7)]
    for target in targets:
        with pytest.raises(OSError, match="No space left"):
            logzip.write(target, logs, as_evidence)  # type: ignore[arg-type]
    gc.collect()  # what a zip writes when it is forgotten has been written now
    assert not any(zipfile.is_zipfile(target.taken) for target in targets)


def test_a_target_that_cannot_seek() -> None:
    class Pipe:
        def __init__(self) -> None:
            self.taken = b""

        def write(self, data: bytes) -> int:
            self.taken += bytes(data)
            return len(data)

    pipe = Pipe()
    logzip.write(pipe, the_real_logs(), as_evidence)  # type: ignore[arg-type]
    stream = io.BytesIO(pipe.taken)
    logzip.verify(stream, packed_of(logzip.evidence(stream)))


@pytest.mark.parametrize("name", ["", "a\nb", "a\0b", "x\udcff", "crawl.log", EVIDENCE])
def test_names_that_no_zip_should_carry(name: str) -> None:
    with pytest.raises(BadInput):
        zipped(member("crawl.log", b""), member(name, b""))


LOG = bytes(range(256)) * 40
WHOLE = zipped(member("crawl.log", LOG), member("frontier.recover.gz", b"0123456789" * 30))


def read_all(data: bytes) -> None:
    stream = io.BytesIO(data)
    logzip.verify(stream, packed_of(logzip.evidence(stream)))


def test_a_zip_cut_anywhere_is_reported() -> None:
    read_all(WHOLE)
    for length in range(len(WHOLE)):
        with pytest.raises(BadInput):
            logzip.evidence(io.BytesIO(WHOLE[:length]))


def test_a_byte_flipped_in_a_log_is_reported_by_its_name() -> None:
    packed = packed_of(logzip.evidence(io.BytesIO(WHOLE)))
    for name, at in (("crawl.log", 100), ("frontier.recover.gz", WHOLE.index(b"0123456789") + 5)):
        damaged = bytearray(WHOLE)
        damaged[at] ^= 1
        with pytest.raises(BadInput, match=name):
            logzip.verify(io.BytesIO(bytes(damaged)), packed)


def test_another_log_under_the_same_name_is_reported() -> None:
    packed = packed_of(logzip.evidence(io.BytesIO(WHOLE)))
    other = zipped(member("crawl.log", LOG[::-1]), member("frontier.recover.gz", b"0123456789" * 30))
    with pytest.raises(BadInput, match=r"crawl\.log: has 10240 bytes, sha512 "):
        logzip.verify(io.BytesIO(other), packed)
    with pytest.raises(BadInput, match="pack the stage again"):
        logzip.verify(io.BytesIO(other), packed[:1])
    with pytest.raises(BadInput, match=r"alerts\.log"):
        logzip.open_member(io.BytesIO(other), "alerts.log")


def test_a_zip_that_does_not_end_in_evidence_is_not_ours() -> None:
    for names in ([], ["crawl.log"], [EVIDENCE, "crawl.log"]):
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w") as archive:
            for name in names:
                archive.writestr(name, b"")
        with pytest.raises(BadInput, match="not one of logs"):
            logzip.evidence(target)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_with_a_name_twice_is_not_ours() -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name in ("crawl.log", "crawl.log", EVIDENCE):
            archive.writestr(name, b"")
    with pytest.raises(BadInput, match="not one of logs"):
        logzip.members(target)


def test_a_zip_with_other_methods_is_not_ours() -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("crawl.log", b"")
        archive.writestr(EVIDENCE, b"", zipfile.ZIP_STORED)
    with pytest.raises(BadInput, match="not one of logs"):
        logzip.members(target)


def test_evidence_of_any_length_is_not_read_into_memory() -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(EVIDENCE, "w") as out:
        for _ in range(65):
            out.write(bytes(1 << 20))
    with pytest.raises(BadInput, match="more than evidence can have"):
        logzip.evidence(target)


def test_a_directory_of_any_length_is_not_read_into_memory() -> None:
    class Huge(io.RawIOBase):
        """A gigabyte whose end reports that nearly all of it is the directory."""

        end = b"PK\5\6" + bytes(4) + b"\1\0\1\0" + (10**9 - 22).to_bytes(4, "little") + bytes(4) + bytes(2)
        at = 0

        def seek(self, offset: int, whence: int = 0, /) -> int:
            self.at = 10**9 + offset if whence == 2 else offset
            return self.at

        def tell(self) -> int:
            return self.at

        def seekable(self) -> bool:
            return True

        def read(self, size: int = -1, /) -> bytes:
            assert size < 1 << 20
            return self.end if self.at == 10**9 - 22 else bytes(max(size, 0))

    with pytest.raises(BadInput, match="directory of 999,999,978 bytes"):
        logzip.evidence(Huge())  # type: ignore[arg-type]


def test_a_disk_that_fails_is_not_taken_for_a_bad_zip() -> None:
    class Failing(io.BytesIO):
        def __init__(self, after: int) -> None:
            super().__init__(WHOLE)
            self.left = after

        def read(self, size: int | None = -1, /) -> bytes:
            self.left -= 1
            if self.left < 0:
                raise OSError(errno.EIO, "Input/output error")
            return super().read(size)

        def seek(self, offset: int, whence: int = 0, /) -> int:
            if self.left < -5:
                raise OSError(errno.EIO, "Input/output error")
            return super().seek(offset, whence)

    packed = packed_of(logzip.evidence(io.BytesIO(WHOLE)))
    for reads in range(12):
        with pytest.raises(OSError, match="Input/output error"):
            logzip.verify(Failing(reads), packed)
    logzip.verify(Failing(1000), packed)
    with pytest.raises(OSError, match="Input/output error"):
        logzip.evidence(Failing(-6))


def test_memory_is_flat_both_ways(tmp_path: Path) -> None:
    class Zeros(io.RawIOBase):
        left = 40 << 20

        def read(self, size: int = -1, /) -> bytes:
            size = min(size, self.left)
            self.left -= size
            return bytes(size)

    def zeros() -> BinaryIO:
        return Zeros()  # type: ignore[return-value]

    tracemalloc.start()
    try:
        with (tmp_path / "logs.zip").open("w+b", buffering=0) as target:
            logzip.write(target, [LogToPack(name, 40 << 20, zeros) for name in ("a.log", "b.gz")], as_evidence)
            logzip.verify(target, packed_of(logzip.evidence(target)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Co", "Cn", "Z"]), min_size=1, max_size=20)


@settings(max_examples=50)
@given(st.dictionaries(NAMES, st.binary(max_size=3000)), st.data())
def test_what_is_packed_is_read_and_damage_never_passes(logs: dict[str, bytes], data: st.DataObject) -> None:
    whole = zipped(*(member(name, text) for name, text in logs.items()))
    stream = io.BytesIO(whole)
    packed = packed_of(logzip.evidence(stream))
    logzip.verify(stream, packed)
    assert [(one.name, one.size) for one in packed] == [(name, len(text)) for name, text in logs.items()]
    for name, text in logs.items():
        assert logzip.open_member(stream, name).read() == text
    damaged = bytearray(whole)
    damaged[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        evidence = logzip.evidence(io.BytesIO(bytes(damaged)))
        logzip.verify(io.BytesIO(bytes(damaged)), packed)
    except BadInput:
        return
    # Only the directory's idle fields (times, modes, comments) may change unseen.
    assert evidence == as_evidence(packed)
