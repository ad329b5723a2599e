"""Lay out the bundled launch: real files of one small crawl, as Heritrix left them.

`tests/data/sample` has all but one. The crawl fetched the EICAR test string,
which every virus scanner reports on purpose, so its WARC is not in the
repository: it is rebuilt here with the name and the record's offset from the
launch's own crawl log.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

SAMPLE = Path(__file__).parent.parent / "tests" / "data" / "sample" / "kind-first"
JOB, LAUNCH_ID = "weekly", "20261121081735"

# In pieces, so that no scanner reports this file.
EICAR = b"".join((b"X5O!P%@AP[4\\PZX54(P^)7CC)7}$", b"EICAR", b"-STANDARD-ANTIVIRUS-", b"TEST-FILE!$H+H*"))


class Capture(NamedTuple):
    """The crawl log's record of the only viral capture: columns 4 and 10, and the JSON at its end."""

    uri: str
    digest: str
    warc: str
    offset: int


def lay_out(folder: Path) -> Path:
    """Copy the sample into `folder`, which must not exist yet, and rebuild its viral WARC there. Return `folder`.

    It contains `jobs logs reports warcs viral`, each `{job}/{launch id}/`.
    """
    shutil.copytree(SAMPLE, folder, symlinks=True, copy_function=shutil.copyfile)
    log = folder / "logs" / JOB / LAUNCH_ID / "crawl.log"
    capture = viral_capture(log.read_text("utf-8"))
    viral = folder / "viral" / JOB / LAUNCH_ID
    viral.mkdir(parents=True)
    (viral / capture.warc).write_bytes(viral_warc(capture))
    return folder


def viral_capture(crawl_log: str) -> Capture:
    """Find the only capture in the crawl log that went to the viral writer."""
    (line,) = (line for line in crawl_log.splitlines() if "BL-VIRAL-" in line)
    columns = line.split(maxsplit=12)
    tail = json.loads(columns[12])
    return Capture(columns[3], columns[9], tail["warcFilename"], tail["warcFileOffset"])


def viral_warc(capture: Capture) -> bytes:
    """The original's four records, one gzip member each; the second begins at the offset in the log."""
    digest = "sha1:" + base64.b32encode(hashlib.sha1(EICAR, usedforsecurity=False).digest()).decode()
    if digest != capture.digest:
        raise ValueError(f"crawl log, {capture.uri}: its digest is {capture.digest}, the EICAR string's is {digest}")
    about = (("WARC-Target-URI", capture.uri), ("WARC-Date", "2026-11-21T08:18:05Z"))
    response_id = "<urn:uuid:3147b3e6-8073-4bed-be85-460ce33a4cbe>"
    response = _record(
        "response",
        (
            *about,
            ("WARC-Payload-Digest", digest),
            ("WARC-IP-Address", "127.0.0.12"),
            ("WARC-Record-ID", response_id),
            ("Content-Type", "application/http; msgtype=response"),
        ),
        RESPONSE_HEAD + EICAR,
    )
    request = _record(
        "request",
        (
            *about,
            ("WARC-Concurrent-To", response_id),
            ("WARC-Record-ID", "<urn:uuid:98c0f4e6-0c75-4d10-83b2-e92f1881d58b>"),
            ("Content-Type", "application/http; msgtype=request"),
        ),
        REQUEST,
    )
    metadata = _record(
        "metadata",
        (
            *about,
            ("WARC-Concurrent-To", response_id),
            ("WARC-Record-ID", "<urn:uuid:fcca99e7-9576-4693-aa88-5f62414834cb>"),
            ("Content-Type", "application/warc-fields"),
        ),
        METADATA,
    )
    return b"".join(map(_member, (_warcinfo(capture), response, request, metadata)))


def _warcinfo(capture: Capture) -> bytes:
    """A warcinfo record whose member has exactly `capture.offset` bytes: dots fill its last line."""
    fields = (
        ("WARC-Date", "2026-11-21T08:18:06Z"),
        ("WARC-Filename", capture.warc),
        ("WARC-Record-ID", "<urn:uuid:bdcb8afa-6fe7-4d7e-bb60-389d287bafa7>"),
        ("Content-Type", "application/warc-fields"),
    )
    block = (
        b"software: Warcmill's sample, after Heritrix/3.13.0\r\n"
        b"isPartOf: weekly\r\n"
        b"description: rebuilt from the crawl log, filled up to its offset %s\r\n\r\n"
    )
    missing = capture.offset - len(_member(_record("warcinfo", fields, block % b"")))
    filled = _record("warcinfo", fields, block % (b"." * missing))
    if len(_member(filled)) != capture.offset:
        raise ValueError(f"{capture.warc}: a warcinfo member cannot be made {capture.offset} bytes long")
    return filled


def _record(kind: str, fields: tuple[tuple[str, str], ...], block: bytes) -> bytes:
    """One WARC/1.0 record (ISO 28500:2009, section 4)."""
    lines = ["WARC/1.0", f"WARC-Type: {kind}", *(f"{name}: {value}" for name, value in fields)]
    head = "\r\n".join([*lines, f"Content-Length: {len(block)}"])
    return head.encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def _member(record: bytes) -> bytes:
    """One gzip member (RFC 1952) with one stored block (RFC 1951, 3.2.4): the same bytes with every version of zlib."""
    head = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    stored = b"\x01" + struct.pack("<HH", len(record), len(record) ^ 0xFFFF) + record
    return head + stored + struct.pack("<II", zlib.crc32(record), len(record))


RESPONSE_HEAD = (
    b"HTTP/1.1 200 OK\r\n"
    b"Date: Sat, 21 Nov 2026 08:18:05 GMT\r\n"
    b"Server: example/1.0\r\n"
    b"Content-Type: text/plain\r\n"
    b"Content-Length: 68\r\n"
    b"Connection: close\r\n\r\n"
)
REQUEST = (
    b"GET /odd/eicar.com.txt HTTP/1.1\r\n"
    b"Connection: Close\r\n"
    b"Referer: http://gov.example/odd/\r\n"
    b"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
    b"Host: gov.example\r\n"
    b"User-Agent: Mozilla/5.0 (compatible; heritrix/3.13.0 +http://archive.example/crawler)\r\n"
    b"Cookie: sid=abc123; lang=cy\r\n\r\n"
)
METADATA = (
    b"via: http://gov.example/odd/\r\n"
    b"hopsFromSeed: L\r\n"
    b"sourceTag: http://gov.example/odd/\r\n"
    b"fetchTimeMs: 4\r\n"
    b"charsetForLinkExtraction: ISO-8859-1\r\n"
    b"outlink: http://gov.example/favicon.ico I =INFERRED_MISC\r\n\r\n"
)
