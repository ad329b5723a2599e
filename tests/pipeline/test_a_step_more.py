"""A step more: one row, one task class, one publish; and everything that lists steps reports it."""

from __future__ import annotations

import json
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any

import luigi
import pytest
from configured import configured
from launches import chain as steps
from launches.engine import LAUNCH, Engine, line_of
from luigi.date_interval import Date
from records.warcs import warc_gz, warcinfo
from sites.receivers import web_server

from commands.init import configuration
from commands.main import main
from tasks.config.settings import Settings
from tasks.files import Verify
from tasks.line import OpenRoots
from tasks.step import StageStep
from tasks.summary import ScanEnding
from warcmill import chain, layout
from warcmill.base import digests
from warcmill.chain import Row, Switch, Wanted
from warcmill.clients.notice import Channels
from warcmill.files.transfer import counts
from warcmill.markers.attempts import Attempts
from warcmill.markers.claim import Claim
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FINAL, FileRef, Item, Outcome
from warcmill.output import process
from warcmill.stores import Store

DAY = "2016-10-19"
NAME = "BL-20161019234430000-00000-1~crawler~8443.warc.gz"
MARKER = f"files.pretended.daily.{LAUNCH.id}.final"
SCAN = "warcmill scan 2016-10-19"
ROW = Row(
    "files.Pretend", "files.pretended.{job}.{launch_id}.{stage}", "stage",
    word="pretend", head="pre-_tend", after="verify", due="pretend", scan="files.ScanForOutputFiles",
    files="pre", done="pre-_tended", judges=True, stored=True, reads="made",
)  # fmt: skip
KEY_OF = {"stage": FINAL}
ON = {"pretend": Switch(date(2016, 10, 19))}
OFF: list[Wanted] = [
    {},
    {"another": Switch(date(2016, 10, 19))},
    {"pretend": Switch(date(2016, 10, 20))},
    {"pretend": Switch(date(2016, 10, 19), frozenset({"weekly"}))},
]


class Pretend(StageStep):
    """Keep a note of each file in the store, and refuse every WARC."""

    task_namespace = "files"

    def requires(self) -> luigi.Task:
        return Verify(job=self.job, launch_id=self.launch_id, stage=self.stage)

    def work(self, line: OpenRoots) -> None:
        pretend(line.state, line.store)


def pretend(state: MarkerStore, store: Store) -> None:
    """The step's work, and its one publish."""
    key = layout.key(ROW.task, LAUNCH, **KEY_OF)
    verified = state.require(layout.key("files.Verify", LAUNCH, **KEY_OF))
    items = tuple(_item(store, item) for item in verified.claim.items)
    state.publish(key, Claim(key, rests_on(verified), items=items, counts=counts(items)))


def _item(store: Store, item: Item) -> Item:
    note = b"seen: " + item.file.name.encode()
    size, sha512 = digests.sha512(BytesIO(note))
    made = FileRef("store", f"notes/{LAUNCH}/{item.file.name}", size, sha512)
    store.commit_new(made.path, BytesIO(note), size, sha512)
    if not item.file.is_engines:
        return item._replace(made=made)
    return item._replace(made=made, outcome=Outcome.REFUSED, why="it is only pretended")


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """A finished launch with one WARC, verified in the store; the row is in the table, and its switch is on."""
    made = Engine(tmp_path)
    made.logs(line_of("http://a.example/", NAME))
    made.warc(NAME, warc_gz(warcinfo()))
    made.finish()
    steps.assembled(made)
    claim = process.process(made.state, made.roots, LAUNCH)
    made.state.publish(claim.key, claim)
    steps.upto(made, "Verify")
    config = tmp_path / "luigi.cfg"
    config.write_text(configuration(made.folders, made.layout))
    configured(monkeypatch, config)
    monkeypatch.setattr(chain, "ROWS", (*chain.ROWS, ROW))
    monkeypatch.setattr(Settings, "wanted", lambda _: ON)
    return made


class Operator:
    """Types commands, and reads what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def types(self, *words: str) -> tuple[int, str]:
        """Exit code and stdout of one command."""
        code = main(words)
        return code, self.capsys.readouterr().out

    def asks(self, *words: str) -> dict[str, Any]:
        """The document of one command."""
        document = json.loads(self.types(*words, "--json")[1])
        assert isinstance(document, dict)
        return document


@pytest.fixture
def operator(capsys: pytest.CaptureFixture[str]) -> Operator:
    return Operator(capsys)


def notice_and_summary(engine: Engine) -> tuple[list[Any], list[Any]]:
    """The troubles of the notice that a scan ends with, and those of the summary of the day."""
    with web_server() as posts:
        channels = Channels(webhook=f"http://127.0.0.1:{posts.port}/hook?token=s3cret")
        ScanEnding("files.ScanForOutputFiles", Date.parse(DAY), channels, launches=(LAUNCH,)).report()
    told = [one for _, _, body in posts.posts for one in body["troubles"]]
    summary = json.loads((engine.folders["state"] / DAY[:7] / f"status.{DAY}.json").read_bytes())
    return told, summary["launches"][0]["troubles"]


def test_it_is_due_and_everything_reports_it(engine: Engine, operator: Operator) -> None:
    assert operator.asks("status", DAY)["launches"][0]["cells"]["pretend"] == {"done": 0, "mark": "waiting", "of": 1}
    assert " pre-" in operator.types("status", DAY)[1]
    code, text = operator.types("reconcile", DAY)
    assert (code, "tended" in text, MARKER in text, SCAN in text) == (1, True, True, True)
    why = operator.asks("why", "daily", LAUNCH.id)["gaps"]
    assert [(one["kind"], one["name"], one["todo"]) for one in why] == [("lacking", MARKER, SCAN)]
    (planned,) = operator.asks("plan", DAY)["launches"]
    assert [one["task"] for one in planned["tasks"]] == ["files.Pretend"]
    code, text = operator.types("files", DAY, "--lacking", "pretend")
    assert (code, " pre " in text, NAME in text) == (1, True, True)


def test_an_attempt_that_failed_is_in_summary_and_notice(engine: Engine, operator: Operator) -> None:
    key = layout.key(ROW.task, LAUNCH, **KEY_OF)
    Attempts(engine.state, key).append({"error": "the disk is full", "kind": "Unavailable"})
    told, summary = notice_and_summary(engine)
    assert [(one["kind"], one["name"], one["why"]) for one in told] == [("failed", MARKER, "the disk is full")]
    assert [(one["kind"], one["task"]) for one in summary] == [("failed", "files.Pretend")]
    assert operator.asks("status", DAY)["launches"][0]["cells"]["pretend"]["mark"] == "failed"
    assert operator.asks("why", "daily", LAUNCH.id)["attempts"][0]["task"] == "files.Pretend"


def test_what_it_left_is_counted_judged_and_read_again(engine: Engine, operator: Operator) -> None:
    pretend(engine.state, engine.store)
    assert operator.asks("status", DAY)["launches"][0]["cells"]["pretend"]["mark"] == "refused"
    found = operator.asks("reconcile", DAY)
    assert (found["totals"]["verified"], found["totals"]["pretended"]) == (1, 1)
    assert [(one["kind"], one["why"]) for one in found["launches"][0]["gaps"]] == [("refused", "it is only pretended")]
    files = operator.asks("files", DAY)["files"]
    assert {one["steps"]["pretend"] for one in files} == {"ok", "refused"}
    assert operator.asks("plan", DAY)["tasks"] == 0
    told, summary = notice_and_summary(engine)
    assert [one["kind"] for one in told] == ["refused"]
    assert [(one["kind"], one["task"]) for one in summary] == [("refused", "files.Pretend")]
    assert operator.types("verify", DAY)[0] == 0
    note = engine.folders["store"] / f"notes/{LAUNCH}/{NAME}"
    note.chmod(0o644)
    note.write_bytes(b"x")
    (finding,) = operator.asks("verify", DAY)["findings"]
    assert finding["todo"].endswith(f"warcmill redo daily {LAUNCH.id} pretend final --downstream")


def test_it_is_redone_alone_and_with_what_it_rests_on(engine: Engine, operator: Operator) -> None:
    pretend(engine.state, engine.store)
    code, text = operator.types("redo", "daily", LAUNCH.id, "pretend", "final", "--file", NAME)
    assert (code, SCAN in text) == (0, True)
    pretend(engine.state, engine.store)
    code, text = operator.types("redo", "daily", LAUNCH.id, "verify", "final", "--downstream")
    assert code == 0
    assert [line.rpartition("/")[2].split(".")[1] for line in text.splitlines() if "aside" in line] == [
        "pretended",
        "crawl",
        "seeds",
        "verified",
    ]


@pytest.mark.parametrize("wanted", OFF, ids=["off", "another", "since a later day", "for another job"])
def test_it_is_not_due_and_nobody_mentions_it(
    engine: Engine, operator: Operator, wanted: Wanted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Settings, "wanted", lambda _: wanted)
    Attempts(engine.state, layout.key(ROW.task, LAUNCH, **KEY_OF)).append({"error": "no", "kind": "Unavailable"})
    assert operator.asks("status", DAY)["launches"][0]["cells"].get("pretend") is None
    for verb in (["status", DAY], ["reconcile", DAY], ["why", "daily", LAUNCH.id], ["plan", DAY], ["files", DAY]):
        code, text = operator.types(*verb)
        assert (code, " pre" in text, "pretend" in text) == (0, False, False), verb
    assert "pretended" not in operator.asks("reconcile", DAY)["totals"]
    assert notice_and_summary(engine) == ([], [])


@pytest.mark.parametrize("wanted", OFF, ids=["off", "another", "since a later day", "for another job"])
def test_a_marker_that_is_there_counts_though_its_step_is_not_due(
    engine: Engine, operator: Operator, wanted: Wanted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Settings, "wanted", lambda _: wanted)
    pretend(engine.state, engine.store)
    assert operator.asks("status", DAY)["launches"][0]["cells"]["pretend"]["mark"] == "refused"
    assert operator.asks("reconcile", DAY)["totals"]["pretended"] == 1
    assert " pre " in operator.types("files", DAY)[1]
    assert [one["kind"] for one in operator.asks("why", "daily", LAUNCH.id)["gaps"]] == ["refused"]


def test_switching_it_on_makes_no_other_marker_stale_and_the_summary_new(
    engine: Engine, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Settings, "wanted", lambda _: {})
    notice_and_summary(engine)
    assert operator.types("reconcile", DAY)[0] == 0
    monkeypatch.setattr(Settings, "wanted", lambda _: ON)
    notice_and_summary(engine)
    path = engine.folders["state"] / DAY[:7] / f"status.{DAY}.json"
    assert json.loads(path.read_bytes())["launches"][0]["stages"]["final"]["pretend"] == "waiting"
    assert [gap["kind"] for gap in operator.asks("reconcile", DAY)["launches"][0]["gaps"]] == ["lacking"]
