"""The extract of a WARC's lines: counted, sorted, the same for the same WARC, of bounded memory."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from records.captures import capture, posted, response
from records.warcs import NAME, WEEKLY, warc_gz, warcinfo

from warcmill.errors import BadInput, NotReady
from warcmill.extracts import cdx
from warcmill.extracts.cdx import CDXJ, CaptureCounts, CdxHearer
from warcmill.extracts.extracts import Extracts
from warcmill.formats.index.cdxj import IMPOSSIBLE, NO_DATE, NO_URL
from warcmill.formats.warc.gate import examine
from warcmill.formats.warc.rest import RecordFault
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

SHA512 = "0" * 128
PEAK = """
import hashlib, sys, zlib
from pathlib import Path
from warcmill.formats.warc.gate import examine
from warcmill.extracts.cdx import CdxHearer, counts
from warcmill.extracts.extracts import Extracts
from warcmill.stores.file import FileStore
from records.cdx_giants import {giant} as giant
extracts = Extracts(FileStore("index", Path(sys.argv[1])))
hearer = CdxHearer(extracts)
verdict = examine(giant(), "x.warc", hearers=[hearer])
assert verdict.ok and not verdict.unheard, verdict
hearer.leave("0" * 128)
print(sum(counts(extracts, "0" * 128).captures.values()))
print(next(row.split()[1] for row in open("/proc/self/status") if row.startswith("VmHWM")))
"""


@pytest.fixture
def extracts(tmp_path: Path) -> Extracts:
    sentinel.adopt({"index": tmp_path})
    return Extracts(FileStore("index", tmp_path))


def leave(extracts: Extracts, data: bytes, name: str = NAME, sha512: str = SHA512) -> bytes:
    hearer = CdxHearer(extracts)
    verdict = examine(io.BytesIO(data), name, hearers=[hearer])
    assert (verdict.ok, verdict.unheard) == (True, ())
    hearer.leave(sha512)
    hearer.close()
    return (extracts.folder / CDXJ.path(sha512)).read_bytes()


def test_its_lines_are_sorted_and_counted(extracts: Extracts) -> None:
    records = [warcinfo(), response("http://b.x/"), response("http://a.x/"), capture("resource", "http://a.x/", b"1")]
    leave(extracts, warc_gz(*records, response("http://a.x/", WARC_Date="bad")) + posted("http://a.x/", b"q=1"))
    found = list(cdx.lines(extracts, SHA512))
    assert [line.split(b" ")[0] for line in found] == [b"x,a)/", b"x,a)/", b"x,a)/?__wb_method=post&q=1", b"x,b)/"]
    assert found == sorted(found)
    expected = CaptureCounts({"response": 3, "resource": 1}, {NO_DATE: 1})
    assert cdx.counts(extracts, SHA512) == expected


def first_line(extracts: Extracts) -> bytes:
    return next(extracts.lines(CDXJ, SHA512))


def test_dates_with_an_offset_are_counted(extracts: Extracts) -> None:
    leave(extracts, warc_gz(response("http://b.x/", WARC_Date="2016-10-20T01:44:28+02:00"), response("http://a.x/")))
    assert first_line(extracts) == b' {"captures": {"response": 2}, "left_out": {}, "offset_dates": 1}\n'
    assert cdx.counts(extracts, SHA512).offset_dates == 1


@pytest.mark.parametrize("why", [NO_DATE, NO_URL])
def test_one_of_an_earlier_version_that_left_out_dates_is_to_be_made_again(why: str, extracts: Extracts) -> None:
    extracts.leave(CDXJ, SHA512, [b' {"captures": {}, "left_out": {"%s": 1}}\n' % why.encode()])
    for read in (cdx.counts, cdx.tally, lambda *of: list(cdx.batches(*of, NAME))):
        with pytest.raises(BadInput, match="an earlier version made it"):
            read(extracts, SHA512)
    extracts.remove(CDXJ, SHA512)
    leave(extracts, warc_gz(response("http://a.x/", WARC_Date="bad")))
    assert first_line(extracts) == b' {"captures": {}, "left_out": {"no date": 1}, "offset_dates": 0}\n'
    assert cdx.tally(extracts, SHA512).left_out == {NO_DATE: 1}


def test_the_same_warc_gives_the_same_bytes_whatever_its_name(extracts: Extracts) -> None:
    data = WEEKLY.read_bytes()
    assert leave(extracts, data, "X.warc.gz") == leave(extracts, data, "Y.warc.gz.open", "1" * 128)
    assert sum(cdx.counts(extracts, SHA512).captures.values()) == 268


def test_a_warc_without_captures_has_an_extract_too(extracts: Extracts) -> None:
    leave(extracts, warc_gz(warcinfo()))
    assert cdx.counts(extracts, SHA512) == CaptureCounts({}, {})
    assert list(cdx.lines(extracts, SHA512)) == []


def test_odd_dates_are_listed_and_later_ones_found(extracts: Extracts) -> None:
    first = warc_gz(warcinfo(), response("http://e.x/1", WARC_Date="2016-02-30"))
    leave(extracts, first + warc_gz(response("http://e.x/2", WARC_Date="2031-01-01T00:00:00Z")))
    found = cdx.tally(extracts, SHA512)
    at = len(warc_gz(warcinfo()))
    assert (found.odd, found.odd_records) == ((RecordFault(at, IMPOSSIBLE),), 1)
    assert found.last == "20310101000000"
    assert cdx.later(extracts, SHA512, "20310101000000") == []
    assert cdx.later(extracts, SHA512, "20301231235959") == [len(first)]


def test_one_that_is_missing_or_does_not_count(extracts: Extracts) -> None:
    with pytest.raises(NotReady):
        cdx.counts(extracts, SHA512)
    extracts.leave(CDXJ, SHA512, [b"x,a)/ 2016\n"])
    with pytest.raises(BadInput, match="does not count"):
        cdx.counts(extracts, SHA512)


@pytest.mark.parametrize(("giant", "captures"), [("tiny_records", 60_000), ("long_post", 1), ("long_urls", 40)])
def test_its_memory_is_bounded(extracts: Extracts, giant: str, captures: int) -> None:
    code = PEAK.format(giant=giant)
    done = subprocess.run(
        [sys.executable, "-c", code, extracts.folder],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "support")},
        cwd=Path(__file__).parents[3],
    )
    made, peak = map(int, done.stdout.split())
    assert (made, peak >> 10 < 110) == (captures, True), peak >> 10
