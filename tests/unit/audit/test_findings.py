"""Everything that a marker found out, or leaves out, is a gap by name; and in which order gaps are best closed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from launches import chain
from launches.engine import LAUNCH, Engine, line_of
from msgspec.structs import replace
from records.warcs import warc_gz, warcinfo

from warcmill import layout
from warcmill.audit import fixity_audit, remedies
from warcmill.audit.gaps import Gap
from warcmill.audit.reconciliation import LaunchReport, StageRow, heads, report, unexplained
from warcmill.audit.survey import survey
from warcmill.decisions import statements
from warcmill.errors import BadInput
from warcmill.formats.logs import bounds, retired
from warcmill.formats.logs.bounds import BoundCut
from warcmill.markers.claim import Claim
from warcmill.model import FINAL, Key, Stage
from warcmill.output import process
from warcmill.reports import crawl

WHOLE = warc_gz(warcinfo())
NAMES = [f"BL-20161019234430000-0000{serial}-1~crawler~8443.warc.gz" for serial in range(2)]
PATHS = [f"warcs/daily/{LAUNCH.id}/{name}" for name in NAMES]
CP1, CP2 = Stage.parse("cp00001-20161019234500"), Stage.parse("cp00002-20161019234600")
LATER = ("Checksum", "Copy", "Verify", "ReadBack", "Retire")
ZIP = "the zip"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


def crawled(engine: Engine) -> Engine:
    """A whole launch with two WARCs, as its engine leaves it."""
    engine.logs(*(line_of(f"http://a.example/{name}", name) for name in NAMES))
    for name in NAMES:
        engine.warc(name, WHOLE)
    engine.finish()
    return engine


def assembled(engine: Engine, *stages: Stage) -> Engine:
    for stage in (*stages, FINAL):
        chain.assembled(engine, stage)
    claim = process.process(engine.state, engine.roots, LAUNCH)
    engine.state.publish(claim.key, claim)
    return engine


def stored(engine: Engine, last: str = "Verify") -> Engine:
    chain.upto(assembled(crawled(engine)), last)
    return engine


def reconciled(engine: Engine) -> LaunchReport:
    return report(engine.state, engine.rootmap, engine.store, LAUNCH, {})


def gaps_of(engine: Engine) -> list[tuple[str, str, str]]:
    return [(gap.stage, gap.kind, gap.name) for gap in reconciled(engine).gaps if gap.kind != "lacking"]


def accept(engine: Engine, name: str) -> Claim:
    claim = statements.accept_all(survey(engine.state, engine.roots, LAUNCH, {}), [name], "the disk was full")[0]
    engine.state.publish(claim.key, claim)
    return claim


def write_anew(engine: Engine, key: Key, change: Callable[[Claim], Claim]) -> None:
    """A marker with another claim, soundly digested: as a faulty or hostile writer would leave it."""
    claim = engine.state.require(key).claim
    (engine.folders["state"] / layout.marker_path(key)).unlink()
    engine.state.publish(key, change(claim))


# A log that is missing.


def test_a_checkpoint_of_which_every_log_is_gone_is_named(engine: Engine) -> None:
    engine.job_log(*(f"CHECKPOINTED {stage}" for stage in (CP1, CP2)))
    papers = engine.folders["jobs"] / str(LAUNCH) / "job.log"
    taken = papers.read_text()
    engine.logs(stage=str(CP1))
    crawled(engine)
    papers.write_text(taken + papers.read_text())
    found = reconciled(assembled(engine, CP1)).gaps
    (hole,) = (gap for gap in found if gap.kind == "checkpoint hole")
    assert (hole.name, hole.why) == ("cp00002", "job.log says that it was taken, and none of its logs is there")
    accept(engine, "cp00002")
    assert "checkpoint hole" not in {kind for _, kind, _ in gaps_of(engine)}


def test_a_log_that_was_not_there_is_a_gap_by_its_name_and_stage_until_it_is_accepted(engine: Engine) -> None:
    engine.logs(line_of("http://a.example/", NAMES[0]), stage=str(CP1))
    crawled(engine)
    logs = engine.folders["output"] / engine.layout.folder("logs", LAUNCH)
    (logs / f"alerts.log.{CP1}").unlink()
    (logs / "uri-errors.log").unlink()
    (engine.folders["jobs"] / str(LAUNCH) / "surts.dump").unlink()
    engine.folders["output"].joinpath(engine.layout.folder("reports", LAUNCH), "crawl-report.txt").unlink()
    chain.assembled(engine, CP1)
    assembled(engine)
    names = {f"alerts.log.{CP1}": str(CP1), **dict.fromkeys(("final/uri-errors.log", "final/surts.dump"), "final")}
    names["final/reports/"] = "final"
    found = [one for one in gaps_of(engine) if one[1] == "absent log"]
    assert {name: stage for stage, _, name in found} == names
    for name, stage in names.items():
        packed = layout.key("output.PackageLogs", LAUNCH, stage=stage)
        assert [one.marker for one in accept(engine, name).inputs] == [layout.marker_path(packed)]
    assert not [one for one in gaps_of(engine) if one[1] == "absent log"]
    assert {gap.name for gap in reconciled(engine).accepted} >= set(names)


def test_a_log_that_came_later_is_packed_anew_not_accepted(engine: Engine) -> None:
    (crawled(engine).folders["jobs"] / str(LAUNCH) / "surts.dump").unlink()
    assembled(engine)
    chain.upto(engine, "Verify")
    assert reconciled(engine).gaps[0].todo.startswith("warcmill accept final/surts.dump ")
    engine.papers()
    (gap,) = reconciled(engine).gaps
    assert gap.why.endswith("it is there now")
    assert gap.todo == f"warcmill redo daily {LAUNCH.id} pack final --downstream"


def test_another_writer_s_log_does_not_stand_for_the_engine_s(engine: Engine) -> None:
    crawled(engine)
    listing = survey(engine.state, engine.roots, LAUNCH, {}).listing
    listing.logs[FINAL] = [file._replace(root="writer.worker") for file in listing.logs[FINAL]]
    assert list(chain.pack_logs.absent(listing, FINAL)) == list(layout.ENGINE_LOGS)


# What only the disks of dead workers have.


def retired_workers(engine: Engine, *rows: tuple[int, str, str, str, str]) -> Path:
    folder = engine.folders["output"] / engine.layout.folder("reports", LAUNCH)
    path = folder / retired.RETIRED
    path.write_bytes(retired.write(rows))
    return path


def test_what_a_default_bound_cut_is_a_gap_until_that_is_accepted(engine: Engine) -> None:
    crawled(engine)
    cuts = [BoundCut("queries", 20_000, False, 300, "http://a.example/?21"), BoundCut("scope", 0, False, 9, "x")]
    cuts += [BoundCut("body", 7, True, 1, "http://a.example/large")]
    report = engine.folders["output"] / engine.layout.folder("reports", LAUNCH) / f"{bounds.REPORT}.txt"
    report.write_text("\n".join(bounds.render(cuts)))
    assembled(engine)
    chain.upto(engine, "Verify")
    claim = crawl.report(engine.state, engine.store, LAUNCH, FINAL)
    engine.state.publish(claim.key, claim)
    assert gaps_of(engine) == [("final", "cut by a default", "bound:queries")]
    (gap,) = reconciled(engine).gaps
    assert gap.why == "[traps] queries = 20000, the default, left out 300 links, first http://a.example/?21"
    assert gap.todo.startswith(f"raise [traps] queries of job {LAUNCH.job}, then: warcmill pulse start ")
    assert gap.todo.endswith(f"; else: warcmill accept bound:queries --launch {LAUNCH.job} {LAUNCH.id} --reason TEXT")
    assert [one.marker for one in accept(engine, "bound:queries").inputs] == [layout.marker_path(claim.key)]
    assert gaps_of(engine) == []


def test_what_the_engine_counted_and_the_logs_lack_is_a_gap_until_that_is_accepted(engine: Engine) -> None:
    crawled(engine)
    reports = engine.folders["output"] / engine.layout.folder("reports", LAUNCH)
    reports.joinpath("crawl-report.txt").write_text("URIs processed: 5\n")
    reports.joinpath("seeds-report.txt").write_text(
        "[code] [status] [seed] [redirect]\n200 CRAWLED http://a.example/\n"
    )
    reports.joinpath("hosts-report.txt").touch()
    log = engine.folders["output"] / engine.layout.folder("logs", LAUNCH) / "crawl.log"
    log.write_bytes(log.read_bytes() + b"2016-10-20T00:00:0")
    assembled(engine)
    chain.upto(engine, "Verify")
    found = {gap.name: (gap.stage, gap.kind, gap.why) for gap in reconciled(engine).gaps if gap.kind != "lacking"}
    assert found == {
        "count:crawl.log": ("", "other count", "the crawl logs have 2 lines, and crawl-report.txt counts 5 URIs"),
        "count:seeds.txt": (
            "", "other count", "seeds.txt lacks 1 of the 1 seeds in seeds-report.txt: http://a.example/"
        ),
        "unread:crawl.log": ("", "unread lines", "1 line of the crawl logs is cut or damaged, and not counted"),
        "reports/hosts-report.txt": ("", "empty report", "it is empty, and no engine leaves it so"),
    }  # fmt: skip
    seeds = layout.marker_path(layout.key("reports.ListDeadSeeds", LAUNCH))
    assert {one.marker for name in found for one in accept(engine, name).inputs} == {seeds}
    assert gaps_of(engine) == []


def test_damaged_results_are_a_gap_until_that_is_accepted(engine: Engine) -> None:
    crawled(engine)
    log = engine.folders["output"] / engine.layout.folder("logs", LAUNCH) / layout.RESULTS_LOG
    notice = b'{"id": "a", "kind": "notice", "value": {"appid": "app", "url": "http://a.example/"}}\n'
    log.write_bytes(b"nonsense\n" + notice + b'{"id": "b", "kind": "page", "value": {}}\n' + b"\0\0\n")
    assembled(engine)
    chain.upto(engine, "Verify")
    claim = crawl.report(engine.state, engine.store, LAUNCH, FINAL)
    engine.state.publish(claim.key, claim)
    assert gaps_of(engine) == [("final", "damaged results", "final/results.jsonl")]
    assert next(iter(reconciled(engine).gaps)).why.startswith("2 lines are damaged")
    accepted = accept(engine, "final/results.jsonl")
    assert accepted.facts["kind"] == "damaged results"
    assert len(accepted.inputs) == 1
    assert gaps_of(engine) == []


def test_pages_whose_browser_ended_are_a_gap_until_that_is_accepted(engine: Engine) -> None:
    """Those that are themselves at fault are none."""
    crawled(engine)
    log = engine.folders["output"] / engine.layout.folder("logs", LAUNCH) / "crawl.log"
    page = next(line for line in log.read_bytes().splitlines() if b" text/html " in line).rsplit(b" ", 2)
    for why in (b"browserEnded", b"hung", b"browserEnded"):
        log.write_bytes(log.read_bytes() + b" ".join((page[0], b"1t,render:failed:" + why, page[2])) + b"\n")
    assembled(engine)
    chain.upto(engine, "Verify")
    claim = crawl.report(engine.state, engine.store, LAUNCH, FINAL)
    engine.state.publish(claim.key, claim)
    assert [(one["why"], one["number"]) for one in claim.facts["unrendered"]] == [("browserEnded", 2), ("hung", 1)]
    name = "render:failed:browserEnded"
    assert gaps_of(engine) == [("final", "not rendered", name)]
    (gap,) = reconciled(engine).gaps
    assert gap.why.startswith(f"2 pages were not rendered: its browser ended each time ({name}), first http")
    assert accept(engine, name).facts["kind"] == "not rendered"
    assert gaps_of(engine) == []


def test_visits_of_a_dead_worker_are_a_gap_until_it_is_accepted(engine: Engine) -> None:
    row = ("node7.example", "2016-10-20T08:20:11Z", "its disk is broken")
    retired_workers(crawled(engine), (12, "w1", *row), (0, "w2", *row), (1, "w3", "", *row[1:]))
    assembled(engine)
    chain.upto(engine, "Verify")
    packed = layout.key("output.PackageLogs", LAUNCH, stage=FINAL)
    assert engine.state.require(packed).claim.facts == {"absent": [], "lost_visits": {"w1": 12, "w3": 1}}
    assert gaps_of(engine) == [("final", "lost visits", f"worker:{name}") for name in ("w1", "w3")]
    first, second = reconciled(engine).gaps
    assert first.why.startswith("it was declared dead: since its last stage 12 visits have no file")
    assert "since its last stage 1 visit has no file" in second.why
    assert first.todo.startswith("warcmill accept worker:w1 ")
    for name in ("w1", "w3"):
        assert [one.marker for one in accept(engine, f"worker:{name}").inputs] == [layout.marker_path(packed)]
    assert gaps_of(engine) == []
    assert {gap.name for gap in reconciled(engine).accepted} == {"worker:w1", "worker:w3"}


@pytest.mark.parametrize("text", [b"", b"12 w1 h t why\n", b"\xff", b"many w1 h t why\n"])
def test_a_report_of_dead_workers_that_is_not_as_it_was_written_is_packed_by_no_step(
    engine: Engine, text: bytes
) -> None:
    path = retired_workers(crawled(engine))
    path.write_bytes(text if text.startswith(b"12") or not text else path.read_bytes() + text)
    number = 1 if text.startswith(b"12") or not text else 2
    with pytest.raises(BadInput, match=f"line {number} is not as the crawler wrote it"):
        chain.assembled(engine, FINAL)


# What is there and is in no package.


def test_what_is_odd_in_a_launch_s_folders_is_a_gap_until_it_is_accepted(engine: Engine) -> None:
    crawled(engine)
    folder = engine.warc("notes: not all.txt", b"x").parent
    (folder / "more").mkdir()
    (folder / "link.warc.gz").symlink_to(NAMES[0])
    assembled(engine)
    chain.upto(engine, "Verify")
    names = [f"warcs/daily/{LAUNCH.id}/{name}" for name in ("link.warc.gz", "more", "notes: not all.txt")]
    assert gaps_of(engine) == [("final", "odd", name) for name in names]
    for name in names:
        accept(engine, name)
    assert gaps_of(engine) == []


# What a stage leaves to the next.


def test_a_warc_that_is_carried_is_no_gap_before_final_and_none_that_a_later_stage_has(engine: Engine) -> None:
    engine.logs(line_of("http://a.example/", NAMES[0]), stage=str(CP1))
    engine.job_log(f"CHECKPOINTED {CP1}")
    path = engine.warc(f"{NAMES[0]}.open", WHOLE)
    chain.assembled(engine, CP1)
    assert gaps_of(engine) == []
    path.rename(path.with_name(NAMES[0]))
    engine.logs()
    engine.finish()
    assembled(engine)
    assert gaps_of(engine) == []


def test_a_warc_that_no_later_stage_has_taken_over_is_a_gap_once(engine: Engine) -> None:
    for stage in (CP1, CP2):
        engine.logs(stage=str(stage))
    crawled(engine)
    assembled(engine, CP1, CP2)

    def carries(claim: Claim) -> Claim:
        return replace(claim, facts={**claim.facts, "carried": {"lost.warc.gz": 7}})

    for stage in (CP1, CP2):
        write_anew(engine, layout.key("output.AssembleOutput", LAUNCH, stage=stage), carries)
    found = [one for one in gaps_of(engine) if one[1] == "carried"]
    assert found == [(str(CP2), "carried", "lost.warc.gz")]
    (gap,) = (gap for gap in reconciled(engine).gaps if gap.kind == "carried")
    assert gap.todo == f"warcmill redo daily {LAUNCH.id} assemble {CP2} --downstream"


# A marker with an item left out, or one too many.


@pytest.mark.parametrize(
    ("step", "left"), [*((step, NAMES[0]) for step in LATER), *((step, ZIP) for step in LATER[:4])]
)
def test_a_file_that_a_later_marker_leaves_out_is_a_gap_and_verify_finds_it(
    engine: Engine, step: str, left: str
) -> None:
    stored(engine, step)
    name = chain.zip_name(engine) if left == ZIP else left
    key = layout.key(f"files.{step}", LAUNCH, stage=FINAL)
    write_anew(engine, key, lambda claim: replace(claim, items=tuple(i for i in claim.items if i.file.name != name)))
    (gap,) = (gap for gap in reconciled(engine).gaps if gap.kind == "left out")
    path = PATHS[0] if left == NAMES[0] else layout.marker_path(layout.key("output.PackageLogs", LAUNCH, stage=FINAL))
    assert (gap.stage, gap.name) == ("final", path)
    assert gap.why == f"it is a file of the stage, and not in {layout.marker_name(key)}"
    assert gap.todo == remedies.redo(key)
    findings = fixity_audit.work(engine.state, LAUNCH).findings
    assert [(one.name, one.todo) for one in findings] == [(path, gap.todo)]


def test_what_an_earlier_marker_leaves_out_is_reported_before_what_is_stale_by_it(engine: Engine) -> None:
    """The redo of the earlier step is for both; that of the later alone would leave the file out again."""
    stored(engine)
    key = layout.key("files.Checksum", LAUNCH, stage=FINAL)
    write_anew(engine, key, lambda claim: replace(claim, items=claim.items[1:]))
    assert [(gap.kind, gap.todo) for gap in reconciled(engine).gaps] == [
        ("left out", remedies.redo(key)),
        ("stale", remedies.redo(layout.key("files.Copy", LAUNCH, stage=FINAL))),
    ]


def test_a_file_that_several_markers_leave_out_is_one_gap_that_names_them(engine: Engine) -> None:
    stored(engine)
    names = []
    for step in ("Copy", "Verify"):
        key = layout.key(f"files.{step}", LAUNCH, stage=FINAL)
        write_anew(engine, key, lambda claim: replace(claim, items=claim.items[1:]))
        names.append(layout.marker_name(key))
    (gap,) = (gap for gap in reconciled(engine).gaps if gap.kind == "left out")
    assert gap.why.endswith(f"not in {', '.join(names)}")
    assert gap.todo.endswith("copy final --downstream")


def test_a_file_that_03_does_not_list_is_a_gap_too(engine: Engine) -> None:
    stored(engine)
    key = layout.key("files.Checksum", LAUNCH, stage=FINAL)

    def more(claim: Claim) -> Claim:
        beside = claim.items[0].file._replace(path="warcs/daily/elsewhere/x.warc.gz")
        return replace(claim, items=(*claim.items, claim.items[0]._replace(file=beside)))

    write_anew(engine, key, more)
    assert ("final", "not listed", "warcs/daily/elsewhere/x.warc.gz") in gaps_of(engine)


def test_a_whole_launch_has_no_such_gap_after_any_step(engine: Engine) -> None:
    stored(engine, "Retire")
    assert reconciled(engine).gaps == ()
    assert fixity_audit.work(engine.state, LAUNCH).findings == ()


def test_figures_that_differ_for_no_reason_given_are_a_gap_themselves(engine: Engine) -> None:
    seen = survey(engine.state, engine.roots, LAUNCH, {})
    alike = dict.fromkeys(heads([]), 2)
    differing = {**alike, "checksummed": 1}
    assert list(unexplained(seen, [StageRow(FINAL, True, alike)], ())) == []
    assert list(unexplained(seen, [StageRow(FINAL, True, {**alike, "on_disk": 0})], ())) == [], (
        "removed: it is verified"
    )
    assert list(unexplained(seen, [StageRow(FINAL, False, differing)], ())) == [], "its steps are not due"
    (gap,) = unexplained(seen, [StageRow(FINAL, True, differing)], ())
    assert gap.kind == "counts"
    assert gap.name == "final: on_disk 2, packed 2, assembled 2, checksummed 1, stored 2, verified 2"
    for stage in ("final", ""):
        explains = Gap(LAUNCH, stage, "lacking", "x", "it was not run yet", "luigi")
        assert list(unexplained(seen, [StageRow(FINAL, True, differing)], (explains,))) == []
    for kind in ("absent log", "refused"):
        other = replace(explains, stage="final", kind=kind)
        assert list(unexplained(seen, [StageRow(FINAL, True, differing)], (other,))) == [gap], "it explains no figure"


def test_a_name_that_cannot_be_stored_explains_the_figures_by_itself(engine: Engine) -> None:
    crawled(engine)
    engine.warc("\u00e9" * 60 + ".warc.gz", WHOLE)
    assembled(engine)
    chain.upto(engine, "Verify")
    assert {gap.kind for gap in reconciled(engine).gaps} == {"refused", "unnamed"}
    (row,) = reconciled(engine).rows
    assert (row.counts["on_disk"], row.counts["assembled"], row.counts["verified"]) == (3, 3, 2)


# In which order.


def test_what_is_repaired_comes_first_then_what_is_redone_and_what_is_accepted_last(engine: Engine) -> None:
    crawled(engine)
    engine.warc("stray.warc.gz", WHOLE)
    assembled(engine)
    engine.warc("late.warc.gz", WHOLE)
    (engine.folders["output"] / PATHS[1]).unlink()
    kinds = [gap.kind for gap in reconciled(engine).gaps]
    assert kinds == ["lacking", "gone", "late", "unnamed"]
