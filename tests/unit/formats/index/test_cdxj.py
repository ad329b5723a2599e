"""Lines of captures; tests/services compares them with those of other indexers."""

from __future__ import annotations

import io
import json
import random
import re
from typing import Any

import pytest
from records.captures import REQUEST, RESPONSE, capture, posted, request, response, typed
from records.changed_records import RECORDS, changed
from records.warcs import NAME, WEEKLY, http, member, record, sha1, warc_gz, warcinfo

from warcmill.formats.index.cdxj import IMPOSSIBLE, NO_DATE, NO_URL, OF_RENDERING, CdxLines, named
from warcmill.formats.text.captures import Captured, DocumentHearer
from warcmill.formats.warc.gate import examine
from warcmill.formats.warc.hearers import Hearer, WholeRecord
from warcmill.formats.warc.rest import RecordFault

OK = b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n\r\nx"


def listen(data: bytes, name: str = NAME) -> tuple[list[bytes], CdxLines]:
    lines: list[bytes] = []
    hearer = CdxLines(lines.append)
    verdict = examine(io.BytesIO(data), name, hearers=[hearer])
    assert (verdict.ok, verdict.unheard) == (True, ()), verdict
    hearer.close()
    return lines, hearer


def parts(line: bytes) -> tuple[str, str, dict[str, Any]]:
    key, date, fields = line.decode("ascii").split(" ", 2)
    return key, date, json.loads(fields)


def fields_of(record: bytes) -> dict[str, Any]:
    ((line), *rest), _ = listen(member(record))
    assert not rest
    return parts(line)[2]


def keys(*records: bytes) -> list[str]:
    return [parts(line)[0] for line in listen(warc_gz(*records))[0]]


def test_a_line() -> None:
    record = response("http://www.e.x/A?b&a", b"Content-Type: text/html; charset=utf-8")
    (line,), hearer = listen(member(warcinfo()) + member(record))
    offset, length = len(member(warcinfo())), len(member(record))
    assert (
        line
        == (
            f'x,e)/a?a&b 20161019234428 {{"url": "http://www.e.x/A?b&a", "mime": "text/html", "status": "200",'
            f' "digest": "{sha1(b"x")}", "length": "{length}", "offset": "{offset}", "filename": ""}}\n'
        ).encode()
    )
    assert named(line, 'daily/1/"x"ü.gz').endswith(b'"filename": "daily/1/\\"x\\"\\u00fc.gz"}\n')
    assert (dict(hearer.captures), dict(hearer.left_out)) == ({"response": 1}, {})


def test_the_sample() -> None:
    lines, hearer = listen(WEEKLY.read_bytes(), WEEKLY.name)
    assert len(lines) == 268
    assert sum(hearer.captures.values()) == 268
    assert hearer.captures.keys() == {"response", "revisit"}


@pytest.mark.parametrize(
    ("written", "mime"),
    [
        (b"text/html; charset=utf-8", "text/html"),
        (b"  TEXT/html ", "TEXT/html"),
        (b"", ""),
        (b";", ""),
        (b"html>", "html>"),
        (b'a"b', 'a"b'),
        (b"a b", "a"),
        (b"a/\nb", "a/"),
        (b"a\\b", "a\\b"),
        (b"\xff", "ÿ"),
        ("é".encode(), "é"),
        (b"x" * 1024, "x" * 1024),
        (b"a\r\n b", "a"),
    ],
)
def test_a_mime_type(written: bytes, mime: str) -> None:
    assert fields_of(typed(written))["mime"] == mime


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"HTTP/1.1 404 Not Found", "404"),
        (b"HTTP/2 204", "204"),
        (b"HTTP/1.1  200 OK", "200"),
        (b"HTTP/1.1", None),
        (b"HTTP/1.1 abc", None),
        (b"HTTP/1.1 20000", None),
        (b"<html>", None),
    ],
)
def test_a_status(line: bytes, status: str | None) -> None:
    assert fields_of(response("http://e.x/", status=line)).get("status") == status


def test_a_block_that_is_no_http_is_all_payload() -> None:
    fields = fields_of(capture("response", "http://e.x/", b"<html>\r\n\r\nx", RESPONSE))
    assert fields["digest"] == sha1(b"<html>\r\n\r\nx")
    assert fields.keys() == {"url", "digest", "length", "offset", "filename"}


def test_a_header_that_is_long_and_one_that_has_no_end() -> None:
    long = fields_of(response("http://e.x/", *[b"X: y"] * 40_000, b"Content-Type: a/b", body=b"x" * 700_000))
    assert (long["mime"], long["digest"]) == ("a/b", sha1(b"x" * 700_000))
    endless = fields_of(capture("response", "http://e.x/", b"HTTP/1.1 200 OK\r\nContent-Type: a/b", RESPONSE))
    assert (endless["mime"], endless["status"], endless["digest"]) == ("a/b", "200", sha1(b""))
    filler = b"HTTP/1.1 200 OK\r\nA: " + b"x" * (3 << 20)
    assert fields_of(capture("response", "http://e.x/", filler, RESPONSE))["status"] == "200"


def test_a_declared_digest_is_taken_as_it_is_written() -> None:
    declared = sha1(b"x").lower()
    assert fields_of(response("http://e.x/", WARC_Payload_Digest=declared))["digest"] == declared


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (capture("revisit", "http://e.x/", b"HTTP/1.1 304 X\r\n\r\n"), {"mime": "warc/revisit", "status": "304"}),
        (capture("revisit", "http://e.x/", WARC_Truncated="length"), {"mime": "warc/revisit"}),
        (capture("resource", "http://e.x/", b"abc", "text/plain; x"), {"mime": "text/plain", "digest": sha1(b"abc")}),
        (capture("resource", "http://e.x/", OK, RESPONSE), {"mime": "application/http", "digest": sha1(OK)}),
        (capture("metadata", "http://e.x/", b"abc", "text/xml"), {"mime": "text/xml", "digest": sha1(b"abc")}),
        (capture("metadata", "http://e.x/", b"abc"), {"digest": sha1(b"abc")}),
        (capture("response", "dns:e.x", b"abc", "text/dns"), {"digest": sha1(b"abc")}),
        (capture("response", "ftp://e.x/", b"abc", "text/plain"), {"digest": sha1(b"abc")}),
        (capture("response", "http://e.x/", b"", RESPONSE), {"digest": sha1(b"")}),
        (
            capture("response", "http://e.x/", OK, RESPONSE, WARC_Truncated="time"),
            {"mime": "a/b", "status": "200", "digest": sha1(b"x"), "truncated": "time"},
        ),
    ],
)  # fmt: skip
def test_a_capture_of_another_kind(record: bytes, expected: dict[str, str]) -> None:
    fields = fields_of(record)
    assert {key: fields[key] for key in fields.keys() - {"url", "length", "offset", "filename"}} == expected


def test_what_is_no_capture_has_no_line() -> None:
    records = [warcinfo(), *(capture(kind, "http://e.x/", OK, RESPONSE) for kind in ("request", "conversion", "other"))]
    about = capture("metadata", "http://e.x/", b"via: x", "application/warc-fields")
    assert listen(warc_gz(*records, about))[0] == []


def test_the_dom_and_the_picture_of_a_page_are_no_captures_and_are_counted() -> None:
    made = [capture("resource", f"urn:{kind}:http://e.x/", b"x", "text/html") for kind in ("dom", "view", "other")]
    lines, hearer = listen(warc_gz(warcinfo(), response("http://e.x/"), *made))
    assert {parts(line)[2]["url"] for line in lines} == {"http://e.x/", "urn:other:http://e.x/"}
    assert dict(hearer.left_out) == {OF_RENDERING: 2}


@pytest.mark.parametrize(
    ("written", "date"),
    [
        ("2016-10-19T23:44:28.123456Z", "20161019234428"),
        ("2016-10-19T23:44:28", "20161019234428"),
        ("2016-10-19T23:44Z", "20161019234400"),
        ("2016-10-19", "20161019000000"),
        ("2016-10", "20161001000000"),
        ("2016", "20160101000000"),
        ("2016-10-19T23:44:28+01:00", "20161019224428"),
        ("2016-10-19T23:44:28.5-0230", "20161020021428"),
        ("2024-05-06T07:08:09+00:00", "20240506070809"),
    ],
)
def test_a_date_of_any_precision(written: str, date: str) -> None:
    ((line,), _) = listen(member(response("http://e.x/", WARC_Date=written)))
    assert parts(line)[1] == date


@pytest.mark.parametrize(
    ("written", "date"),
    [
        ("2024-02-30T01:02:03Z", "20240229010203"),
        ("2023-02-29", "20230228000000"),
        ("2024-04-31T23:59:59.5Z", "20240430235959"),
        ("20240231000000", "20240229000000"),
    ],
)
def test_a_date_that_is_not_in_the_calendar_is_the_last_of_its_month_and_odd(written: str, date: str) -> None:
    before = warc_gz(warcinfo(), response("http://e.x/1"))
    lines, hearer = listen(before + member(response("http://e.x/2", WARC_Date=written)))
    assert [parts(line)[1] for line in lines] == ["20161019234428", date]
    assert hearer.odd == [RecordFault(len(before), IMPOSSIBLE)]
    assert (hearer.odd_records, dict(hearer.left_out)) == (1, {})
    documents = list[Captured]()
    data = member(response("http://e.x/2", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nx", WARC_Date=written))
    assert examine(io.BytesIO(data), NAME, hearers=[DocumentHearer(documents.append)]).ok
    assert [one.date for one in documents] == [date]


def test_an_impossible_date_of_a_plain_record_and_of_an_arc_is_odd() -> None:
    plain = record(payload=sha1(b"x"), block=http(b"x")).replace(b"2016-10-19T23:44:28Z", b"2024-02-30T01:02:03Z")
    arc = b"http://e.x/ 192.0.2.7 20240230010203 text/html 20\nHTTP/1.1 200 OK\r\n\r\nx\n"
    for data, name in ((plain, "x.warc"), (arc, "x.arc")):
        lines = list[bytes]()
        hearer = CdxLines(lines.append)
        assert examine(io.BytesIO(data), name, hearers=[hearer]).ok
        hearer.close()
        assert [line.split(b" ", 2)[1] for line in lines] == [b"20240229010203"]
        assert hearer.odd == [RecordFault(0, IMPOSSIBLE)]


def test_captures_without_date_or_url_are_counted() -> None:
    bad = [
        "bad",
        "2016-13-01T00:00:00Z",
        "2016-10-19T24:00:00Z",
        "2016-10-19T23:44:28+99:00",
        "0001-01-01T00:00:00+01:00",
    ]
    undated = (response("http://e.x/", WARC_Date=date) for date in bad)
    lines, hearer = listen(warc_gz(*undated, capture("resource", None, b"x"), response("")))
    assert (lines, dict(hearer.captures)) == ([], {})
    assert dict(hearer.left_out) == {NO_DATE: len(bad), NO_URL: 2}


@pytest.mark.parametrize(
    ("written", "url"),
    [
        (b"<http://e.x/angle>", "http://e.x/angle"),
        (b"http://e.x/a b", "http://e.x/a%20b"),
        (b"http://e.x/\xfc", "http://e.x/ü"),
        ("http://e.x/ü".encode(), "http://e.x/ü"),
        (b'http://e.x/"\\\x7f', 'http://e.x/"\\\x7f'),
        (b"http://e.x/" + b"a" * 40_000, "http://e.x/" + "a" * 40_000),
        (b"not a url", "not%20a%20url"),
    ],
)
def test_a_url(written: bytes, url: str) -> None:
    assert fields_of(response(written))["url"] == url


def test_an_arc() -> None:
    first = b"1 0 Alexa\nURL IP-address Archive-date Content-type Archive-length\n\n"
    arc = b"filedesc://x.arc 0.0.0.0 20041019234428 text/plain %d\n%s\n" % (len(first), first)
    arc += b"http://gov.example/ 1.2.3.4 20041019234428 text/html %d\n%s\n" % (len(OK), OK)
    arc += b"dns:gov.example 1.2.3.4 200410192344 text/dns 3\nabc\n"
    (page, dns), hearer = listen(arc, "x.arc")
    assert parts(page)[:2] == ("example,gov)/", "20041019234428")
    assert (parts(page)[2]["mime"], parts(page)[2]["status"], parts(page)[2]["digest"]) == ("a/b", "200", sha1(b"x"))
    assert parts(dns)[:2] == ("dns:gov.example", "20041019234400")
    assert dict(hearer.captures) == {"arc": 2}


def test_a_post_has_its_body_in_its_key() -> None:
    (line,), _ = listen(posted("http://e.x/?z=1", b"b=2&a=1"))
    assert parts(line)[0] == "x,e)/?__wb_method=post&a=1&b=2&z=1"
    assert (parts(line)[2]["method"], parts(line)[2]["requestBody"]) == ("POST", "b=2&a=1")
    assert parts(line)[2]["url"] == "http://e.x/?z=1"


def test_a_request_names_its_capture_or_is_named_by_it_before_or_after_it() -> None:
    get, other = response("http://e.x/other"), capture("metadata", "http://e.x/", b"x", "application/warc-fields")
    named_by = request("http://e.x/", b"a=1", WARC_Record_ID="<q>"), response("http://e.x/", WARC_Concurrent_To="<q>")
    names = request("http://e.x/", b"a=1", WARC_Concurrent_To="<r>"), response("http://e.x/", WARC_Record_ID="<r>")
    for first, second in (named_by, names, names[::-1]):
        assert sorted(keys(first, other, get, second)) == ["x,e)/?__wb_method=post&a=1", "x,e)/other"]
    assert keys(*named_by[::-1]) == ["x,e)/"]  # nobody writes it so


def test_a_revisit_of_a_post_has_its_body_in_its_key_too() -> None:
    revisit = capture("revisit", "http://e.x/", b"HTTP/1.1 200 OK\r\n\r\n", RESPONSE, WARC_Record_ID="<r>")
    assert keys(revisit, request("http://e.x/", b"a=1", WARC_Concurrent_To="<r>")) == ["x,e)/?__wb_method=post&a=1"]


def test_a_request_of_another_url_without_a_name_or_of_another_method_changes_nothing() -> None:
    capture_of = response("http://e.x/", WARC_Record_ID="<r>")
    for wrong in (
        request("http://e.x/other", b"a=1", WARC_Concurrent_To="<r>"),
        request("http://e.x/", b"a=1"),
        request("http://e.x/", b"a=1", WARC_Concurrent_To="<other>"),
        request("http://e.x/", b"a=1", method="PATCH", WARC_Concurrent_To="<r>"),
        request("http://e.x/", b"a=1", method="GET", WARC_Concurrent_To="<r>"),
        capture("request", "http://e.x/", b"", REQUEST, WARC_Concurrent_To="<r>"),
        capture("request", "http://e.x/", b"POST / HTTP/1.1\r\nno end", REQUEST, WARC_Concurrent_To="<r>"),
    ):
        assert keys(capture_of, wrong) == ["x,e)/"]
        assert keys(wrong, capture_of) == ["x,e)/"]


def test_a_request_far_from_its_capture_is_not_waited_for() -> None:
    many = [response(f"http://e.x/{number}") for number in range(70)]
    first = response("http://e.x/", WARC_Record_ID="<r>")
    last = request("http://e.x/", b"a=1", WARC_Concurrent_To="<r>")
    assert "x,e)/" in keys(first, *many, last)
    requests = [request(f"http://e.x/{number}", b"a=1", WARC_Concurrent_To=f"<{number}>") for number in range(140)]
    assert keys(last, *requests, first) == ["x,e)/"]


def test_lines_of_good_records_stay_when_a_later_one_is_refused() -> None:
    lines: list[bytes] = []
    hearer = CdxLines(lines.append)
    data = warc_gz(response("http://e.x/1"), response("http://e.x/2"))
    assert not examine(io.BytesIO(data[:-3]), NAME, hearers=[hearer]).ok
    hearer.close()
    assert [parts(line)[0] for line in lines] == ["x,e)/1"]


class _Slow(CdxLines):
    """Listens to every record piece by piece, as to one that is large."""

    def whole(self, record: WholeRecord) -> None:
        Hearer.whole(self, record)


ODD_LINES = (
    (
        rb"(?<=WARC-Target-URI: )\S+",
        (b"<http://e.x/>", b"http://e.x/ a", b"HTTP://e.x/", b"dns:e.x", b"\xff", b" "),
    ),
    (rb"(?<=WARC-Date: )\S+", (b"2016", b"2016-13-01", b"20161019234428", b" 2016-10-19T23:44:28Z ", b"x" * 80)),
    (rb"(?<=WARC-Type: )\w+", (b"response", b"revisit", b"request", b"metadata", b"resource")),
    (rb"(?<=WARC-Record-ID: )\S+", (b"<urn:x:1>", b"x ")),
    (rb"(?<=\nContent-Type: )\S+", (b"application/warc-fields", b"text/dns", b"application/http")),
    (rb"HTTP/1.1 \d+", (b"HTTP/1.1", b"HTTP/1.1 2000", b"http/1.1 200", b"HTTP/1.0  404", b"POST ")),
    (
        rb"(?i)\ncontent-type: [\w/]+",
        (b"\nCONTENT-TYPE:a/b;c", b"\nContent-Type : a/" + b"b" * 300, b"\n\n"),
    ),
)


def odd(record: bytes, chance: random.Random) -> bytes:
    """The record with a part of it replaced that a line shows, and with a length that fits."""
    for _ in range(chance.randrange(3)):
        pattern, instead = chance.choice(ODD_LINES)
        found, new = re.search(pattern, record), chance.choice(instead)
        record = record[: found.start()] + new + record[found.end() :] if found else record
    header, mark, block = record.partition(b"\r\n\r\n")
    length = b"Content-Length: %d" % (len(block) - 4)
    return re.sub(rb"Content-Length: \d+", length, header, count=1) + mark + block


def test_whole_records_have_the_lines_of_those_that_come_in_pieces() -> None:
    chance, with_lines = random.Random(20_261_123), 0
    for number in range(1_500):
        some = chance.choices(RECORDS, k=4)
        data = warc_gz(*[changed(one, chance) if number % 3 == 0 else odd(one, chance) for one in some])
        heard = list[tuple[list[bytes], CdxLines]]()
        for made in (CdxLines, _Slow):
            lines = list[bytes]()
            hearer = made(lines.append)
            verdict = examine(io.BytesIO(data), NAME, hearers=[hearer])
            assert verdict.unheard == ()
            hearer.close()
            heard.append((lines, hearer))
        (fast, one), (slow, other) = heard
        assert fast == slow
        assert (one.captures, one.left_out) == (other.captures, other.left_out)
        with_lines += bool(fast)
    assert with_lines > 500


def test_captures_with_one_record_id_are_all_indexed() -> None:
    same = [response(f"http://e.x/{number}", WARC_Record_ID="<same>") for number in range(3)]
    lines, hearer = listen(warc_gz(*same))
    assert sorted(parts(line)[0] for line in lines) == ["x,e)/0", "x,e)/1", "x,e)/2"]
    assert dict(hearer.captures) == {"response": 3}


def test_a_request_may_name_several_records() -> None:
    several = b"WARC-Concurrent-To: <r>\r\nWARC-Concurrent-To: <metadata>\r\nContent-Length"
    asked = request("http://e.x/", b"a=1").replace(b"Content-Length", several, 1)
    answer = response("http://e.x/", WARC_Record_ID="<r>")
    named_by = response("http://e.x/", WARC_Record_ID="<o>").replace(b"Content-Length", several, 1)
    assert keys(asked, answer) == keys(answer, asked) == ["x,e)/?__wb_method=post&a=1"]
    assert keys(request("http://e.x/", b"a=1", WARC_Record_ID="<r>"), named_by) == ["x,e)/?__wb_method=post&a=1"]
