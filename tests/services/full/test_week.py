"""A week of daily crawls that nobody attends to: the lines of config/crontab, a real engine, a real archive, bad days.

It is lived by either engine: the configuration's `kind` is the key. That of the built-in crawler ends on the day after
the last fault.

One clock, which jumps from one minute of the crontab to the next, is shared by the engine and by all that cron
runs; HDFS keeps the real time. The lines are run as they are there, but for the paths at the top; those that are
an example there are taken too.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from operating import clock_of_week
from operating.clock_of_week import SharedClock
from operating.week import BIN, KILLED, MISSED, OUTAGE, QUARTER, Week
from operating.week_engines import JOB, Archive, Crawler, OfHdfs, OfHeritrix, OfOurOwn, OnADisk
from sites.several_hosts import page, serve, swift_profile

from servers import heritrix as heritrix_server
from servers import pins
from warcmill import layout
from warcmill.clients.heritrix.http import EngineHttp
from warcmill.clients.heritrix.rest import Heritrix
from warcmill.crawl.engine import WarcmillEngine
from warcmill.crawl.launch.folders import Places
from warcmill.layout import OutputLayout
from warcmill.markers.state import MarkerStore
from warcmill.model import Item, Launch
from warcmill.pulse.broken_launches import due_of
from warcmill.stores.file import FileStore

HOST = "week.example"
PAGES = 4_000  # more than a day of this week can fetch
FAILED = 30  # of luigi
REASON = "the engine was killed; what was whole is kept"
CONFIGURATION = """
[engine.first]
kind={kind}
jobs=daily
{login}
[job.daily]
frequency=daily
start={first}
[feed]
jobs=daily
source={base}/feed.jsonl
contact=http://archive.example/
{of_feed}
"""
LOGIN = """\
url={engine.url}
user={engine.user}
password_file={engine.folder}/password
certificate={engine.certificate}
"""
OF_FEED = """\
profile={base}/profile.cxml
engine_output={engine.jobs}
"""
SETTINGS = """\
checkpoint_hours = 0
allow_private = ["127.0.0.0/8"]
resolve = ["week.example=127.0.0.1"]
[politeness]
factor = 0
least = 0.25
most = 0.25
"""
HERITRIX, WARCMILL = "heritrix", "warcmill"


@pytest.fixture(params=[HERITRIX, WARCMILL])
def week(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Week]:
    """A line with a feed, by `warcmill init`; the engine's kind is all that its configuration is told of the engine."""
    # A certificate is not valid before it is made: the week begins tomorrow.
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    clock = SharedClock(tmp_path, midnight)
    crawl = by_heritrix if request.param == HERITRIX else by_our_own
    web = {(HOST, f"/{number or ''}"): page(links(number), filler=number) for number in range(PAGES)}
    with serve(web) as port, crawl(request, tmp_path, clock) as (crawler, archive, login, of_feed, days):
        found = Week(tmp_path, midnight, clock, crawler, archive, days)
        lay_out(found, port, kind=request.param, login=login, of_feed=of_feed)
        yield found
    clock_of_week.sweep()


Served = tuple[Crawler, Archive, str, str, int]


@contextmanager
def by_heritrix(request: pytest.FixtureRequest, base: Path, clock: SharedClock) -> Iterator[Served]:
    """Heritrix, and HDFS as the archive."""
    work, hdfs = request.getfixturevalue("work"), request.getfixturevalue("hdfs")
    server = heritrix_server.up(work / "week", pins.free(pins.HERITRIX), clock.of_java)
    server.resolve(HOST)
    client = Heritrix(EngineHttp(server.url, server.user, server.password, server.certificate))
    archive = OfHdfs(hdfs, f"week-{server.ports['rest']}")
    (base / "profile.cxml").write_text(swift_profile().replace("DelayMs=40", "DelayMs=100"))
    login, of_feed = LOGIN.format(engine=server), OF_FEED.format(base=base, engine=server)
    try:
        yield OfHeritrix(server, client), archive, login, of_feed, 7
    finally:
        if not archive.is_up():
            archive.start()  # it is other tests' too
        client.close()
        heritrix_server.down(work / "week")


@contextmanager
def by_our_own(request: pytest.FixtureRequest, base: Path, clock: SharedClock) -> Iterator[Served]:
    """The built-in crawler, and a disk as the archive: no server at all. Up to the day after the last fault."""
    jobs = base / "engine"
    jobs.mkdir()
    crawler = OfOurOwn(WarcmillEngine(Places(jobs, jobs, OutputLayout.JOB_FIRST)))
    (base / "settings.toml").write_text(SETTINGS)
    try:
        yield crawler, OnADisk(base / "archive"), "", f"settings={base}/settings.toml", OUTAGE + 1
    finally:
        if crawler.fetched() is not None:
            crawler.kill()


def links(number: int) -> list[str]:
    """Of a page: ten others, so that all are within a few links of the first."""
    return [f"/{10 * number + digit}" for digit in range(1, 11)]


def lay_out(week: Week, port: int, **of_engine: str) -> None:
    where = ("--output", str(week.crawler.jobs), "--layout", "job-first", "--store", week.archive.url)
    subprocess.run([str(BIN / "warcmill"), "init", str(week.base), *where], check=True)
    config = week.base / "luigi.cfg"
    first = week.due(0).isoformat()
    config.write_text(config.read_text() + CONFIGURATION.format(base=week.base, first=first, **of_engine))
    target = {
        "id": 1,
        "seeds": [f"http://{HOST}:{port}/"],
        "schedules": [{"startDate": "2026-01-01", "frequency": "DAILY"}],
    }
    (week.base / "feed.jsonl").write_text(json.dumps(target))


def test_a_week_of_daily_crawls_runs_unattended(week: Week, tell: Callable[[str], None]) -> None:
    began = time.monotonic()
    week.live()
    crawls = [Crawl.of(week, f"{week.due(day):%Y%m%d%H%M%S}") for day in range(week.days)]
    continued = Crawl.of(week, due_of(crawls[KILLED].launch))
    said = asked_of_a_person(week, crawls[KILLED], continued)
    done = reconcile(week)
    every = sorted([*crawls, continued], key=lambda crawl: crawl.launch.id)
    tell(f"{table(week, every, said)}\nreconcile: {done.returncode}\n{time.monotonic() - began:.0f} s")
    assert done.returncode == 0, done.stdout
    assert_launched_once(week, crawls, continued)
    assert_archived(week, every)
    assert_codes(week, cut=bool(said))


@pytest.mark.parametrize("week", [HERITRIX], indirect=True)
def test_an_engine_whose_clock_jumps_while_it_lets_us_in_is_asked_again(week: Week) -> None:
    refused: list[bool] = []
    assert isinstance(week.crawler, OfHeritrix)
    engine = week.crawler.server
    for _ in range(20):  # until one jump has come between what the engine asked and what it was answered
        wire = EngineHttp(engine.url, engine.user, engine.password, engine.certificate)
        wire._session.hooks["response"].append(lambda answer, **_: refused.append(answer.status_code == 401))
        jump_once(wire, week.clock)
        assert wire.get().status == 200
        wire.close()
        if any(refused):
            return
    raise AssertionError("the engine noticed no jump")


def jump_once(wire: EngineHttp, clock: SharedClock) -> None:
    """Let six hours pass before the first answer to the engine's challenge is sent."""
    auth: Any = wire._session.auth
    answered, jumps = auth.build_digest_header, iter([6])

    def late(method: str, url: str) -> str:
        header: str = answered(method, url)
        if hours := next(jumps, 0):
            clock.jump(clock.now + timedelta(hours=hours))
        return header

    auth.build_digest_header = late


@dataclass(frozen=True)
class Crawl:
    """What became of the crawl due on one day, by the markers, and by the engine's folder."""

    due: str
    launch: Launch
    started: dict[str, Any]
    ended: dict[str, Any]
    checkpoints: int
    verified: tuple[Item, ...]
    warcs: dict[str, bytes]

    @classmethod
    def of(cls, week: Week, due: str) -> Crawl:
        state = MarkerStore(FileStore("state", week.base / "state"))
        launch = Launch(JOB, str(state.require(layout.due_key(JOB, due)).claim.facts["launch_id"]))

        def facts(task: str) -> dict[str, Any]:
            return dict(state.require(layout.key(task, launch)).claim.facts)

        stages = facts("output.ProcessOutputs")["stages"]
        verified = [state.require(layout.key("files.Verify", launch, stage=stage)).claim.items for stage in stages]
        taken = list((week.base / "state" / layout.state_folder(launch)).glob("01.jobs.*.checkpointed.*"))
        found = (week.crawler.jobs / JOB / launch.id).rglob("*.warc.gz*")
        warcs = {path.name: path.read_bytes() for path in found if path.suffix != ".orphan"}
        items = tuple(item for stage in verified for item in stage)
        started, ended = facts("pulse.Started"), facts("output.CheckJobStopped")
        return cls(due, launch, started, ended, len(taken), items, warcs)


def reconcile(week: Week, *options: str) -> subprocess.CompletedProcess[str]:
    return week.warcmill("reconcile", f"{week.midnight:%Y-%m-%d}-{week.at(week.days + 1, 0, 0):%Y-%m-%d}", *options)


def asked_of_a_person(week: Week, killed: Crawl, continued: Crawl) -> list[str]:
    """What reconcile asks an operator to say, said: that what the kill has cut, and the reports it cost, may be so; and
    what Heritrix never writes for a launch that continues another one."""
    document = json.loads(reconcile(week, "--json").stdout)
    gaps = [(one["launch_id"], gap) for one in document["launches"] for gap in one["gaps"]]
    for launch, gap in gaps:
        assert (launch, gap["kind"], gap["name"]) in {
            (killed.launch.id, "absent log", "final/reports/"),
            (continued.launch.id, "absent log", "final/seeds.txt"),
            (continued.launch.id, "absent log", "final/surts.dump"),
        } or (launch, gap["kind"], gap["name"][-5:]) == (killed.launch.id, "refused", ".open"), gap
        words = [REASON if word == "TEXT" else word for word in shlex.split(gap["todo"])]
        assert words[:2] == ["warcmill", "accept"]
        done = week.warcmill(*words[1:])
        assert done.returncode == 0, done.stderr
    return [gap["todo"] for _, gap in gaps]


def assert_launched_once(week: Week, crawls: list[Crawl], continued: Crawl) -> None:
    """As many launches in the engine's folder as crawls were due, each for one of them, each ended and confirmed; but
    the one that was killed, which one launch more continues."""
    markers = (week.base / "state").glob(f"*/{JOB}/00.due.{JOB}.*")
    every = [*crawls, continued]
    assert sorted(marker.name.rpartition(".")[2] for marker in markers) == sorted(crawl.due for crawl in every)
    launches = sorted(path.name for path in (week.crawler.jobs / JOB).iterdir() if path.name.isdigit())
    assert sorted(crawl.launch.id for crawl in every) == launches, "one too many, or too few"
    assert continued.started["continues"]["launch_id"] == crawls[KILLED].launch.id
    for day, crawl in enumerate(crawls):
        assert crawl.started["due"] == crawl.due
        put_in_order = "finished" if week.crawler.takes_cron_along else "superseded"
        assert crawl.ended["how"] == (put_in_order if day == KILLED else "confirmed")
        assert crawl.checkpoints == (1 if day == KILLED else 3)
        begun = datetime.strptime(crawl.launch.id, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        begins = week.at(day, 7, 0) if day == MISSED else week.due(day)
        assert begins <= begun < begins + QUARTER


def assert_archived(week: Week, crawls: list[Crawl]) -> None:
    """Every WARC of every launch is in the archive, byte for byte; by a marker of its launch it was verified."""
    kept = {path: hashlib.sha512(data).hexdigest() for path, data in week.archive.files().items()}
    for crawl in crawls:
        assert crawl.warcs
        assert set(crawl.warcs) <= {item.file.name for item in crawl.verified}
        for name, data in crawl.warcs.items():
            assert kept[f"warcs/{JOB}/{crawl.launch.id}/{name}"] == hashlib.sha512(data).hexdigest()
        for item in crawl.verified:
            assert item.made
            assert kept[item.made.path] == item.made.sha512
    backups = {path.split("/")[2] for path in kept if path.startswith("state/")}
    assert {crawl.launch.id for crawl in crawls[:-1]} <= backups, "all that were closed on the last night"


def assert_codes(week: Week, *, cut: bool) -> None:
    """No line failed but for the faults: a dead engine, a crawl that is no more, an archive that does not answer."""
    codes, days, is_ours = week.codes(), week.days, week.crawler.takes_cron_along
    assert codes["pulse start"] == {0: days - 1}
    assert codes["pulse checkpoint"] == ({0: 3 * days - 1} if is_ours else {0: 3 * days - 2, 4: 1, 1: 1})
    assert codes["pulse stop"] == {0: days}
    looked = [one for one in week.ran if one.name == "pulse.ScanForLaunches" and one.code]
    assert {one.code for one in looked} == (set() if is_ours else {FAILED}), "it asks for the launch that has no end"
    assert all(week.at(KILLED, 17, 30) <= one.moment < week.at(KILLED, 18, 30) for one in looked)
    assert set(codes["state.BackupState"]) == {0}
    away = [one for one in week.ran if one.name == "scan" and one.code not in (0, 1)]
    assert [one.code for one in away] == [4], away
    assert week.at(OUTAGE, 11, 30) < away[0].moment < week.at(OUTAGE, 16, 0)
    whole = {0: sum(codes["scan"].values()) - 1, 4: 1}
    assert cut or codes["scan"] == whole, "1 is said from the kill on, until a person has spoken"


def table(week: Week, crawls: list[Crawl], said: list[str]) -> str:
    """What the week has come to, for a person."""
    rows = [f"{'due':16}{'launch':16}{'ended':12}{'checkpoints':>11}{'WARCs':>7}{'verified':>10}"]
    for crawl in crawls:
        numbers = f"{crawl.checkpoints:11}{len(crawl.warcs):7}{len(crawl.verified):10}"
        rows.append(f"{crawl.due:16}{crawl.launch.id:16}{crawl.ended['how']:12}{numbers}")
    rows += [f"{name}: exit {dict(sorted(codes.items()))}" for name, codes in week.codes().items()]
    missed = f"cron down, {week.missed} lines not run"
    return "\n".join([*rows, missed, *week.happened, *(f"a person was asked: {one}" for one in said)])
