"""Lineage: what descends from a marker, in which order it goes aside, and that a kill half-way leaves no orphan."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest
from launches import chain
from launches.engine import LAUNCH, Engine, line_of

from warcmill import layout
from warcmill.decisions import redo
from warcmill.errors import Conflict
from warcmill.markers.attempts import Attempts
from warcmill.markers.claim import Claim, Evidence, Input, Run
from warcmill.model import FINAL, Key, Stage
from warcmill.output import process

RUN = Run("host1", "2016-10-20T00:00:00Z", "2016-10-20T00:00:01Z", {})
CP1 = Stage(1, "20161019234500")
STOP = layout.key("output.CheckJobStopped", LAUNCH)
PACK = layout.key("output.PackageLogs", LAUNCH, stage=FINAL)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """A finished launch with a checkpoint, all its steps done."""
    made = Engine(tmp_path)
    made.logs(line_of("http://a.example/", None), stage=str(CP1))
    made.logs(line_of("http://a.example/", None))
    made.finish()
    for stage in (CP1, FINAL):
        chain.assembled(made, stage)
        chain.upto(made, "Verify", stage)
    claim = process.process(made.state, made.roots, LAUNCH)
    made.state.publish(claim.key, claim)
    return made


def orphans(engine: Engine) -> list[str]:
    """Markers that rest on one that is not there."""
    found = {layout.marker_path(key): one for key, one in redo.markers(engine.state, LAUNCH).items()}
    return [path for path, one in found.items() for rests_on in one.claim.inputs if rests_on.marker not in found]


def test_all_that_descends_and_nothing_else_each_before_what_it_rests_on(engine: Engine) -> None:
    found = redo.markers(engine.state, LAUNCH)
    below = redo.descendants(found, PACK)
    files = [layout.key(f"files.{step}", LAUNCH, stage=FINAL) for step in ("Verify", "Copy", "Checksum")]
    assembled = layout.key("output.AssembleOutput", LAUNCH, stage=FINAL)
    reported = layout.key("reports.GenerateCrawlLogReports", LAUNCH, stage=FINAL)
    assert sorted(below) == sorted([reported, *files, assembled, layout.key("output.ProcessOutputs", LAUNCH)])
    assert [key for key in below if key in files] == files
    assert below[-1] == assembled
    assert redo.descendants(found, files[0]) == [reported]
    first = layout.key("output.AssembleOutput", LAUNCH, stage=CP1)
    assert assembled in redo.descendants(found, first), "a stage rests on the one before"


def test_a_lineage_of_thousands_is_no_deeper_than_one() -> None:
    keys = [layout.key("output.AssembleOutput", LAUNCH, stage=Stage(n, "20161019234500")) for n in range(5_000)]
    found = {
        key: Evidence(Claim(key, (Input(layout.marker_path(before), "x"),)), RUN, "x") for before, key in pairwise(keys)
    }
    assert redo.descendants(found, keys[0]) == keys[:0:-1]


def test_a_kill_after_any_move_leaves_no_orphan_and_the_same_again_finishes(engine: Engine) -> None:
    killed = 0
    while True:
        found = redo.markers(engine.state, LAUNCH)
        keys = [*redo.descendants(found, STOP), STOP]
        if not any(key in found for key in keys):
            break
        _redo_and_die_after_a_move(engine, keys)
        killed += 1
        assert orphans(engine) == []
    assert killed > 7, "seven markers, and the attempts at them"
    left = {layout.marker_name(key) for key in redo.markers(engine.state, LAUNCH)}
    assert all(str(CP1) in name for name in left)
    assert left


def _redo_and_die_after_a_move(engine: Engine, keys: list[Key]) -> None:
    child = os.fork()
    if child == 0:
        rename = os.rename

        def last(source: str, target: str) -> None:
            rename(source, target)
            os._exit(7)

        os.rename = last  # type: ignore[assignment]
        try:
            list(redo.move_aside(engine.state, redo.markers(engine.state, LAUNCH), keys, ""))
        finally:
            os._exit(1)  # it moved nothing, or raised
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_marker_that_was_replaced_meanwhile_stays(engine: Engine) -> None:
    found = redo.markers(engine.state, LAUNCH)
    verify = layout.key("files.Verify", LAUNCH, stage=FINAL)
    path = engine.folders["state"] / layout.marker_path(verify)
    path.unlink()
    engine.state.publish(verify, Claim(verify, found[verify].claim.inputs, counts={"files": 9}))
    with pytest.raises(Conflict, match="replaced just now"):
        list(redo.move_aside(engine.state, found, [verify], ""))
    assert path.exists()


def test_outward_acts_are_named_one_by_one() -> None:
    acts = [layout.key("files.Retire", LAUNCH, stage=stage) for stage in (CP1, FINAL)]
    names = [layout.marker_name(key) for key in acts]
    keys = [*acts, PACK, layout.key("pulse.StopJob", LAUNCH)]
    assert redo.outward(keys, frozenset()) == sorted([*names, f"01.jobs.{LAUNCH.job}.{LAUNCH.id}.confirmed"])
    assert redo.outward(acts, frozenset(names[:1])) == names[1:]


def test_a_log_whose_name_is_not_utf_8_is_found_again(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    engine.logs(line_of("http://a.example/", None))
    log = engine.log(os.fsdecode(b"caf\xe9.log"))
    engine.finish()
    chain.assembled(engine)
    roots = redo.Roots(engine.state, engine.roots, engine.store)
    assert redo.missing_inputs(roots, redo.markers(engine.state, LAUNCH), [PACK]) == []
    log.unlink()
    (missing,) = redo.missing_inputs(roots, redo.markers(engine.state, LAUNCH), [PACK])
    assert missing.endswith("caf%E9.log")


def warcs(tmp_path: Path) -> Engine:
    """A launch of one stage with three WARCs, verified."""
    made = Engine(tmp_path)
    made.logs(*(line_of(f"http://a.example/{name}", name) for name in NAMES))
    for name in NAMES:
        made.warc(name, b"")
    made.finish()
    chain.assembled(made)
    chain.upto(made, "Verify")
    return made


NAMES = ["a.warc", "b.warc", "c.warc"]
CHECKSUM, COPY, VERIFY = (layout.key(f"files.{step}", LAUNCH, stage=FINAL) for step in ("Checksum", "Copy", "Verify"))


def remembered(engine: Engine, key: Key) -> set[str]:
    return {Path(path).name for _, path in Attempts(engine.state, key).settled()} & set(NAMES)


def test_one_file_is_forgotten_by_its_step_and_all_after_it_and_no_other(tmp_path: Path) -> None:
    engine = warcs(tmp_path)
    found = redo.markers(engine.state, LAUNCH)
    (file,) = redo.matching("b.warc", redo.files(found, COPY))
    told = {key.task: others for key, others in redo.forget(engine.state, COPY, file)}
    never_run = {"files.ReadBack": 0, "files.VirusScan": 0}
    assert told == {**never_run, "files.Verify": 3, "files.Copy": 3}, "the other WARCs, and the zip of logs"
    assert remembered(engine, CHECKSUM) == set(NAMES)
    assert remembered(engine, COPY) == remembered(engine, VERIFY) == {"a.warc", "c.warc"}


def test_a_step_that_was_tried_and_has_no_marker_forgets_the_file_too(tmp_path: Path) -> None:
    engine = warcs(tmp_path)
    (engine.folders["state"] / layout.marker_path(VERIFY)).unlink()
    (file,) = redo.matching("b.warc", redo.files(redo.markers(engine.state, LAUNCH), CHECKSUM))
    list(redo.forget(engine.state, CHECKSUM, file))
    assert remembered(engine, VERIFY) == {"a.warc", "c.warc"}


def test_what_is_settled_after_it_was_asked_for_counts(tmp_path: Path) -> None:
    """Also in the same second: which attempts count no more is known by their names, not by any clock."""
    engine = warcs(tmp_path)
    found = redo.markers(engine.state, LAUNCH)
    for _ in range(2):
        (file,) = redo.matching("b.warc", redo.files(found, VERIFY))
        list(redo.forget(engine.state, VERIFY, file))
        assert remembered(engine, VERIFY) == {"a.warc", "c.warc"}
        assert chain.step(engine, "Verify") == found[VERIFY].claim
        assert remembered(engine, VERIFY) == set(NAMES)


def test_a_kill_at_any_moment_of_a_redo_of_one_file_loses_nothing(tmp_path: Path) -> None:
    engine = warcs(tmp_path)
    found = redo.markers(engine.state, LAUNCH)
    (file,) = redo.matching("b.warc", redo.files(found, CHECKSUM))
    keys = [layout.key("reports.GenerateCrawlLogReports", LAUNCH, stage=FINAL), VERIFY, COPY, CHECKSUM]
    for moves in range(len(keys) + 1):
        list(redo.forget(engine.state, CHECKSUM, file))
        now = redo.markers(engine.state, LAUNCH)
        some = redo.move_aside(engine.state, now, [key for key in keys if key in now], "", keys)
        assert len([path for path, _ in zip(some, range(moves), strict=False)]) <= len(keys)
        assert orphans(engine) == []
        assert all(remembered(engine, key) == {"a.warc", "c.warc"} for key in keys[1:] if key not in now)
        chain.upto(engine, "Verify")
        assert {key: redo.markers(engine.state, LAUNCH)[key].digest for key in keys} == {
            key: found[key].digest for key in keys
        }
