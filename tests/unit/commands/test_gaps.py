"""Gaps as verbs print them: of each kind the first ten, then their number and the command that lists them."""

from __future__ import annotations

import pytest
from launches.engine import LAUNCH

from commands.console import gaps
from warcmill.audit.due_crawls import JobGap
from warcmill.audit.gaps import Gap
from warcmill.model import Launch

OTHER = Launch("weekly", LAUNCH.id)
EVERY = "warcmill reconcile 2016-10 --json"


def gap(number: int, kind: str = "refused", launch: Launch = LAUNCH, why: str = "it is cut") -> Gap:
    return Gap(launch, "final", kind, f"{number}.warc.gz", why, "warcmill redo")


def printed(found: list[Gap | JobGap]) -> list[str]:
    return [text.plain for text in gaps.texts(found, EVERY)]


def test_ten_of_a_kind_are_printed_whole() -> None:
    assert len(printed([gap(number) for number in range(10)])) == 12


@pytest.mark.parametrize("number", [11, 12_445])
def test_of_more_the_first_ten_their_number_and_the_command_are_printed(number: int) -> None:
    shown = printed([gap(one) for one in range(number)])
    assert shown[1:11] == [f"      {LAUNCH} final {one}.warc.gz" for one in range(10)]
    assert shown[11:] == [f"      and {number - 10:,} more: {EVERY}", "      -> warcmill redo"]


def test_of_a_kind_with_many_causes_ten_are_printed_too() -> None:
    shown = printed([gap(one, why=f"at offset {one}") for one in range(5_000)])
    assert len(shown) == 31
    assert shown[-2:] == [f"      and 4,990 more: {EVERY}", "      -> warcmill redo"]


def test_each_kind_has_its_own_ten() -> None:
    shown = printed([gap(one, kind) for one in range(30) for kind in ("refused", "lost")])
    assert [line for line in shown if " more: " in line] == [f"      and 20 more: {EVERY}"] * 2


def test_seeds_of_one_launch_are_listed_by_its_report() -> None:
    seeds: list[Gap | JobGap] = [gap(one, "dead seed") for one in range(11)]
    assert printed(seeds)[-2] == f"      and 1 more: warcmill report {LAUNCH.job} {LAUNCH.id} --seeds"
    assert printed([*seeds, gap(11, "dead seed", OTHER)])[-2] == f"      and 2 more: {EVERY}"


def test_gaps_of_no_launch_are_cut_in_the_same_way() -> None:
    due = [
        JobGap("daily", "not launched", f"201610{day}000000", "no scan", "warcmill pulse start") for day in range(31)
    ]
    assert printed([*due])[1] == "      daily 2016100000000"
    assert printed([*due])[-2] == f"      and 21 more: {EVERY}"


def test_accepted_findings_are_cut_in_the_same_way() -> None:
    shown = [text.plain for text in gaps.accepted([gap(one) for one in range(11)], EVERY)]
    assert (len(shown), shown[-1]) == (11, f"  and 1 more: {EVERY}")
