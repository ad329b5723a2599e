"""A due crawl by a feed, from the cron line to a real engine that crawls what the feed says; and days without one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from line import Line, line_at
from sites.several_hosts import Page, page, serve, swift_profile

from servers.heritrix import HeritrixServer as Server
from warcmill import layout
from warcmill.clients.heritrix.http import EngineHttp
from warcmill.clients.heritrix.rest import Heritrix
from warcmill.clients.heritrix.xml import ACTIVE, JobState
from warcmill.layout import OutputLayout
from warcmill.model import Launch

NUMBERS = count(1)
PAGES = 40


@dataclass
class Fed:
    """A line whose one job is crawled by a feed, and the engine that crawls it. The engine knows no such job yet."""

    line: Line
    client: Heritrix
    job: str
    feed: Path
    port: int
    began: datetime = field(default_factory=lambda: datetime.now(UTC))

    def feeds(self, *hosts: str) -> None:
        """Write a feed of these hosts."""
        self.feed.write_text("\n".join(json.dumps(self.target(host)) for host in hosts))

    def target(self, host: str) -> dict[str, Any]:
        schedules = [{"startDate": "2026-01-01", "frequency": "DAILY"}]
        return {"id": host, "seeds": [f"http://{host}:{self.port}/"], "schedules": schedules}

    def starts(self, day: int) -> tuple[int, str, str]:
        """`warcmill pulse start` for the due time of a day, so many days ago: exit code, due time, what was said."""
        due = f"{self.began - timedelta(days=day):%Y%m%d%H%M%S}"
        done = self.line.warcmill("pulse", "start", self.job, "--due", due)
        return done.returncode, due, done.stdout + done.stderr

    def facts(self, due: str) -> tuple[Launch, dict[str, Any]]:
        """The launch of a due crawl, and what its 01.started says."""
        state = self.line.state
        launch = Launch(self.job, str(state.require(layout.due_key(self.job, due)).claim.facts["launch_id"]))
        return launch, dict(state.require(layout.key("pulse.Started", launch)).claim.facts)

    def crawled(self) -> set[str]:
        """The crawl log's hosts once the crawl has come far enough."""
        deadline = time.monotonic() + 300
        while self.client.job(self.job).downloaded < 8:  # type: ignore[union-attr]
            assert time.monotonic() < deadline
            time.sleep(0.2)
        launch = self.client.launch_id(self.job)
        log = self.line.folders["output"] / self.job / str(launch) / "logs" / "crawl.log"
        urls = (line.split()[3] for line in log.read_text().splitlines())
        return {urlsplit(url).hostname or "" for url in urls if not url.startswith("dns:")}

    def stop(self) -> None:
        assert self.line.warcmill("pulse", "stop", self.job).returncode == 0


@pytest.fixture(scope="module")
def port(heritrix: Server) -> Iterator[int]:
    web: dict[tuple[str, str], Page] = {}
    for host in ("one.example", "two.example", "three.example"):
        web[host, "/"] = page([f"/{number}" for number in range(PAGES)])
        web |= {(host, f"/{number}"): page([], filler=number) for number in range(PAGES)}
    with serve(web) as serving:
        heritrix.resolve("one.example", "two.example", "three.example")
        yield serving


@pytest.fixture
def fed(heritrix: Server, port: int, tmp_path: Path) -> Iterator[Fed]:
    job = f"fed{next(NUMBERS)}"
    (tmp_path / "output").symlink_to(heritrix.jobs)
    line = line_at(tmp_path, OutputLayout.JOB_FIRST)
    (tmp_path / "profile.cxml").write_text(swift_profile())
    feed = tmp_path / "feed.jsonl"
    sections = f"""
[engine.first]
kind=heritrix
url={heritrix.url}
user={heritrix.user}
password_file={heritrix.folder / "password"}
certificate={heritrix.certificate}
jobs={job}
[job.{job}]
frequency=daily
start=2026-01-01T00:00:00Z
[feed]
jobs={job}
source={feed}
contact=http://archive.example/
profile={tmp_path / "profile.cxml"}
engine_output={heritrix.jobs}
"""
    line.config.write_text(line.config.read_text() + sections)
    client = Heritrix(EngineHttp(heritrix.url, heritrix.user, heritrix.password, heritrix.certificate), patience=60)
    yield Fed(line, client, job, feed, port)
    found = client.job(job)
    if found is not None and found.state in ACTIVE:
        client.terminate(job)
    if found is not None:
        client.teardown(job)
    client.close()


def test_each_due_crawl_is_crawled_by_the_feed_of_its_day(fed: Fed) -> None:
    fed.feeds("one.example", "two.example")
    code, first, said = fed.starts(2)
    assert code == 0, said
    launch, facts = fed.facts(first)
    assert facts["targets"] == 2
    assert set(facts["files"]) == {"crawler-beans.cxml", "seeds.txt", "surts.txt", "exclude.txt"}
    assert fed.crawled() == {"one.example", "two.example"}

    fed.feeds("two.example", "three.example")
    code, second, said = fed.starts(1)
    assert code == 0, said
    after, facts = fed.facts(second)
    assert after > launch, "the launch before was stopped"
    assert facts["feed"] == fed.line.state.require(layout.feed_key(fed.job, second)).claim.outputs[0].sha512
    assert fed.crawled() == {"two.example", "three.example"}
    assert fed.starts(1)[0] == 0
    doctor = json.loads(fed.line.warcmill("doctor", "--json").stdout)
    levels = {check["name"]: check["level"] for check in doctor["checks"]}
    assert (levels["profile"], levels[f"job {fed.job}"]) == ("ok", "ok")
    fed.stop()


def test_by_a_feed_that_cannot_be_right_nothing_starts_and_nothing_is_stopped(fed: Fed, tmp_path: Path) -> None:
    profile = tmp_path / "profile.cxml"
    profile.write_text(profile.read_text().replace("DelayMs=40", "DelayMs=3000"))
    fed.feeds("one.example", "two.example", "three.example")
    code, first, said = fed.starts(3)
    assert code == 0, said
    launches = fed.client.job(fed.job)
    assert launches
    for wrong in ("", "<html>", json.dumps(fed.target("one.example"))):
        fed.feed.write_text(wrong)
        code, due, said = fed.starts(1)
        assert code == 30, said
        assert fed.line.state.read(layout.feed_key(fed.job, due)) is None
    assert "less than half of the 3" in said
    fed.feed.unlink()
    assert "no such file" in fed.starts(1)[2]
    seen = fed.client.job(fed.job)
    assert seen
    assert (seen.launches, seen.state) == (launches.launches, JobState.RUNNING)
    assert fed.client.launch_id(fed.job) == fed.facts(first)[0].id, "nothing was launched"

    config = fed.line.config.read_text()
    fed.line.config.write_text(f"{config}fallback=true\n")
    code, due, said = fed.starts(1)
    assert code == 0, said
    assert fed.line.state.require(layout.feed_key(fed.job, due)).claim.facts["again"] == first
    assert fed.facts(due)[1]["targets"] == 3
    fed.stop()
    assert fed.client.job(fed.job).state is JobState.UNBUILT  # type: ignore[union-attr]


def test_doctor_refuses_a_profile_and_a_job_that_leave_something_off(fed: Fed, tmp_path: Path) -> None:
    fed.feeds("one.example")
    profile = tmp_path / "profile.cxml"
    profile.write_text(swift_profile().replace("forgetAllButLatest=false", "forgetAllButLatest=true"))
    assert fed.client.create(fed.job), "with the engine's own profile"
    done = fed.line.warcmill("doctor", "--json")
    assert done.returncode == 1
    told = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert "forgetAllButLatest must be false" in told["profile"]["text"]
    assert "logExtraInfo must be true" in told[f"job {fed.job}"]["text"]
    code, _, said = fed.starts(1)
    assert code == 30, said
    assert "forgetAllButLatest must be false" in said
    assert fed.client.launch_id(fed.job) is None
