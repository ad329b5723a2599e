"""formats/plain: the one look never judges a record otherwise than the careful reading does."""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Iterator

import pytest
from warcs import WEEKLY, judge, member, sha1

from warcmill.formats import plain

SEED = 8
ROUNDS = 1_500
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
PLAIN = [one for one in RECORDS if plain.record_id(one)]


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
    """The record with its header changed in one place, or in two, and its end in a few."""
    header, mark, block = record.partition(b"\r\n\r\n")
    lines = header.split(b"\r\n")
    for _ in range(chance.choice([1, 1, 2])):
        chance.choice([swapped, repeated, removed, added, other_case, other_bytes])(lines, chance)
    end = chance.choice([block] * 6 + [block[:-1], block + b"\n", block[:-4]])
    return b"\r\n".join(lines) + mark + end


def test_the_one_look_knows_all_of_heritrix_that_have_no_digest_to_check() -> None:
    unchecked = [one for one in RECORDS if REVISIT in one or b"WARC-Payload-Digest" not in one]
    assert len(PLAIN) == len(unchecked) - 1  # but for the warcinfo record, which the gate looks out for
    assert {one.split(b"\r\n")[1] for one in PLAIN} >= {b"WARC-Type: request", b"WARC-Type: metadata", REVISIT}


def test_it_judges_changed_records_as_the_careful_reading_does(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(SEED)
    files = [member(changed(chance.choice(RECORDS), chance)) + member(PLAIN[0]) for _ in range(ROUNDS)]
    verdicts = [judge(data) for data in files]
    monkeypatch.setattr(plain, "record_id", lambda record: b"")
    assert verdicts == [judge(data) for data in files]
    assert 100 < sum(verdict.ok for verdict in verdicts) < ROUNDS - 100
    assert len({verdict.why for verdict in verdicts}) > 20


@pytest.mark.parametrize("length", [rb"0\2", rb"0000000000000000\2", rb"-\2", rb"+\2", rb" \2 ", rb"1\2", rb"\2_0"])
def test_lengths(length: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    data = member(re.sub(rb"(Content-Length: )(\d+)", rb"\g<1>%s" % length, PLAIN[0], count=1))
    verdict = judge(data)
    monkeypatch.setattr(plain, "record_id", lambda record: b"")
    assert verdict == judge(data)
