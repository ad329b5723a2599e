"""Checksum, Copy, Verify, ReadBack: good files get through whatever the others are, and nothing slips by."""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path

import pytest
from launches.chain import BLOCK_SIZE, assembled, items, step, upto, zip_name
from launches.engine import LAUNCH, Engine, line_of
from records.warcs import http, record, sha1, warc_gz, warcinfo

from warcmill import layout
from warcmill.base.progress import describe
from warcmill.errors import BadConfig, BadInput, Foreign, NotReady, Unavailable, Unsettled
from warcmill.files import checksum, copy
from warcmill.files.transfer import stages_without
from warcmill.formats.hdfs_checksum import Hasher
from warcmill.formats.warc.hearers import Hearer, Listener, RecordHead
from warcmill.layout import OutputLayout
from warcmill.markers.attempts import Attempts
from warcmill.model import FINAL, FileRef, Item, Launch, Outcome, Stage
from warcmill.stores.file import FileStore

BODY = bytes(range(256)) * 300
GOOD = warc_gz(warcinfo(), record("response", http(BODY), payload=sha1(BODY)), record("metadata", b"via: x\r\n"))
OTHER = warc_gz(warcinfo(), record("response", http(b"other"), payload=sha1(b"other")))
FIRST = len(warc_gz(warcinfo()))
BAD = GOOD[:-40] + bytes(40)


@pytest.fixture(params=list(OutputLayout))
def engine(tmp_path: Path, request: pytest.FixtureRequest) -> Engine:
    return crawled(Engine(tmp_path, request.param))


@pytest.fixture
def one(tmp_path: Path) -> Engine:
    return crawled(Engine(tmp_path))


def crawled(engine: Engine) -> Engine:
    """A finished launch with a good, a bad and a viral WARC."""
    engine.logs(*(line_of("http://a/", name, FIRST) for name in ("good.warc.gz", "bad.warc.gz", "v.warc.gz")))
    engine.warc("good.warc.gz", GOOD)
    engine.warc("bad.warc.gz", BAD)
    engine.warc("v.warc.gz", OTHER, kind="viral")
    engine.finish()
    assembled(engine)
    return engine


def place(engine: Engine, name: str) -> Path:
    (found,) = engine.folders["output"].rglob(name)
    return found


def stored(engine: Engine) -> dict[str, bytes]:
    base = engine.folders["store"]
    kept = {str(path.relative_to(base)): path.read_bytes() for path in base.rglob("*") if path.is_file()}
    del kept[layout.SENTINEL]
    return kept


def sha512(data: bytes) -> str:
    return hashlib.sha512(data).hexdigest()


def hdfs(data: bytes) -> str:
    hasher = Hasher(BLOCK_SIZE)
    hasher.update(data)
    return hasher.result()


def test_checksum_reports_digests_records_and_what_is_refused(engine: Engine) -> None:
    claim = step(engine, "Checksum")
    found = items(claim)
    assert found["good.warc.gz"] == Item(
        FileRef("output", found["good.warc.gz"].file.path, len(GOOD), sha512(GOOD)),
        Outcome.OK,
        facts={"hdfs": hdfs(GOOD), "records": 3, "payload": {"as-transferred": 1}, "warnings": []},
    )
    bad = found["bad.warc.gz"]
    assert (bad.outcome, bad.file.sha512, bad.facts["hdfs"]) == (Outcome.REFUSED, sha512(BAD), hdfs(BAD))
    assert (bad.offset, bad.facts["whole"], bad.facts["records"]) == (bad.facts["whole"], bad.offset, 2)
    assert "gzip" in bad.why
    packed = engine.state.store.real(layout.marker_path(layout.key("output.PackageLogs", LAUNCH, stage=FINAL)))
    assert found[zip_name(engine)].file.sha512 == sha512(packed.read_bytes())
    assert claim.counts["files"] == 4
    assert (claim.counts["ok"], claim.counts["refused"], claim.counts["salvaged"]) == (3, 1, 0)


def test_the_whole_chain_carries_every_file_bit_for_bit(engine: Engine) -> None:
    read = upto(engine, "ReadBack")
    launch = f"{LAUNCH.job}/{LAUNCH.id}"
    packed = engine.state.store.real(layout.marker_path(layout.key("output.PackageLogs", LAUNCH, stage=FINAL)))
    assert stored(engine) == {
        f"warcs/{launch}/good.warc.gz": GOOD,
        f"warcs/{launch}/bad.warc.gz": BAD,
        f"viral/{launch}/v.warc.gz": OTHER,
        f"logs/{launch}/{packed.name}": packed.read_bytes(),
    }
    assert {name: item.outcome for name, item in items(read).items() if item.outcome is not Outcome.OK} == {
        "bad.warc.gz": Outcome.REFUSED
    }
    assert read.counts == {**step(engine, "Checksum").counts}


@pytest.mark.parametrize("name", ["Checksum", "Copy", "Verify", "ReadBack"])
def test_two_honest_runs_make_the_same_claim_and_name_what_they_rest_on(one: Engine, name: str) -> None:
    claim = upto(one, name)
    assert step(one, name) == claim
    for path in one.state.store.real(layout.state_folder(LAUNCH)).glob("attempts/*"):
        path.unlink()
    assert step(one, name) == claim
    for used in claim.inputs:
        key = layout.parse_marker_path(used.marker)
        assert key
        assert one.state.require(key).digest == used.claim


def test_no_step_runs_ahead_of_the_one_before(one: Engine) -> None:
    for name in ("Copy", "Verify", "ReadBack", "Retire"):
        with pytest.raises(NotReady, match="run files"):
            step(one, name)


def test_a_warc_shorter_than_its_log_says_is_refused_at_that_offset(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    engine.logs(line_of("http://a/", "cut.warc.gz", len(GOOD) + 5))
    engine.warc("cut.warc.gz", GOOD)
    engine.finish()
    assembled(engine)
    claim = step(engine, "Checksum")
    assert (items(claim)["cut.warc.gz"].outcome, items(claim)["cut.warc.gz"].offset) == ("refused", len(GOOD) + 5)
    assert items(upto(engine, "ReadBack"))["cut.warc.gz"].outcome is Outcome.REFUSED


def failures(engine: Engine, name: str) -> str:
    """What a step reports when it fails; and that it did all it could."""
    with pytest.raises(Unsettled) as caught:
        step(engine, name)
    return str(caught.value)


def settled(engine: Engine, name: str) -> set[str]:
    attempts = Attempts(engine.state, layout.key(f"files.{name}", LAUNCH, stage=FINAL))
    return {path.rpartition("/")[2] for _, path in attempts.settled()}


def test_a_size_other_than_in_03_fails_and_holds_up_no_other(one: Engine) -> None:
    place(one, "good.warc.gz").write_bytes(GOOD + b"x")
    assert f"good.warc.gz: expected {len(GOOD)} bytes, found {len(GOOD) + 1} bytes" in failures(one, "Checksum")
    assert settled(one, "Checksum") == {"bad.warc.gz", "v.warc.gz", zip_name(one)}
    place(one, "good.warc.gz").write_bytes(GOOD)
    assert items(step(one, "Checksum"))["good.warc.gz"].outcome is Outcome.OK


def test_a_file_that_is_gone_or_a_link_fails_by_name(one: Engine) -> None:
    place(one, "good.warc.gz").rename(one.base / "elsewhere")
    path = engine_path(one, "warcs") / "good.warc.gz"
    assert "good.warc.gz: expected a file of" in failures(one, "Checksum")
    path.symlink_to(one.base / "elsewhere")
    assert "found no plain file" in failures(one, "Checksum")


def engine_path(engine: Engine, kind: layout.Kind) -> Path:
    return engine.folders["output"] / engine.layout.folder(kind, LAUNCH)


def test_a_file_that_changes_while_it_is_read_fails(one: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    path, judge = place(one, "good.warc.gz"), checksum.gate.examine

    def examine(stream: object, name: str, *more: object, **named: object) -> object:
        verdict = judge(stream, name, *more, **named)  # type: ignore[arg-type]
        if name == "good.warc.gz":
            path.write_bytes(GOOD)
        return verdict

    monkeypatch.setattr(checksum.gate, "examine", examine)
    assert "good.warc.gz changed while it was read" in failures(one, "Checksum")
    monkeypatch.undo()
    assert items(step(one, "Checksum"))["good.warc.gz"].outcome is Outcome.OK


def test_a_retry_reads_only_what_is_left(one: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    place(one, "good.warc.gz").rename(one.base / "away")
    failures(one, "Checksum")
    (one.base / "away").rename(engine_path(one, "warcs") / "good.warc.gz")
    read = []

    def examine(stream: object, name: str, *more: object, **named: object) -> object:
        read.append(name)
        return judge(stream, name, *more, **named)  # type: ignore[arg-type]

    judge = checksum.gate.examine
    monkeypatch.setattr(checksum.gate, "examine", examine)
    assert len(step(one, "Checksum").items) == 4
    assert read == ["good.warc.gz"]


class Bytes(Hearer):
    """Hears a file, and how many of its records are good."""

    def __init__(self, fails: bool) -> None:
        self.heard, self.good, self._fails = b"", 0, fails

    def raw(self, piece: bytes) -> None:
        self.heard += piece
        if self._fails:
            raise KeyError("of the hearer")

    def begin(self, head: RecordHead) -> Listener:
        return self

    def feed(self, piece: memoryview) -> None:
        pass

    def end(self, offset: int, length: int) -> None:
        self.good += 1


def test_who_listens_hears_every_warc_in_the_one_pass_that_reads_it(
    one: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened, heard = [], dict[str, tuple[Bytes, Bytes]]()
    unheard_of = FileStore.open

    def counted(store: FileStore, path: str, start: int = 0) -> object:
        opened.append(path.rpartition("/")[2])
        return unheard_of(store, path, start)

    def listen(file: FileRef) -> tuple[Hearer, ...]:
        assert file.name not in heard
        return heard.setdefault(file.name, (Bytes(True), Bytes(False)))

    monkeypatch.setattr(FileStore, "open", counted)
    claim = checksum.checksum(one.state, one.roots, LAUNCH, FINAL, BLOCK_SIZE, listen)
    assert {name: (two.heard, two.good) for name, (_, two) in heard.items()} == {
        "good.warc.gz": (GOOD, 3),
        "bad.warc.gz": (BAD, 2),
        "v.warc.gz": (OTHER, 2),
    }
    assert [opened.count(name) for name in heard] == [1, 2, 1]  # a damaged one is read on from its fault
    assert caplog.text.count("not heard by Bytes: unexpected KeyError: 'of the hearer', at test_transfer.py") == 3
    assert caplog.text.count("Traceback") == 3
    for path in one.state.store.real(layout.state_folder(LAUNCH)).glob("attempts/*"):
        path.unlink()
    assert step(one, "Checksum") == claim


def test_a_block_size_that_cannot_be_starts_nothing(one: Engine) -> None:
    with pytest.raises(BadConfig, match="hdfs_block_size"):
        checksum.checksum(one.state, one.roots, LAUNCH, FINAL, 1000)
    assert not settled(one, "Checksum")


def test_copy_fails_when_the_source_is_no_longer_what_was_checksummed(one: Engine) -> None:
    upto(one, "Checksum")
    place(one, "good.warc.gz").write_bytes(b"x" + GOOD[1:])
    assert "good.warc.gz, while it was copied" in failures(one, "Copy")
    assert sorted(path.rpartition("/")[2] for path in stored(one)) == [zip_name(one), "bad.warc.gz", "v.warc.gz"]
    place(one, "good.warc.gz").write_bytes(GOOD)
    upto(one, "Verify")


def test_copy_takes_the_same_file_for_its_own_and_another_for_a_conflict(one: Engine) -> None:
    upto(one, "Checksum")
    folder = one.folders["store"] / "warcs" / LAUNCH.job / LAUNCH.id
    folder.mkdir(parents=True)
    (folder / "bad.warc.gz").write_bytes(BAD)
    (folder / "good.warc.gz").write_bytes(OTHER)
    told = failures(one, "Copy")
    assert f"{len(OTHER)} bytes with sha512 {sha512(OTHER)}" in told
    assert f"{len(GOOD)} bytes with sha512 {sha512(GOOD)}" in told
    assert (folder / "good.warc.gz").read_bytes() == OTHER
    assert settled(one, "Copy") == {"bad.warc.gz", "v.warc.gz", zip_name(one)}


def test_same_named_warcs_of_two_launches_do_not_meet(one: Engine) -> None:
    later = Engine(one.base, launch=Launch(LAUNCH.job, "20161020234428"))
    later.logs(line_of("http://a/", "good.warc.gz", 0))
    later.warc("good.warc.gz", OTHER)
    later.finish()
    assembled(later)
    for engine in (one, later):
        upto(engine, "Verify")
    kept = stored(one)
    assert kept[f"warcs/{LAUNCH.job}/{LAUNCH.id}/good.warc.gz"] == GOOD
    assert kept[f"warcs/{LAUNCH.job}/{later.launch.id}/good.warc.gz"] == OTHER


def test_odd_names_are_stored_under_names_that_undo(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    names = ["a b.warc.gz", "naïve.warc.gz", "nai\u0308ve.warc.gz", "new\nline.warc.gz", "100%.warc.gz"]
    for name in names:
        engine.warc(name, GOOD)
    engine.logs()
    engine.finish()
    assembled(engine)
    assert upto(engine, "ReadBack").counts["ok"] == len(names) + 1
    assert {path.rpartition("/")[2] for path in stored(engine)} - {zip_name(engine)} == {
        "a%20b.warc.gz", "na%C3%AFve.warc.gz", "nai%CC%88ve.warc.gz", "new%0Aline.warc.gz", "100%25.warc.gz"
    }  # fmt: skip


def test_a_layout_changed_in_the_configuration_refuses_no_file(one: Engine) -> None:
    upto(one, "Checksum")
    one.layout = OutputLayout.JOB_FIRST
    with pytest.raises(BadInput, match="not a path of the job-first layout"):
        copy.copy(one.state, one.roots, one.store, LAUNCH, FINAL)
    assert not settled(one, "Copy")


def test_a_store_that_is_not_mounted_is_an_outage(one: Engine) -> None:
    upto(one, "Checksum")
    store = one.store
    (one.folders["store"] / layout.SENTINEL).unlink()
    with pytest.raises(Unavailable, match="Mount the disk"):
        copy.copy(one.state, one.roots, store, LAUNCH, FINAL)
    assert not settled(one, "Copy")


@pytest.mark.parametrize("name", ["Verify", "ReadBack"])
@pytest.mark.parametrize("harm", ["flip", "cut", "lose"])
def test_harm_in_the_store_is_named_and_left(one: Engine, name: str, harm: str) -> None:
    upto(one, "Copy" if name == "Verify" else "Verify")
    path = one.folders["store"] / "warcs" / LAUNCH.job / LAUNCH.id / "good.warc.gz"
    before = path.stat()
    if harm == "lose":
        path.unlink()
    else:
        path.write_bytes(GOOD[:-1] + (b"x" if harm == "flip" else b""))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "good.warc.gz" in failures(one, name)
    assert settled(one, name) == {"bad.warc.gz", "v.warc.gz", zip_name(one)}
    assert path.exists() is (harm != "lose")
    path.write_bytes(GOOD)
    step(one, name)


def test_a_scan_asks_for_assembled_stages_alone_and_only_while_they_lack(one: Engine) -> None:
    assert stages_without(one.state, LAUNCH, "files.Verify") == [FINAL]
    upto(one, "Copy")
    assert stages_without(one.state, LAUNCH, "files.Copy") == []
    assert stages_without(one.state, LAUNCH, "files.Verify") == [FINAL]
    assert stages_without(one.state, Launch("other", LAUNCH.id), "files.Verify") == []
    one.state.store.real(layout.marker_path(layout.key("files.Copy", LAUNCH, stage=FINAL))).write_bytes(b"spoiled")
    assert stages_without(one.state, LAUNCH, "files.Copy") == [FINAL]
    one.state.store.real(layout.marker_path(layout.key("output.AssembleOutput", LAUNCH, stage=FINAL))).write_bytes(b"")
    assert stages_without(one.state, LAUNCH, "files.Copy") == []


def test_a_stray_file_beside_the_markers_bothers_no_scan(one: Engine) -> None:
    upto(one, "Copy")
    for task in ("output.AssembleOutput", "files.Copy", "output.PackageLogs"):
        path = one.state.store.real(layout.marker_path(layout.key(task, LAUNCH, stage=FINAL)))
        for stray in (f"{path.name}~", f"{path.name}.", f".{path.name}.tmp"):
            path.with_name(stray).write_bytes(path.read_bytes())
    assert stages_without(one.state, LAUNCH, "files.Copy") == []
    assert stages_without(one.state, LAUNCH, "files.Verify") == [FINAL]


def test_a_scan_asks_for_stages_in_order(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    stages = [Stage.parse("cp00001-20161020000000"), Stage.parse("cp00002-20161020010000"), FINAL]
    for stage in stages:
        engine.logs(stage=str(stage))
    engine.finish()
    for stage in stages:
        assembled(engine, stage)
    assert stages_without(engine.state, LAUNCH, "files.Copy") == stages
    upto(engine, "Copy", stages[1])
    assert stages_without(engine.state, LAUNCH, "files.Copy") == [stages[0], FINAL]
    key = layout.key("files.Copy", LAUNCH, stage=FINAL)
    foreign = engine.state.store.real(layout.marker_path(layout.key("files.Copy", LAUNCH, stage=stages[1])))
    engine.state.store.real(layout.marker_path(key)).write_bytes(foreign.read_bytes())
    upto(engine, "Copy", stages[0])
    with pytest.raises(Foreign, match="a sound marker, but of files"):
        stages_without(engine.state, LAUNCH, "files.Copy")


def test_progress_reports_how_far_and_how_fast() -> None:
    assert describe(3_100_000_000, 10_400_000_000, 25.8) == "3.1 of 10.4 GB, 120 MB/s, 61 s left"
    assert describe(500_000, 7_250_000, 60) == "0.5 of 7.2 MB, 0 MB/s, 14 min left"
    assert describe(1_000_000, 8_000_000, 3600) == "1.0 of 8.0 MB, 0 MB/s, 7 h left"
    assert describe(0, 0, 1) == "0.0 of 0.0 MB, 0 MB/s"


def test_long_work_logs_its_progress(
    one: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    step(one, "Checksum")
    assert "MB/s" not in caplog.text
    for path in one.state.store.real(layout.state_folder(LAUNCH)).glob("attempts/*"):
        path.unlink()
    monkeypatch.setattr("warcmill.base.progress.EVERY", 0.0)
    monkeypatch.setattr("warcmill.base.progress.OFTEN", 0.0)
    step(one, "Checksum")
    assert "files.Checksum(job=daily, launch_id=20161019234428, stage=final): 0.0 of 0." in caplog.text
