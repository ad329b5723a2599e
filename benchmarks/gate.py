"""Measure the gate's CPU time beside the least work it must do, and beside `warcio check`; and its memory.

Reads the sample, or every WARC with its final name under the folder CORPUS:

    CORPUS=/data/heritrix scripts/bench gate

zlib + sha1: inflates each member by one call with its known end, and computes
the sha1 of each declared payload from its known begin. It checks nothing: no
gate built on zlib can be faster.
warcio check: a separate process, like `warcmill check`; start-up is counted.
Small records: the members of the same files of at most 700 bytes.
Damaged: the same records, of which some, or all, are bad; beside the whole ones.

The first target is for a corpus: the sample's records have 2 kB on average, so
Python's work for each record costs more than inflating it.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks import peers
from warcmill.formats.warc.gate import examine

ROUNDS = 7
ENOUGH = 100 << 20  # bytes of WARC for each process, so that its start-up does not dominate
ENOUGH_SMALL = 16 << 20
SMALL = 700
GIANT = 4 << 30
SAMPLE = Path(__file__).resolve().parent.parent / "tests/data/sample"
NAME = "BL-20261121081737002-00000-1~crawler01~8443.warc.gz"
WARCMILL = Path(sys.executable).with_name("warcmill")


class Member(NamedTuple):
    """The place of a member in its file, and of the digested payload in its inflated bytes."""

    begin: int
    end: int
    payload: slice | None


def rows() -> Iterator[tuple[str, str, str, str, str]]:
    """What, ours, peer, ratio, target."""
    warcs = [path.read_bytes() for path in sorted(Path(os.environ.get("CORPUS", SAMPLE)).rglob("*.warc.gz"))]
    small = b"".join(data[m.begin : m.end] for data in warcs for m in members(data) if m.end - m.begin <= SMALL)
    target = "<= 1.3 x zlib + sha1" if "CORPUS" in os.environ else "<= 1.3 on a corpus"
    yield floor_row("gate, Heritrix's WARCs", warcs, target)
    yield floor_row("gate, small records", [small], "<= 2 x zlib + sha1")
    yield from damaged_rows(warcs)
    yield warcio_row("warcmill check, Heritrix's WARCs", warcs, ENOUGH, ">= 1.7 x as fast as warcio")
    yield warcio_row("warcmill check, small records", [small], ENOUGH_SMALL, ">= 2.5 x as fast as warcio")
    yield memory_row()


def floor_row(what: str, warcs: list[bytes], target: str) -> tuple[str, str, str, str, str]:
    """Measure the gate in this process, beside zlib and sha1."""
    plans = [members(data) for data in warcs]

    def gate() -> None:
        for data in warcs:
            verdict = examine(io.BytesIO(data), NAME)
            assert verdict.ok, verdict

    def floor() -> None:
        for data, plan in zip(warcs, plans, strict=True):
            zlib_and_sha1(data, plan)

    ours, peer = medians(lambda: own_cpu(gate), lambda: own_cpu(floor))
    return what, f"{ours:.3f} s", f"{peer:.3f} s zlib + sha1", f"{ours / peer:.2f}", target


def damaged_rows(warcs: list[bytes]) -> Iterator[tuple[str, str, str, str, str]]:
    """Measure what reading on costs: members whose CRC is wrong, and records whose length is."""
    packed = [data[m.begin : m.end] for data in warcs for m in members(data)]
    plain = [zlib.decompress(member, 31) for member in packed]
    for what, every in (("one record", len(packed)), ("one in ten", 10), ("every record", 1)):
        yield damaged_row(f"gate, {what} bad", packed, every, _with_wrong_crc, NAME)
        yield damaged_row(f"gate, {what} bad, plain", plain, every, _with_wrong_length, NAME.removesuffix(".gz"))


def damaged_row(
    what: str, records: list[bytes], every: int, damage: Callable[[bytes], bytes], name: str
) -> tuple[str, str, str, str, str]:
    """Measure the gate on these records, of which each n-th is damaged, beside the whole ones."""
    whole = b"".join(records)
    bad = b"".join(damage(one) if number % every == every // 2 else one for number, one in enumerate(records))
    assert not examine(io.BytesIO(bad), name).ok

    def read(data: bytes) -> None:
        for _ in range(ROUNDS):
            examine(io.BytesIO(data), name, again=lambda: io.BytesIO(data))

    ours, peer = medians(lambda: own_cpu(lambda: read(bad)), lambda: own_cpu(lambda: read(whole)))
    return what, f"{ours:.3f} s", f"{peer:.3f} s the same, whole", f"{ours / peer:.2f}", "<= 2 x"


def _with_wrong_crc(member: bytes) -> bytes:
    return member[:-8] + bytes([member[-8] ^ 1]) + member[-7:]


def _with_wrong_length(record: bytes) -> bytes:
    return re.sub(
        rb"\r\nContent-Length: (\d+)", lambda found: b"\r\nContent-Length: %d" % (int(found[1]) + 3), record, count=1
    )


def warcio_row(what: str, warcs: list[bytes], enough: int, target: str) -> tuple[str, str, str, str, str]:
    """Measure both commands on the same files, each repeated until there are `enough` bytes."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{number}.warc.gz") for number in range(len(warcs))]
        for file, data in zip(files, warcs, strict=True):
            file.write_bytes(data)
        arguments = files * -(-enough // sum(map(len, warcs)))
        warcio = peers.command("warcio")
        ours, peer = medians(
            lambda: child_cpu([WARCMILL, "check", *arguments]), lambda: child_cpu([warcio, "check", *arguments])
        )
    return what, f"{ours:.3f} s", f"{peer:.3f} s warcio check", f"{peer / ours:.2f}", target


def memory_row() -> tuple[str, str, str, str, str]:
    """Measure the peak memory of the whole command on one record of GIANT bytes with both digests."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "giant.warc.gz")
        with file.open("wb") as stream:
            for part in giant_record():
                stream.write(part)
        code = (
            "import re, sys; from commands.main import main; assert main(sys.argv[1:]) == 0;"
            " print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
        )
        ran = subprocess.run([sys.executable, "-c", code, "check", file], capture_output=True, text=True, check=True)
    peak = int(ran.stdout.split()[-1]) / 1024
    return f"warcmill check, a record of {GIANT >> 30} GiB", f"{peak:.0f} MB RSS", "-", "-", "< 64 MB"


def members(data: bytes) -> list[Member]:
    """The members of a Heritrix WARC, which `zlib_and_sha1` needs to know."""
    members, begin = [], 0
    while begin < len(data):
        inflater, inflated, at = zlib.decompressobj(31), b"", begin
        while not inflater.eof:
            inflated += inflater.decompress(data[at : at + 65536])
            at += 65536
        end = min(at, len(data)) - len(inflater.unused_data)
        members.append(Member(begin, end, _payload(inflated)))
        begin = end
    return members


def _payload(record: bytes) -> slice | None:
    header, _, _ = record.partition(b"\r\n\r\n")
    if b"WARC-Payload-Digest" not in header or b"WARC-Type: revisit" in header:
        return None
    return slice(record.index(b"\r\n\r\n", len(header) + 4) + 4, -4)


def zlib_and_sha1(data: bytes, plan: list[Member]) -> None:
    """The least that a gate on zlib must do."""
    view = memoryview(data)
    for begin, end, payload in plan:
        inflated = zlib.decompress(view[begin:end], 31)
        if payload:
            hashlib.sha1(memoryview(inflated)[payload]).digest()


def giant_record() -> Iterator[bytes]:
    """A gzip member that holds one record of GIANT zeros under an HTTP header."""
    http = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % GIANT
    end = b"\r\n0\r\n\r\n"
    mebibytes = [bytes(1 << 20)] * (GIANT >> 20)
    payload, block = hashlib.sha1(), hashlib.sha1(http)
    for part in [*mebibytes, end]:
        block.update(part)
    for part in mebibytes:
        payload.update(part)
    fields = b"WARC-Payload-Digest: sha1:%s\r\nWARC-Block-Digest: sha1:%s\r\nContent-Length: %d\r\n\r\n" % (
        payload.hexdigest().encode(),
        block.hexdigest().encode(),
        len(http) + GIANT + len(end),
    )
    packer = zlib.compressobj(1, wbits=31)
    start = b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:x:1>\r\nWARC-Date: 2016-10-19T23:44:28Z\r\n"
    for part in [start, fields, http, *mebibytes, end, b"\r\n\r\n"]:
        yield packer.compress(part)
    yield packer.flush()


def medians(*measured: Callable[[], float]) -> list[float]:
    """The median of each measurement; they take turns."""
    rounds = [[measure() for measure in measured] for _ in range(ROUNDS)]
    return [median(times) for times in zip(*rounds, strict=True)]


def own_cpu(work: Callable[[], None]) -> float:
    """Seconds of CPU in this process."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def child_cpu(arguments: list[Path | str]) -> float:
    """Seconds of CPU of a command, user and system, from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
