"""The sample of the crash points that stands for all of them in `scripts/test`."""

from __future__ import annotations

from crash import sweep
from crash.calls import Call
from crash.runs import Fault, Trace

MARKER = "state/2016-10/daily/20161019234428/files.copied.daily.20161019234428.final"
COPY = [
    Call("read", "a"),
    Call("create", "b"),
    Call("write", "b", data=b"12"),
    Call("link", "b", MARKER),
    Call("unlink", "b"),
    Call("rename", "c", "report"),
]
VERIFY = [Call("stat", "a"), Call("mkdir", "d"), Call("link", "e", "f"), Call("fsync", ".")]
TRACE = Trace([*COPY, *VERIFY, Call("stat", "a"), Call("read", "a")], [(6, "files.Copy"), (10, "files.Verify")])


def test_of_each_step_it_has_the_points_around_its_marker_and_of_all_points_each_way_to_go_wrong() -> None:
    points = sweep.points(TRACE, every_read=True)
    found = sweep.sample(TRACE, points)
    assert [(one.at, one.kind) for one in found] == [
        (0, "error"),
        (1, "kill"),
        (1, "full"),
        (2, "kill-half"),
        (2, "full-half"),
        (3, "kill"),
        (3, "error-done"),
        (4, "kill"),
        (8, "kill"),
        (9, "kill"),
    ]
    assert {one.kind for one in found} == {one.kind for one in points}


def test_of_a_part_of_the_points_it_has_only_those() -> None:
    killed = [one for one in sweep.points(TRACE) if one.kind.startswith("kill")]
    found = sweep.sample(TRACE, killed)
    assert [(one.at, one.kind) for one in found] == [
        (1, "kill"),
        (2, "kill-half"),
        (3, "kill"),
        (4, "kill"),
        (8, "kill"),
        (9, "kill"),
    ]


def test_its_points_are_named_step_by_step_as_the_sweep_takes_them() -> None:
    told = list(sweep.names(TRACE, [Fault("kill", 1), Fault("error", 3), Fault("full", 7), Fault("kill-half", 11)]))
    assert told == [
        "    files.Copy: 1 kill, 3 error",
        "    files.Verify: 7 full",
        "    after the last step: 11 kill-half",
    ]
