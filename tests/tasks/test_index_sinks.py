"""[index] cdx_server from the command line, on the sample, with a double of OutbackCDX."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import preloaded
import pytest
from indexing.outbackcdx_double import Double, serving
from line import without_dead_seed, without_index
from sample import JOB, LAUNCH_ID, lay_out

from commands.main import main
from warcmill import layout
from warcmill.model import FINAL, Launch

DAY = ("--date-interval", "2026-11-21")
LAUNCH = ("--job", JOB, "--launch-id", LAUNCH_ID)
OK, CONFIGURATION, FAILED, SCHEDULING = 0, 3, 30, 35


@pytest.fixture
def double() -> Iterator[Double]:
    with serving() as made:
        yield made


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, double: Double) -> Path:
    """A new line around the sample, with a CDX server; its folder."""
    crawl, base = without_dead_seed(lay_out(tmp_path / "crawl")), tmp_path / "line"
    assert main(["init", str(base), "--output", str(crawl), "--jobs", str(crawl / "jobs")]) == OK
    without_index(base / "luigi.cfg")
    monkeypatch.setenv("LUIGI_CONFIG_PATH", str(base / "luigi.cfg"))
    with (base / "luigi.cfg").open("a") as file:
        file.write(f"\n[index]\nsince=2026-11-01\ncdx_server={double.url}/main\n")
    return base


@pytest.fixture
def stored(line: Path) -> Path:
    """The same, assembled and stored."""
    assert luigi("output", "ScanForOutputs")[0] == OK
    assert luigi("files", "ScanForOutputFiles")[0] == OK
    return line


def luigi(module: str, task: str, words: tuple[str, ...] = DAY) -> tuple[int, str]:
    """Exit code, and what was printed."""
    done = preloaded.run("luigi", "--module", f"tasks.{module}", f"{module}.{task}", *words, env=os.environ)
    return done.returncode, done.stdout + done.stderr


def warcmill(*words: str) -> tuple[int, str]:
    """Exit code, and what was printed."""
    done = preloaded.run("commands.main", *words, env=os.environ)
    return done.returncode, done.stdout + done.stderr


def verified(base: Path) -> Path:
    return base / "state" / layout.marker_path(layout.key("index.VerifyCdx", Launch(JOB, LAUNCH_ID), stage=FINAL))


def test_a_server_gets_every_version_and_one_that_is_down_gets_it_later(stored: Path, double: Double) -> None:
    code, told = luigi("index", "FollowCrawl", LAUNCH)
    assert (code, f"{double.url}/main: 2" in told) == (OK, True), told
    assert {fields["filename"] for fields in double.collections["main"].values()} == {f"provisional/{JOB}/{LAUNCH_ID}"}
    double.fault = "killed before"
    code, told = luigi("index", "ScanForIndexing")
    assert (code, "of 1 WARCs, 1 wait for the next scan" in told) == (FAILED, True), told
    assert "cdx: version 1 is the current one" in told
    assert not verified(stored).exists()
    code, told = warcmill("doctor")
    assert (code, f"the CDX server {double.url}/main is unavailable" in told) == (1, True), told
    double.fault = ""
    code, told = luigi("index", "ScanForIndexing")
    assert (code, "cdx: version 1 has all: no new version" in told) == (OK, True), told
    assert len(double.collections["main"]) > 250  # captures of one key and second are one record
    assert {fields["filename"].split("/")[0] for fields in double.collections["main"].values()} == {JOB}
    run = json.loads(verified(stored).read_bytes().rpartition(b"\n")[0].rpartition(b"\n")[0])["run"]
    (folder,) = (stored / "index/sinks").iterdir()
    assert run["tools"][folder.name] == f"the CDX server {double.url}/main"
    code, told = warcmill("doctor", "--json")
    assert f"{double.url}/main answers; its acknowledgements are in sinks/cdx-" in told, told
    posts = len(double.posts)
    assert luigi("index", "ScanForIndexing")[0] == OK
    assert len(double.posts) == posts


def test_hidden_captures_leave_the_server_and_a_wiped_one_gets_all_again(stored: Path, double: Double) -> None:
    assert luigi("index", "ScanForIndexing")[0] == OK
    assert warcmill("versions", "hide", "example,docs", "--reason", "order of a court")[0] == OK
    assert luigi("index", "ScanForIndexing")[0] == OK
    shown = dict(double.collections["main"])
    assert not [url for fields in shown.values() if re.match("(https?://|dns:)docs.example", url := fields["url"])]
    double.collections.clear()
    shutil.rmtree(stored / "index/sinks")
    assert warcmill("redo", JOB, LAUNCH_ID, "verify-cdx", "final")[0] == OK
    assert luigi("index", "ScanForIndexing")[0] == OK
    assert double.collections["main"] == shown
    assert verified(stored).exists()


def test_captures_that_the_server_lost_are_named_and_the_printed_command_sends_them_again(
    stored: Path, double: Double
) -> None:
    assert luigi("index", "ScanForIndexing")[0] == OK
    few = "from warcmill.markers import outside_copies as o; o.MOST_ASKED = 3; from commands.main import main; main()"
    told = preloaded.run("-c", few, "verify", "--outside", "2026-11-21", env=os.environ).stdout
    assert re.search(r" handed over; \d+ more captures, of WARCs with over 3, not asked for\n", told), told
    code, told = warcmill("verify", "--outside", "2026-11-21")
    assert (code, " captures looked at: all as they were handed over" in told) == (OK, True), told
    kept = dict(double.collections["main"])
    for key in [key for key, fields in kept.items() if fields["url"].startswith("dns:docs")]:
        del double.collections["main"][key]
    (lost,) = {*kept} - {*double.collections["main"]}
    code, told = warcmill("verify", "--outside", "2026-11-21")
    rows = told.splitlines()
    assert (code, rows[0].startswith(f"{JOB}/{LAUNCH_ID}: {JOB}/{LAUNCH_ID}/")) == (1, True), told
    assert rows[0].endswith(f".warc.gz at the CDX server {double.url}/main")
    assert re.match(r"    1 of \d+ captures are missing or differ; first dns:docs\.example ", rows[1])
    assert rows[1].endswith(": found 0 times instead of found once")
    remove, _, again = rows[2].removeprefix("    -> ").partition(" && ")
    assert again == "warcmill scan 2026-11-21"
    subprocess.run(remove.split(), check=True)
    code, told = warcmill("verify", "--outside", "2026-11-21")
    assert (code, "not acknowledged; run 'warcmill scan'" in told) == (1, True), told
    assert luigi("index", "ScanForIndexing")[0] == OK
    assert lost in double.collections["main"]
    assert warcmill("verify", "--outside", "2026-11-21")[0] == OK
    double.fault = "killed before"
    code, told = warcmill("verify", "--outside", "2026-11-21")
    assert (code, told.splitlines()[-1]) == (4, "1 launch: nothing looked at: 1 place does not answer"), told
    assert f"the CDX server {double.url}/main is unavailable" in told
    assert warcmill("status", "2026-11-21")[1].endswith(": nothing looked at: 1 place does not answer\n")


def test_captures_that_must_not_be_shown_and_are_there_are_named(stored: Path, double: Double) -> None:
    assert luigi("index", "ScanForIndexing")[0] == OK
    before = dict(double.collections["main"])
    assert warcmill("versions", "hide", "example,docs", "--reason", "order of a court")[0] == OK
    assert luigi("index", "ScanForIndexing")[0] == OK
    assert warcmill("verify", "--outside", "2026-11-21")[0] == OK
    double.collections["main"] = before
    code, told = warcmill("verify", "--outside", "2026-11-21")
    assert (code, "which must not be shown: 1 instead of 0" in told) == (1, True), told


def test_a_url_that_is_none_is_refused_before_anything_is_done(line: Path, double: Double) -> None:
    config = line / "luigi.cfg"
    config.write_text(config.read_text().replace(f"{double.url}/main", "http://me:s3cret@cdx.example/main"))
    code, told = warcmill("status", "2026-11-21")
    assert (code, "[index] cdx_server: is http://cdx.example/main; it must be" in told) == (CONFIGURATION, True), told
    code, told = warcmill("doctor")
    assert (code, "s3cret" in told, "cdx server" in told) == (1, False, True), told
    config.write_text(config.read_text().replace("since=2026-11-01", "").replace("me:s3cret@", ""))
    assert "the index is off: since is not set" in warcmill("doctor")[1]
    config.write_text(config.read_text().replace("http://cdx.example/main", ""))
    code, told = luigi("index", "FollowCrawl", LAUNCH)
    assert (code, "[index] cdx_server: is not set" in told) == (SCHEDULING, True), told
