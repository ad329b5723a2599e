"""The pulse chain with a real engine: launched, checkpointed, stopped, and carried into the archive; and bad days.

Jobs are where the engine keeps them, job-first, so its jobs folder is the line's output root and its jobs root.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from faults.tally import FaultLog
from line import Line, line_at
from loopback_site import site

from servers.heritrix import HeritrixServer as Server
from warcmill import layout
from warcmill.clients.heritrix.engine import HeritrixEngine
from warcmill.clients.heritrix.http import EngineHttp
from warcmill.clients.heritrix.rest import CONFIGURATION, Heritrix
from warcmill.clients.heritrix.xml import ACTIVE, EngineJob, JobState
from warcmill.errors import Conflict, NotReady
from warcmill.layout import OutputLayout
from warcmill.model import Launch

PROFILE = (Path(__file__).parent.parent / "data" / "heritrix" / "profile.cxml").read_text("utf-8")
NUMBERS = count(1)
DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with site() as serving:
        yield serving


@dataclass
class Crawl:
    """A job in a real engine, and a line around it."""

    server: Server
    client: Heritrix
    job: str
    line: Line

    def configure(self, port: int, *, delay: int = 100) -> None:
        text = PROFILE.replace("{job}", self.job).replace("{delay}", str(delay))
        self.client.put(self.job, CONFIGURATION, text.encode())
        self.client.put(self.job, "seeds.txt", f"http://site.example:{port}/\n".encode())

    def pulse(self, *words: str) -> str:
        """`warcmill pulse WORDS`, which succeeds; what it says."""
        done = self.line.warcmill("pulse", *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def crawled(self, pages: int) -> None:
        self.until(lambda: self.seen().downloaded >= pages)

    def seen(self) -> EngineJob:
        found = self.client.job(self.job)
        assert found is not None
        return found

    def until(self, holds: Callable[[], bool], seconds: float = 300) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(0.1)

    def launches(self) -> list[str]:
        """The ids of the launches in the job's folder."""
        return sorted(path.name for path in (self.server.jobs / self.job).iterdir() if path.name.isdigit())

    def newest(self) -> Launch:
        return Launch(self.job, self.launches()[-1])

    def facts(self, task: str, launch: Launch, **more: object) -> dict[str, object]:
        return dict(self.line.state.require(layout.key(task, launch, **more)).claim.facts)

    def due(self, hours: int = 1) -> str:
        """The job's schedule from now on: daily, since so many hours; its newest due time."""
        moment = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=hours)
        text = self.line.config.read_text().partition(f"\n[job.{self.job}]")[0]
        self.line.config.write_text(f"{text}\n[job.{self.job}]\nfrequency=daily\nstart={moment.isoformat()}\n")
        return f"{moment:%Y%m%d%H%M%S}"

    def started(self, due: str) -> str:
        return str(self.line.state.require(layout.due_key(self.job, due)).claim.facts["launch_id"])


@pytest.fixture
def crawl(heritrix: Server, port: int, tmp_path: Path) -> Iterator[Crawl]:
    heritrix.resolve("site.example")
    client = Heritrix(EngineHttp(heritrix.url, heritrix.user, heritrix.password, heritrix.certificate), patience=60)
    job = f"pulse{next(NUMBERS)}"
    client.create(job)
    line = line_of(heritrix, tmp_path, job)
    one = Crawl(heritrix, client, job, line)
    one.configure(port)
    yield one
    found = client.job(job)
    if found is not None and found.state in ACTIVE:
        client.terminate(job)
    client.teardown(job)
    client.close()


def line_of(server: Server, base: Path, job: str) -> Line:
    """A line whose output and jobs are the engine's own folder."""
    (base / "output").symlink_to(server.jobs)
    line = line_at(base, OutputLayout.JOB_FIRST)
    engine = f"""
[engine.first]
kind=heritrix
url={server.url}
user={server.user}
password_file={server.folder / "password"}
certificate={server.certificate}
jobs={job}
"""
    line.config.write_text(line.config.read_text() + engine)
    return line


def interval() -> str:
    """Yesterday, today and tomorrow: midnight may come."""
    now = datetime.now(UTC)
    return f"{now - DAY:%Y-%m-%d}-{now + 2 * DAY:%Y-%m-%d}"


def test_a_crawl_is_started_checkpointed_and_stopped_once_and_the_line_carries_it(crawl: Crawl) -> None:
    due = crawl.due()
    said = crawl.pulse("start", crawl.job)
    launch = crawl.newest()
    assert f"launch {launch.id} was started for the crawl due" in said
    assert crawl.started(due) == launch.id
    assert crawl.seen().state is JobState.RUNNING
    assert "this was done already" in crawl.pulse("start", crawl.job)
    assert crawl.launches() == [launch.id]

    crawl.crawled(10)
    said = crawl.pulse("checkpoint", crawl.job)
    stage = str(crawl.facts("pulse.CheckpointJob", launch, number="00001")["stage"])
    assert f"has taken checkpoint {stage}" in said
    assert f"stage {stage} is assembled: " in said
    assert crawl.line.state.read(layout.key("output.AssembleOutput", launch, stage=stage)) is not None
    assert crawl.line.scan(interval()) == [0, 0]
    assert crawl.line.state.read(layout.key("files.Verify", launch, stage=stage)) is not None

    crawl.crawled(20)
    assert f"launch {launch.id} has ended" in crawl.pulse("stop", crawl.job)
    assert crawl.seen().state is JobState.UNBUILT
    assert "this was done already" in crawl.pulse("stop", crawl.job)
    assert crawl.line.scan(interval()) == [0, 0]
    assert crawl.facts("output.CheckJobStopped", launch)["how"] == "confirmed"
    told = crawl.line.warcmill("why", launch.job, launch.id)  # the engine's other jobs have their own findings
    assert told.returncode == 0, told.stdout


def test_one_more_crawl_is_launched_when_the_one_that_was_due_has_ended(crawl: Crawl) -> None:
    crawl.due()
    done = crawl.line.warcmill("pulse", "start", crawl.job, "--again")
    assert done.returncode == 1
    assert "is not launched yet; next: warcmill pulse start" in done.stdout
    crawl.pulse("start", crawl.job)
    first = crawl.newest()
    done = crawl.line.warcmill("pulse", "start", crawl.job, "--again")
    assert done.returncode == 1
    assert f"launch {first.id} is running" in done.stdout
    assert f"first run: warcmill pulse stop {crawl.job}" in done.stdout
    crawl.pulse("stop", crawl.job)
    said = crawl.pulse("start", crawl.job, "--again")
    second = crawl.newest()
    assert second.id > first.id
    assert f"launch {second.id} was started for the crawl due" in said
    assert scan(crawl).returncode == 0
    assert crawl.launches() == [first.id, second.id], "nothing else is due"
    crawl.pulse("stop", crawl.job)
    assert crawl.pulse("start", crawl.job, "--again")
    assert len(crawl.launches()) == 3, "each time that it is called"


def test_one_more_crawl_of_which_the_start_died_is_finished_and_not_launched_twice(crawl: Crawl) -> None:
    """Of a job that has no schedule."""
    begun = f"{datetime.now(UTC):%Y%m%d%H%M%S}"
    start_killed(crawl, begun, "crawling, and nothing published")
    crawl.pulse("start", crawl.job, "--again")
    assert crawl.started(begun) == crawl.newest().id
    assert len(crawl.launches()) == 1


# How crawls are doing.


def test_status_shows_what_runs_with_its_figures_and_alerts(crawl: Crawl) -> None:
    idle = crawl.pulse("status")
    assert f"{crawl.job}" in idle
    assert "UNBUILT" in idle
    crawl.due()
    crawl.pulse("start", crawl.job)
    crawl.crawled(3)
    alert(crawl)
    (told,) = json.loads(crawl.pulse("status", crawl.job, "--json"))["jobs"]
    assert (told["job"], told["engine"], told["error"], told["known"]) == (crawl.job, "engine.first", "", True)
    assert (told["running"], told["state"], told["launch_id"]) == (True, "RUNNING", crawl.newest().id)
    assert told["done"] >= 3
    assert told["queued"] > 0
    assert told["per_minute"] >= 0
    assert told["alerts"] == 1
    assert any("OutOfMemoryError" in words for words in told["said"])
    shown = crawl.pulse("status")
    assert re.search(rf"^{crawl.job} +{crawl.newest().id} +RUNNING( +[\d,]+){{4}} +1$", shown, re.MULTILINE), shown
    assert f"{crawl.job}: the engine said: " in shown


def test_status_continues_past_an_engine_that_does_not_answer(crawl: Crawl, closed_port: int) -> None:
    config = crawl.line.config
    first = config.read_text().rpartition("[engine.first]")[2]
    away = first.replace(crawl.server.url, f"https://127.0.0.1:{closed_port}/engine")
    config.write_text(f"{config.read_text()}\n[engine.away]{away.replace(crawl.job, 'other, another')}")
    done = crawl.line.warcmill("pulse", "status", "--json")
    assert done.returncode == 4
    assert done.stderr.count("is unavailable") == 1, "said once for all jobs of that engine"
    told = {one["job"]: one for one in json.loads(done.stdout)["jobs"]}
    assert told[crawl.job]["state"] == "UNBUILT"
    assert "is unavailable" in told["other"]["error"]
    shown = crawl.line.warcmill("pulse", "status")
    assert re.search(r"^other +no answer", shown.stdout, re.MULTILINE)
    assert crawl.line.warcmill("pulse", "status", "stranger").returncode == 3


# What doctor asks the engine.


def doctor(crawl: Crawl) -> dict[str, dict[str, str]]:
    """The checks of the engine and its jobs, by name."""
    done = crawl.line.warcmill("doctor", "--json")
    assert done.returncode in (0, 1), done.stderr
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


def test_doctor_asks_the_engine_and_whether_it_knows_its_jobs(crawl: Crawl) -> None:
    config = crawl.line.config
    config.write_text(config.read_text().replace(f"\njobs={crawl.job}", f"\njobs={crawl.job}, stranger"))
    told = doctor(crawl)
    assert told["engine first"]["level"] == "ok"
    assert f"{crawl.server.url} answers: Heritrix 3." in told["engine first"]["text"]
    assert told[f"crawl {crawl.job}"]["level"] == "ok"
    assert told[f"crawl {crawl.job}"]["text"] == "UNBUILT; never launched; a start builds it"
    assert told["crawl stranger"]["level"] == "fail"
    assert "create it in the engine" in told["crawl stranger"]["todo"]


def test_doctor_quotes_why_a_job_could_not_be_built_and_the_alerts_of_one_that_runs(crawl: Crawl, port: int) -> None:
    crawl.due()
    crawl.client.put(crawl.job, CONFIGURATION, b"<beans><bean></beans>")
    assert crawl.line.warcmill("pulse", "start", crawl.job).returncode == 30
    told = doctor(crawl)[f"crawl {crawl.job}"]
    assert told["level"] == "warn"
    assert "UNBUILT; never launched; its engine said: SEVERE" in told["text"]
    crawl.configure(port)
    crawl.pulse("start", crawl.job)
    alert(crawl)
    told = doctor(crawl)[f"crawl {crawl.job}"]
    assert told["level"] == "warn"
    assert "1 alerts: " in told["text"]
    assert told["todo"].startswith(f"warcmill pulse status {crawl.job}")


def test_doctor_explains_what_to_do_about_an_engine_that_is_away_or_refuses_us(
    crawl: Crawl, closed_port: int, tmp_path: Path
) -> None:
    (tmp_path / "wrong").write_text("guess")
    sound = crawl.line.config.read_text()
    wrongs = {
        crawl.server.url: (f"https://127.0.0.1:{closed_port}/engine", "Connection refused", "start the engine"),
        str(crawl.server.folder / "password"): (str(tmp_path / "wrong"), "user, password", "correct user and password"),
        str(crawl.server.certificate): ("00" * 32, "sha256 of the certificate", "if its certificate was renewed"),
    }
    for old, (new, text, todo) in wrongs.items():
        crawl.line.config.write_text(sound.replace(old, new))
        told = doctor(crawl)["engine first"]
        assert told["level"] == "fail"
        assert text in told["text"]
        assert told["todo"].startswith(todo)
    crawl.line.config.write_text(sound.replace("kind=heritrix", "kind=wget"))
    assert doctor(crawl)["engine first"]["todo"] == "correct [engine.first] in luigi.cfg"


# A start that is killed.

KILLED = """
import os, signal, sys
import luigi
from tasks.pulse import StartJob
from {module} import {owner}

{owner}.{method} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
luigi.build([StartJob(job=sys.argv[1], due=sys.argv[2])], local_scheduler=True)
"""
MOMENTS = {
    "before the engine heard of it": ("warcmill.clients.heritrix.engine", "HeritrixEngine", "start"),
    "launched, and still waiting": ("warcmill.clients.heritrix.engine", "HeritrixEngine", "proceed"),
    "crawling, and nothing published": ("warcmill.markers.state", "MarkerStore", "publish"),
}


def start_killed(crawl: Crawl, due: str, moment: str) -> None:
    """StartJob in a process that is killed at this moment."""
    module, owner, method = MOMENTS[moment]
    text = KILLED.format(module=module, owner=owner, method=method)
    environment = {**os.environ, "LUIGI_CONFIG_PATH": str(crawl.line.config)}
    command = [sys.executable, "-c", text, crawl.job, due]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_start_that_is_killed_is_found_and_finished(crawl: Crawl, moment: str, fault_log: FaultLog) -> None:
    due = crawl.due()
    start_killed(crawl, due, moment)
    fault_log.injected("a start of a crawl killed")
    before = crawl.launches()
    assert crawl.line.state.read(layout.due_key(crawl.job, due)) is None
    crawl.pulse("start", crawl.job)
    assert crawl.launches() == (before or [crawl.newest().id])
    assert crawl.started(due) == crawl.newest().id
    assert crawl.facts("pulse.Started", crawl.newest())["due"] == due
    assert crawl.seen().state is JobState.RUNNING


def test_a_launch_by_hand_after_a_start_that_failed_counts_as_that_due_crawl_s(crawl: Crawl) -> None:
    due = crawl.due()
    start_killed(crawl, due, "before the engine heard of it")
    by_hand = crawl.client.launch(crawl.job)
    crawl.pulse("start", crawl.job)
    assert (crawl.started(due), crawl.launches()) == (by_hand, [by_hand])
    crawl.crawled(1)  # it was waiting, as a launch by hand does


# Launches by the calendar.


def scan(crawl: Crawl) -> subprocess.CompletedProcess[str]:
    return crawl.line.luigi("--module", "tasks.pulse", "pulse.ScanForLaunches", "--date-interval", interval())


def test_what_is_due_is_launched_once_and_the_launch_before_it_is_stopped_first(crawl: Crawl) -> None:
    yesterday, today = crawl.due(25), f"{datetime.now(UTC) - timedelta(hours=1):%Y%m%d%H}"
    start_killed(crawl, yesterday, "crawling, and nothing published")
    first = crawl.newest()
    done = scan(crawl)
    assert done.returncode == 0, done.stderr
    assert len(crawl.launches()) == 2
    second = crawl.newest()
    assert crawl.facts("pulse.StopJob", first) == {"engine": "ended"}
    assert crawl.started(yesterday) == first.id, "the start that died is finished too"
    assert str(crawl.facts("pulse.Started", second)["due"]).startswith(today[:8])
    assert crawl.seen().state is JobState.RUNNING
    assert scan(crawl).returncode == 0
    assert len(crawl.launches()) == 2


def test_a_dead_engine_fails_the_start_and_the_next_run_launches(crawl: Crawl, fault_log: FaultLog) -> None:
    due = crawl.due()
    crawl.pulse("start", crawl.job)
    first = crawl.newest()
    crawl.server.kill()
    fault_log.injected("Heritrix, killed")
    try:
        stopped = crawl.line.warcmill("pulse", "stop", crawl.job)
        assert stopped.returncode == 4, stopped.stderr
        assert "is unavailable" in stopped.stderr
        crawl.due(0)
        done = scan(crawl)
        assert done.returncode == 30, done.stderr
        assert "Connection refused" in done.stderr
    finally:
        crawl.server.start()
    assert scan(crawl).returncode == 0
    second = crawl.newest()
    assert second.id > first.id
    assert crawl.started(due) == first.id
    assert crawl.seen().state is JobState.RUNNING
    crawl.pulse("stop", crawl.job)
    assert crawl.line.scan(interval())[0] == 0
    assert crawl.facts("output.CheckJobStopped", first)["how"] == "superseded"


# Resumed launches.


def test_a_resumed_launch_names_what_it_continues_and_its_package_holds_both(crawl: Crawl, port: int) -> None:
    crawl.configure(port, delay=200)
    crawl.due()
    crawl.pulse("start", crawl.job)
    first = crawl.newest()
    crawl.crawled(10)
    crawl.pulse("checkpoint", crawl.job)
    stage = str(crawl.facts("pulse.CheckpointJob", first, number="00001")["stage"])
    crawl.pulse("stop", crawl.job)

    crawl.pulse("start", crawl.job, "--checkpoint", stage)
    second = crawl.newest()
    assert "this was done already" in crawl.pulse("start", crawl.job, "--checkpoint", stage)
    assert crawl.newest() == second
    told = {"launch_id": first.id, "checkpoint": stage}
    assert crawl.facts("pulse.Started", second)["continues"] == told
    crawl.crawled(20)
    assert "has taken checkpoint cp00002-" in crawl.pulse("checkpoint", crawl.job)
    crawl.crawled(25)
    crawl.pulse("stop", crawl.job)

    assert crawl.line.scan(interval()) == [0, 0]
    assert crawl.facts("output.ProcessOutputs", second)["continues"] == told
    folder = crawl.line.folders["state"] / layout.state_folder(second)
    package = json.loads((folder / f"{crawl.job}.{second.id}.final.package.json").read_text())
    assert package["continues"] == told
    launches = {file["path"].split("/")[1] for file in package["warcs"]}
    assert launches == {first.id, second.id}
    zips = [Path(file["path"]).name for file in package["zips"]]
    assert len(zips) == 3
    assert stage in zips[0], "the earlier launch's own end is crawled again, and is no part of it"
    found = json.loads(crawl.line.warcmill("reconcile", interval(), "--json").stdout)
    ours = [one for one in found["launches"] if one["job"] == crawl.job]  # the engine has other tests' jobs too
    gaps = [(one["launch_id"], gap["kind"], gap["name"]) for one in ours for gap in one["gaps"]]
    papers = ("final/seeds.txt", "final/surts.dump")
    assert gaps == [(second.id, "absent log", name) for name in papers], "an engine that resumes does not write them"


def test_a_launch_that_a_reboot_broke_off_is_continued_from_its_newest_checkpoint(
    crawl: Crawl, port: int, fault_log: FaultLog
) -> None:
    crawl.configure(port, delay=200)
    crawl.due()
    crawl.pulse("start", crawl.job)
    first = crawl.newest()
    crawl.crawled(5)
    crawl.pulse("checkpoint", crawl.job)
    stage = str(crawl.facts("pulse.CheckpointJob", first, number="00001")["stage"])
    crawl.server.kill()
    fault_log.injected("Heritrix, killed")
    crawl.server.start()

    assert scan(crawl).returncode == 0
    second = crawl.newest()
    assert second.id > first.id
    assert crawl.facts("pulse.Started", second)["continues"] == {"launch_id": first.id, "checkpoint": stage}
    crawl.crawled(10)
    assert scan(crawl).returncode == 0
    assert crawl.newest() == second, "what runs is not continued"
    crawl.pulse("stop", crawl.job)
    assert scan(crawl).returncode == 0
    assert crawl.newest() == second, "nor is what has ended"


# What an engine complains of.


def alert(crawl: Crawl) -> None:
    severe = "java.util.logging.Logger.getLogger('test').severe('java.lang.OutOfMemoryError: Java heap space')"
    source = f"def thread = new Thread(job.alertThreadGroup, {{ {severe} }}); thread.start(); thread.join()"
    crawl.client.script(crawl.job, source)


def test_an_alert_is_quoted_by_why_and_in_the_error_of_a_step(crawl: Crawl) -> None:
    due = crawl.due()
    crawl.pulse("start", crawl.job)
    alert(crawl)
    why = crawl.line.warcmill("why", crawl.job, crawl.newest().id)
    assert "Its engine says: RUNNING" in why.stdout
    assert "java.lang.OutOfMemoryError: Java heap space" in why.stdout
    earlier = crawl.line.warcmill("pulse", "start", crawl.job, "--due", str(int(due) - 10**10))
    assert earlier.returncode == 30
    assert "stop it first" in earlier.stderr
    assert "java.lang.OutOfMemoryError: Java heap space" in earlier.stderr


def test_a_configuration_that_cannot_be_built_is_quoted(crawl: Crawl) -> None:
    crawl.due()
    crawl.client.put(crawl.job, CONFIGURATION, b"<beans><bean></beans>")
    done = crawl.line.warcmill("pulse", "start", crawl.job)
    assert done.returncode == 30
    assert "the engine could not build it" in done.stderr
    assert crawl.launches() == []


def test_a_job_that_its_engine_does_not_know_is_named_and_starts_once_it_is_there(crawl: Crawl, port: int) -> None:
    crawl.job = f"{crawl.job}-new"
    config = crawl.line.config
    config.write_text(config.read_text().replace("\njobs=pulse", f"\njobs={crawl.job}, pulse"))
    due = crawl.due()
    done = crawl.line.warcmill("pulse", "start", crawl.job)
    assert done.returncode == 30, done.stderr
    assert f"job {crawl.job} at {crawl.server.url} is not ready: the engine has no such job; create it" in done.stderr
    assert crawl.client.create(crawl.job)
    crawl.configure(port)
    crawl.pulse("start", crawl.job)
    assert crawl.started(due) == crawl.newest().id
    crawl.pulse("stop", crawl.job)


def test_a_wrong_password_is_configuration(crawl: Crawl, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("guess")
    text = crawl.line.config.read_text()
    crawl.line.config.write_text(text.replace(str(crawl.server.folder / "password"), str(wrong)))
    done = crawl.line.warcmill("pulse", "stop", crawl.job)
    assert done.returncode == 3, done.stderr
    assert "user, password" in done.stderr


# The engine as the chain asks it.


def test_a_job_that_the_engine_does_not_know_has_never_run(crawl: Crawl) -> None:
    engine = HeritrixEngine(crawl.client)
    seen = engine.look("nobody")
    assert (seen.running, seen.launch_id, seen.words) == (False, "", "the engine has no such job")
    engine.stop("nobody")
    engine.proceed("nobody")
    for act in (engine.start, engine.checkpoint):
        with pytest.raises(NotReady):
            act("nobody")


def test_a_launch_is_found_behind_many_complaints_and_a_finished_one_is_never_paused(crawl: Crawl) -> None:
    engine = HeritrixEngine(crawl.client)
    launch = engine.start(crawl.job)
    with pytest.raises(Conflict, match=f"launch {launch}; to launch it must be"):
        engine.start(crawl.job)
    with (crawl.server.jobs / crawl.job / "job.log").open("a") as log:
        log.write("java.lang.IllegalStateException: at org.example.Crawl\n" * 4000)
    seen = engine.look(crawl.job)
    assert (seen.running, seen.launch_id, seen.continues) == (True, launch, "")
    crawl.client.terminate(crawl.job)
    engine.proceed(crawl.job)
    assert crawl.seen().description == "Finished: ABORTED"
    with pytest.raises(NotReady, match="does not run"):
        engine.checkpoint(crawl.job)
    crawl.until(lambda: f"{datetime.now(UTC):%Y%m%d%H%M%S}" > launch)
    assert engine.start(crawl.job) > launch, "what has ended is torn down, and launched anew"
    engine.stop(crawl.job)
    engine.stop(crawl.job)
    assert crawl.seen().state is JobState.UNBUILT
