"""Hits, and payloads that were not scanned, are findings by name; a hit that came late names the step to redo."""

from __future__ import annotations

from pathlib import Path

import pytest
from launches import chain as steps
from launches.engine import LAUNCH, Engine, line_of
from records.warcs import http, record, warc_gz, warcinfo

from warcmill import chain, layout
from warcmill.audit import day_summary
from warcmill.audit.reconciliation import LaunchReport, report
from warcmill.audit.survey import survey
from warcmill.chain import Row
from warcmill.decisions import statements
from warcmill.markers.claim import Claim
from warcmill.markers.facts.files import DAMAGED
from warcmill.markers.state import rests_on
from warcmill.model import FINAL, Item, Json
from warcmill.output import process

WHOLE = warc_gz(warcinfo(), record("response", http(b"one")))
GOOD, DEAD = "a.warc.gz", "b.warc.gz.open"
ROW = Row(
    "index.PretendIndex", "index.pretended.{job}.{launch_id}.{stage}", "stage",
    word="pretend", head="pre-_tend", after="verify", due="pretend", scan="index.ScanForIndexing",
)  # fmt: skip
HIT = {"offset": 7, "uri": "http://a.example/", "signature": "Eicar"}
COMMAND = f"warcmill accept virus:warcs/daily/{LAUNCH.id}/{GOOD} --launch daily {LAUNCH.id} --reason TEXT"


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """A launch in the store, with a WARC that is whole and one that is cut; and a step of another chain."""
    made = Engine(tmp_path)
    made.logs(*(line_of("http://a.example/", name.removesuffix(".open")) for name in (GOOD, DEAD)))
    made.warc(GOOD, WHOLE)
    made.warc(DEAD, WHOLE[:-30])
    made.finish()
    steps.assembled(made)
    claim = process.process(made.state, made.roots, LAUNCH)
    made.state.publish(claim.key, claim)
    steps.upto(made, "Verify")
    monkeypatch.setattr(chain, "ROWS", (*chain.ROWS, ROW))
    return made


def scanned(engine: Engine, **facts: Json) -> None:
    """Publish the scan: these facts of the whole WARC, and of the cut one only what follows its fault."""
    key, verified = layout.step("viruses", LAUNCH, FINAL), engine.state.require(layout.step("verify", LAUNCH, FINAL))
    clean: dict[str, Json] = {"clean": 1, "hits": [], "not_scanned": {}}

    def item(one: Item) -> Item:
        cut: dict[str, Json] = {"not_scanned": {DAMAGED: 1}} if one.made and one.made.name == DEAD else {}
        salvaged: dict[str, Json] = {"salvaged": True} if one.facts.get("salvaged") else {}
        return one._replace(facts={**clean, **salvaged, **(facts if one.file.name == GOOD else cut)})

    items = tuple(item(one) for one in verified.claim.items if one.file.is_engines)
    engine.state.publish(key, Claim(key, rests_on(verified), items=items))


def indexed(engine: Engine, *words: str) -> None:
    """Publish the other chain's step, resting on these markers."""
    key = layout.step("pretend", LAUNCH, FINAL)
    inputs = rests_on(*(engine.state.require(layout.step(word, LAUNCH, FINAL)) for word in words))
    engine.state.publish(key, Claim(key, inputs))


def reconciled(engine: Engine) -> LaunchReport:
    return report(engine.state, engine.rootmap, engine.store, LAUNCH, {})


def found(engine: Engine) -> list[tuple[str, str, str, str]]:
    return [
        (gap.kind, gap.name.rpartition("/")[2], gap.why, gap.todo)
        for gap in reconciled(engine).gaps
        if gap.kind not in ("refused", "lacking")
    ]


def test_a_clean_stage_has_no_finding(engine: Engine) -> None:
    scanned(engine)
    assert found(engine) == []


def test_a_hit_is_named_and_can_be_accepted_until_it_is_scanned_anew(engine: Engine) -> None:
    scanned(engine, hits=[HIT] * 4)
    shown = "Eicar at offset 7, http://a.example/"
    why = f"4 payloads have a hit, and no index takes the record: {shown}; {shown}; {shown}; and 1 more"
    assert found(engine) == [("virus", GOOD, why, COMMAND)]
    (trouble,) = [
        one
        for one in day_summary.of_launch(engine.state, engine.rootmap, LAUNCH, {})["troubles"]
        if one["kind"] == "virus"
    ]
    assert (trouble["task"], trouble["why"]) == ("files.VirusScan", why)
    name = f"virus:warcs/daily/{LAUNCH.id}/{GOOD}"
    claim = statements.accept_all(survey(engine.state, engine.roots, LAUNCH, {}), [name], "a test file")[0]
    assert [one.marker.rpartition("/")[2] for one in claim.inputs] == [f"files.scanned.daily.{LAUNCH.id}.final"]
    engine.state.publish(claim.key, claim)
    assert found(engine) == []
    assert [gap.kind for gap in reconciled(engine).accepted] == ["virus"]


def test_what_was_not_scanned_is_named(engine: Engine) -> None:
    scanned(engine, not_scanned={"over MaxFileSize": 2, "coding unknown": 1})
    ((kind, name, why, todo),) = found(engine)
    assert (kind, name) == ("not scanned", GOOD)
    assert why == "1 payload: coding unknown, 2 payloads: over MaxFileSize"
    assert todo.startswith(f"warcmill accept unscanned:warcs/daily/{LAUNCH.id}/{GOOD} ")


def test_a_hit_that_was_found_after_its_stage_was_indexed_names_the_step_to_redo(engine: Engine) -> None:
    indexed(engine, "verify")
    scanned(engine, hits=[HIT])
    ((kind, _, why, todo),) = found(engine)
    assert kind == "virus"
    assert why.endswith("; index.PretendIndex was done before that and has the record")
    assert todo == f"warcmill redo daily {LAUNCH.id} pretend final --downstream"


def test_a_step_that_knew_of_the_hit_needs_no_redo(engine: Engine) -> None:
    scanned(engine, hits=[HIT])
    indexed(engine, "verify", "viruses")
    assert [todo for *_, todo in found(engine)] == [COMMAND]


def test_the_line_is_not_stale_when_a_scan_comes_late(engine: Engine) -> None:
    steps.upto(engine, "Retire")
    scanned(engine)
    assert found(engine) == []
