"""Typed facts: a marker with facts that do not fit is broken, of its launch alone; nothing is redone unasked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from launches import chain
from launches.engine import LAUNCH, Engine, line_of
from launches.unfit import Change, document, instead, of_another_type, places, rewrite, without
from msgspec.structs import replace
from records.warcs import warc_gz, warcinfo

from warcmill import layout
from warcmill.audit import day_summary, gaps, inventory, progress_grid, remedies, survey
from warcmill.audit.reconciliation import LaunchReport, report
from warcmill.errors import BadInput
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.per_warc import LocalExtractor
from warcmill.extracts.text_workers import TextWorkers
from warcmill.formats.logs import logzip
from warcmill.index import cdx, columns, text
from warcmill.markers import claim as evidence
from warcmill.markers.claim import Claim
from warcmill.markers.facts import documents, files, index, operator, output, package, pulse, pypi, readers, reports
from warcmill.markers.facts.output import Ended, Stopped
from warcmill.markers.facts.pulse import Continued
from warcmill.model import FINAL, FileRef, Item, Key, Launch, Outcome, Stage
from warcmill.output import process
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

ROOT = Path(__file__).parent.parent.parent.parent
GOLDEN = ROOT / "tests" / "data" / "markers"
PAGE = (ROOT / "docs" / "markers.md").read_text("utf-8")
OTHER = Launch("daily", "20161019111111")
CP1 = Stage.parse("cp00001-20161019234500")
WHOLE = warc_gz(warcinfo())
NAMES = [f"BL-20161019234430000-0000{serial}-1~crawler~8443.warc.gz" for serial in range(3)]
DUE, EARLIER = "20161019230000", Launch("daily", "20161018234428")
# What a marker may lack: some markers have none of it, or older ones.
MAY_LACK = {
    "pulse.Started": {"continues", "endless", "engine", "follows", "feed", "targets", "files", "without_login"},
    "output.PackageLogs": {"lost_visits"},
    "output.AssembleOutput": {
        "continues", "prefixes", "refused_prefix", "absent_prefix", "uncounted_log", "offset",
    },
    "output.ProcessOutputs": {"continues"},
    "files.Checksum": {"records", "payload", "warnings", "bad", "odd", "sound"},
    "files.Copy": {"hdfs", "not_salvaged", "salvaged", "bytes"},
    "files.Verify": {"hdfs", "not_salvaged", "salvaged", "bytes"},
    "files.VirusScan": {"salvaged"},
    "files.ReadBack": {"hdfs", "not_salvaged", "salvaged", "bytes"},
    "package.BuildSip": {"ark", "zone", "orphaned"},
}  # fmt: skip
# Counts that no step and no report reads: for people alone.
UNREAD = {"files", "bytes", "ok", "refused", "salvaged"}, {*output.NUMBERS, "refused", "absent", "unnamed"}
OF_SIPS = {"files", "bytes", "warcs", "referred"}
FIELDS: dict[str, set[str]] = {
    task: {name for one in classes for name in one.__annotations__} | more
    for task, classes, more in (
        ("pulse.CrawlFeed", (pulse.Fed,), set()),
        ("pulse.StartJob", (pulse.Launched,), {"launch_id"}),
        ("pulse.Started", (pulse.Started,), set()),
        ("pulse.CheckpointJob", (pulse.Checkpointed,), set()),
        ("pulse.StopJob", (pulse.Confirmed,), set()),
        ("operator.Close", (operator.Closed,), set()),
        ("operator.Import", (operator.Imported,), {"origin"}),  # read as `origins`
        ("operator.Accept", (operator.Accepted,), set()),
        ("output.CheckJobStopped", (output.Stopped,), set()),
        ("output.PackageLogs", (output.PackedLogs,), {"member"}),
        ("output.AssembleOutput", (output.Assembled,), {"odd", "offset"}),  # `odd` is read as `unexpected`
        ("output.ProcessOutputs", (output.Complete,), set()),
        ("files.Checksum", (files.Checked,), set()),
        ("files.Copy", (files.StoredFile,), set()),
        ("files.Verify", (files.StoredFile,), set()),
        ("files.VirusScan", (files.ScannedFile,), set()),
        ("files.ReadBack", (files.StoredFile,), set()),
        ("index.CdxIndex", (index.IndexedFile,), set()),
        ("index.VerifyCdx", (index.CdxVerified,), set()),
        ("index.SolrIndex", (index.TextIndexedFile,), set()),
        ("index.VerifySolr", (index.TextFound,), set()),
        ("index.Columns", (index.Rows,), {"rows"}),
        ("reports.GenerateCrawlLogReports", (reports.CrawlReported,), {*reports.REPORT_TABLES}),
        ("reports.ListDeadSeeds", (reports.Seeds,), {"list"}),  # read as `listed`
        ("package.GiveArks", (package.GivenArks,), {"ark"}),
        ("documents.ExtractDocuments", (documents.HarvestedFile,), {"warcs"}),
        ("documents.VerifyDocuments", (documents.HarvestVerified, documents.UnharvestedLine), {"reasons"}),
        ("pypi.ProcessDistributions", (pypi.Processed,), set()),
        ("pypi.DumpDistributionData", (pypi.Dumped,), set()),
        ("pypi.VerifyDump", (pypi.DumpVerified,), set()),
        ("pypi.DumpFull", (pypi.Dumped,), set()),
        ("package.BuildSip", (package.Packaged,), set()),
        ("package.SubmitSip", (package.Submitted,), set()),
    )
}


def crawled(engine: Engine) -> Engine:
    """A launch with a checkpoint, a good WARC, and two that were never closed: one whole, one cut; in the store."""
    engine.logs(line_of("http://a.example/", NAMES[0]), stage=str(CP1))
    engine.logs(*(line_of(f"http://a.example/{name}", name) for name in NAMES))
    for name, data in ((NAMES[0], WHOLE), (f"{NAMES[1]}.open", WHOLE), (f"{NAMES[2]}.open", WHOLE + WHOLE[:9])):
        engine.warc(name, data)
    engine.finish()
    for stage in (CP1, FINAL):
        chain.assembled(engine, stage)
    claim = process.process(engine.state, engine.roots, engine.launch)
    engine.state.publish(claim.key, claim)
    for stage in (CP1, FINAL):
        chain.upto(engine, "Retire", stage)
        scanned(engine, stage)
        indexed(engine, stage)
    packaged(engine)
    mirrored(engine)
    harvested(engine)
    return engine


def harvested(engine: Engine) -> None:
    """What the steps of documents leave, with something of each kind."""
    for stage in (CP1, FINAL):
        verified = engine.state.require(layout.step("verify", engine.launch, stage)).claim
        numbers = {"documents": 1, "revisits": 1, "pages": 2, "faults": 1, "left_out": {"neither": 1}, "hits": 0}
        key = layout.step("documents", engine.launch, stage)
        items = tuple(item._replace(facts=numbers) for item in verified.items if item.file.is_engines)
        engine.state.publish(key, Claim(key, items=items))
        line = {
            "url": "http://a.example/a.pdf",
            "date": "20161019234430",
            "warc": NAMES[0],
            "offset": 7,
            "why": "empty",
        }
        facts = {"reasons": {"empty": 1}, "first": [line], "unread": []}
        key = layout.step("verify-documents", engine.launch, stage)
        engine.state.publish(key, Claim(key, counts={"lines": 2, "entries": 1}, facts=facts))


def mirrored(engine: Engine) -> None:
    """What the steps of a package index leave, with something of each kind."""
    for stage in (CP1, FINAL):
        verified = engine.state.require(layout.step("verify", engine.launch, stage)).claim
        numbers = {"pages": 1, "files": 2, "without_facts": 1, "other": 1, "hits": 0}
        key = layout.step("distributions", engine.launch, stage)
        items = tuple(item._replace(facts=numbers) for item in verified.items if item.file.is_engines)
        engine.state.publish(key, Claim(key, items=items))
    lacked = [{"project": "a", "file": "", "why": "status 503"}]
    window = {"serial_from": 0, "serial_to": 9, "generation": 1, "whole": True}
    counts = {"rows": 1, "projects": 1, "files": 1}
    key = layout.step("dump", engine.launch)
    engine.state.publish(key, Claim(key, counts=counts, facts={**window, "lacked": lacked, "unreadable": lacked}))
    key = layout.step("verify-dump", engine.launch)
    engine.state.publish(key, Claim(key, counts=counts))
    key = layout.key("pypi.DumpFull", engine.launch, number="00002")
    full = {**window, "generation": 2, "lacked": lacked, "unreadable": lacked}
    engine.state.publish(key, Claim(key, counts=counts, facts=full))


def scanned(engine: Engine, stage: Stage) -> None:
    """What a scan for viruses leaves, with a hit in every WARC."""
    verified = engine.state.require(layout.step("verify", engine.launch, stage)).claim
    hit = {"offset": 7, "uri": "http://a.example/", "signature": "Eicar"}
    items = (
        item._replace(
            facts={"clean": 1, "hits": [hit], "not_scanned": {"over MaxFileSize": 2}}
            | ({"salvaged": True} if files.is_salvaged(item) else {}),
        )
        for item in verified.items
        if item.file.is_engines
    )
    key = layout.step("viruses", engine.launch, stage)
    engine.state.publish(key, Claim(key, items=tuple(items)))


def indexed(engine: Engine, stage: Stage) -> None:
    """What the index leaves, with the lines in a folder of its own."""
    folder = engine.base / "index"
    sentinel.adopt({"index": folder})
    extracts = Extracts(FileStore("index", folder))
    claim = cdx.cdx(engine.state, LocalExtractor(engine.store, extracts), extracts, engine.launch, stage)
    item = claim.items[0]
    some = item._replace(facts={**item.facts, "captures": {"response": 1}, "unfit": {"no URL": 1}})
    engine.state.publish(claim.key, replace(claim, items=(some, *claim.items[1:]), counts={}))
    written = columns.claim(engine.state, engine.launch, stage)
    engine.state.publish(written.key, replace(written, counts={}))
    found = tuple(item._replace(facts={"captures": 1}) for item in claim.items)
    key = layout.step("verify-cdx", engine.launch, stage)
    engine.state.publish(key, Claim(key, items=found, counts={"elsewhere": 2}))
    with TextWorkers(1) as workers:
        claim = text.text(engine.state, LocalExtractor(engine.store, extracts, workers), extracts, engine.launch, stage)
    item = claim.items[0]
    some = item._replace(facts={**item.facts, "documents": {"html": 1}, "left_out": {"revisit": 1}})
    engine.state.publish(claim.key, replace(claim, items=(some, *claim.items[1:]), counts={}))
    known = tuple(item._replace(facts={"documents": 1}) for item in claim.items)
    key = layout.step("verify-text", engine.launch, stage)
    engine.state.publish(key, Claim(key, items=known))


def packaged(engine: Engine) -> None:
    """What the steps of SIPs leave: one for both stages, whose ARKs a minter gave for `final` alone."""
    state, launch, folder = engine.state, engine.launch, f"sips/{engine.launch}"
    sip = FileRef("store", f"{folder}/final.2.tar", 1, "ab" * 64)
    made = package.Packaged((CP1, FINAL), None, "value", f"daily.{launch.id}.final.2", sip, "ark:9/x", "12345/x5", ())

    def leave(task: str, **parts: Any) -> None:
        key = layout.key(task, launch, stage=FINAL)
        state.publish(key, Claim(key, **parts))

    ark = Item(sip, Outcome.OK, facts={"ark": "ark:9/y"})
    leave("package.GiveArks", items=(ark,), facts={"sip": "ark:9/x", "minter": "http://noid.example/"})
    told = replace(made, orphaned=(f"{folder}/final.tar",)).facts()
    leave("package.BuildSip", outputs=(sip,), facts=told, counts={"files": 1, "bytes": 1})
    leave("package.SubmitSip", facts=package.Submitted("a.tar", "ab" * 64, "cd" * 64).facts())
    leave("package.VerifySip", counts=dict.fromkeys(OF_SIPS, 1))
    leave("package.IndexSip")


def said(engine: Engine) -> None:
    """What starting, stopping and an operator leave."""
    told: dict[str, dict[str, Any]] = {
        "pulse.Started": {
            "due": DUE,
            "feed": "ab" * 64,
            "targets": 3,
            "files": {"seeds.txt": "cd" * 64},
            "without_login": ["7"],
            "engine": "heritrix",
            "follows": {"launch_id": EARLIER.id},
            "endless": True,
            **Continued(EARLIER, CP1).facts(),
        },
        "pulse.StopJob": {"engine": "ended"},
        "operator.Close": {"reason": "x"},
        "operator.Import": {
            **dict.fromkeys(("by", "source", "layout", "first", "last"), "x"),
            "missing": ["x: a link"],
            "left_out": ["x.txt: not named as a WARC"],
        },
    }
    for task, found in told.items():
        key = layout.key(task, LAUNCH)
        engine.state.publish(key, Claim(key, facts=found))
    key = layout.key("pulse.CheckpointJob", LAUNCH, number="00001")
    engine.state.publish(key, Claim(key, facts={"stage": str(CP1)}))
    key = layout.key("operator.Accept", LAUNCH, finding=layout.finding_id("x"))
    engine.state.publish(key, Claim(key, facts={"name": "x", "kind": "odd", "reason": "known"}))


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """Two launches of a job that went all the way."""
    crawled(Engine(tmp_path, launch=OTHER))
    made = crawled(Engine(tmp_path))
    said(made)
    return made


def markers(engine: Engine) -> list[Path]:
    """The markers of the launch; of those of its checkpoint, which are as those of `final`, 03 alone."""
    folder = engine.folders["state"] / layout.state_folder(LAUNCH)
    keys = {path: layout.parse_marker_name(path.name) for path in sorted(folder.iterdir())}
    last = (None, str(FINAL))
    alike = {path for path, key in keys.items() if key and dict(key.params).get("stage") not in last}
    return [path for path, key in keys.items() if key and (path not in alike or path.name.startswith("03."))]


def key_of(path: Path) -> Key:
    key = layout.parse_marker_name(path.name)
    assert key
    return key


def seen_by_all(engine: Engine, launch: Launch) -> tuple[LaunchReport, list[object]]:
    """What reconcile sees of a launch; and what status, the summary, why and files see."""
    seen = survey.load_markers(engine.state, engine.roots, launch, {})
    told = [
        progress_grid.of_survey(seen),
        day_summary.of_survey(seen),
        gaps.find(seen),
        list(inventory.Inventory(seen).states()),
    ]
    return report(engine.state, engine.rootmap, engine.store, launch, {}), told


def broken(found: LaunchReport) -> list[tuple[str, str]]:
    """The broken markers of a launch, and what to do about each."""
    assert not [gap for gap in found.gaps if gap.kind == "unreadable"]
    return [(gap.name, gap.todo) for gap in found.gaps if gap.kind == "broken marker"]


def changes(path: Path) -> Iterator[tuple[Change, str, bool]]:
    """Each value of a marker taken away, or given another type; which it is; whether the marker then does not fit."""
    claim = document(path)["claim"]
    task = claim["task"]
    may_lack = MAY_LACK.get(task, set())
    unread = UNREAD[task == "output.ProcessOutputs"] if task != "output.AssembleOutput" else set()
    unread = OF_SIPS if task.startswith("package.") else unread
    told = set()
    for number, (kind, values) in enumerate(places(claim)):
        for name, value in values.items():
            if (kind == "counts" and name in unread) or (kind, name, type(value)) in told:
                continue
            told.add((kind, name, type(value)))
            needed = name not in may_lack and not (name == "ended" and "cp" in claim["params"].get("stage", ""))
            yield without(number, name), f"{kind} {name} away", needed
            for other in of_another_type(value):
                yield instead(number, name, other), f"{kind} {name} {other!r}", True


def test_a_value_that_is_missing_or_of_another_type_breaks_its_marker_alone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every fact of every marker of a launch, one after another. The other markers are parsed once: they stay."""
    monkeypatch.setattr(evidence, "decode", cache(evidence.decode))
    others = seen_by_all(engine, OTHER)
    assert broken(seen_by_all(engine, LAUNCH)[0]) == []
    tasks, unfit = set(), 0
    for path in markers(engine):
        data = path.read_bytes()
        tasks.add(key_of(path).task)
        for change, what, is_unfit in changes(path):
            rewrite(path, change)
            found, _ = seen_by_all(engine, LAUNCH)
            expected = [(path.name, remedies.redo(key_of(path)))] if is_unfit else []
            assert broken(found) == expected, (path.name, what)
            assert engine.state.read(key_of(path)), "for steps it is as sound as it was"
            assert engine.state.holds(key_of(path))
            unfit += is_unfit
            path.write_bytes(data)
        assert seen_by_all(engine, OTHER) == others
    line = {row.task for row in gaps.chain.ROWS if row.scope != "due"}
    assert tasks == line - {"state.Backup"}
    assert unfit > 200


@pytest.mark.parametrize("name", ["schema-1", "schema-1.zip"])
def test_the_golden_markers_fit(name: str) -> None:
    data = (GOLDEN / name).read_bytes()
    found = evidence.decode(logzip.evidence(BytesIO(data)) if name.endswith(".zip") else data, name)
    assert readers.of(found.claim)


def test_the_classes_read_what_the_page_lists_for_their_tasks() -> None:
    """Every fact in docs/markers.md is a field: none is read anywhere else, for nobody else reads facts."""
    for task, known in FIELDS.items():
        section = PAGE[PAGE.index(f"### {task}\n") :].partition("\n### ")[0]
        tables = section.replace("| item's fact |", "| fact |").split("| fact | meaning |")[1:]
        rows = [line for table in tables for line in table.partition("\n\n")[0].splitlines() if line.startswith("| `")]
        told = {name for row in rows for name in re.findall(r"`(\w+)`", row.split(" | ")[0])}
        assert told <= known, task


def test_facts_are_read_nowhere_else() -> None:
    """Neither a claim's nor an item's; and no date is written by a function that leaves zeros out."""
    for folder in ("warcmill", "tasks", "commands", "targets"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text("utf-8")
            inside = "markers" in path.parts or path.name == "evidence.py"
            assert inside or not re.search(r"claim\.(facts|counts)\b|item\.facts(\[|\.get)", text), path
            assert not re.search(r"^(?!.*strptime\().*%Y", text, re.MULTILINE), path
            assert not re.search(r"assert isinstance", text), path


def test_no_other_value_of_how_a_launch_ended_fits() -> None:
    key = layout.key("output.CheckJobStopped", LAUNCH)
    claim = Claim(key, facts={"how": "finished", "finished": ""})
    assert Stopped.from_claim(claim) == Stopped(Ended.FINISHED, "")
    with pytest.raises(
        BadInput, match=r"its fact 'how' is 'tired', not one of confirmed, finished, superseded, closed"
    ):
        Stopped.from_claim(replace(claim, facts={"how": "tired", "finished": ""}))


@pytest.mark.parametrize("member", ["root", "path", "sha512"])
def test_a_file_with_a_member_of_another_type_breaks_its_marker(engine: Engine, member: str) -> None:
    (path,) = (one for one in markers(engine) if one.name.startswith("files.copied") and one.name.endswith("final"))
    rewrite(path, lambda claim: claim["items"][0]["file"].update({member: 7}))
    assert broken(seen_by_all(engine, LAUNCH)[0]) == [(path.name, remedies.redo(key_of(path)))]
