"""A long list of seeds by the crawl logs: the last line of a seed decides; a seed that may be absent is not lost."""

from __future__ import annotations

import io

import pytest

from warcmill.errors import BadInput
from warcmill.formats.seeds import SeedLine
from warcmill.reports import long_seed_list
from warcmill.reports.long_seed_list import LongSeedList


def log(*lines: tuple[str, int, str, str]) -> io.BytesIO:
    """A crawl log of these URIs: status, hops and annotations of each."""
    text = "".join(
        f"2026-11-26T16:00:00.000Z {status:>5} {9:>10} {uri} {hops} - text/html #001 20261126160000000+5 sha1:A {uri}"
        f" {notes} {{}}\n"
        for uri, status, hops, notes in lines
    )
    return io.BytesIO(text.encode())


def test_the_last_line_of_a_seed_decides() -> None:
    found = LongSeedList()
    found.add(
        log(("http://a.x/", 503, "-", "askedAgain"), ("http://b.x/", 200, "-", "-"), ("http://d.x/", 200, "E", "-"))
    )
    found.add(log(("http://a.x/", 200, "-", "-"), ("http://b.x/", 500, "-", "-"), ("http://c.x/", 304, "-", "-")))
    found.add(log(("http://e.x/", 503, "-", "askedAgain")))
    found.read(SeedLine(f"http://{host}.x/") for host in "abcde")
    assert (found.seeds, found.got) == (5, 2)
    assert [one.url for one in found.others] == ["http://b.x/", "http://d.x/", "http://e.x/"]


def test_what_may_be_absent_is_no_loss() -> None:
    found = LongSeedList()
    found.add(log(("http://a.x/", 404, "-", "-"), ("http://b.x/", 410, "-", "-"), ("http://c.x/", 404, "-", "-")))
    found.read([*(SeedLine(f"http://{host}.x/", may_be_absent=True) for host in "ab"), SeedLine("http://c.x/")])
    assert found.got == 2
    assert [one.text for one in found.others] == ["http://c.x/"]


def test_a_line_that_is_no_seed_is_not_got_and_very_many_are_only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_seed_list, "MOST_NAMED", 2)
    found = LongSeedList()
    found.read([BadInput("seeds.jsonl", "line 1 is no seed"), *(SeedLine(f"http://{n}.x/") for n in range(3))])
    assert (found.seeds, found.got, len(found.others), found.unnamed) == (4, 0, 2, 2)
