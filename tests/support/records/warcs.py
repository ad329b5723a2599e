"""WARCs, ARCs and gzip members for tests, built byte by byte."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import struct
import uuid
import zlib
from pathlib import Path

from warcmill.formats.warc.gate import FileVerdict, examine

NAME = "BL-20161019234428123-00000-1~crawler01~8443.warc.gz"
WEEKLY = (
    Path(__file__).parents[2]
    / "data/sample/kind-first/warcs/weekly/20261121081735"
    / "BL-20261121081737002-00000-32386~crawler01~8443.warc.gz"
)
END = b"\r\n\r\n"


def sha1(data: bytes) -> str:
    """A digest as Heritrix writes it."""
    return "sha1:" + base64.b32encode(hashlib.sha1(data).digest()).decode()


def record(
    kind: str = "response",
    block: bytes = b"",
    *,
    payload: str = "",
    digest: str = "",
    version: str = "WARC/1.0",
    length: int | None = None,
    http: bool = True,
    extra: bytes = b"",
) -> bytes:
    """One WARC record; `payload` and `digest` are the declared digests, `length` a false Content-Length.

    Its ID follows from what it is given.
    """
    record_id = uuid.UUID(bytes=hashlib.md5(repr((kind, block, payload, digest, extra)).encode()).digest())
    lines = [version.encode(), b"WARC-Type: " + kind.encode(), b"WARC-Target-URI: http://gov.example/"]
    lines += [b"WARC-Date: 2016-10-19T23:44:28Z", b"WARC-Record-ID: <%s>" % record_id.urn.encode()]
    if http and kind in ("response", "request", "revisit"):
        lines.append(b"Content-Type: application/http; msgtype=" + kind.encode())
    if digest:
        lines.append(b"WARC-Block-Digest: " + digest.encode())
    if payload:
        lines.append(b"WARC-Payload-Digest: " + payload.encode())
    if extra:
        lines.append(extra)
    lines.append(b"Content-Length: %d" % (len(block) if length is None else length))
    return b"\r\n".join(lines) + END + block + END


def warcinfo() -> bytes:
    """The record that a WARC begins with."""
    return record("warcinfo", b"software: Heritrix/3.13.0\r\nformat: WARC File Format 1.0\r\n")


def http(body: bytes, *headers: bytes, status: bytes = b"HTTP/1.1 200 OK") -> bytes:
    """An HTTP response as transferred."""
    return b"\r\n".join([status, *headers]) + END + body


def chunked(body: bytes, size: int = 7) -> bytes:
    """`body` in chunks of `size` bytes."""
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0" + END


def member(data: bytes, level: int = 6) -> bytes:
    """One gzip member, with no optional header field."""
    return gzip.compress(data, level, mtime=0)


def dressed(data: bytes, flags: int, *, header_crc: int | None = None) -> bytes:
    """A gzip member with the optional header fields that `flags` asks for (RFC 1952, 2.3)."""
    head = b"\x1f\x8b\x08" + bytes([flags]) + bytes(5) + b"\x03"
    if flags & 4:
        head += struct.pack("<H", 12) + b"sl\x08\x00" + bytes(8)
    if flags & 8:
        head += b"name.warc\0"
    if flags & 16:
        head += b"a comment\0"
    if flags & 2:
        head += struct.pack("<H", zlib.crc32(head) & 0xFFFF if header_crc is None else header_crc)
    return head + member(data)[10:]


def warc_gz(*records: bytes) -> bytes:
    """Records, each a gzip member."""
    return b"".join(map(member, records))


def judge(data: bytes, name: str = NAME, expect_offset: int | None = None) -> FileVerdict:
    """What the gate says of these bytes."""
    return examine(io.BytesIO(data), name, expect_offset)
