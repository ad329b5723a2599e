"""Measure what a package is made of: the tar as it is sent, and METS and PREMIS of many files.

two sha512 + copy: each file is read and digested as a member, digested again as a part of the tar, and written. No tar
whose members and whole are digested in one process does less.
tarfile: Python's, in stream mode, with the same two digests and the same copy. Its blocks are 10 KiB.

Figures are CPU time of this process, system time with it, the median of several, taken by turns.
"""

from __future__ import annotations

import hashlib
import random
import re
import resource
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, cast

from benchmarks.gate import medians, own_cpu
from warcmill.formats.sip import eark, mets, premis, xml
from warcmill.formats.sip.tar import CHUNK, DocumentSpool, TarMember, TarStream, file_chunks

FILES, SIZE = 4, 64 << 20
MANY = 100_000
MTIME = 1476920668


def rows() -> Iterator[tuple[str, str, str, str, str]]:
    """What, ours, peer, ratio, target."""
    with tempfile.TemporaryDirectory() as folder:
        sources = [_source(Path(folder, f"{number}.warc.gz"), number) for number in range(FILES)]
        target = Path(folder, "made.tar")
        members = [TarMember(path.name, SIZE, _sha512(path), file_chunks(partial(path.open, "rb"))) for path in sources]
        ours, least, peer = medians(
            *(lambda work=work: own_cpu(work) for work in _works(members, sources, target))  # type: ignore[misc]
        )
    size = FILES * SIZE / 10**6
    yield "tar, its members digested", *_row(size, ours, least, "two sha512 + copy"), "at most 1.3 x"
    yield "tar, its members digested", *_row(size, ours, peer, "tarfile"), "-"
    yield many_row()


def many_row() -> tuple[str, str, str, str, str]:
    """METS, PREMIS and Dublin Core of MANY files: made for their sizes and digests, kept, and read to be sent."""
    code = "from benchmarks.sip_parts import make_many; make_many()"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    figures = f"{seconds:.1f} s, {int(ran.stdout) / 1024:.0f} MB RSS"
    return f"METS and PREMIS of {MANY:,} files", figures, "-", "-", "10 s, 100 MB"


def make_many() -> None:
    """Make a package's documents, and read them; print the peak memory of this process in kB."""
    form = premis.Format("GZIP Format", pronom="x-fmt/266")
    files = [
        eark.PackageFile(
            "warcs",
            f"BL-20161019234430000-{number:05}-1~crawler01~8443.warc.gz",
            10**9,
            hashlib.sha512(b"%d" % number).hexdigest(),
            "2016-10-19T23:44:30Z",
            form,
            f"ark:/99999/fk4{number:016}",
        )
        for number in range(MANY)
    ]
    header = mets.Header("daily.20161019234428.final", "2016-10-20T00:00:00Z", "Warcmill", "1")
    package = eark.Package(header, xml.Description(("daily",)), files, [], [])
    with DocumentSpool(Path(tempfile.gettempdir())) as spool:
        for document in eark.documents(package, spool.keep):
            for _ in document.chunks():
                pass
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found
    print(found[1])


def _works(members: list[TarMember], sources: list[Path], target: Path) -> Iterator[Callable[[], None]]:
    yield partial(_ours, members, target)
    yield partial(_two_digests_and_a_copy, sources, target)
    yield partial(_tarfile, sources, target)


def _ours(members: list[TarMember], target: Path) -> None:
    tar, whole = TarStream(members, MTIME), hashlib.sha512()
    with target.open("wb", buffering=0) as file:
        while chunk := tar.read(CHUNK):
            whole.update(chunk)
            file.write(chunk)


def _two_digests_and_a_copy(sources: list[Path], target: Path) -> None:
    whole = hashlib.sha512()
    with target.open("wb", buffering=0) as file:
        for source in sources:
            member = hashlib.sha512()
            with source.open("rb", buffering=0) as opened:
                while chunk := opened.read(CHUNK):
                    member.update(chunk)
                    whole.update(chunk)
                    file.write(chunk)


def _tarfile(sources: list[Path], target: Path) -> None:
    with (
        target.open("wb", buffering=0) as file,
        tarfile.open(fileobj=cast(IO[bytes], _Digested(file)), mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for source in sources:
            info = tarfile.TarInfo(source.name)
            info.size, info.mtime = SIZE, MTIME
            with source.open("rb", buffering=0) as opened:
                tar.addfile(info, cast(IO[bytes], _Digested(opened)))


class _Digested:
    """A file whose bytes are digested as they pass."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._digest = file, hashlib.sha512()

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self._digest.update(data)
        return data

    def write(self, data: bytes) -> int:
        self._digest.update(data)
        return self._file.write(data)


def _row(size: float, ours: float, peer: float, name: str) -> tuple[str, str, str]:
    return f"{size / ours:.0f} MB/s", f"{size / peer:.0f} MB/s {name}", f"{ours / peer:.2f} x"


def _source(path: Path, seed: int) -> Path:
    path.write_bytes(random.Random(seed).randbytes(SIZE))
    return path


def _sha512(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha512").hexdigest()
