"""Green over nothing: roots without a launch, a store that is away, crawls that are silent or got nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from launches.engine import LAUNCH, Engine, line_of
from line import DAY, Line, line_at
from records.warcs import http, record, warc_gz, warcinfo
from sites.receivers import web_server

from warcmill.layout import SENTINEL

OUTPUT, FILES = ("tasks.output", "output.ScanForOutputs"), ("tasks.files", "files.ScanForOutputFiles")
REPORTS = ("tasks.reports", "reports.ScanForReports")
DAYS = "2016-10"


def scan(line: Line, which: tuple[str, str]) -> tuple[int, str]:
    done = line.luigi("--module", *which, "--date-interval", DAYS)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def built(tmp_path: Path) -> tuple[Line, Engine]:
    """A line around a launch that is built by hand."""
    line = line_at(tmp_path)
    engine = Engine(tmp_path)
    engine.folders = line.folders
    return line, engine


def test_init_makes_no_folder_of_an_engine_unasked(line: Line) -> None:
    base, gone = line.config.parent / "new", line.config.parent / "not-mounted"
    for option in ("--output", "--jobs"):
        done = line.warcmill("init", str(base), option, str(gone))
        assert (done.returncode, "--create" in done.stderr) == (4, True)
        assert not base.exists()
    done = line.warcmill("init", str(base), "--output", str(gone), "--jobs", str(gone / "jobs"), "--create")
    assert done.returncode == 0, done.stderr
    assert (gone / "jobs" / SENTINEL).exists()


def test_launches_of_the_other_layout_are_reported_by_every_verb_and_fail_the_scans(line: Line) -> None:
    line.config.write_text(line.config.read_text().replace("output_layout=kind-first", "output_layout=job-first"))
    key = "output_layout=kind-first"
    found = line.warcmill("reconcile", "2015")
    assert (found.returncode, key in found.stderr) == (1, True)
    assert "others are elsewhere" in found.stdout
    assert any(key in text for text in json.loads(line.warcmill("reconcile", "2015", "--json").stdout)["bare"])
    assert key in line.warcmill("status", "2015").stderr
    for which in (OUTPUT, FILES):
        code, told = scan(line, which)
        assert (code, key in told) == (30, True)


def test_an_empty_root_is_reported_and_is_no_failure(tmp_path: Path) -> None:
    line = line_at(tmp_path)
    assert line.warcmill("reconcile", DAYS).returncode == 0
    for which in (OUTPUT, FILES):
        code, told = scan(line, which)
        assert (code, "root 'output'" in told, "holds no launch at all" in told) == (0, True, True)
    levels = {check["name"]: check["level"] for check in json.loads(line.warcmill("doctor", "--json").stdout)["checks"]}
    assert levels["launches"] == "warn"


def test_a_files_scan_and_why_see_that_the_store_is_away(built: tuple[Line, Engine]) -> None:
    line, engine = built
    engine.job_log(f"RUNNING {LAUNCH.id}")
    engine.logs()
    (line.folders["store"] / SENTINEL).unlink()
    code, told = scan(line, FILES)
    assert (code, "root 'store'" in told) == (30, True)
    assert scan(line, OUTPUT)[0] == 0
    done = line.warcmill("why", LAUNCH.job, LAUNCH.id)
    assert (done.returncode, "root 'store'" in done.stderr) == (4, True)
    assert "nothing is missing that could be there by now; but the store does not answer" in done.stdout


def test_a_launch_that_runs_shows_its_age_and_its_last_sign_and_is_reported_when_silent(
    built: tuple[Line, Engine],
) -> None:
    line, engine = built
    engine.job_log(f"RUNNING {LAUNCH.id}")
    engine.log("progress-statistics.log", b"2016-10-20T20:20:00Z   1  2\n")
    sign = "(2016-10-20T20:20:00Z, progress-statistics.log)"
    assert sign in line.warcmill("status", DAYS).stdout
    why = line.warcmill("why", LAUNCH.job, LAUNCH.id)
    assert (why.returncode, sign in why.stdout) == (0, True)
    (shown,) = json.loads(line.warcmill("status", DAYS, "--json").stdout)["launches"]
    assert shown["vitals"]["last_sign"] == "2016-10-20T20:20:00Z"
    with web_server() as posts:
        with line.config.open("a") as file:
            file.write(f"[notice]\nwebhook=http://127.0.0.1:{posts.port}/hook?token=s3cret\n")
        assert [scan(line, which)[0] for which in (OUTPUT, FILES)] == [0, 0]
    ((_, _, told),) = posts.posts
    (trouble,) = told["troubles"]
    assert (trouble["kind"], trouble["launch"]) == ("silent", str(LAUNCH))
    assert f"warcmill close {LAUNCH.job} {LAUNCH.id} --reason TEXT" in trouble["why"]
    with line.config.open("a") as file:
        file.write("silent_hours=0\n")
    code, said = scan(line, OUTPUT)
    assert (code, "silent" in said) == (0, False)


def failed(uri: str, status: int) -> str:
    return line_of(uri, None, status=status)


def test_a_crawl_whose_seeds_all_failed_is_a_finding_that_can_be_accepted(built: tuple[Line, Engine]) -> None:
    line, engine = built
    engine.finish()
    engine.logs(failed("dns:a.example", 1), failed("http://a.example/", -2), failed("http://b.example/", 503))
    engine.warc("a.warc.gz", warc_gz(warcinfo()))
    assert [scan(line, which)[0] for which in (OUTPUT, FILES, REPORTS)] == [0, 0, 0]
    gaps = json.loads(line.warcmill("reconcile", DAYS, "--json").stdout)["launches"][0]["gaps"]
    (nothing,) = [gap for gap in gaps if gap["kind"] == "got nothing"]
    assert nothing["name"] == "crawl"
    summary = json.loads((line.folders["state"] / DAYS / "status.2016-10-19.json").read_text())
    assert "got nothing" in [one["kind"] for one in summary["launches"][0]["troubles"]]
    words = [gap["name"] for gap in gaps]
    assert (
        line.warcmill("accept", *words, "--launch", LAUNCH.job, LAUNCH.id, "--reason", "DNS was down").returncode == 0
    )
    assert line.warcmill("reconcile", DAYS).returncode == 0


@pytest.mark.parametrize("named", [True, False])
def test_a_crawl_with_a_page_or_with_a_warc_that_no_log_names_got_something(
    built: tuple[Line, Engine], named: bool
) -> None:
    line, engine = built
    engine.finish()
    engine.logs(*([line_of("http://a.example/", "a.warc.gz"), failed("http://b.example/", -2)] if named else []))
    engine.warc("a.warc.gz", warc_gz(warcinfo(), record(block=http(b"page", b"Content-Length: 4"))))
    assert [scan(line, which)[0] for which in (OUTPUT, FILES, REPORTS)] == [0, 0, 0]
    gaps = json.loads(line.warcmill("reconcile", DAYS, "--json").stdout)["launches"][0]["gaps"]
    assert [gap["kind"] for gap in gaps] == ([] if named else ["unnamed"])


def test_doctor_names_keys_that_nothing_reads_and_the_key_of_a_wrong_value(line: Line) -> None:
    good = line.config.read_text()
    line.config.write_text(
        good.replace("retire=false", "retire=false\nhdfs_blocksize=1").replace(
            "check_complete_on_run=true", "check_complete_on_run=true\nkeep_alife=true"
        )
        + "[notic]\nmail_to=x\n[my.tasks]\na=b\n[job.daily]\nfrequency=daily\nstart=2026-01-01T00:00:00Z\n"
    )
    checks = json.loads(line.warcmill("doctor", "--json").stdout)["checks"]
    found = {
        check["text"].partition(":")[0]: (check["level"], check["todo"])
        for check in checks
        if check["name"] == "luigi.cfg"
    }
    assert found == {
        "[files] hdfs_blocksize": ("fail", "did you mean hdfs_block_size?"),
        "[notic]": ("fail", "did you mean [notice]?"),
        "[worker] keep_alife": ("warn", "did you mean keep_alive?"),
        "[my.tasks]": ("warn", "remove it, unless your own tasks read it"),
    }
    line.config.write_text(good.replace("hdfs_block_size=134217728", "hdfs_block_size=128M"))
    done = line.warcmill("doctor", "--json")
    (fault,) = [check["text"] for check in json.loads(done.stdout)["checks"] if check["level"] == "fail"]
    assert (done.returncode, fault.startswith("configuration, [files] hdfs_block_size: ")) == (3, True)
    line.config.write_text(f"{good}[engine.a]\noutptu=/x\njobs=daily\n")
    assert "did you mean output?" in line.warcmill("doctor").stdout
    line.config.write_text(f"{good}[files]\n")
    done = line.warcmill("doctor")
    assert (done.returncode, "section 'files' already exists" in done.stderr) == (3, True)


def test_a_job_behind_a_link_goes_through_the_line_and_nothing_of_it_is_retired(line: Line) -> None:
    disk = line.config.parent / "disk"
    disk.mkdir()
    for kind in ("warcs", "logs"):
        job = line.folders["output"] / kind / "weekly"
        job.rename(disk / kind)
        job.symlink_to(disk / kind)
    done = line.luigi("--module", *OUTPUT, "--date-interval", DAY)
    assert (done.returncode, "follow_links" in done.stderr) == (30, True)
    reconciled = line.warcmill("reconcile", DAY)
    assert (reconciled.returncode, "follow_links" in reconciled.stdout) == (4, True)
    text = line.config.read_text().replace("retire=false", "retire=true")
    line.config.write_text(text.replace("[warcmill]\n", f"[warcmill]\nfollow_links={disk}\n"))
    before = sorted(disk.rglob("*"))
    assert line.scan() == [0, 0]
    assert line.scan() == [0, 0]
    assert sorted(disk.rglob("*")) == before
    assert line.warcmill("reconcile", DAY).returncode == 0
    checks = json.loads(line.warcmill("doctor", "--json").stdout)["checks"]
    assert [check["text"] for check in checks if check["name"] == "follow_links"] == ["2 symbolic links are followed"]
    assert not list(line.folders["state"].rglob("files.retired.*"))
    assert list(line.folders["state"].glob("*/*/*/files.read-back.*"))


def test_a_link_that_is_not_followed_is_reported_by_the_scan_reconcile_and_doctor(done: Line) -> None:
    link = done.folders["output"] / "warcs" / "elsewhere"
    link.symlink_to("/etc")
    why = "a link to /etc, which lies below no folder"
    assert why in done.luigi("--module", *OUTPUT, "--date-interval", DAY).stderr
    reconciled = done.warcmill("reconcile", DAY)
    assert (reconciled.returncode, why in reconciled.stdout) == (0, True)
    assert why in done.warcmill("doctor").stdout
