"""The history: actions, editions and decisions in one list, filtered, paged without reading all, and as CSV."""

from __future__ import annotations

import argparse
import csv
import io
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from launches.engine import LAUNCH, Engine
from operating.web_site import WebSite

from warcmill.base import clock
from warcmill.markers import decisions
from warcmill.markers.editions import JobEditions
from warcmill.stores import LocalStore
from warcmill.versions import hidden_list
from warcmill.web import history
from warcmill.web.actions import FOLDER, TakenAction
from warcmill.web.history import DeedFilter

BEGIN = datetime(2016, 10, 1, tzinfo=UTC)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


@pytest.fixture
def site(engine: Engine) -> WebSite:
    return WebSite(engine, engine.audited)


def at(monkeypatch: pytest.MonkeyPatch, minutes: int) -> str:
    """Have it this late; return the time."""
    moment = clock.text(BEGIN + timedelta(minutes=minutes))
    monkeypatch.setattr(clock, "now", lambda: moment)
    return moment


def action(state: LocalStore, minutes: int, waited: int = 0, **more: Any) -> None:
    """An action, whose form had been open for some minutes."""
    id_ = f"{clock.digits(BEGIN + timedelta(minutes=minutes - waited))}-{minutes:012x}"
    started = clock.text(BEGIN + timedelta(minutes=minutes))
    made = TakenAction(id_, "scan", ("scan",), "anna", started=started, finished=started, exit_code=0)
    record = {**made.record(), **more}
    path = state.base / FOLDER / f"{id_}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record))


def everything(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> LocalStore:
    state = engine.state.store
    action(state, 0)
    action(state, 50, waited=49, who="berta", action="start", job="daily", words=["pulse", "start", "daily"])
    for minutes, hides in ((10, True), (40, False)):
        at(monkeypatch, minutes)
        hidden_list.decide(state, lambda: engine.store, "example,a", "asked for", hides=hides, by="cleo")
    at(monkeypatch, 20)
    skipped = {"due": "20161001000000", "job": "daily", "kind": "due", "name": "20161001000000", "reason": "closed"}
    decisions.make_all(state, lambda: engine.store, decisions.ACCEPTED, [skipped], "dora")
    at(monkeypatch, 30)
    papers = JobEditions(state, lambda: engine.store, "daily")
    papers.save({"seeds.txt": b"http://a.example/\n"}, who="emil", why="new", made_from=0)
    return state


def test_all_kinds_are_in_one_list_the_newest_first(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    state = everything(engine, monkeypatch)
    found = [(one.who, one.kind, one.what, one.job) for one in history.deeds(state, DeedFilter())]
    assert found == [
        ("berta", "action", "start", "daily"), ("cleo", "access", "unhide", ""),
        ("emil", "edition", "edition", "daily"), ("dora", "accepted", "accepted", "daily"),
        ("cleo", "access", "hide", ""), ("anna", "action", "scan", ""),
    ]  # fmt: skip
    hidden = next(history.deeds(state, DeedFilter(what="hide")))
    assert (hidden.about, hidden.why) == ("example,a", "asked for")


@pytest.mark.parametrize(("wanted", "who"), [
    (DeedFilter(who="cleo"), ["cleo", "cleo"]), (DeedFilter(what="access"), ["cleo", "cleo"]),
    (DeedFilter(what="start"), ["berta"]), (DeedFilter(job="daily"), ["berta", "emil", "dora"]),
    (DeedFilter(first="2016-10-01T00:30:00Z"), ["berta", "cleo", "emil"]),
    (DeedFilter(end="2016-10-01T00:20:00Z"), ["cleo", "anna"]), (DeedFilter(who="nobody"), []),
])  # fmt: skip
def test_it_is_filtered(engine: Engine, monkeypatch: pytest.MonkeyPatch, wanted: DeedFilter, who: list[str]) -> None:
    assert [one.who for one in history.deeds(everything(engine, monkeypatch), wanted)] == who


def test_its_pages_have_each_deed_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    state, seen, wanted = everything(engine, monkeypatch), list[str](), DeedFilter()
    while True:
        page = history.page(state, wanted, 2)
        seen += (one.id for one in page.deeds)
        if page.next is None:
            break
        wanted = DeedFilter(before=page.next)
    assert seen == [one.id for one in history.deeds(state, DeedFilter())]


def test_the_first_page_of_many_reads_few_and_a_late_one_too(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    state, number = engine.state.store, 20_000
    for minutes in range(number):
        action(state, minutes)
    read, files = type(state).read, list[str]()

    def counted(self: LocalStore, path: str, most: int) -> bytes:
        files.append(path)
        return read(self, path, most)

    monkeypatch.setattr(type(state), "read", counted)
    begun = time.monotonic()
    first = history.page(state, DeedFilter(), 100)
    assert len(first.deeds) == 100
    assert len(files) < 500
    late = history.page(state, DeedFilter(end="2016-10-02T00:00:00Z"), 100)
    assert (late.deeds[0].time, len(files) < 1_000) == ("2016-10-01T23:59:00Z", True)
    few = history.page(state, DeedFilter(who="nobody"), 100)
    assert (few.deeds, few.is_short, bool(few.next)) == ((), True, True)
    assert time.monotonic() - begun < 30


def test_the_verb_lists_the_same(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from commands import history as verb  # noqa: PLC0415

    everything(engine, monkeypatch)
    monkeypatch.setattr(verb, "open_line", lambda: engine)

    def told(*words: str) -> str:
        parser = argparse.ArgumentParser()
        verb.add_arguments(parser)
        assert verb.run(parser.parse_args(words)) == (2 if {"--json", "--csv"} <= {*words} else 0)
        return capsys.readouterr().out

    listed = json.loads(told("2016-10", "--json"))["deeds"]
    assert listed == [one.json() for one in history.deeds(engine.state.store, DeedFilter())]
    assert told("--who", "cleo", "--limit", "1") == "2016-10-01T00:40:00Z  cleo  unhide  example,a  asked for\n"
    assert told("--csv", "--what", "edition").count("\n") == 2
    assert told("--who", "nobody") == told("--json", "--csv") == ""


def test_what_cannot_be_read_is_named_and_hides_nothing(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    state = everything(engine, monkeypatch)
    (state.base / decisions.path_of(decisions.ACCESS, 2)).write_text("torn <b>")
    (state.base / "editions/daily/000001/edition.json").write_text("torn")
    found = [*history.deeds(state, DeedFilter())]
    assert len(found) == 6
    assert [bool(one.why) for one in found if not one.what] == [True, True]
    site = WebSite(engine, engine.audited)
    assert site.get("/history").status == 200
    assert "<b>" not in site.get("/history").text.replace("<b>[hidden]", "")


def test_a_curator_sees_who_did_what_and_gets_it_as_csv(
    engine: Engine, site: WebSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = everything(engine, monkeypatch)
    action(state, 60, who="=1+1", action="<script>")
    page = site.get("/history", {"job": "daily"}, role="curator").text
    assert [name in page for name in ("berta", "dora", "emil", "anna")] == [True, True, True, False]
    assert "/actions/" not in page, "those of others are an operator's to see"
    assert "/actions/" in site.get("/history").text
    assert "<script>alert" not in page
    assert site.get("/history", role="reader").status == 403
    sent = site.get("/history", {"format": "csv", "who": "=1+1"}, role="curator")
    assert sent.header("content-type").startswith("text/csv")
    heads, row = csv.reader(io.StringIO(sent.text))
    assert tuple(heads) == history.COLUMNS
    assert row[1] == "'=1+1"
    for odd in ({"from": "x"}, {"before": "x"}, {"who": "x" * 300}):
        assert site.get("/history", odd).status == 400
    found = site.get("/history", {"format": "json", "from": "2016-10-01", "to": "2016-10-01"}).document
    assert len(found["deeds"]) == 7
    assert LAUNCH.id not in str(found)
