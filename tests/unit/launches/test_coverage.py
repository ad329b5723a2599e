"""Which SIP covers which stages: each stage of an ended launch is in exactly one, whatever the configuration was."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill.launches.holdings import Coverage
from warcmill.model import FINAL, Stage

CP = [Stage(number, f"2016102000000{number}") for number in range(7)]
EVERY, ONE = False, True


def known(*stages: Stage, **more: object) -> Coverage:
    return Coverage(frozenset(stages), **more)  # type: ignore[arg-type]


def built(one: Coverage, *, final_only: bool) -> Coverage:
    """Build all that is due, each after those that it requires."""
    while due := one.due(final_only=final_only):
        assert not one.earlier_due(due[0], final_only=final_only)
        one = one.with_sip(due[0])
    return one


def test_final_covers_all_stages_and_none_is_due_before_it_is_there() -> None:
    assert known(CP[1], CP[2]).due(final_only=True) == ()
    ended = known(CP[1], CP[2], FINAL)
    assert ended.due(final_only=True) == (FINAL,)
    assert built(ended, final_only=True).sips == {FINAL: (CP[1], CP[2], FINAL)}


def test_every_gives_each_stage_its_own_in_order() -> None:
    running = known(CP[2], CP[1])
    assert running.due(final_only=False) == (CP[1], CP[2])
    assert running.earlier_due(CP[2], final_only=False) == (CP[1],)
    assert running.to_cover(CP[2], final_only=False) == (CP[2],)
    assert built(running, final_only=False).sips == {CP[1]: (CP[1],), CP[2]: (CP[2],)}


def test_one_that_is_asked_for_takes_what_is_before_it_and_final_the_rest() -> None:
    asked = known(CP[1], CP[2], CP[3], FINAL).with_sip(CP[2])
    assert asked.sips == {CP[2]: (CP[1], CP[2])}
    assert (asked.covering(CP[1]), asked.covering(CP[3])) == (CP[2], None)
    assert built(asked, final_only=True).sips[FINAL] == (CP[3], FINAL)
    assert asked.before(FINAL) == CP[2]
    assert asked.before(CP[2]) is None


def test_what_a_sip_covers_is_not_due_under_the_other_setting() -> None:
    packaged = built(known(CP[1], CP[2], FINAL), final_only=True)
    assert packaged.due(final_only=False) == ()
    assert packaged.covers(CP[1]) == ()


def test_a_hole_in_the_stages_is_no_stage() -> None:
    assert built(known(CP[1], CP[4], FINAL), final_only=True).sips == {FINAL: (CP[1], CP[4], FINAL)}
    assert known(CP[1], CP[4]).due(final_only=False) == (CP[1], CP[4])


def test_a_stage_that_appears_later_gets_its_own_under_either() -> None:
    late = Coverage(frozenset({CP[1], CP[5], FINAL}), {FINAL: (CP[1], FINAL)})
    for final_only in (ONE, EVERY):
        assert late.due(final_only=final_only) == (CP[5],)
        assert late.covers(CP[5]) == (CP[5],)


@pytest.mark.parametrize("final_only", [ONE, EVERY])
def test_a_broken_marker_s_sip_is_built_first_and_covers_what_it_covered(final_only: bool) -> None:
    stages = (CP[1], CP[2], CP[3], FINAL)
    first = Coverage(frozenset(stages), {CP[1]: (CP[1],)}, frozenset({CP[3]}))
    assert first.due(final_only=final_only)[0] == CP[3]
    assert first.covers(CP[3]) == (CP[2], CP[3])
    assert built(first, final_only=final_only).sips == {CP[1]: (CP[1],), CP[3]: (CP[2], CP[3]), FINAL: (FINAL,)}


@given(
    st.lists(
        st.one_of(
            st.sampled_from(["final", "every"]),  # the setting changes
            st.sampled_from(["stage", "scan"]),  # the launch goes on; a scan builds what is due
            st.integers(1, 6).map(lambda number: ("ask", number)),  # an operator asks for the SIP of one stage
            st.integers(1, 6).map(lambda number: ("break", number)),  # its marker is torn
        ),
        max_size=30,
    ),
    st.sampled_from([ONE, EVERY]),
)
def test_each_stage_of_an_ended_launch_is_in_exactly_one_sip(story: list[object], final_only: bool) -> None:
    one = known()
    for event in story:
        if event == "stage" and len(one.stages) < 6:
            one = Coverage(one.stages | {CP[len(one.stages) + 1]}, one.sips, one.broken)
        elif event in ("final", "every"):
            final_only = event == "final"
        elif event == "scan":
            one = built(one, final_only=final_only)
        elif isinstance(event, tuple):
            one = told(one, *event)
    one = built(Coverage(one.stages | {FINAL}, one.sips, one.broken), final_only=final_only)
    assert Counter(stage for covered in one.sips.values() for stage in covered) == Counter(one.stages)
    assert all(sip in covered and max(covered) == sip for sip, covered in one.sips.items())


def told(one: Coverage, word: str, number: int) -> Coverage:
    stage = CP[number]
    if word == "break" and stage in one.sips:
        left = {sip: covered for sip, covered in one.sips.items() if sip != stage}
        return Coverage(one.stages, left, one.broken | {stage})
    if word == "ask" and stage in one.stages and not one.covering(stage):
        return one.with_sip(stage)
    return one
