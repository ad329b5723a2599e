"""The answer of all jobs: by editions, summaries and markers, whatever of these is missing or damaged."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest
from launches import chain, states
from launches.engine import LAUNCH, Engine, line_of
from msgspec.structs import replace

from warcmill import layout
from warcmill.audit import day_summary
from warcmill.audit.answers import health, job_list
from warcmill.audit.answers.job_list import ListedJob
from warcmill.audit.answers.line import AuditedLine, JobEngine
from warcmill.audit.progress_grid import Mark
from warcmill.base import clock
from warcmill.base.schedule import DAILY, HOURLY, WEEKLY, Schedule
from warcmill.errors import BadConfig
from warcmill.markers.claim import Claim
from warcmill.markers.editions import JobEditions
from warcmill.model import Launch

JOB, NOW = LAUNCH.job, datetime.now(UTC).replace(microsecond=0)
GB = 10**9


def unasked() -> NoReturn:
    raise AssertionError("a list of jobs asked a root")


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


def line_of_jobs(engine: Engine, *more: str, schedules: dict[str, Schedule] | None = None) -> AuditedLine:
    engines = {job: JobEngine("engine.own", "warcmill", driven=True) for job in (JOB, *more)}
    line = AuditedLine(engine.state, engine.rootmap, {}, unasked, unasked, None, schedules or {}, (), engines)
    return line.state_alone()


def edited(engine: Engine, job: str, text: bytes | None) -> None:
    """Save an edition of a job; None: one without papers."""
    editions = JobEditions(engine.state.store, lambda: engine.store, job)
    newest = editions.newest()
    editions.save({"crawl.toml": text}, who="ada", why="", made_from=newest.number if newest else 0)


def one(line: AuditedLine, job: str = JOB) -> ListedJob:
    return next(each for each in job_list.read(line).jobs if each.job == job)


def summed(engine: Engine, launch: Launch, size: int, **more: Any) -> None:
    """The summary of a launch's day, in which that is the only one."""
    key = layout.key("operator.Close", launch)
    engine.state.publish(key, Claim(key, facts={"reason": "x"}))
    row = {"job": launch.job, "launch_id": launch.id, "bytes": size, "ended": "finished", "warcs": 1}
    row |= {"steps": {"stop": "done"}, "stages": {}, "troubles": [], **more}
    text = json.dumps({"day": str(launch.day), "written": clock.now(), "away": [], "launches": [row]})
    engine.state.store.replace(day_summary.path(launch.day), text.encode())


def ago(days: int) -> Launch:
    return Launch(JOB, clock.digits(NOW - timedelta(days=days)))


def test_title_tags_and_owner_are_those_of_the_newest_edition(engine: Engine) -> None:
    edited(engine, JOB, b'[about]\ntitle = "Old"\n')
    edited(engine, JOB, b'[about]\ntitle = "Zeitung <b>"\ntags = ["Presse", "b"]\nowner = "ada"\n')
    found = job_list.read(line_of_jobs(engine, "other"))
    first, second = found.jobs
    assert (first.about.title, first.about.tags, first.about.owner) == ("Zeitung <b>", ("Presse", "b"), "ada")
    assert (second.about.title, second.newest, second.next_due, second.needs) == ("", None, None, [])
    assert found.tags == ["b", "Presse"]
    for words, tag, jobs in (
        ("", "", [JOB, "other"]), ("zeit ADA", "", [JOB]), ("zeit ben", "", []), ("", "Presse", [JOB]),
        ("other", "Presse", []), ("presse", "b", [JOB]),
    ):  # fmt: skip
        assert [each.job for each in found.chosen(words, tag)] == jobs, (words, tag)


@pytest.mark.parametrize("text", [b"title = <b>", b"\xff", b"[about]\ntitle = 3\n", b"about = 1", b"[about]\nx = 1\n"])
def test_a_crawl_toml_that_is_invalid_is_named(engine: Engine, text: bytes) -> None:
    edited(engine, JOB, text)
    about = one(line_of_jobs(engine)).about
    assert (about.title, about.wrong.startswith("configuration, crawl.toml")) == ("", True)


def test_a_damaged_edition_is_named_and_hides_no_other_job(engine: Engine) -> None:
    edited(engine, JOB, b"")
    (engine.folders["state"] / f"editions/{JOB}/000001/edition.json").write_bytes(b"torn")
    found = job_list.read(line_of_jobs(engine, "other"))
    assert "restore" in found.jobs[0].about.wrong
    assert [each.job for each in found.chosen()] == [JOB, "other"]


def test_a_deleted_job_is_named_apart(engine: Engine) -> None:
    edited(engine, JOB, b"")
    edited(engine, JOB, None)
    found = job_list.read(line_of_jobs(engine, "other"))
    assert (found.deleted, [each.job for each in found.chosen()]) == ([JOB], ["other"])
    assert found.json(found.chosen())["deleted"] == [JOB]


def test_the_newest_launch_has_its_numbers_whole_or_damaged(engine: Engine) -> None:
    engine.warc("a.warc.gz", b"x" * 5)
    lines = [("http://a.example/", 200), ("http://a.example/b", 404), ("http://a.example/c", 301), ("dns:a.example", 1)]
    engine.logs(*(line_of(uri, "a.warc.gz", status=status) for uri, status in lines))
    engine.finish()
    chain.assembled(engine)
    line = line_of_jobs(engine)
    newest = one(line).newest
    assert newest
    assert (newest.launch, newest.got, newest.not_got, newest.bytes) == (LAUNCH, 1, 2, 5)
    assert newest.in_words == "1 got, 2 not got, 5 bytes, finished"
    (path,) = (engine.folders["state"] / layout.state_folder(LAUNCH)).glob("03.*")
    path.write_bytes(b"torn")
    newest = one(line).newest
    assert newest
    assert (newest.got, newest.bytes, newest.mark) == (None, None, Mark.FAILED)


def test_of_a_launch_that_is_done_no_marker_but_its_lists_is_read(engine: Engine) -> None:
    summed(engine, ago(1), 7)
    found = one(line_of_jobs(engine))
    assert found.newest
    assert (found.newest.mark, found.newest.ended, found.newest.got) == (Mark.DONE, "finished", None)
    assert found.may_run is False


def test_of_launches_in_every_state_each_job_has_its_newest(tmp_path: Path) -> None:
    found = job_list.read(states.made(tmp_path).line.state_alone())
    assert all(each.newest and each.past for each in found.jobs)
    assert json.loads(json.dumps(found.json(found.jobs)))["jobs"]


def test_past_launches_have_the_sizes_of_their_summaries_the_newest_first(engine: Engine) -> None:
    for days in range(40, 0, -1):
        summed(engine, ago(days), days, troubles=[{"kind": "refused"}] if days == 3 else [])
    unseen = layout.key("operator.Close", Launch(JOB, clock.digits(NOW - timedelta(hours=1))))
    engine.state.publish(unseen, Claim(unseen, facts={"reason": "x"}))
    found = one(line_of_jobs(engine))
    sizes = [each.bytes if each else None for each in found.past.values()]
    assert sizes == [None, *range(1, job_list.PAST)]
    assert (found.older_findings, "1 findings of launches before it" in found.needs) == (1, True)


def test_it_is_due_by_the_clocks_of_its_zone_and_in_utc(engine: Engine) -> None:
    berlin = Schedule(datetime(2026, 1, 1, tzinfo=UTC), DAILY, at="02:00", zone="Europe/Berlin")
    far = Schedule(NOW + timedelta(days=900), DAILY)
    over = Schedule(NOW - timedelta(days=9), DAILY, end=NOW - timedelta(days=8))
    line = line_of_jobs(engine, schedules={JOB: berlin, "far": far, "over": over})
    found = one(line)
    assert found.next_due
    assert found.next_there.endswith(" 02:00 Europe/Berlin")
    assert (found.next_due.hour in (0, 1), found.next_utc[-9:]) == (True, f"{found.next_due:%H:%M:%SZ}")
    assert (one(line, "far").next_utc, one(line, "over").next_utc) == (clock.text(far.start + timedelta(0)), "")
    assert one(line, "far").next_there == ""


def test_what_never_ran_in_the_last_week_is_owed(engine: Engine) -> None:
    line = line_of_jobs(engine, schedules={JOB: Schedule(NOW - timedelta(days=30, hours=2), DAILY)})
    found = one(line)
    assert (len(found.owed), found.needs) == (7, ["7 due crawls never ran"])


def test_a_section_that_cannot_be_read_is_named(engine: Engine) -> None:
    line = replace(line_of_jobs(engine), wrong=(BadConfig("[job.x] start", "is <b>"),))
    assert job_list.read(line).wrong == ("configuration, [job.x] start: is <b>",)


def calendar_of(engine: Engine, now: datetime, **schedules: Schedule) -> dict[date, list[job_list.DueJob]]:
    return job_list.calendar(job_list.read(line_of_jobs(engine, schedules=schedules)).jobs, now)


def test_the_calendar_has_each_day_and_counts_the_times_of_a_day(engine: Engine) -> None:
    now = datetime(2026, 3, 27, 22, 30, tzinfo=UTC)
    start = datetime(2026, 1, 2, 1, tzinfo=UTC)
    found = calendar_of(
        engine, now, hourly=Schedule(start, HOURLY), weekly=Schedule(start, WEEKLY),
        berlin=Schedule(start, DAILY, at="02:30", zone="Europe/Berlin"), past=Schedule(start, DAILY, end=now),
    )  # fmt: skip
    days = [*found]
    assert (len(days), days[0], days[-1]) == (28, date(2026, 3, 27), date(2026, 4, 23))
    assert [(due.job, due.first.hour, due.times) for due in found[days[0]]] == [("hourly", 23, 1)]
    saturday, sunday = found[date(2026, 3, 28)], found[date(2026, 3, 29)]
    assert [(due.job, due.times) for due in saturday] == [("hourly", 24), ("berlin", 1)]
    assert [due.there for due in sunday if due.job == "berlin"] == ["2026-03-29 03:30 Europe/Berlin"], "it is skipped"
    assert [str(day) for day, due in found.items() if "weekly" in {each.job for each in due}] == [
        "2026-04-03", "2026-04-10", "2026-04-17",
    ]  # fmt: skip
    assert len(job_list.calendar_json(found)["days"]) == 28  # type: ignore[arg-type]


def report(engine: Engine, **rooms: tuple[int, int] | None) -> None:
    roots: Any = [
        {"root": name, "bytes_free": room[0] if room else None, "bytes": room[1] if room else None}
        for name, room in rooms.items()
    ]
    health.write(engine.state, {"written": "2026-11-30T00:00:00Z", "roots": roots})


def test_a_disk_lasts_as_long_as_the_pace_of_the_launches_says(engine: Engine) -> None:
    for days in (40, 10, 5):
        summed(engine, ago(days), 5 * GB)
    report(engine, output=(30 * GB, 100 * GB), store=(9 * GB, 50 * GB), state=(1, 2))
    output, store = job_list.read(line_of_jobs(engine)).disks
    assert (output.roots, round(output.a_day / GB, 1), output.launches, output.days) == (("output",), 1, 2, 30)
    assert (store.days, store.first) == (9, str(ago(10).day))
    report(engine, output=(30 * GB, 100 * GB), store=(30 * GB + 5, 100 * GB))
    (both,) = job_list.read(line_of_jobs(engine)).disks
    assert (both.roots, round(both.a_day / GB, 1), both.days) == (("output", "store"), 2, 15)
    assert both.in_words == f"full in 15 days at {both.a_day:,} bytes a day, by 2 launches since {ago(10).day}"


@pytest.mark.parametrize("sizes", [{}, {0: 5 * GB}, {3: 0}])
def test_without_a_history_nothing_is_said_of_how_long_a_disk_lasts(engine: Engine, sizes: dict[int, int]) -> None:
    for days, size in sizes.items():
        summed(engine, ago(days), size)
    report(engine, output=(30 * GB, 100 * GB), store=None)
    (disk,) = job_list.read(line_of_jobs(engine)).disks
    assert (disk.days, disk.a_day, disk.launches, disk.first) == (None, 0, 0, "")
    assert "not known" in disk.in_words


@pytest.mark.parametrize("text", [b"", b"[]", b'{"roots": 3}', b'{"roots": [3, {}, {"root": "output"}]}'])
def test_a_report_of_health_that_is_torn_has_no_disk(engine: Engine, text: bytes) -> None:
    engine.state.store.replace(health.PATH, text)
    assert job_list.read(line_of_jobs(engine)).disks == ()
