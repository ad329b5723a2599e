"""What a visit leaves for the next: 200 bytes that tell whether a page is the same."""

from __future__ import annotations

import hashlib
from uuid import uuid4

import pytest

from warcmill.crawl.frontier import LONGEST_HISTORY
from warcmill.crawl.visit import history
from warcmill.crawl.visit.history import AnswerComparison, PastVisit
from warcmill.errors import BadInput
from warcmill.formats.warc.records import sha1_text

BODY = b"the page"
DATE, RECORD = "2026-11-21T08:18:44Z", f"<urn:uuid:{uuid4()}>"


def digests(body: bytes) -> tuple[str, int, str]:
    return sha1_text(hashlib.sha1(body).digest()), len(body), hashlib.sha256(body).hexdigest()


def visit(etag: str = "", last_modified: str = "") -> PastVisit:
    return history.of_visit(*digests(BODY), DATE, RECORD).renewed(etag, last_modified)


def test_a_history_comes_back_as_it_was() -> None:
    whole = visit('W/"5f-é"', "Wed, 21 Oct 2015 07:28:00 GMT")
    raw = history.pack(whole)
    assert history.read(raw) == whole
    assert len(raw) < LONGEST_HISTORY
    assert whole.hash == digests(BODY)[0]
    assert len(history.pack(visit())) <= 72


def test_the_same_is_sha1_and_length_and_a_second_digest() -> None:
    sha1, length, second = digests(BODY)
    kept = history.read(history.pack(visit()))
    assert kept
    assert kept.same(sha1, length, second)
    assert not kept.same(sha1, length, digests(b"x")[2]), "a collision of SHA-1 is not the same"
    assert not kept.same(sha1, length + 1, second)
    assert not kept.same(*digests(b"another page"))


def test_a_request_asks_for_what_is_newer() -> None:
    assert visit().conditions == ()
    assert visit('"a"').conditions == (("If-None-Match", '"a"'),)
    assert visit('"a"', "Wed, 21 Oct 2015 07:28:00 GMT").conditions == (
        ("If-None-Match", '"a"'),
        ("If-Modified-Since", "Wed, 21 Oct 2015 07:28:00 GMT"),
    )


def test_a_revisit_refers_to_the_record_with_the_bytes_and_renews_the_validators() -> None:
    first = visit('"a"', "Wed, 21 Oct 2015 07:28:00 GMT")
    again = first.renewed('"b"', "")
    assert (again.etag, again.last_modified) == ('"b"', "Wed, 21 Oct 2015 07:28:00 GMT")
    original = again.original("http://a.example/")
    assert (original.id, original.date, original.uri) == (RECORD, DATE, "http://a.example/")


def test_when_the_same_payload_came_again_is_known() -> None:
    first, later = visit('"a"'), 1_795_000_000
    assert history.read(history.pack(first)) == first
    assert first.came == 1_795_249_124
    again = first.renewed('"b"', "", later)
    read = history.read(history.pack(again))
    assert read == again
    assert read
    assert (read.came, read.etag, read.date) == (later, '"b"', DATE)
    left = history.read(history.without_validators(history.pack(again)))
    assert left
    assert (left.came, left.conditions) == (later, ())


@pytest.mark.parametrize("etag", ['"' + "x" * 300 + '"', '"a\r\nX: y"', '"\0"', '"\u20ac"'])
def test_a_validator_that_does_not_fit_or_is_no_header_is_left_out(etag: str) -> None:
    raw = history.pack(visit(etag, "Wed, 21 Oct 2015 07:28:00 GMT"))
    assert len(raw) <= LONGEST_HISTORY
    read = history.read(raw)
    assert read
    assert (read.etag, read.last_modified) == ("", "Wed, 21 Oct 2015 07:28:00 GMT")
    huge = history.read(history.pack(visit('"a"', "x" * 300)))
    assert huge
    assert (huge.etag, huge.last_modified) == ('"a"', "")


def test_a_history_of_another_version_is_none() -> None:
    raw = history.pack(visit())
    assert history.read(b"") is None
    assert history.read(raw[:40]) is None
    assert history.read(b"\x09" + raw[1:]) is None
    assert history.read(b"\x02" + raw[1:]) is None, "it lacks a time"


def test_a_digest_that_is_none_is_refused() -> None:
    with pytest.raises(BadInput, match="not a sha1 in base32"):
        history.of_visit("sha1:0189", 1, "00" * 32, DATE, RECORD)


def test_of_revisits_those_whose_bytes_have_come_can_be_recorded_whole() -> None:
    before = visit('"a"')
    same = AnswerComparison(before, history.DUPLICATE, before.original("http://a.example/"))
    assert same.whole() == AnswerComparison(before, is_whole=True)
    assert same.whole().word == ""
    for other in (AnswerComparison(before), AnswerComparison(before, history.NOT_MODIFIED)):
        assert other.whole() is other
