"""formats/crawlcounts: the figures, the same by the quick way and by the careful one, under limits."""

from __future__ import annotations

import io
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from warcmill.errors import BadInput
from warcmill.formats.logs import crawlcounts
from warcmill.formats.logs.crawlcounts import OTHERS, CrawlCounts, Tally
from warcmill.formats.logs.crawllog import CrawlRecord, host, lines
from warcmill.formats.logs.crawlreport import CrawlReport

DATA = Path(__file__).parents[3] / "data"
ODD = DATA / "crawllog" / "odd.log"
WEEKLY = DATA / "sample" / "kind-first" / "logs" / "weekly" / "20261121081735"
WARC = "BL-20261121081737002-00000-1~crawler01~8443.warc.gz"
USUAL = (
    b"2026-11-21T08:17:38.237Z   404        121 http://gov.example:80/odd/user L http://gov.example/odd/ text/html #006"
    b" 20261121081738208+24 sha1:QIP54R4HGN7F5JQMNTR55TH756Z4SXAE http://gov.example/ 3t"
    b' {"contentSize":285,"warcFilename":"A.warc.gz","warcFileOffset":207335}'
)


def counted(data: bytes) -> CrawlCounts:
    tally = Tally()
    tally.add(io.BytesIO(data))
    return tally.counts()


def by_the_careful_way(data: bytes) -> CrawlCounts:
    """The same figures from `crawllog.lines`, line by line, without any haste."""
    found = list(lines(io.BytesIO(data)))
    records = [one for one in found if isinstance(one, CrawlRecord)]
    warcs: dict[str, int | None] = {}
    for one in found:
        named = [one.warc_filename] if isinstance(one, CrawlRecord) else one.warc_filenames
        for name in filter(None, named):
            offsets = [warcs.get(name), one.warc_offset if isinstance(one, CrawlRecord) else None]
            warcs[name] = max((offset for offset in offsets if offset is not None), default=None)
    results = [one for one in records if not one.is_asked_again]
    hosts = Counter(host(one.uri) for one in results)
    times = sorted(one.second for one in records)
    return CrawlCounts(
        lines=len(records),
        bytes=sum(one.content_size if one.content_size is not None else one.size or 0 for one in records),
        by_status=Counter("-" if one.status is None else str(one.status) for one in results),
        by_mime=Counter(one.mime or "-" for one in results),
        by_host_top=dict(sorted(hosts.items(), key=lambda item: (-item[1], item[0].encode()))[:20]),
        warcs=warcs,
        first=times[0] if times else None,
        last=times[-1] if times else None,
        unread=len(found) - len(records),
    )


def test_the_real_log() -> None:
    tally = Tally()
    with (WEEKLY / "crawl.log").open("rb") as stream:
        tally.add(stream)
    counts = tally.counts()
    assert (counts.lines, counts.uris, counts.unread, counts.bytes) == (277, 277, 0, 2234303)
    assert (counts.first, counts.last) == ("2026-11-21T08:17:37Z", "2026-11-21T08:18:32Z")
    assert list(counts.by_host_top.items())[:3] == [("news.example", 131), ("gov.example", 121), ("docs.example", 15)]
    assert sum(counts.by_host_top.values()) == sum(counts.by_mime.values()) == sum(counts.by_status.values()) == 277
    assert (counts.by_status["200"], counts.by_status["-9998"]) == (234, 1)
    assert counts.warcs == {
        "BL-20261121081737002-00000-32386~crawler01~8443.warc.gz": 1486262,
        "BL-VIRAL-20261121081806152-00000-32386~crawler01~8443.warc.gz": 465,
    }


def test_mime_types_compare_with_the_engines_own_report() -> None:
    """The report leaves out what was never fetched and the DNS look-up that failed; every other type is there."""
    reported = {}
    report = WEEKLY.parents[2] / "reports" / "weekly" / WEEKLY.name / "mimetype-report.txt"
    for row in report.read_text().splitlines()[1:]:
        times, _, mime = row.split()
        reported[mime] = int(times)
    counts = counted((WEEKLY / "crawl.log").read_bytes())
    assert {mime for mime, times in counts.by_mime.items() if reported.get(mime) != times} == {"unknown", "text/dns"}


def test_the_real_and_the_odd_log_by_both_ways() -> None:
    for path in (WEEKLY / "crawl.log", WEEKLY / "nonfatal-errors.log", ODD):
        assert counted(path.read_bytes()) == by_the_careful_way(path.read_bytes())


def test_the_odd_log() -> None:
    counts = counted(ODD.read_bytes())
    assert (counts.lines, counts.unread, counts.by_status["-"]) == (10, 6, 1)
    assert counts.by_mime["text/\\xe9"] == 1
    assert (counts.first, counts.last) == ("2004-07-21T23:29:40Z", "2026-11-21T08:18:20Z")
    assert counts.warcs == {
        WARC: 900000, "BL-VIRAL-20261121081737002-00000-1~crawler01~8443.warc.gz": 7,
        "BL-GLUED.warc.gz": None, "BL-LAST.warc.gz": None,
    }  # fmt: skip


def test_an_answer_after_which_a_uri_is_asked_again_is_a_line_and_no_result() -> None:
    line = (
        b"2026-11-24T17:02:13.150Z   %b          5 http://a.example/ - - text/plain #001 20261124170213086+1"
        b' sha1:QIP54R4HGN7F5JQMNTR55TH756Z4SXAE http://a.example/ %b {"contentSize":100,"warcFilename":"%b",'
        b'"warcFileOffset":7}\n'
    )
    log = b"".join(
        line % row
        for row in (
            (b"429", b"askedAgain", b"A.warc.gz"),
            (b"503", b"idnTrunc,askedAgain,2t", b"B.warc.gz"),
            (b"200", b"3t", b"C.warc.gz"),
            (b"429", b"neveraskedAgain", b"D.warc.gz"),
        )
    )
    counts = counted(log)
    assert counts == by_the_careful_way(log)
    assert (counts.lines, counts.bytes, sorted(counts.warcs)) == (4, 400, [f"{one}.warc.gz" for one in "ABCD"])
    assert (counts.by_status, counts.by_host_top) == ({"200": 1, "429": 1}, {"a.example": 2})
    found = CrawlReport()
    found.add(io.BytesIO(log))
    assert found.counts() == counts
    tables = found.tables()
    assert (tables["by_tries"], tables["by_hop"], tables["cut"]) == ({"1": 1, "3": 1}, {"-": 2}, {})


def test_an_empty_log_counts_zero() -> None:
    assert counted(b"") == CrawlCounts(0, 0, {}, {}, {}, {}, None, None, 0)


def test_several_logs_add_up() -> None:
    tally = Tally()
    for _ in range(3):
        tally.add(io.BytesIO(USUAL))
    assert tally.counts() == counted((USUAL + b"\n") * 3)


def test_the_greatest_offset_counts_and_a_greater_one_of_an_unread_line_does_not() -> None:
    logged = [USUAL.replace(b"207335", b"%d" % offset) for offset in (5, 900, 70)]
    assert counted(b"\n".join([*logged, b"cut " + USUAL.replace(b"207335", b"99999")])).warcs == {"A.warc.gz": 900}


def test_hosts_beyond_the_top_and_ties_by_name() -> None:
    names = [b"h%02d.example" % number for number in range(25)]
    log = b"\n".join(USUAL.replace(b"http://gov.example:80", b"http://" + name) for name in [*names, names[24]])
    top = counted(log).by_host_top
    assert list(top.items()) == [("h24.example", 2), *((f"h{number:02}.example", 1) for number in range(19))]


def test_keys_beyond_the_bounds_are_counted_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawlcounts, "HOSTS", 2)
    monkeypatch.setattr(crawlcounts, "MIMES", 2)
    hosts = [b"a.example", b"b.example", b"c.example", b"d.example", b"a.example", b"x" * 300]
    log = [USUAL.replace(b"http://gov.example:80", b"http://" + name).replace(b"text/html", name) for name in hosts]
    counts = counted(b"\n".join(log))
    assert counts.by_mime == counts.by_host_top == {"a.example": 2, "b.example": 1, OTHERS: 3}
    assert counts.lines == 6


def test_a_log_that_only_invents_names_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawlcounts, "NAMES_BYTES", 100)
    log = b"\n".join(USUAL.replace(b"A.warc.gz", b"WARC-%d.warc.gz" % number) for number in range(20))
    with pytest.raises(BadInput, match="more than a crawl can have written"):
        counted(log)


def test_memory_does_not_grow_with_the_log() -> None:
    def peak(times: int) -> int:
        class Repeated(io.RawIOBase):
            left = times

            def read(self, _: int = -1, /) -> bytes:
                self.left -= 1
                return (USUAL + b"\n") * 150 if self.left >= 0 else b""

        tally = Tally()
        tracemalloc.start()
        try:
            tally.add(Repeated())  # type: ignore[arg-type]
            assert tally.counts().lines == 150 * times
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(60) < peak(6) * 1.2


# Lines near the usual shape, which is where the quick way could go wrong.
WORDS = rb"""- 0 07 -0 #1 { } {} " | ? a,b :80 u@ [::1] \ \u00e9 {"a":1} ,"warcFilename":"B.warc.gz" "warcFileOffset":1
2026-02-30 2026-W47-6 24:00:00 dns:a.example https://u:p@b.example/ TEXT/HTML 99999999999999999999"""
BYTES = [b" ", b"  ", b" #1", b" {", b"\t", b"\r", b"\n", b"\0", b"\xff", b"\xc3\xa9"]
PIECES = st.sampled_from([*WORDS.split(), *BYTES, USUAL]) | st.binary(max_size=3)
EDITS = st.lists(st.tuples(st.integers(0, len(USUAL)), st.integers(0, 40), PIECES), max_size=3)


def edited(edits: list[tuple[int, int, bytes]]) -> bytes:
    text = USUAL
    for start, length, piece in edits:
        text = text[:start] + piece + text[start + length :]
    return text


@settings(max_examples=400, deadline=None)
@given(st.lists(EDITS.map(edited), min_size=1, max_size=4), st.sampled_from([b"", b"\n"]))
@example([USUAL.replace(b"2026-11-21", b"2026-02-30"), USUAL], b"\n")
@example([USUAL.replace(b"A.warc.gz", b"a\\u0041.warc.gz"), USUAL], b"\n")
@example([USUAL.replace(b"text/html", b"text/\xff"), USUAL.replace(b"text/html", b"text/\xc3\xa9")], b"\n")
@example([USUAL.replace(b"http://gov.example:80/", b"http://gov.example:80@x.example/")], b"\n")
@example([USUAL.replace(b" 3t ", b" #3 ")], b"\n")
@example([USUAL[: USUAL.index(b"{")] + b'{"warcFileOffset":5,"warcFilename":"B","contentSize":7}'], b"\n")
@example([USUAL[: USUAL.index(b"{")] + b'{"warcFilename":"B","warcFilename":"C"}'], b"\n")
@example([USUAL[: USUAL.index(b"{")] + b'{"warcFilename":"B",}'], b"\n")
@example([USUAL[: USUAL.index(b"{")] + b'{"warcFilename":"B""contentSize":7}'], b"\n")
@example([USUAL.replace(b":285,", b":0285,")], b"\n")
def test_the_quick_way_and_the_careful_way_agree(texts: list[bytes], end: bytes) -> None:
    data = b"\n".join(texts) + end
    assert counted(data) == by_the_careful_way(data)
