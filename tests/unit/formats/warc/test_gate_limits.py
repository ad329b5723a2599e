"""formats/gate under attack: each input in a process of its own, whose memory and time are looked at."""

from __future__ import annotations

import subprocess
import sys

import brotli
import pytest

RSS_LIMIT = 64 << 20
SECONDS = 60  # of CPU: ten times what it takes, and what runs away takes longer

# Each leaves an iterable of raw bytes in `data`, made as it is read: the process must not owe its memory to us.
PRELUDE = """
import itertools, re, sys, time, zstandard
from isal import isal_zlib
from warcmill.formats.warc.gate import examine

def packed(parts):
    packer = isal_zlib.compressobj(1, wbits=31)  # zeros become a thousandth: as by zlib, in a fortieth of its time
    yield from map(packer.compress, parts)
    yield packer.flush()

def head(length, more=b"", number=0):
    start = b"WARC/1.0\\r\\nWARC-Type: response\\r\\nWARC-Date: 2016-10-19T23:44:28Z\\r\\n"
    rest = b"WARC-Record-ID: <urn:x:%d>\\r\\n%sContent-Length: %d\\r\\n\\r\\n"
    return start + rest % (number, more, length)

MIB = bytes(1 << 20)
HTTP = b"HTTP/1.1 200 OK\\r\\n%s\\r\\n\\r\\n"
CHUNKED = HTTP % b"Transfer-Encoding: chunked"
DIGEST = b"WARC-Payload-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ\\r\\n"
"""
EPILOGUE = """
class Stream:
    def __init__(self):
        self.parts, self.held = iter(data), b""
    def read(self, size):
        while not self.held:
            part = next(self.parts, None)
            if part is None:
                return b""
            self.held = part
        piece, self.held = self.held[:size], self.held[size:]
        return piece

begun = time.process_time()
verdict = examine(Stream(), name)
print(time.process_time() - begun)
print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10)
print(verdict.ok)
print(verdict.payload_digests)
print(verdict.why)
"""


def attack(code: str, name: str = "x.warc.gz") -> tuple[bool, str, str]:
    """Whether the input passed, its payload digests, and why not; memory and time are asserted here."""
    script = f"{PRELUDE}\nname = {name!r}\n{code}\n{EPILOGUE}"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    seconds, rss, ok, digests, why = ran.stdout.split("\n")[:5]
    assert int(rss) < RSS_LIMIT
    assert float(seconds) < SECONDS
    return ok == "True", digests, why


ATTACKS = {
    "a header of 100 MB": ("packed(itertools.chain([b'WARC/1.0\\r\\nX: '], [MIB] * 100))", "longer than 1048576 bytes"),
    "100 MB of continuation lines": (
        "packed(itertools.chain([b'WARC/1.0\\r\\nX: y'], [b'\\r\\n ' * 349525] * 100))",
        "longer than 1048576 bytes",
    ),
    "continuation lines up to the limit": (
        "packed([b'WARC/1.0\\r\\nX: y' + b'\\r\\n ' * 300000 + b'\\r\\n\\r\\n'])",
        "more than 1000 lines",
    ),
    "a member that is a bomb after its record": (
        "packed(itertools.chain([head(4) + b'bomb\\r\\n\\r\\n'], [MIB] * 200))",
        "bytes after the record's end",
    ),
    "Content-Length of 10^12 and no data": ("packed([head(10**12)])", "1000000000000 bytes announced, 0 there"),
    "Content-Length of 10^12 in a short bomb": (
        "packed(itertools.chain([head(10**12)], [MIB] * 200))",
        "1000000000000 bytes announced, 209715200 there",
    ),
    "an endless name in the gzip header": (
        "itertools.chain([b'\\x1f\\x8b\\x08\\x08' + bytes(6)], [b'n' * (1 << 20)] * 100)",
        "has no end within",
    ),
    "a million members of one byte": (
        "itertools.chain(packed([head(0) + b'\\r\\n\\r\\n']), itertools.repeat(b''.join(packed([b'x'])), 1000000))",
        "header has no end",
    ),
    "empty deflate blocks without end": (
        "itertools.chain([b'\\x1f\\x8b\\x08\\x00' + bytes(6)], [b'\\x00\\x00\\x00\\xff\\xff' * 200000] * 100)",
        "cut short",
    ),
    "an HTTP header of 100 MB": (
        "packed(itertools.chain([head(101 << 20, DIGEST) + b'HTTP/1.1 200 OK\\r\\nX: '], [MIB] * 100))",
        "announced",
    ),
    "a chunk line without end": (
        "packed([head((100 << 20) + len(CHUNKED), DIGEST) + CHUNKED, *[b'1' * (1 << 20)] * 100, b'\\r\\n\\r\\n'])",
        "WARC-Payload-Digest",
    ),
}


@pytest.mark.parametrize("attacked", ATTACKS)
def test_refused_in_bounded_memory_and_time(attacked: str) -> None:
    code, expected = ATTACKS[attacked]
    ok, _, why = attack(f"data = {code}")
    assert not ok
    assert expected in why


BOMBS = {
    "gzip": "b''.join(packed(itertools.repeat(MIB, 400)))",
    "gzip, gzip": "b''.join(packed([b''.join(packed(itertools.repeat(MIB, 200)))] * 100))",
    # 65,000 blocks of four bytes, each of which is 128 KiB of zeros (RFC 8878, 3.1.1.2)
    "zstd": "bytes.fromhex('28b52ffd0058') + bytes.fromhex('02001000') * 65000",
    "zstd, zstd": "zstandard.compress((bytes.fromhex('28b52ffd0058') + bytes.fromhex('02001000') * 65000) * 20)",
    "br": f"bytes.fromhex('{brotli.compress(bytes(1 << 26), quality=2, lgwin=24).hex()}') * 9",
}


@pytest.mark.parametrize("coding", BOMBS)
def test_a_bomb_in_a_body_is_given_up_in_bounded_memory_and_time(coding: str) -> None:
    code = f"""
block = HTTP % b"Content-Encoding: {coding}" + {BOMBS[coding]}
data = packed([head(len(block), DIGEST), block, b"\\r\\n\\r\\n"])
"""
    ok, digests, _ = attack(code)
    assert ok
    assert "not checked" in digests


def test_chunks_of_one_byte_are_given_up() -> None:
    code = """
body = [b"1\\r\\nx\\r\\n" * 100000] * 100
data = packed(itertools.chain([head(60000000 + len(CHUNKED), DIGEST) + CHUNKED], body, [b"\\r\\n\\r\\n"]))
"""
    assert attack(code) == (True, "{'not checked': 1}", "")


@pytest.mark.parametrize("name", ["x.warc.gz", "x.warc"])
def test_a_record_four_times_its_memory_passes(name: str) -> None:
    code = """
import hashlib
digest = hashlib.sha1()
for _ in range(256):
    digest.update(MIB)
header = b"WARC-Payload-Digest: sha1:%s\\r\\n" % digest.hexdigest().encode()
start = HTTP % b"Content-Type: video/mp4"
record = itertools.chain([head((256 << 20) + len(start), header), start], [MIB] * 256, [b"\\r\\n\\r\\n"])
data = packed(record) if name.endswith(".gz") else record
"""
    assert attack(code, name) == (True, "{'as-transferred': 1}", "")
