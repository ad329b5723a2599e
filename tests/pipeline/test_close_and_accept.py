"""close and accept, by which an operator gives his word; and the words that none of the acting verbs takes."""

from __future__ import annotations

import json

import pytest
from launches.bundled import DEAD, LAUNCH, NAMES, REASON, copy_launch, kill_engine, line_files
from line import DAY, Line
from sample import JOB, LAUNCH_ID

from warcmill import layout
from warcmill.model import Launch

# close


def test_a_dead_launch_is_closed_and_continues(line: Line) -> None:
    kill_engine(line, LAUNCH)
    assert line.scan() == [0, 0]
    assert line.state.read(layout.key("output.CheckJobStopped", LAUNCH)) is None
    for _ in "once", "again":
        closed = line.warcmill("close", *NAMES, *REASON)
        assert closed.returncode == 0
        assert "last written: output:" in closed.stdout
        assert "warcmill scan 2026-11-21" in closed.stdout
    assert line.state.require(layout.key("operator.Close", LAUNCH)).claim.facts == {"reason": REASON[1]}
    assert line.scan() == [0, 0]
    assert line.state.require(layout.key("output.CheckJobStopped", LAUNCH)).claim.facts["how"] == "closed"


def test_another_reason_is_1_and_changes_nothing(line: Line) -> None:
    kill_engine(line, LAUNCH)
    assert line.warcmill("close", *NAMES, *REASON).returncode == 0
    other = line.warcmill("close", *NAMES, "--reason", "another")
    assert other.returncode == 1
    assert "redo" in other.stderr
    assert line.state.require(layout.key("operator.Close", LAUNCH)).claim.facts == {"reason": REASON[1]}


def test_a_launch_that_ended_by_itself_is_not_closed(line: Line) -> None:
    done = line.warcmill("close", *NAMES, *REASON)
    assert done.returncode == 0
    assert "has ended by its engine's own logs (finished)" in done.stdout
    assert line.state.folder(LAUNCH) == {}


def test_a_dead_launch_of_the_built_in_crawler_is_not_closed(line: Line) -> None:
    kill_engine(line, LAUNCH)
    (line.folders["jobs"] / LAUNCH.job / LAUNCH.id / "crawl.toml").write_text("")
    done = line.warcmill("close", *NAMES, *REASON)
    assert done.returncode == 1
    assert f"warcmill pulse stop {JOB}" in done.stderr
    assert line.state.folder(LAUNCH) == {}


def test_an_unknown_launch_is_1(line: Line) -> None:
    done = line.warcmill("close", JOB, "20161019234428", *REASON)
    assert done.returncode == 1
    assert "no engine has a folder of this launch" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("close", *NAMES),
        ("close", *NAMES, "--reason", " "),
        ("close", *NAMES, "--reason", "two\nlines"),
        ("close", "../x", LAUNCH_ID, *REASON),
        ("close", JOB, "2026", *REASON),
        ("accept", "x"),
        ("accept", "x", *REASON, "--launch", JOB, "2026"),
        ("redo", *NAMES, "nonsense"),
        ("redo", *NAMES, "copy"),
        ("redo", *NAMES, "copy", "cp1"),
        ("redo", *NAMES, "stop", "final"),
        ("redo", *NAMES, f"files.copied.other.{LAUNCH_ID}.final"),
        ("backfill", "yesterday"),
        ("backfill", "2026-11-21-2026-11-21"),
    ],
)
def test_wrong_usage_is_2(line: Line, words: tuple[str, ...]) -> None:
    before = line_files(line)
    assert line.warcmill(*words).returncode == 2
    assert line_files(line) == before


# accept


def test_a_refused_file_is_accepted_by_its_name_and_reconciles(line: Line) -> None:
    warc = kill_engine(line, LAUNCH)
    assert line.warcmill("close", *NAMES, *REASON).returncode == 0
    line.scan()
    assert line.warcmill("reconcile", DAY).returncode == 1
    for _ in "once", "again":
        assert line.warcmill("accept", warc.name, "--reason", "it was cut by a kill").returncode == 0
    assert line.warcmill("reconcile", DAY).returncode == 0
    key = layout.key("operator.Accept", LAUNCH, finding=layout.finding_id(f"warcs/{JOB}/{LAUNCH_ID}/{warc.name}"))
    claim = line.state.require(key).claim
    assert claim.facts == {
        "name": f"warcs/{JOB}/{LAUNCH_ID}/{warc.name}",
        "kind": "refused",
        "reason": "it was cut by a kill",
    }
    assert [one.marker.rpartition("/")[2] for one in claim.inputs] == [
        f"03.outputs.{JOB}.{LAUNCH_ID}.final",
        f"files.checksums.{JOB}.{LAUNCH_ID}.final",
    ]
    other = line.warcmill("accept", warc.name, "--reason", "another")
    assert other.returncode == 1
    assert f"accepted already on {line.state.require(key).run.finished}: it was cut by a kill" in other.stderr


def test_all_names_are_accepted_or_none(line: Line) -> None:
    warc = kill_engine(line, LAUNCH)
    line.warcmill("close", *NAMES, *REASON)
    line.scan()
    done = line.warcmill("accept", warc.name, "nowhere.warc.gz", *REASON)
    assert done.returncode == 1
    assert "nothing is found under nowhere.warc.gz" in done.stderr
    elsewhere = line.warcmill("accept", warc.name, "--launch", f"{JOB}x", LAUNCH_ID, *REASON)
    assert elsewhere.returncode == 1
    assert f"{JOB}x/{LAUNCH_ID}: no engine has left a file of it" in elsewhere.stderr, "not: nothing is found"
    assert f"did you mean '{JOB}'?" in elsewhere.stderr
    assert line.warcmill("reconcile", DAY).returncode == 1


def test_a_name_in_two_launches_asks_which(line: Line) -> None:
    copy_launch(line, DEAD)
    copy_launch(line, other := Launch("alike", LAUNCH_ID))
    for launch in DEAD, other:
        (line.folders["output"] / "warcs" / launch.job / launch.id / "stray.warc.gz").write_bytes(b"")
    line.scan()
    asked = line.warcmill("accept", "stray.warc.gz", *REASON)
    assert asked.returncode == 2
    assert f"--launch dead {LAUNCH_ID}" in asked.stderr
    assert f"--launch alike {LAUNCH_ID}" in asked.stderr
    told = line.warcmill("accept", "stray.warc.gz", *REASON, "--launch", *("dead", LAUNCH_ID))
    assert told.returncode == 0
    assert "refused, unnamed" in told.stdout, "an empty file, and no log names it"
    gaps = json.loads(line.warcmill("reconcile", DAY, "--json").stdout)
    assert [one["job"] for one in gaps["launches"] if one["gaps"]] == ["alike"]


def test_a_file_that_was_not_read_yet_is_not_accepted(line: Line) -> None:
    """More may be wrong with it than that no log names it."""
    (line.folders["output"] / "warcs" / JOB / LAUNCH_ID / "stray.warc.gz").write_bytes(b"")
    assert line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", DAY).returncode == 0
    early = line.warcmill("accept", "stray.warc.gz", *REASON)
    assert early.returncode == 1
    assert "files.Checksum has not read" in early.stderr
