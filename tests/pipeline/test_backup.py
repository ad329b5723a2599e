"""The restore drill: the state folder is lost, and everything is known again, nothing redone."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import socket
import zipfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
import sample
from line import DAY, Line

from warcmill import layout
from warcmill.backup import backup
from warcmill.markers.claim import Claim
from warcmill.markers.state import input_of
from warcmill.model import FINAL, Launch
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore
from warcmill.versions import hidden_list
from warcmill.versions.inputs import Lists, VersionList

LAUNCH = Launch(sample.JOB, sample.LAUNCH_ID)


DUE = "20261121060000"
RUNNING = Launch("daily", "20261121060003")  # an engine still crawls it


@pytest.fixture
def fed(line: Line) -> Iterator[Line]:
    """A line with a job that is crawled daily by a feed, in an engine that is not there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        base = line.config.parent
        (base / "password").write_text("secret\n")
        line.config.write_text(
            f"{line.config.read_text()}\n[engine.first]\nkind=heritrix\nurl=https://127.0.0.1:{taken.getsockname()[1]}/engine\n"
            f"user=admin\npassword_file={base}/password\ncertificate={'00' * 32}\njobs=daily\n"
            f"[job.daily]\nfrequency=daily\nstart=2026-11-01T06:00:00Z\n"
            f"[feed]\njobs=daily\nsource={base}/feed.jsonl\ncontact=http://archive.example/\n"
        )
        yield line


def feeds(line: Line, targets: int) -> None:
    schedules = [{"startDate": "2026-01-01", "frequency": "DAILY"}]
    lines = (
        json.dumps({"id": one, "seeds": [f"http://{one}.example/"], "schedules": schedules}) for one in range(targets)
    )
    (line.config.parent / "feed.jsonl").write_text("\n".join(lines))


def fetch(line: Line, due: str) -> tuple[int, str]:
    done = line.luigi("--module", "tasks.pulse", "pulse.CrawlFeed", "--job", "daily", "--due", due)
    return done.returncode, done.stderr


def launched(line: Line, launch: Launch = RUNNING) -> None:
    """What StartJob leaves once the engine has launched."""
    started, due = layout.key("pulse.Started", launch), layout.due_key(launch.job, DUE)
    line.state.publish(started, Claim(started, facts={"due": DUE}))
    line.state.publish(due, Claim(due, (input_of(line.state, started),), facts={"launch_id": launch.id}))


def back_up(line: Line) -> int:
    return line.luigi("--module", "tasks.state", "state.BackupState", "--date", DAY).returncode


def kept(line: Line) -> list[Path]:
    return sorted((line.folders["store"] / "state" / LAUNCH.job / LAUNCH.id).glob("*"))


def lose_the_state(line: Line) -> None:
    shutil.rmtree(line.folders["state"])
    sentinel.adopt({"state": line.folders["state"]})


def files(folder: Path) -> dict[str, bytes]:
    found = [path for path in folder.rglob("*") if path.is_file() and path.relative_to(folder).parts[0][0] != "."]
    evidence = (path for path in found if path.parent.name != "status" and "status." not in path.name)
    return {str(path.relative_to(folder)): path.read_bytes() for path in evidence}


def test_a_lost_state_is_known_again_and_nothing_is_redone(line: Line) -> None:
    launched(line, LAUNCH)
    assert line.scan() == [0, 0]
    assert back_up(line) == 0
    before = files(line.folders["state"])
    lose_the_state(line)
    told = line.warcmill("restore")
    assert told.returncode == 0, told.stdout
    assert files(line.folders["state"]) == {path: data for path, data in before.items() if "/attempts/" not in path}
    scan = line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", DAY)
    assert "begins" not in scan.stderr
    assert line.warcmill("reconcile", DAY).returncode == 0
    assert line.warcmill("restore").returncode == 0


def test_the_same_markers_are_kept_once_and_changed_ones_beside_them(done: Line) -> None:
    assert [back_up(done), back_up(done)] == [0, 0]
    assert len(kept(done)) == 1
    words = ["--job", LAUNCH.job, "--launch-id", LAUNCH.id, "--stage", "final"]
    assert done.luigi("--module", "tasks.files", "files.ReadBack", *words).returncode == 0
    assert back_up(done) == 0
    assert len(kept(done)) == 2
    lose_the_state(done)
    assert done.warcmill("restore").returncode == 0
    assert done.state.read(layout.key("files.ReadBack", LAUNCH, stage=FINAL))


def test_versions_and_decisions_are_known_again(done: Line) -> None:
    state = FileStore("state", done.folders["state"])
    hidden_list.decide(
        state, lambda: FileStore("store", done.folders["store"]), "example,b", "order of a court", hides=True
    )
    listed = VersionList("cdx", 1, 1, hidden_list.read(state).hiding, (), "2016-10-21T03:00:07Z")
    Lists(state, "cdx").commit(listed)
    assert [back_up(done), back_up(done)] == [0, 0]
    lose_the_state(done)
    told = done.warcmill("restore")
    assert (told.returncode, "versions, decisions and editions: 2 files restored" in told.stdout) == (0, True), (
        told.stdout
    )
    assert Lists(state, "cdx").read(1) == listed
    assert hidden_list.read(state).entries == {"example,b": "order of a court"}
    path = done.folders["state"] / "decisions/access/000001.json"
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"example,b", b"example,c"))
    told = done.warcmill("restore")
    assert (told.returncode, "000001.json differs from the backup" in told.stdout) == (1, True), told.stdout
    path.rename(path.with_name("000002.json"))
    assert back_up(done) == 30
    assert done.warcmill("restore").returncode == 0


def test_a_launch_that_is_not_closed_is_left_for_later(line: Line) -> None:
    assert line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", DAY).returncode == 0
    assert back_up(line) == 0
    assert kept(line) == []


def test_nothing_in_the_state_is_changed_and_a_difference_is_named(done: Line) -> None:
    assert back_up(done) == 0
    marker = done.state.store.real(layout.marker_path(layout.key("output.ProcessOutputs", LAUNCH)))
    marker.write_bytes(b"another")
    told = done.warcmill("restore")
    assert told.returncode == 1
    assert marker.name in told.stdout
    assert marker.read_bytes() == b"another"


def test_a_damaged_backup_is_named_and_restores_nothing(done: Line) -> None:
    assert back_up(done) == 0
    (zipped,) = kept(done)
    data = bytearray(zipped.read_bytes())
    data[len(data) // 3] ^= 1
    zipped.chmod(0o644)
    zipped.write_bytes(data)
    lose_the_state(done)
    told = done.warcmill("restore")
    assert told.returncode == 1
    assert f"{LAUNCH}: 0 files restored" in told.stdout


def test_what_is_no_backup_is_named_and_the_rest_is_restored(done: Line) -> None:
    assert back_up(done) == 0
    (zipped,) = kept(done)
    store = done.folders["store"] / "state"
    strays = ["README", f"{LAUNCH.job}/notes.txt", f"{LAUNCH.job}/{LAUNCH.id}/{zipped.name}.md5"]
    for path in strays:
        (store / path).write_text("by hand")
    for path in ("_by-hand", "lost+found", f"{LAUNCH.job}/20261399000000", f"{LAUNCH.job}/due.now"):
        strays.append(path)
        (store / path).mkdir()
    strays += [f"{LAUNCH.job}/{LAUNCH.id}/copies", f"{LAUNCH.job}/{LAUNCH.id}/link.zip"]
    (store / strays[-2]).mkdir()
    (store / strays[-1]).symlink_to("/dev/zero")
    newer = zipped.with_name("newer.zip")
    newer.write_bytes(of_a_newer_warcmill(zipped))
    (store / LAUNCH.job / LAUNCH.id / ".x.zip.host.boot.1.0123abcd.tmp").write_bytes(b"half")
    lose_the_state(done)
    told = done.warcmill("restore")
    assert told.returncode == 1
    assert (told.stderr, "half" in told.stdout, ".tmp" in told.stdout) == ("", False, False)
    assert all(f"state/{path}" in told.stdout for path in [*strays, f"{LAUNCH.job}/{LAUNCH.id}/newer.zip"]), told.stdout
    assert ": 0 files restored" not in told.stdout
    assert done.warcmill("reconcile", DAY).returncode == 0


def of_a_newer_warcmill(zipped: Path) -> bytes:
    """The same backup, with evidence of a schema that is still to come."""
    data = io.BytesIO()
    with zipfile.ZipFile(zipped) as old, zipfile.ZipFile(data, "w") as new:
        *names, last = old.namelist()
        for name in names:
            new.writestr(name, old.read(name))
        body = b"".join(old.read(last).splitlines(keepends=True)[:-1]).replace(b'"schema": 1', b'"schema": 9')
        new.writestr(last, body + hashlib.sha512(body).hexdigest().encode() + b"\n")
    return data.getvalue()


def test_a_due_crawl_is_known_again_with_its_feed_and_not_started_twice(fed: Line) -> None:
    feeds(fed, 5)
    assert fetch(fed, DUE)[0] == 0
    launched(fed)
    assert back_up(fed) == 0
    before = files(fed.folders["state"])
    assert len(before) == 4, "00.feed, 00.due, 01.started and the feed itself"
    lose_the_state(fed)
    told = fed.warcmill("restore")
    assert told.returncode == 0, told.stdout
    assert told.stdout == f"daily/due.{DUE}: 4 files restored\n0 launches and 1 due crawl have backups\n"
    assert files(fed.folders["state"]) == before
    again = fed.warcmill("pulse", "start", "daily", "--due", DUE)
    assert (again.returncode, again.stderr) == (0, ""), "the engine, which is not there, is not asked"
    assert f"launch {RUNNING.id} was started" in again.stdout
    feeds(fed, 2)
    code, said = fetch(fed, "20261122060000")
    assert code == 30
    assert "the feed has 2 targets, less than half of the 5 it had" in said


def test_a_feed_that_no_launch_has_yet_is_kept_and_the_same_once(fed: Line) -> None:
    feeds(fed, 1)
    assert fetch(fed, DUE)[0] == 0
    folder = fed.folders["store"] / "state" / "daily" / f"due.{DUE}"
    for number in (1, 1):
        assert back_up(fed) == 0
        assert len(list(folder.iterdir())) == number
    launched(fed)
    assert back_up(fed) == 0
    assert len(list(folder.iterdir())) == 2
    lose_the_state(fed)
    assert "4 files restored" in fed.warcmill("restore").stdout


def test_a_backup_restores_nothing_of_another_job(fed: Line) -> None:
    feeds(fed, 1)
    assert fetch(fed, DUE)[0] == 0
    launched(fed)
    assert back_up(fed) == 0
    store = fed.folders["store"] / "state"
    (store / "daily").rename(store / "weekly")
    lose_the_state(fed)
    told = fed.warcmill("restore")
    assert told.returncode == 1
    assert "this backup was tampered with" in told.stdout
    assert files(fed.folders["state"]) == {}


def test_the_due_crawls_of_a_day_are_those_of_its_folder(fed: Line) -> None:
    feeds(fed, 1)
    for due in (DUE, "20261120235959", "20261122000000"):
        assert fetch(fed, due)[0] == 0
    days = {
        day.isoformat(): list(backup.due_crawls(fed.state, day))
        for day in (date(2026, 11, number) for number in (20, 21, 22, 23))
    }
    assert [len(one) for one in days.values()] == [1, 1, 1, 0]
    assert days[DAY] == [backup.DueCrawl("daily", DUE)]


def test_an_interval_backs_up_all_of_its_days(fed: Line) -> None:
    feeds(fed, 1)
    for due in (DUE, "20261120235959", "20261122000000"):
        assert fetch(fed, due)[0] == 0
    assert fed.scan() == [0, 0]
    words = ("--module", "tasks.state", "state.BackupState")
    done = fed.luigi(*words, "--date-interval", f"2026-11-20-{DAY}")
    assert done.returncode == 0, done.stderr
    assert "first day 2026-11-20, last day 2026-11-20 (2026-11-21 is not in it)" in done.stderr
    assert kept(fed) == []
    assert fed.luigi(*words, "--date-interval", "2026-11").returncode == 0
    assert len(kept(fed)) == 1
    assert len(list((fed.folders["store"] / "state" / "daily").glob("due.*"))) == 3
    for wrong in ([], ["--date", DAY, "--date-interval", "2026-11"]):
        done = fed.luigi(*words, *wrong)
        assert done.returncode == 40
        assert "give either --date DAY or --date-interval INTERVAL" in done.stderr
