"""formats/crawllog: every shape of line, nothing raised for bad ones, no WARC's name lost."""

from __future__ import annotations

import io
import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from warcmill.formats.logs.crawllog import CHUNK, CUT, LIMIT, CrawlRecord, Unread, blocks, host, lines, parse

DATA = Path(__file__).parents[3] / "data"
ODD = DATA / "crawllog" / "odd.log"
SAMPLE = DATA / "sample" / "kind-first" / "logs" / "weekly" / "20261121081735" / "crawl.log"
WARC = "BL-20261121081737002-00000-1~crawler01~8443.warc.gz"
FRONT = b"2026-11-21T08:18:20.000Z   200          5 http://gov.example/ L - text/html #000 - sha1:AA"


def read(data: bytes) -> list[CrawlRecord | Unread]:
    return list(lines(io.BytesIO(data)))


def line(raw: bytes) -> CrawlRecord:
    found = parse(raw)
    assert isinstance(found, CrawlRecord), found
    return found


def unread(raw: bytes) -> Unread:
    found = parse(raw)
    assert isinstance(found, Unread), found
    return found


def test_a_line_of_today() -> None:
    with ODD.open("rb") as stream:
        found = list(lines(stream))[5]
    assert found == CrawlRecord(
        logged="2026-11-21T08:18:17.642Z", status=200, size=139, uri="http://gov.example/odd/a;v=1?b=2&c=3|x", hops="L",
        via="http://gov.example/odd/", mime="TEXT/HTML", thread="#001", fetched="20261121081817592+49",
        digest="sha1:QIP54R4HGN7F5JQMNTR55TH756Z4SXAE", source="http://bücher.example/",
        annotations=("usingCharsetInHTML:UTF-8", "3t"), content_size=296, warc_filename=WARC, warc_offset=835982,
    )  # fmt: skip


def test_the_odd_lines() -> None:
    with ODD.open("rb") as stream:
        found = list(lines(stream))
    kinds = ["unread" if isinstance(one, Unread) else (one.status, one.size, host(one.uri)) for one in found]
    assert kinds == [
        (1, 50, "gov.example"), (404, 121, "gov.example"), (-2, 0, "gov.example"), "unread", "unread",
        (200, 139, "gov.example"), (-9998, None, "gov.example"), (None, None, "[2001:db8::1]"),
        (200, 10, "gov.example"), (200, 310, "old.example"), (200, 311, "old.example"), (200, 5, "gov.example"),
        "unread", "unread", "unread", "unread",
    ]  # fmt: skip


def test_the_real_log_has_no_unread_line() -> None:
    with SAMPLE.open("rb") as stream:
        found = list(lines(stream))
    assert len(found) == 277
    assert not [one for one in found if isinstance(one, Unread)]
    assert sum(
        isinstance(one, CrawlRecord) and one.warc_filename is not None for one in found
    ) == SAMPLE.read_bytes().count(b'"warcFilename"')


@pytest.mark.parametrize(
    ("rest", "source", "annotations"),
    [
        (b"", None, ()),
        (b" 3t", None, ("3t",)),
        (b" -", None, ()),
        (b" http://seed.example/ -", "http://seed.example/", ()),
        (b" - duplicate:digest,2t {}", None, ("duplicate:digest", "2t")),
        (b" - unsatisfiableCharsetInHeader:a b,3t {}", None, ("unsatisfiableCharsetInHeader:a b", "3t")),
    ],
)
def test_older_lines_lack_columns(rest: bytes, source: str | None, annotations: tuple[str, ...]) -> None:
    found = line(FRONT + rest)
    assert (found.source, found.annotations, found.warc_filename) == (source, annotations, None)


def test_times_of_both_kinds_and_only_real_ones() -> None:
    assert line(FRONT).second == "2026-11-21T08:18:20Z"
    assert line(b"20040721232941438" + FRONT[24:]).second == "2004-07-21T23:29:41Z"
    for wrong in (
        b"2026-13-01T00:00:00.000Z",
        b"2026-W47-6T00:00:00.000Z",
        b"20261321232941438",
        b"0000-01-01T00:00:00.000Z",
    ):
        unread(wrong + FRONT[24:])


@pytest.mark.parametrize(
    ("written", "status", "size"),
    [
        (b"   200         12 ", 200, 12),
        (b"    -1          - ", -1, None),
        (b"     -          - ", None, None),
        (b"               12 ", None, 12),
        (b"                - ", None, None),
        (b"                  ", None, None),
        (b" -9998 123456789012 ", -9998, 123456789012),
    ],
)
def test_status_and_size_may_be_blank(written: bytes, status: int | None, size: int | None) -> None:
    found = line(FRONT[:24] + written + b"http://a/ - - - #000 - - - - {}")
    assert (found.status, found.size, found.uri, found.mime) == (status, size, "http://a/", None)


@pytest.mark.parametrize(
    ("tail", "content_size", "name", "offset"),
    [
        (b"{}", None, None, None),
        (b'{"warcFileOffset":7,"warcFilename":"a b.warc.gz" , "contentSize": 9}\r', 9, "a b.warc.gz", 7),
        (b'{"warcFilename":"x\\u00fc\\"\\/.warc.gz","extra":{"a":[1, 2.5, " {"]}}', None, 'xü"/.warc.gz', None),
        (b'{"warcFilename":"x\xff.warc.gz","warcFileOffset":-1}', None, "x\udcff.warc.gz", None),
        (b'{"warcFilename":7,"warcFileOffset":true,"contentSize":1.5}', None, None, None),
        (b'{"warcFilename":"a.warc.gz","warcFileOffset":' + b"9" * 30 + b"}", None, "a.warc.gz", None),
    ],
)
def test_the_json_tail(tail: bytes, content_size: int | None, name: str | None, offset: int | None) -> None:
    found = line(FRONT + b" - - " + tail)
    assert (found.content_size, found.warc_filename, found.warc_offset) == (content_size, name, offset)


@pytest.mark.parametrize(
    "raw",
    [
        b'garbage {"warcFilename":"A.warc.gz"}',
        b'\0\0\0' + FRONT + b' - - {"warcFilename":"A.warc.gz"}',
        FRONT + b' - - {"warcFilename":"A.warc.gz","warcFileOffset":12',
        FRONT + b' - - {"warcFilename" : "A.warc.gz","other":' + b"[" * 100_000 + b"}",
        FRONT + b' - - {"warcFilename":"A.warc.gz","other":' + b"9" * 5_000 + b"}",
        FRONT + b' - - {"warcFilename":"BL-2026' + FRONT + b' - - {"warcFilename":"A.warc.gz","warcFileOffset":1}',
        FRONT.replace(b"#000", b"000") + b' - - {"warcFilename":"A.warc.gz","warcFilename":"A.warc.gz"}',
    ],
)  # fmt: skip
def test_an_unread_line_still_names_its_warcs(raw: bytes) -> None:
    assert unread(raw).warc_filenames == ("A.warc.gz",)


def test_every_name_of_two_lines_run_into_one() -> None:
    whole = FRONT + b' - - {"warcFilename":"%s"}'
    assert unread(whole % b"A" + whole % b"B\\u00e9").warc_filenames == ("A", "Bé")
    assert unread(whole % b"A" + whole % b"B\\x").warc_filenames == ("A", "B\\x")


def test_a_line_cut_anywhere_is_not_taken_for_a_whole_one() -> None:
    whole = FRONT + b' http://seed.example/ 2t {"contentSize":12,"warcFilename":"A.warc.gz","warcFileOffset":34}'
    for length in range(1, len(whole)):
        assert [type(one) for one in read(whole[:length])] == [Unread], whole[:length]
    assert [type(one) for one in read(whole)] == [CrawlRecord]


def test_a_cut_line_with_the_next_one_behind_it_is_not_taken_for_one() -> None:
    begun = FRONT + b" http://seed.example/ 2t"
    whole = begun + b' {"warcFilename":"A.warc.gz"}'
    for length in range(1, len(begun) + 1):
        assert unread(begun[:length] + whole).warc_filenames == ("A.warc.gz",)
        unread(begun[:length] + begun)


def test_an_over_long_line_keeps_its_end() -> None:
    tail = b' - - {"warcFilename":"A.warc.gz"}'
    for length in (LIMIT - 1, LIMIT, LIMIT + 1, 3 * LIMIT + 5):
        long = FRONT.replace(b"http://gov.example/", b"http://" + b"x" * length) + tail
        first, second = read(long + b"\n" + FRONT + b"\n")
        assert isinstance(first, Unread)
        assert first.warc_filenames == ("A.warc.gz",)
        assert len(first.raw) <= LIMIT + 1
        assert isinstance(second, CrawlRecord)


def test_a_gigantic_line_takes_no_memory() -> None:
    class Endless(io.RawIOBase):
        left = 64 * LIMIT

        def read(self, size: int = -1, /) -> bytes:
            self.left -= size
            return bytes(size) if self.left >= 0 else b""

    tracemalloc.start()
    try:
        [found] = list(lines(Endless()))  # type: ignore[arg-type]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(found, Unread)
    assert peak < 8 * LIMIT


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("http://Gov.Example/a", "gov.example"),
        ("https://u:p@gov.example:8443?x=http://other.example/", "gov.example"),
        ("http://u:p@x@gov.example#top", "gov.example"),
        ("http://[2001:DB8::1]:80/", "[2001:db8::1]"),
        ("http://xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("dns:gov.example", "gov.example"),
        ("whois:gov.example", "gov.example"),
        ("ftp://ftp.example:21/x", "ftp.example"),
        ("mailto:someone@gov.example", ""),
        ("http:/x", ""),
        ("", ""),
    ],
)
def test_host(uri: str, name: str) -> None:
    assert host(uri) == name


FIELD = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FFF, exclude_categories=["Cs", "Z", "Cc"]), min_size=1)
SIZE = st.none() | st.integers(0, 10**18 - 1)


@given(
    status=st.none() | st.integers(-9999, 99999),
    size=SIZE,
    uri=FIELD,
    annotations=st.lists(FIELD.filter(lambda text: "," not in text and text[0] not in "#{-"), min_size=1),
    name=st.none() | FIELD,
    offset=SIZE,
)
@example(status=200, size=1, uri='"{}"', annotations=["a{", "}"], name='{"warcFilename":"x"}', offset=0)
def test_what_is_written_is_read(
    status: int | None, size: int | None, uri: str, annotations: list[str], name: str | None, offset: int | None
) -> None:
    tail = json.dumps({"warcFilename": name, "warcFileOffset": offset}, ensure_ascii=False)
    written = f"{'-' if status is None else status:>5} {'-' if size is None else size:>10}"
    found = line(f"2026-11-21T08:18:20.000Z {written} {uri} - - - #001 - - - {','.join(annotations)} {tail}".encode())
    assert (found.status, found.size, found.uri) == (status, size, uri)
    assert (found.annotations, found.warc_filename, found.warc_offset) == (tuple(annotations), name, offset)


@given(st.binary(), st.integers(0, 200), st.integers(0, 200))
def test_no_bytes_raise(noise: bytes, start: int, end: int) -> None:
    whole = FRONT + b' http://seed.example/ 2t {"contentSize":12,"warcFilename":"A.warc.gz","warcFileOffset":34}\n'
    data = whole[:start] + noise + whole[end:]
    found = read(data)
    assert len(found) == data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
    assert all(one.second for one in found if isinstance(one, CrawlRecord))


@given(st.lists(st.binary(max_size=40).filter(lambda text: b"\n" not in text)), st.integers(1, 50))
def test_lines_do_not_depend_on_how_the_stream_is_cut(texts: list[bytes], size: int) -> None:
    class Dribble(io.BytesIO):
        def read(self, _: int | None = -1, /) -> bytes:
            return super().read(size)

    data = b"".join(text + b"\n" for text in texts)
    assert [text for block in blocks(Dribble(data)) for text in block] == texts
    assert [text for block in blocks(io.BytesIO(data + b"x")) for text in block] == [*texts, CUT + b"x"]


def test_blocks_of_the_real_log() -> None:
    data = SAMPLE.read_bytes() * 3
    assert len(data) > CHUNK
    assert b"".join(text + b"\n" for block in blocks(io.BytesIO(data)) for text in block) == data


@pytest.mark.parametrize(
    ("annotations", "tries"),
    [(b"-", 1), (b"3t", 3), (b"unsatisfiableCharsetInHeader:binary,12t", 12), (b"0t", 1), (b"t", 1), (b"3ts,x3t", 1)],
)
def test_an_annotation_counts_the_tries(annotations: bytes, tries: int) -> None:
    assert line(FRONT + b" http://seed.example/ " + annotations + b" {}").tries == tries
