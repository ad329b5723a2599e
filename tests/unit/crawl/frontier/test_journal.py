"""The lines of crawl.log and of the journal, written and read again."""

from __future__ import annotations

import io

import pytest

from warcmill.crawl.frontier import journal
from warcmill.crawl.uri import make
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord

DNS = (  # as Heritrix 3.13 wrote it
    b"2026-11-21T08:17:37.003Z     1         50 dns:gov.example P http://gov.example/ text/dns #002"
    b" 20261121081736467+29 sha1:GJOISF2SCEJXSZLN4EOZE42T3P5G72NI http://gov.example/ -"
    b' {"warcFilename":"BL-20261121081737002-00000-32386~crawler01~8443.warc.gz","warcFileOffset":460}\n'
)
FAILED = (
    b"2026-11-21T08:17:44.710Z    -1          - dns:gone.example P http://gone.example/ text/dns #001"
    b" 20261121081744706+4 - http://gone.example/ 3t {}\n"
)


@pytest.mark.parametrize("line", [DNS, FAILED])
def test_a_line_is_what_heritrix_writes(line: bytes) -> None:
    record = crawllog.parse(line.rstrip(b"\n"))
    assert isinstance(record, CrawlRecord)
    bare = record._replace(warc_filename=None, warc_offset=None)
    assert crawllog.render(bare, record.warc_filename or "", record.warc_offset or 0) == line


def test_a_hostile_value_never_makes_a_second_column_or_line() -> None:
    record = CrawlRecord("2026-11-21T08:17:37.003Z", 200, 3, "http://a.example/\n x", "L", "http://v.example/\t\u2028",
                         "text/ html\r", "#001", None, None, "s\xa0s", ("3t", "a b"), content_size=9)  # fmt: skip
    line = crawllog.render(record)
    assert line.count(b"\n") == 1
    read = crawllog.parse(line.rstrip(b"\n"))
    assert isinstance(read, CrawlRecord)
    assert (read.uri, read.via, read.annotations) == (
        "http://a.example/%0A%20x",
        "http://v.example/%09\u2028",
        ("3t", "a%20b"),
    )
    assert (read.mime, read.source, read.content_size) == ("text/%20html%0D", "s%A0s", 9)


def test_times_are_as_heritrix_has_them() -> None:
    assert crawllog.moment(1_795_249_056.467) == "2026-11-21T08:17:36.467Z"
    assert crawllog.begun(1_795_249_056.467, 1_795_249_056.496) == "20261121081736467+29"


def test_a_journal_that_was_cut_or_damaged_gives_its_whole_groups() -> None:
    groups = [journal.group([journal.taken(make(f"http://{n}.example/"))], {"crawl.log": n}) for n in range(3)]
    whole = b"".join(groups)
    ends = [len(b"".join(groups[: n + 1])) for n in range(3)]
    assert [one.end for one in journal.groups(io.BytesIO(whole))] == ends
    for cut in range(len(whole)):
        found = list(journal.groups(io.BytesIO(whole[:cut])))
        assert [one.end for one in found] == [end for end in ends if end <= cut]
    for place in range(ends[0], ends[1], 7):
        broken = bytearray(whole)
        broken[place] ^= 0xFF
        assert [one.end for one in journal.groups(io.BytesIO(bytes(broken)))][:1] == ends[:1]
    first = next(journal.groups(io.BytesIO(whole))).entries
    assert [(one.word, one.columns, one.more) for one in first] == [
        ("F+", ["http://0.example/", "", ""], {"source": "-"}),
        ("Fg", [], {"files": {"crawl.log": 0}}),
    ]


def test_a_journal_is_read_in_pieces_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    uris = [make(f"http://{n}.example/{'é' * 40}") for n in range(500)]
    whole = b"".join(journal.group(map(journal.taken, uris[n : n + 50]), {}) for n in range(0, 500, 50))
    for size in (1, 7, 100, 1 << 20):
        monkeypatch.setattr(journal, "_CHUNK", size)
        found = list(journal.groups(io.BytesIO(whole)))
        assert [one.columns[0] for member in found for one in member.entries[:-1]] == [uri.uri for uri in uris]
        assert found[-1].end == len(whole)
