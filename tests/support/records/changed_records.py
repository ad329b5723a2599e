"""Records of a real crawl, and changed ones: most of these are damaged, some are only written otherwise."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator

from records.warcs import WEEKLY, sha1

REVISIT = b"WARC-Type: revisit"
LINES = [
    b"WARC-Type: response",
    REVISIT,
    b"WARC-Payload-Digest: " + sha1(b"elsewhere").encode(),
    b"WARC-Payload-Digest : " + sha1(b"elsewhere").encode(),
    b"WARC-Block-Digest: " + sha1(b"elsewhere").encode(),
    b"WARC-Segment-Number: 2",
    b"WARC-Record-ID: <urn:x:1>",
    b"WARC-Date: ",
    b"WARC-Truncated: length",
    b"Content-Length: 7",
    b" continued",
    b"no colon",
    b": no name",
    b"",
]
BYTES = [b"\0", b"\r", b"\n", b"\r\n", b" ", b"\t", b":", b"\xff", b"\x0b", b"0"]


def unpacked(data: bytes) -> Iterator[bytes]:
    while data:
        inflater = zlib.decompressobj(31)
        yield inflater.decompress(data)
        data = inflater.unused_data


RECORDS = list(unpacked(WEEKLY.read_bytes()[:400_000]))[:-1]


def swapped(lines: list[bytes], chance: random.Random) -> None:
    one, other = chance.choices(range(len(lines)), k=2)
    lines[one], lines[other] = lines[other], lines[one]


def repeated(lines: list[bytes], chance: random.Random) -> None:
    lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines))


def removed(lines: list[bytes], chance: random.Random) -> None:
    del lines[chance.randrange(len(lines))]


def added(lines: list[bytes], chance: random.Random) -> None:
    lines.insert(chance.randrange(len(lines) + 1), chance.choice(LINES))


def other_case(lines: list[bytes], chance: random.Random) -> None:
    at = chance.randrange(len(lines))
    lines[at] = lines[at].swapcase()


def other_bytes(lines: list[bytes], chance: random.Random) -> None:
    at = chance.randrange(len(lines))
    cut = chance.randrange(len(lines[at]) + 1)
    lines[at] = lines[at][:cut] + chance.choice(BYTES) + lines[at][cut + chance.randrange(2) :]


def changed(record: bytes, chance: random.Random) -> bytes:
    """The record with its header changed in one place, or in two, and its block in a few."""
    header, mark, block = record.partition(b"\r\n\r\n")
    lines = header.split(b"\r\n")
    for _ in range(chance.choice([1, 1, 2])):
        chance.choice([swapped, repeated, removed, added, other_case, other_bytes])(lines, chance)
    other_blocks = [block[:-1], block + b"\n", block[:-4], block.swapcase(), block.replace(b"\r", b"", 6)]
    return b"\r\n".join(lines) + mark + chance.choice([block] * 6 + other_blocks)
