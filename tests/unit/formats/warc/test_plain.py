"""formats/plain: the one look never judges a record otherwise than the careful reading does."""

from __future__ import annotations

import random
import re

import pytest
from records.changed_records import RECORDS, REVISIT, changed
from records.warcs import chunked, judge, member, sha1

from warcmill.formats.warc import hearers

SEED = 8
ROUNDS = 1_500

PLAIN = [one for one in RECORDS if hearers.match(one)]


def field(record: bytes, name: bytes) -> bytes | None:
    """A field's value by other code."""
    header = record.partition(b"\r\n\r\n")[0] + b"\r\n"
    return header.partition(b"\r\n%s: " % name)[2].partition(b"\r\n")[0] or None


def groups(record: bytes, *wanted: int) -> tuple[bytes | None, ...]:
    header = hearers.match(record)
    return tuple(header[number] for number in wanted) if header else ()


def test_the_one_look_knows_all_that_heritrix_wrote_but_warcinfo() -> None:
    assert len(PLAIN) == len(RECORDS) - 1 > 200  # the gate looks out for warcinfo with care
    with_payload = [one for one in PLAIN if b"WARC-Payload-Digest" in one and REVISIT not in one]
    assert [one for one in PLAIN if groups(one, hearers.DIGEST)[0]] == with_payload


def test_what_it_took_from_a_header_is_what_is_there() -> None:
    groups_of = {
        hearers.TYPE: b"WARC-Type",
        hearers.URL: b"WARC-Target-URI",
        hearers.DATE: b"WARC-Date",
        hearers.RECORD_ID: b"WARC-Record-ID",
        hearers.CONTENT_TYPE: b"Content-Type",
        hearers.LENGTH: b"Content-Length",
    }
    for one in PLAIN:
        assert groups(one, *groups_of) == tuple(field(one, name) for name in groups_of.values())
        digest, original, truncated = groups(one, hearers.DIGEST, hearers.ORIGINAL, hearers.TRUNCATED)
        assert (digest or original) == field(one, b"WARC-Payload-Digest")
        assert truncated == (None if REVISIT in one else field(one, b"WARC-Truncated"))


def test_it_judges_changed_records_as_the_careful_reading_does(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(SEED)
    files = [member(changed(chance.choice(RECORDS), chance)) + member(PLAIN[0]) for _ in range(ROUNDS)]
    verdicts = [judge(data) for data in files]
    monkeypatch.setattr(hearers, "match", lambda record, **_: None)
    assert verdicts == [judge(data) for data in files]
    assert 100 < sum(verdict.ok for verdict in verdicts) < ROUNDS - 100
    assert len({verdict.why for verdict in verdicts}) > 20


@pytest.mark.parametrize("length", [rb"0\2", rb"0000000000000000\2", rb"-\2", rb"+\2", rb" \2 ", rb"1\2", rb"\2_0"])
def test_lengths(length: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    data = member(re.sub(rb"(Content-Length: )(\d+)", rb"\g<1>%s" % length, PLAIN[0], count=1))
    verdict = judge(data)
    monkeypatch.setattr(hearers, "match", lambda record, **_: None)
    assert verdict == judge(data)


@pytest.mark.parametrize(
    ("block", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nA: b", b""),  # the record's end looks like the header's
        (b"HTTP/1.1 200 OK\r\nA: b\r\n", b""),
        (b"HTTP/1.1 200 OK\n\nbody", b"body"),
        (b"HTTP/1.1 200 OK\r\n\r\nbody", b"body"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(b"body"), b"body"),
        (b"HTTP/0.9\r\n\r\n is this", b"another"),
        (b"no status line\r\n\r\n", b"no status line\r\n\r\n"),
        (b"HTTP", b"HTTP"),
        (b"", b""),
    ],
)
def test_payloads(block: bytes, body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    response = next(one for one in PLAIN if groups(one, hearers.DIGEST)[0])
    header = re.sub(rb"(?<=WARC-Payload-Digest: )\S+", sha1(body).encode(), response.partition(b"\r\n\r\n")[0])
    header = re.sub(rb"(?<=Content-Length: )\d+", b"%d" % len(block), header)
    data = member(header + b"\r\n\r\n" + block + b"\r\n\r\n")
    verdict = judge(data)
    monkeypatch.setattr(hearers, "match", lambda record, **_: None)
    assert verdict == judge(data)
