"""Captures without a line, and those with a date that cannot be right, are findings that an operator can accept."""

from __future__ import annotations

from pathlib import Path

import pytest
from launches import chain as steps
from launches.engine import LAUNCH, Engine, line_of
from msgspec.structs import replace
from records.captures import capture, response
from records.warcs import warc_gz, warcinfo

from warcmill import layout
from warcmill.audit.reconciliation import report
from warcmill.audit.survey import survey
from warcmill.decisions import statements
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.per_warc import LocalExtractor
from warcmill.formats.index import cdxj
from warcmill.index.cdx import cdx
from warcmill.markers.facts import index
from warcmill.model import FINAL, Json
from warcmill.output import process
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

NAME = "one.warc.gz"
LABEL = f"warcs/daily/{LAUNCH.id}/{NAME}"
PAGE = response("http://e.x/1")


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    made = Engine(tmp_path)
    made.logs(line_of("http://e.x/", NAME))
    made.finish()
    return made


def indexed(engine: Engine, *records: bytes) -> None:
    """Bring a launch whose WARC has these records up to its index."""
    engine.warc(NAME, warc_gz(warcinfo(), *records))
    steps.assembled(engine)
    claim = process.process(engine.state, engine.roots, LAUNCH)
    engine.state.publish(claim.key, claim)
    steps.upto(engine, "Verify")
    sentinel.adopt({"index": engine.base / "index"})
    extracts = Extracts(FileStore("index", engine.base / "index"))
    claim = cdx(engine.state, LocalExtractor(engine.store, extracts), extracts, LAUNCH, FINAL)
    engine.state.publish(claim.key, claim)


def found(engine: Engine) -> list[tuple[str, str, str]]:
    gaps = report(engine.state, engine.rootmap, engine.store, LAUNCH, {}).gaps
    return [(gap.kind, gap.name, gap.why) for gap in gaps if gap.kind != "lacking"]


def test_what_has_no_line_by_its_type_is_no_finding(engine: Engine) -> None:
    indexed(engine, PAGE, capture("resource", "urn:dom:http://e.x/1", b"x", "text/html"), capture("request", "x:", b""))
    assert found(engine) == []
    assert index.OF_RENDERING == cdxj.OF_RENDERING


def test_what_has_no_line_for_another_reason_is_a_finding_until_it_is_accepted(engine: Engine) -> None:
    undated = response("http://e.x/2", WARC_Date="yesterday")
    indexed(engine, PAGE, undated, undated, capture("resource", None, b"x"))
    name = f"unindexed:{LABEL}"
    assert found(engine) == [("not indexed", name, "1 capture: no URL, 2 captures: no date; no index takes them")]
    (claim,) = statements.accept_all(survey(engine.state, engine.roots, LAUNCH, {}), [name], "a test file")
    assert [one.marker for one in claim.inputs] == [layout.marker_path(layout.step("cdx", LAUNCH, FINAL))]
    engine.state.publish(claim.key, claim)
    assert found(engine) == []


def test_what_an_earlier_version_counted_is_to_be_counted_anew(engine: Engine) -> None:
    indexed(engine, PAGE, response("http://e.x/2", WARC_Date="yesterday"))
    path = engine.base / "state" / layout.marker_path(layout.step("cdx", LAUNCH, FINAL))
    claim = engine.state.require(layout.step("cdx", LAUNCH, FINAL)).claim
    path.unlink()
    facts: dict[str, Json] = {"captures": {"response": 1}, "unfit": {"no date": 1}, "hits": 0}
    before = replace(claim, items=tuple(item._replace(facts=facts) for item in claim.items))
    engine.state.publish(claim.key, before)
    (gap,) = report(engine.state, engine.rootmap, engine.store, LAUNCH, {}).gaps
    assert (gap.kind, gap.todo) == ("not indexed", f"warcmill redo daily {LAUNCH.id} cdx final --downstream")


def test_dates_that_cannot_be_right_are_a_finding(engine: Engine) -> None:
    indexed(
        engine, PAGE, response("http://e.x/2", WARC_Date="2016-02-30"), response("http://e.x/3", WARC_Date="2031-01-01")
    )
    ((kind, name, why),) = found(engine)
    assert (kind, name) == ("odd dates", f"odd-dates:{LABEL}")
    first = len(warc_gz(warcinfo(), PAGE))
    second = first + len(warc_gz(response("http://e.x/2", WARC_Date="2016-02-30")))
    assert why == (
        f"2 records are odd: at {first}, {second}; "
        f"1 capture: dated after 2016-10-21T00:10:00Z, a day after the end of the stage, 1 capture: {cdxj.IMPOSSIBLE}"
    )
