"""A sound marker whose facts do not fit, as operators see it: its launch alone is in trouble, and `redo` repairs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from configured import configured
from launches import chain as steps
from launches.engine import LAUNCH, Engine, line_of
from launches.unfit import rewrite
from records.warcs import warc_gz, warcinfo

from commands.init import configuration
from commands.main import main
from tasks.state import BackupState
from warcmill import layout
from warcmill.audit import remedies, survey
from warcmill.audit.reconciliation import report
from warcmill.backup import backup
from warcmill.errors import BadInput, Unsettled
from warcmill.markers.attempts import Attempts
from warcmill.model import FINAL, Key, Launch, Stage
from warcmill.output import process

DAY = "2016-10-19"
OTHER = Launch("daily", "20161019111111")
NAME = "BL-20161019234430000-00000-1~crawler~8443.warc.gz"
WARC = warc_gz(warcinfo())
LINE = ("stop", "pack", "assemble", "process", "checksum", "copy", "verify", "read-back")


def crawled(engine: Engine) -> Engine:
    """A launch with a WARC that is cut, all the way into the store."""
    engine.logs(line_of("http://a.example/", NAME))
    engine.warc(NAME, WARC + WARC[:9])
    engine.finish()
    steps.assembled(engine)
    claim = process.process(engine.state, engine.roots, engine.launch)
    engine.state.publish(claim.key, claim)
    steps.upto(engine, "ReadBack")
    return engine


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Two launches of one day, and the configuration of their line."""
    crawled(Engine(tmp_path, launch=OTHER))
    made = crawled(Engine(tmp_path))
    config = tmp_path / "luigi.cfg"
    config.write_text(configuration(made.folders, made.layout))
    configured(monkeypatch, config)
    return made


def key_of(step: str) -> Key:
    return layout.step(step, LAUNCH, None if step in ("stop", "process") else FINAL)


def spoil(engine: Engine, step: str, fact: str) -> None:
    """Take a fact away from a step's marker, wherever in its claim it is."""

    def change(claim: dict[str, Any]) -> None:
        objects = (claim["facts"], claim["counts"], *(item.get("facts", {}) for item in claim["items"]))
        found = [one for one in objects if one.pop(fact, "not there") != "not there"]
        assert found, "it was never there"

    rewrite(engine.folders["state"] / layout.marker_path(key_of(step)), change)


Types = Callable[..., tuple[int, str, str]]


@pytest.fixture
def types(capsys: pytest.CaptureFixture[str]) -> Types:
    """Types a command: its exit code, stdout and stderr."""

    def typed(*words: str) -> tuple[int, str, str]:
        code = main(words)
        told = capsys.readouterr()
        return code, told.out, told.err

    return typed


SEEN = [("stop", "how"), ("process", "stages"), ("checksum", "hdfs"), ("assemble", "lines"), ("pack", "member")]


@pytest.mark.parametrize(("step", "fact"), SEEN)
def test_a_marker_without_a_fact_is_broken_and_hides_no_other_launch(
    engine: Engine, types: Types, step: str, fact: str
) -> None:
    _, whole, _ = types("reconcile", DAY, "--json")
    spoil(engine, step, fact)
    for words in (("status", DAY), ("files", DAY), ("plan", DAY), ("verify", DAY), ("why", "daily", LAUNCH.id)):
        code, out, err = types(*words)
        assert code in (0, 1), (words, out, err)
        assert "unexpected" not in out + err
    code, out, _ = types("reconcile", DAY, "--json")
    assert code == 1
    now, before = ({one["launch_id"]: one for one in json.loads(text)["launches"]} for text in (out, whole))
    assert now[OTHER.id] == before[OTHER.id]
    (gap,) = (one for one in now[LAUNCH.id]["gaps"] if one["kind"] == "broken marker")
    assert (gap["name"], gap["todo"]) == (layout.marker_name(key_of(step)), remedies.redo(key_of(step)))
    assert f"'{fact}'" in gap["why"]
    code, out, _ = types("status", DAY, "--json")
    cells = {
        one["launch_id"]: {word: cell["mark"] for word, cell in one["cells"].items()}
        for one in json.loads(out)["launches"]
    }
    assert (code, cells[LAUNCH.id][step], cells[OTHER.id][step]) == (0, "failed", cells[OTHER.id][step])
    assert json.loads(types("plan", DAY, "--json")[1])["tasks"] == 0, "nothing is redone for it unasked"


@pytest.mark.parametrize("step", LINE)
def test_the_redo_that_is_advised_repairs_it(engine: Engine, types: Types, step: str) -> None:
    fact = {"stop": "how", "pack": "absent", "process": "stages", "assemble": "carried", "checksum": "hdfs"}
    rewrite(
        engine.folders["state"] / layout.marker_path(key_of(step)),
        lambda claim: claim["items"][0]["facts"].update(hdfs=7) if step not in fact else spoiled(claim, fact[step]),
    )
    found = report(engine.state, engine.rootmap, engine.store, LAUNCH, {}).gaps
    (gap,) = (one for one in found if one.kind == "broken marker")
    code, _, err = types(*gap.todo.split()[1:])
    assert code == 0, err
    found = report(engine.state, engine.rootmap, engine.store, LAUNCH, {}).gaps
    assert "broken marker" not in {one.kind for one in found}
    assert gap.name in {one.name for one in found if one.kind == "lacking"} or step == "read-back"


def spoiled(claim: dict[str, Any], fact: str) -> None:
    for one in (claim["facts"], *(item.get("facts", {}) for item in claim["items"])):
        one.pop(fact, None)


NEEDS = [("assemble", "lines", "process"), ("assemble", "carried", "Checksum"), ("checksum", "hdfs", "Copy")]
NEEDS += [("checksum", "whole", "Copy"), ("verify", "by", "ReadBack")]


@pytest.mark.parametrize(("spoilt", "fact", "step"), NEEDS)
def test_a_step_that_needs_the_fact_names_it_and_refuses_no_file_for_it(
    engine: Engine, spoilt: str, fact: str, step: str
) -> None:
    spoil(engine, spoilt, fact)
    key = key_of({"ReadBack": "read-back"}.get(step, step.lower()))
    before = Attempts(engine.state, key).earlier()
    with pytest.raises(BadInput, match=f"'{fact}'.* is missing; 'warcmill redo' the step") as raised:
        again(engine, step)
    assert raised.value.path == layout.marker_path(key_of(spoilt))
    assert Attempts(engine.state, key).earlier() == before, "nothing was settled: no file is refused for it"


def again(engine: Engine, step: str) -> object:
    """The claim of a step, made once more."""
    return process.process(engine.state, engine.roots, LAUNCH) if step == "process" else steps.step(engine, step)


def test_a_launch_whose_04_names_no_stages_is_not_backed_up_and_holds_up_no_other(engine: Engine) -> None:
    spoil(engine, "process", "stages")
    with pytest.raises(Unsettled, match=r"1 item\(s\) failed: daily/20161019234428: .*'stages' is missing"):
        BackupState(date=DAY).run()
    kept = [one.path for one in engine.store.list(f"{backup.FOLDER}/daily/{OTHER.id}")]
    assert len(kept) == 1


def test_a_due_crawl_is_not_redone_by_its_marker(types: Types, engine: Engine) -> None:
    code, _, err = types("redo", "daily", LAUNCH.id, "00.due.daily.20161019230000")
    assert (code, "belongs to a due crawl" in err) == (2, True)
    assert survey.survey(engine.state, engine.roots, LAUNCH, {}).stages == (Stage.parse("final"),)
