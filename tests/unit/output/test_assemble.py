"""The frozen list of a stage: what the log names, what the disk has, and every difference by name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from launches.engine import LAUNCH, Engine, line_of

from warcmill import layout
from warcmill.errors import NotReady
from warcmill.layout import KINDS, OutputLayout
from warcmill.markers.claim import Claim
from warcmill.model import FINAL, Outcome, Stage
from warcmill.output import assemble, gather, pack_logs, process, stop
from warcmill.stores import Stat
from warcmill.stores.file import FileStore

CP1, CP2 = Stage.parse("cp00001-20161020000000"), Stage.parse("cp00002-20161020010000")


@pytest.fixture(params=list(OutputLayout))
def engine(tmp_path: Path, request: pytest.FixtureRequest) -> Engine:
    return Engine(tmp_path, request.param)


def pack(engine: Engine, stage: Stage) -> Claim:
    state = engine.state
    key = layout.key("output.PackageLogs", LAUNCH, stage=stage)
    with state.scratch() as folder:
        claim, path = pack_logs.pack(state, engine.roots, LAUNCH, stage, folder)
        state.publish(key, claim, path)
    return claim


def run(engine: Engine, *stages: Stage) -> list[Claim]:
    state, claims = engine.state, []
    for stage in stages:
        if stage.is_final:
            claim = stop.stopped(state, engine.roots, LAUNCH)
            state.publish(claim.key, claim)
        pack(engine, stage)
        claims.append(assemble.assemble(state, engine.roots, LAUNCH, stage))
        state.publish(claims[-1].key, claims[-1])
    return claims


def names(claim: Claim) -> list[str]:
    return sorted(file.name for file in claim.outputs)


def test_a_stage_has_the_warcs_that_its_log_names(engine: Engine) -> None:
    engine.logs(
        line_of("http://a/", "a.warc.gz", 10),
        line_of("http://b/", "v.warc.gz", 3),
        line_of("http://c/", "a.warc.gz", 99),
    )
    engine.warc("a.warc.gz", b"12345")
    engine.warc("v.warc.gz", b"1", kind="viral")
    engine.finish()
    (final,) = run(engine, FINAL)
    assert names(final) == ["a.warc.gz", "v.warc.gz"]
    assert {item.file.name: (item.file.size, item.facts["offset"]) for item in final.items} == {
        "a.warc.gz": (5, 99),
        "v.warc.gz": (1, 3),
    }
    assert final.counts["lines"] == 3
    assert final.counts["bytes"] == 300
    assert final.facts["ended"] == "finished"
    assert final.facts["start_date"] == "2016-10-19T23:44:28Z"
    assert final.facts["end_date"] == "2016-10-20T00:10:00Z"


def test_a_named_warc_that_is_still_open_is_carried_to_the_next_stage(engine: Engine) -> None:
    engine.logs(line_of("http://a/", "a.warc.gz", 10), stage=str(CP1))
    engine.logs(stage=str(CP2))
    path = engine.warc("a.warc.gz.open", b"12345")
    (first,) = run(engine, CP1)
    assert first.facts["carried"] == {"a.warc.gz": 10}
    assert names(first) == []
    path.rename(path.with_name("a.warc.gz"))
    engine.logs()
    engine.finish()
    second, final = run(engine, CP2, FINAL)
    assert [(item.file.name, item.facts) for item in second.items] == [("a.warc.gz", {"offset": 10})]
    assert second.facts["carried"] == {}
    assert second.facts["start_date"] == "2016-10-20T00:00:00Z"
    assert names(final) == []
    assert final.facts["unnamed"] == []


def test_final_takes_what_is_still_open_and_sweeps_up_what_no_log_names(engine: Engine) -> None:
    engine.logs(line_of("http://a/", "a.warc.gz", 10))
    engine.warc("a.warc.gz.open", b"12345")
    engine.warc("stray.warc.gz", b"1")
    engine.warc("notes.txt", b"1")
    engine.finish()
    (final,) = run(engine, FINAL)
    assert names(final) == ["a.warc.gz.open", "stray.warc.gz"]
    assert [path.rpartition("/")[2] for path in final.facts["unnamed"]] == ["stray.warc.gz"]  # type: ignore[union-attr]
    assert "notes.txt: not named as a WARC" in str(final.facts["odd"])


def test_a_named_warc_that_the_disk_lacks_is_absent_by_name(engine: Engine) -> None:
    hostile = "../../../etc/passwd"
    engine.logs(
        line_of("http://a/", "gone.warc.gz", 10), line_of("http://a/", hostile, 1), line_of("http://a/", "n\0.warc.gz")
    )
    engine.finish()
    (final,) = run(engine, FINAL)
    assert final.facts["absent"] == [hostile, "gone.warc.gz", "n\0.warc.gz"]
    assert names(final) == []


def test_a_warc_named_under_a_negative_status_is_not_lost(engine: Engine) -> None:
    engine.logs(line_of("http://a/", "a.warc.gz", 10, status=-5))
    engine.warc("a.warc.gz", b"1")
    engine.finish()
    assert names(run(engine, FINAL)[0]) == ["a.warc.gz"]


def test_names_that_cannot_be_published_are_refused_by_name(engine: Engine) -> None:
    engine.logs()
    engine.finish()
    folder = engine.warc("ok and strange\n\u00e9.warc.gz", b"1").parent
    (folder / b"\xff.warc.gz".decode("utf-8", "surrogateescape")).write_bytes(b"1")
    (folder / ("\u00e9" * 60 + ".warc.gz")).write_bytes(b"1")
    (final,) = run(engine, FINAL)
    refused = [item.why for item in final.items if item.outcome is Outcome.REFUSED]
    assert sorted(why.split(":")[0] for why in refused) == [
        "its name is 368 bytes in the store, 255 is the limit",
        "its name is not UTF-8",
    ]
    assert names(final) == ["ok and strange\n\u00e9.warc.gz"]


def test_a_launch_without_logs_or_warcs_is_ordinary(engine: Engine) -> None:
    engine.job_log(f"FINISHED {LAUNCH.id}")
    (final,) = run(engine, FINAL)
    assert final.counts["lines"] == 0
    assert final.items == ()
    packed = engine.state.require(layout.key("output.PackageLogs", LAUNCH, stage=FINAL))
    assert packed.claim.facts["absent"] == [
        *layout.ENGINE_LOGS,
        "crawler-beans.cxml",
        "seeds.txt",
        "surts.dump",
        "reports/",
    ]


def test_a_checkpoint_is_packed_only_when_it_is_done(engine: Engine) -> None:
    engine.logs(stage=str(CP1))
    engine.job_log(f"RUNNING {LAUNCH.id}")
    with pytest.raises(NotReady, match="CHECKPOINTED"):
        pack(engine, CP1)
    engine.job_log(f"RUNNING {LAUNCH.id}", f"CHECKPOINTED {CP1}")
    assert pack(engine, CP1).facts["absent"] == []
    with pytest.raises(NotReady, match="no logs of this stage"):
        pack(engine, CP2)


def test_final_waits_for_the_end(engine: Engine) -> None:
    engine.logs()
    with pytest.raises(NotReady, match="warcmill close daily"):
        run(engine, FINAL)


def test_a_launch_of_the_built_in_crawler_waits_for_its_stop_as_close_refuses_it(engine: Engine) -> None:
    engine.logs()
    engine.papers()
    (engine.folders["jobs"] / str(LAUNCH) / "crawl.toml").touch()
    with pytest.raises(NotReady, match=r"If its engine is gone: warcmill pulse stop daily$"):
        stop.stopped(engine.state, engine.roots, LAUNCH)


def test_two_honest_runs_make_the_same_claim(engine: Engine) -> None:
    engine.logs(line_of("http://a/", "a.warc.gz", 10))
    engine.warc("a.warc.gz", b"12345")
    engine.finish()
    (final,) = run(engine, FINAL)
    assert assemble.assemble(engine.state, engine.roots, LAUNCH, FINAL) == final


def test_the_claim_follows_from_what_was_gathered_alone(engine: Engine) -> None:
    engine.logs(line_of("http://a/", "a.warc.gz", 10), line_of("http://b/", "gone.warc.gz", 3), stage=str(CP1))
    engine.logs()
    engine.warc("a.warc.gz.open", b"12345")
    engine.warc("b.warc.gz", b"1")
    engine.warc("notes.txt")
    engine.finish()
    _, final = run(engine, CP1, FINAL)
    gathered = gather.gather(engine.state, engine.roots, LAUNCH, FINAL)
    for folder in engine.folders.values():
        shutil.rmtree(folder, ignore_errors=True)
    assert assemble.claim_of(gathered) == final


def test_the_disk_is_listed_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.logs(line_of("http://a/", "a.warc.gz", 10), stage=str(CP1))
    engine.logs()
    engine.warc("a.warc.gz", b"12345")
    engine.finish()
    _, final = run(engine, CP1, FINAL)
    listed: list[str] = []
    plain = FileStore.list

    def list_(store: FileStore, folder: str) -> list[Stat]:
        if store.root == "output":
            listed.append(folder)
        return plain(store, folder)

    monkeypatch.setattr(FileStore, "list", list_)
    assert assemble.assemble(engine.state, engine.roots, LAUNCH, FINAL) == final
    assert sorted(listed) == sorted(engine.layout.folder(kind, LAUNCH) for kind in KINDS)


def test_a_warc_that_the_listing_missed_is_asked_for_by_name(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is read while its engine renames a file may show neither name."""
    engine.logs(line_of("http://a/", "a.warc.gz", 10), line_of("http://b/", "../../b.warc.gz", 3))
    engine.warc("a.warc.gz", b"12345")
    engine.finish()
    plain = FileStore.list

    def list_(store: FileStore, folder: str) -> list[Stat]:
        return [entry for entry in plain(store, folder) if entry.name != "a.warc.gz"]

    monkeypatch.setattr(FileStore, "list", list_)
    (final,) = run(engine, FINAL)
    assert names(final) == ["a.warc.gz"]
    assert final.facts["absent"] == ["../../b.warc.gz"]


def test_serial_holes_are_named_per_prefix_and_writer() -> None:
    made = [
        f"{prefix}-20161019234428000-{number:05d}-1~h~8443.warc.gz" for prefix in ("A", "B-C") for number in (3, 5, 8)
    ]
    assert process.serial_holes([*made, "other.warc.gz"]) == [
        f"{prefix} {number:05d} 1~h~8443" for prefix in ("A", "B-C") for number in (4, 6, 7)
    ]
    hostile = ["A-20161019234428000-00001-1~h~1.warc.gz", "A-20161019234428000-99999999999-1~h~1.warc.gz"]
    assert len(process.serial_holes(hostile)) == process.MOST_HOLES


def test_process_waits_for_every_stage_and_reports_the_holes(engine: Engine) -> None:
    cp3 = Stage.parse("cp00003-20161020020000")
    for stage in (CP1, cp3):
        engine.logs(line_of("http://a/", None), stage=str(stage))
    engine.logs()
    engine.finish()
    run(engine, CP1)
    with pytest.raises(NotReady, match=str(cp3)):
        process.process(engine.state, engine.roots, LAUNCH)
    run(engine, cp3, FINAL)
    claim = process.process(engine.state, engine.roots, LAUNCH)
    assert claim.facts["stage_holes"] == [2]
    assert claim.counts["lines"] == 2
    assert len(claim.inputs) == 3


def test_a_checkpoint_that_was_taken_and_left_no_log_is_a_hole(engine: Engine) -> None:
    """As seen: seven logs were lost with their disk; the next checkpoint's were there, so nothing was between."""
    cp2, cp3 = "cp00002-20161020010000", "cp00003-20161020020000"
    engine.logs(line_of("http://a/", None), stage=cp2)
    engine.logs()
    engine.job_log(
        f"PREPARING {LAUNCH.id}", *(f"CHECKPOINTED {one}" for one in (CP1, cp2, cp3)), f"FINISHED {LAUNCH.id}"
    )
    engine.papers()
    paper = engine.folders["jobs"] / str(LAUNCH) / "job.log"
    run(engine, Stage.parse(cp2), FINAL)
    claim = process.process(engine.state, engine.roots, LAUNCH)
    assert claim.facts["stage_holes"] == [1, 3]
    paper.unlink()
    assert process.process(engine.state, engine.roots, LAUNCH) == claim, "it follows from what was packed"


def test_what_a_feed_made_of_the_job_is_packed_where_it_is_there_and_never_absent(engine: Engine) -> None:
    engine.logs()
    engine.finish()
    folder = engine.folders["jobs"] / str(LAUNCH)
    for name in ("exclude.txt", "surts.txt"):
        (folder / name).write_text("+http://(uk,gov,\n")
    (folder / "other.txt").write_text("not ours")
    run(engine, FINAL)
    claim = engine.state.require(layout.key("output.PackageLogs", LAUNCH, stage=FINAL)).claim
    members = {str(item.facts["member"]) for item in claim.items}
    assert {"jobs/exclude.txt", "jobs/surts.txt", "jobs/job.log"} <= members
    assert "jobs/other.txt" not in members
    assert claim.facts["absent"] == []


def test_a_launch_of_the_built_in_crawler_has_its_own_papers(engine: Engine) -> None:
    engine.logs()
    engine.finish()
    folder = engine.folders["jobs"] / str(LAUNCH)
    (folder / "crawl.toml").write_text("[crawl]\n")
    for name in ("crawler-beans.cxml", "surts.dump", "seeds.txt"):
        (folder / name).unlink(missing_ok=True)
    run(engine, FINAL)
    claim = engine.state.require(layout.key("output.PackageLogs", LAUNCH, stage=FINAL)).claim
    assert "jobs/crawl.toml" in {str(item.facts["member"]) for item in claim.items}
    assert claim.facts["absent"] == ["seeds.txt"]


@pytest.mark.parametrize("is_folder", [False, True])
def test_sheets_are_packed_as_a_file_or_as_a_folder_of_files(engine: Engine, is_folder: bool) -> None:
    engine.logs()
    engine.finish()
    sheets = engine.folders["jobs"] / str(LAUNCH) / "sheets"
    if is_folder:
        (sheets / "more").mkdir(parents=True)
    sheet = sheets / "deep crawl.xml" if is_folder else sheets
    sheet.write_text("<beans/>")
    (final,) = run(engine, FINAL)
    packed = engine.state.require(layout.key("output.PackageLogs", LAUNCH, stage=FINAL)).claim
    members = {str(item.facts["member"]): item.file.path for item in packed.items}
    name = "jobs/sheets/deep%20crawl.xml" if is_folder else "jobs/sheets"
    assert members[name] == sheet.relative_to(engine.folders["jobs"]).as_posix()
    odd = [f"{LAUNCH}/sheets/more: not a file, where sheets are expected"] if is_folder else []
    assert final.facts["odd"] == odd
