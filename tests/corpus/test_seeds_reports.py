"""What became of each seed, and what was counted: reports.seeds against Heritrix's own reports of the same launch."""

from __future__ import annotations

from typing import NamedTuple

from launches.corpus import Corpus

from warcmill import layout
from warcmill.formats.seeds import comparable
from warcmill.markers.facts.reports import Seeds, SeedState
from warcmill.model import Launch


class Row(NamedTuple):
    """A seed's code, whether it was got, and where it redirects."""

    code: int | None
    is_got: bool
    redirect: str = ""


# Heritrix counts what a seed redirects to as a seed from then on. We go by the launch's own seeds.txt, which was copied
# when the launch began: only the list of the job's next launch has that line, and there both have the row. Here it is
# the `redirect` of http://www.docs.example/apt/, by which we call that seed redirected.
THEIRS_ALONE = {"daily/20261121081844": {"http://docs.example/apt/": Row(200, True)}}
KILLED = {"events/20261121082147", "crashed/20261121083734"}  # before their reports were written


def theirs(corpus: Corpus, launch: Launch) -> dict[str, Row] | None:
    """The rows of Heritrix's report, by seed; None without one."""
    found = [path for path in corpus.base.glob("engine/**/seeds-report.txt") if {launch.job, launch.id} < {*path.parts}]
    if not found:
        return None
    rows = [line.split(" ") for line in found[0].read_text("utf-8").splitlines()[1:]]
    return {
        comparable(seed): Row(int(code), word == "CRAWLED", *map(comparable, led)) for code, word, seed, *led in rows
    }


def ours(corpus: Corpus, launch: Launch) -> dict[str, Row]:
    seeds = Seeds.from_claim(corpus.state.require(layout.step("seeds", launch)).claim).seeds
    got = (SeedState.ALIVE, SeedState.REDIRECTED)
    return {
        comparable(fate.seed): Row(fate.code, fate.state in got, comparable(fate.redirect) if fate.redirect else "")
        for fate in seeds
    }


def test_our_seeds_are_those_of_heritrix_s_report(corpora: list[Corpus]) -> None:
    without = set()
    for corpus in corpora:
        for launch in corpus.launches():
            reported, known = theirs(corpus, launch), ours(corpus, launch)
            assert known, launch
            if reported is None:
                without.add(str(launch))
                assert all(row.is_got for row in known.values()), "each was got before the kill"
            else:
                assert known | THEIRS_ALONE.get(str(launch), {}) == reported, launch
    assert without == KILLED


def test_what_heritrix_added_to_a_list_is_marked(corpora: list[Corpus]) -> None:
    added = {
        (str(launch), fate.seed, fate.added_from)
        for corpus in corpora
        for launch in corpus.launches()
        for fate in Seeds.from_claim(corpus.state.require(layout.step("seeds", launch)).claim).seeds
        if fate.added_from
    }
    assert added == {("daily/20261121082027", "http://docs.example/apt/", "http://www.docs.example/apt/")}


def test_the_logs_and_lists_of_no_launch_differ_from_heritrix_s_reports(corpora: list[Corpus]) -> None:
    for corpus in corpora:
        for launch in corpus.launches():
            found = Seeds.from_claim(corpus.state.require(layout.step("seeds", launch)).claim)
            assert (dict(found.differing), found.unread_lines, found.empty_reports) == ({}, 0, ()), launch
