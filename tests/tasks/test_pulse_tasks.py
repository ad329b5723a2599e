"""Which crawls are asked for: due times, catching up, month ends; and what luigi.cfg may say of engines and jobs."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import luigi
import pytest
from configured import configured
from line import Line, line_at
from luigi.date_interval import Custom
from luigi.task_register import Register

from tasks.config import engines, feed
from tasks.config.settings import settings
from tasks.params import CheckpointParameter, DueParameter, LaunchesParameter, NumberParameter
from tasks.pulse import CheckpointJob, ScanForLaunches, StartJob
from tasks.summary import ScanEnding
from warcmill import layout
from warcmill.base import clock
from warcmill.crawl.engine import WarcmillEngine
from warcmill.crawl.launch.folders import Places
from warcmill.errors import BadConfig, BadInput, Unsettled
from warcmill.markers.attempts import Attempts
from warcmill.markers.claim import Claim

ENGINE = """
[engine.first]
kind=heritrix
url=https://127.0.0.1:{port}/engine
user=admin
password=${{ENGINE_PASSWORD}}
certificate={pin}
jobs=daily, monthly
"""
PIN = "00" * 32


@pytest.fixture
def line(tmp_path: Path, closed_port: int, monkeypatch: pytest.MonkeyPatch) -> Line:
    made = line_at(tmp_path)
    monkeypatch.setenv("ENGINE_PASSWORD", "a%secret")
    monkeypatch.setattr(atexit, "register", lambda _: None)  # what a scan reports when its process ends
    configure(monkeypatch, made, ENGINE.format(port=closed_port, pin=PIN))
    return made


def configure(monkeypatch: pytest.MonkeyPatch, line: Line, more: str) -> None:
    line.config.write_text(line.config.read_text() + more)
    configured(monkeypatch, line.config)


def at(monkeypatch: pytest.MonkeyPatch, now: str) -> None:
    monkeypatch.setattr(clock, "stamp", lambda: now)


def job(frequency: str, start: str, name: str = "daily") -> str:
    return f"\n[job.{name}]\nfrequency={frequency}\nstart={start}\n"


def scan(first: str, end: str) -> ScanForLaunches:
    Register.clear_instance_cache()  # else Luigi gives back the scan of before, which has listed already
    return ScanForLaunches(date_interval=Custom.parse(f"{first}-{end}"))


def asked(first: str = "2026-11-20", end: str = "2026-11-23") -> list[tuple[str, str]]:
    """The starts that a scan of these days requires."""
    return [(task.job, task.due) for task in scan(first, end).requires() if isinstance(task, StartJob)]


def launched(line: Line, due: str, name: str = "daily") -> None:
    key = layout.due_key(name, due)
    line.state.publish(key, Claim(key, facts={"launch_id": due}))


def test_what_is_due_is_asked_for_until_it_has_its_marker(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, line, job("daily", "2026-01-01T06:00:00Z"))
    at(monkeypatch, "20261121055959")
    launched(line, "20261120060000")
    assert asked() == []
    at(monkeypatch, "20261121060000")
    assert asked() == [("daily", "20261121060000")]
    launched(line, "20261121060000")
    assert asked() == []


def test_of_several_missed_only_the_newest_is_launched_and_the_others_are_named(
    line: Line, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    configure(monkeypatch, line, job("daily", "2026-01-01T06:00:00Z"))
    launched(line, "20261118060000")
    at(monkeypatch, "20261121070000")
    assert asked("2026-11-18") == [("daily", "20261121060000")]
    assert "2 due times had no launch" in caplog.text
    assert "2026-11-19T06:00:00Z, 2026-11-20T06:00:00Z" in caplog.text
    assert "2026-11-18T" not in caplog.text


def test_an_older_one_is_not_launched_after_a_newer_one(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, line, job("daily", "2026-01-01T06:00:00Z"))
    launched(line, "20261121060000")
    at(monkeypatch, "20261121061000")
    assert asked() == []


@pytest.mark.parametrize(("now", "is_asked"), [("20261123060000", True), ("20261123060001", False)])
def test_catching_up_ends_with_its_window(
    line: Line, monkeypatch: pytest.MonkeyPatch, now: str, is_asked: bool
) -> None:
    configure(monkeypatch, line, job("weekly", "2026-11-21T06:00:00Z") + "\n[pulse]\ncatch_up_hours=48\n")
    at(monkeypatch, now)
    assert asked("2026-11-20", "2026-11-24") == ([("daily", "20261121060000")] if is_asked else [])


@pytest.mark.parametrize("hours", ["0", "-1", "many"])
def test_a_window_that_is_none_is_refused(line: Line, monkeypatch: pytest.MonkeyPatch, hours: str) -> None:
    configure(monkeypatch, line, f"\n[pulse]\ncatch_up_hours={hours}\n")
    with pytest.raises(BadConfig, match="catch_up_hours"):
        engines.catch_up()


@pytest.mark.parametrize(
    ("first", "end", "due"),
    [
        ("2027-02-27", "2027-03-02", "20270228060000"),
        ("2028-02-27", "2028-03-02", "20280229060000"),
        ("2027-03-30", "2027-04-01", "20270331060000"),
        ("2027-04-29", "2027-05-01", "20270430060000"),
    ],
)
def test_a_month_that_lacks_the_day_is_due_on_its_last(
    line: Line, monkeypatch: pytest.MonkeyPatch, first: str, end: str, due: str
) -> None:
    configure(monkeypatch, line, job("monthly", "2026-12-31T06:00:00Z", "monthly"))
    at(monkeypatch, due[:8] + "070000")
    assert asked(first, end) == [("monthly", due)]


def test_only_due_times_of_the_interval_are_looked_at(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, line, job("daily", "2026-01-01T23:30:00Z"))
    at(monkeypatch, "20261121001000")
    assert asked("2026-11-21", "2026-11-22") == []
    assert asked("2026-11-20", "2026-11-22") == [("daily", "20261120233000")]


def test_a_wrong_section_does_not_hold_up_the_others(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, line, job("often", "2026-01-01") + job("daily", "2026-01-01T06:00+01:00", "monthly"))
    at(monkeypatch, "20261121060000")
    found = scan("2026-11-20", "2026-11-23")
    assert [str(task.due) for task in found.requires() if isinstance(task, StartJob)] == ["20261121050000"]
    with pytest.raises(Unsettled, match=r"\[job.daily\] frequency: 'often' is not one of "):
        found.run()


def test_an_engine_that_does_not_answer_fails_the_start_and_reports_it(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, line, job("daily", "2026-01-01T06:00:00Z"))
    at(monkeypatch, "20261121060000")
    assert not luigi.build([scan("2026-11-20", "2026-11-23")], local_scheduler=True, no_lock=True)
    (attempt,) = Attempts(line.state, layout.due_key("daily", "20261121060000")).earlier()
    assert "Connection refused" in attempt.error


def test_parameters_are_the_models() -> None:
    assert NumberParameter().parse("00012") == 12
    for text in ("0", "-1", "100000", "x", "\u0661"):
        with pytest.raises(BadInput, match="checkpoint's number"):
            NumberParameter().parse(text)
    with pytest.raises(BadInput):
        DueParameter().parse("20261121")
    for text in ("daily", "daily/20161019234428,", "../20161019234428", "daily/20161019234428/", "daily/2016"):
        with pytest.raises(BadInput):
            LaunchesParameter().parse(text)
    assert CheckpointParameter().parse("") == LaunchesParameter().parse("") == ""
    for text in ("final", "cp1", "../cp00001-20161020204551"):
        with pytest.raises(BadInput):
            CheckpointParameter().parse(text)


def test_a_checkpoints_number_is_in_its_marker_with_five_digits(line: Line) -> None:
    task = CheckpointJob(job="daily", launch_id="20261121060001", number=7)
    assert task.output().path == "2026-11/daily/20261121060001/01.jobs.daily.20261121060001.checkpointed.00007"


# What luigi.cfg says.


def test_the_engine_of_a_job_is_the_one_that_names_it(line: Line) -> None:
    engine = engines.engine_of("monthly")
    engine.close()
    assert engines.has_engine("daily")
    assert not engines.has_engine("weekly")
    with pytest.raises(BadConfig, match=r"\[engine.NAME\] jobs: no engine lists job 'weekly'"):
        engines.engine_of("weekly")
    with pytest.raises(BadConfig, match="did you mean 'monthly'"):
        engines.engine_of("montly")


def test_a_job_of_two_engines_is_refused(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, line, "\n[engine.second]\nkind=heritrix\njobs=daily\n")
    with pytest.raises(BadConfig, match=r"\[engine.second\] jobs: job 'daily' is listed in \[engine.first\] too"):
        engines.engine_of("daily")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("password=${ENGINE_PASSWORD}", "password=secret", "password: may not be in luigi.cfg"),
        ("password=${ENGINE_PASSWORD}", "", "password: is not set"),
        ("password=${ENGINE_PASSWORD}", "password=${NO_SUCH}", "nonexisting environment variable NO_SUCH"),
        ("password=${ENGINE_PASSWORD}", "password_file=/no/such/file", "password_file: .*No such file"),
        ("user=admin", "user=admin\npassword_file=/no/such/file", "password_file: is set beside password"),
        ("kind=heritrix", "kind=wget", "kind: is wget"),
        ("user=admin", "", "user: is not set"),
        ("user=admin", "user=admin\nusr=admin", "usr: there is no such key"),
        ("jobs=daily, monthly", "jobs=daily, ../x", "jobs: ../x: not a job name"),
        ("https://", "http://", "url"),
        (PIN, "/no/such/file.pem", "certificate"),
    ],
)
def test_a_section_that_cannot_work_is_named_with_its_key(
    line: Line, monkeypatch: pytest.MonkeyPatch, old: str, new: str, said: str
) -> None:
    text = line.config.read_text()
    assert old in text
    line.config.write_text(text.replace(old, new))
    configure(monkeypatch, line, "")
    with pytest.raises(BadConfig, match=said):
        engines.engine_of("daily")


OWN = "\n[engine.own]\nkind=warcmill\njobs=news\n"


def test_the_built_in_crawler_needs_no_url(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, line, f"{OWN}allow_private=10.0.0.0/8, fd00::/8\n")
    engine = engines.engine_of("news")
    assert isinstance(engine, WarcmillEngine)
    assert engine.places == Places(line.folders["output"], line.folders["jobs"])
    assert engines.has_engine("news")
    assert engines.crawled(engines.WARCMILL) == ("news",)
    assert engine.look("news").launch_id == ""


def test_a_kind_that_there_is_not_is_named_also_without_a_url(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, line, OWN.replace("warcmill", "warcmil"))
    with pytest.raises(BadConfig, match=r"\[engine.own\] kind: is warcmil; heritrix or warcmill"):
        engines.engine_of("news")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("url=https://127.0.0.1:8443/engine", r"\[engine.own\] url: is not for kind=warcmill"),
        ("password=${ENGINE_PASSWORD}", r"\[engine.own\] password: is not for kind=warcmill"),
        ("output=sftp://crawler/output", r"output: 'sftp://crawler/output' is not a folder"),
        ("allow_private=inside", r"\[engine.own\] allow_private: 'inside'"),
        ("usr=x", r"usr: there is no such key"),
    ],
)
def test_a_key_that_is_not_the_built_in_crawler_s_is_refused(
    line: Line, monkeypatch: pytest.MonkeyPatch, more: str, said: str
) -> None:
    configure(monkeypatch, line, f"{OWN}{more}\n")
    with pytest.raises(BadConfig, match=said):
        engines.engine_of("news")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hopps = 3", "crawl.toml hopps: there is no such key"),
        ("[", r"\[feed\] settings"),
        (None, r"\[feed\] settings"),
    ],
)
def test_settings_that_no_job_can_have_are_refused_before_a_launch_is_stopped(
    line: Line, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None, said: str
) -> None:
    if text is not None:
        (tmp_path / "settings.toml").write_text(text)
    fed = f"[feed]\njobs=news\ncontact=https://archive.example/\nsettings={tmp_path}/settings.toml\n"
    configure(monkeypatch, line, OWN + fed)
    with pytest.raises(BadConfig, match=said):
        feed.refuse_unfit(settings(), "news")


def test_a_password_may_come_from_a_file(line: Line, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret\n")
    text = line.config.read_text().replace("password=${ENGINE_PASSWORD}", f"password_file={tmp_path}/password")
    line.config.write_text(text)
    configure(monkeypatch, line, "")
    engines.engine_of("daily").close()
    assert engines._password("engine.first") == "secret"


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("", r"\[job.daily\]: there is no such section"),
        (job("daily", "tomorrow"), r"\[job.daily\] start: is tomorrow"),
        (job("", "2026-01-01"), r"\[job.daily\] frequency: is not set"),
        (job("daily", "2026-01-01") + "often=true\n", r"\[job.daily\] often: there is no such key"),
    ],
)
def test_a_schedule_that_is_none_is_refused(
    line: Line, monkeypatch: pytest.MonkeyPatch, section: str, said: str
) -> None:
    configure(monkeypatch, line, section)
    with pytest.raises(BadConfig, match=said):
        engines.schedule_of("daily")


def test_a_start_without_an_offset_is_utc(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, line, job("Daily", "2026-01-01T06:00:00.5"))
    assert engines.schedule_of("daily").start == datetime(2026, 1, 1, 6, tzinfo=UTC)


def test_a_start_that_did_not_come_about_is_reported_in_the_scan_s_notice(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, line, job("daily", "2026-01-01T06:00:00Z"))
    at(monkeypatch, "20261121060000")
    endings: list[Callable[[], None]] = []
    monkeypatch.setattr(atexit, "register", endings.append)
    luigi.build([scan("2026-11-20", "2026-11-23")], local_scheduler=True, no_lock=True)
    (ending,) = (tell.__self__ for tell in endings if isinstance(getattr(tell, "__self__", None), ScanEnding))
    (trouble,) = ending._troubles(line.state)
    assert (trouble.launch, trouble.kind, trouble.name) == ("daily", "failed", "00.due.daily.20261121060000")
    assert "Connection refused" in trouble.why
    launched(line, "20261121060000")
    assert list(ending._troubles(line.state)) == []
