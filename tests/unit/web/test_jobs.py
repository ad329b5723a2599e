"""The pages of jobs: they read the state alone, in each role, whatever is broken or away."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from hashlib import sha512
from pathlib import Path
from typing import Any

import pytest
from launches.engine import LAUNCH, Engine
from operating.web_site import WebSite

from warcmill import layout
from warcmill.audit.answers import health
from warcmill.audit.answers.line import AuditedLine, JobEngine
from warcmill.base import clock
from warcmill.base.schedule import DAILY, HOURLY, Schedule
from warcmill.errors import BadConfig, Unavailable
from warcmill.markers.claim import Claim
from warcmill.model import FileRef, Launch
from warcmill.web.actions import FOLDER, TakenAction

JOB, NOW = LAUNCH.job, datetime.now(UTC).replace(microsecond=0)
FEED = b'{"id": 1, "seeds": ["http://a.example/<script>"]}\n{"id": 2}\n'
CRAWL = {
    "job": JOB, "engine": "own", "running": True, "launch_id": LAUNCH.id, "state": "RUNNING <b>", "done": 1_234,
    "queued": 5_678, "per_minute": 90, "kib_per_second": 12, "alerts": 1, "said": ["<i>it \u202eis slow"],
}  # fmt: skip


def away() -> Any:
    raise Unavailable("root 'store'", "it is away")


class JobSite(WebSite):
    """The pages of a line with one job of our own crawler, whose roots are all away but the state."""

    def __init__(self, base: Path, **more: Any) -> None:
        engine = Engine(base)
        engines = {JOB: JobEngine("engine.own", "warcmill", driven=True)}
        line = AuditedLine(engine.state, engine.rootmap, {}, away, **{"engines": engines, **more})
        super().__init__(engine, line)
        assert self.app, "it began while all was there"
        for root in ("output", "jobs", "store"):
            shutil.rmtree(engine.folders[root], ignore_errors=True)

    def document(self, path: str) -> Any:
        return self.get(path, {"format": "json"}).document


@pytest.fixture
def site(tmp_path: Path) -> JobSite:
    """Its job was due some hours ago and was not launched; it has an old launch, and a feed that was read."""
    made = JobSite(tmp_path, schedules={JOB: Schedule(NOW - timedelta(days=2, hours=3), DAILY)})
    state = made.roots.state
    started = layout.key("pulse.Started", LAUNCH)
    state.publish(started, Claim(started, facts={"due": LAUNCH.id}))
    due = clock.digits(NOW - timedelta(days=2, hours=3))
    key, digest = layout.feed_key(JOB, due), sha512(FEED).hexdigest()
    state.store.replace(layout.feed_path(digest), FEED)
    kept = FileRef("state", layout.feed_path(digest), len(FEED), digest)
    facts: Any = {"source": "https://curators.example/<feed>", "faulty": ["2: it has no seeds <b>"]}
    state.publish(key, Claim(key, outputs=(kept,), counts={"targets": 1, "of_job": 1}, facts=facts))
    return made


def test_a_job_has_its_schedule_what_never_ran_its_launches_and_the_feed_as_read(site: JobSite) -> None:
    found = site.document(f"/jobs/{JOB}")
    assert (found["frequency"], found["kind"]) == ("DAILY", "warcmill")
    assert found["next_due"] == clock.text(NOW + timedelta(hours=21))
    assert found["last_due"] == clock.text(NOW - timedelta(hours=3))
    assert [one["name"] for one in found["owed"]] == [
        clock.digits(NOW - timedelta(days=days, hours=3)) for days in (2, 1, 0)
    ]
    assert [(one["launch_id"], one["state"]) for one in found["launches"]] == [(LAUNCH.id, "running")]
    assert (found["feed"]["targets"], len(found["feed"]["faulty"])) == (1, 1)
    page = site.get(f"/jobs/{JOB}").text
    assert f"warcmill pulse start {JOB}" in page
    assert f'href="/launches/{JOB}/{LAUNCH.id}"' in page
    assert "http://a.example/&lt;script&gt;" in page
    assert not {"<b>", "<script>", "<feed>"} & set(page.replace(">", "> ").split())
    (listed,) = site.document("/jobs")["jobs"]
    of_both = listed.keys() & found.keys()
    assert {name: listed[name] for name in of_both} == {name: found[name] for name in of_both}
    assert {"engine", "frequency", "next_due", "owed", "crawl"} <= of_both
    assert f'href="/jobs/{JOB}"' in site.get("/jobs").text


def test_the_launches_of_a_package_index_have_their_window_of_serials(site: JobSite) -> None:
    assert "Serials" not in site.get(f"/jobs/{JOB}").text
    assert [one["serials"] for one in site.document(f"/jobs/{JOB}")["launches"]] == [""]
    key = layout.feed_key(JOB, LAUNCH.id)  # LAUNCH was started for the crawl due then
    kept = FileRef("state", layout.feed_path("ab" * 64), 1, "ab" * 64)
    facts: Any = {"source": "https://pypi.example/", "serial_from": 31_415, "serial_to": 31_999}
    state = site.roots.state
    state.publish(key, Claim(key, outputs=(kept,), counts={"targets": 1, "of_job": 1}, facts=facts))
    assert [one["serials"] for one in site.document(f"/jobs/{JOB}")["launches"]] == ["31415-31999"]
    page = site.get(f"/jobs/{JOB}").text
    assert "Serials</th>" in page
    assert "<td>31415-31999</td>" in page


@pytest.mark.parametrize("role", ["reader", "curator", "operator"])
def test_only_an_operator_sees_the_actions_of_others(site: JobSite, role: str) -> None:
    taken = TakenAction("20161019234428-0123456789ab", "stop", ("pulse", "stop", JOB), "Ann <b>", JOB, exit_code=0)
    site.state.replace(f"{FOLDER}/{taken.id}.json", json.dumps(taken.record()).encode())
    for path in ("/jobs", f"/jobs/{JOB}"):
        page, document = site.get(path, role=role).text, site.get(path, {"format": "json"}, role=role).document
        is_operator = role == "operator"
        assert ("Ann &lt;b&gt;" in page) is is_operator
        assert ("/scan" in page) is is_operator
        assert (f"/jobs/{JOB}/stop" in page) is (role != "reader" and path != "/jobs")
        assert [one["id"] for one in document.get("actions", [])] == [taken.id] * is_operator


def test_a_curator_sees_his_own_actions(site: JobSite) -> None:
    taken = TakenAction("20161019234428-0123456789ab", "stop", ("pulse", "stop", JOB), "curator", JOB, exit_code=0)
    site.state.replace(f"{FOLDER}/{taken.id}.json", json.dumps(taken.record()).encode())
    document = site.get(f"/jobs/{JOB}", {"format": "json"}, role="curator").document
    assert [one["id"] for one in document["actions"]] == [taken.id]


def test_progress_is_that_of_the_last_report_with_its_age(site: JobSite) -> None:
    health.write(site.roots.state, {"written": clock.now(), "crawls": [CRAWL]})  # type: ignore[dict-item]
    found = site.document(f"/jobs/{JOB}")["crawl"]
    assert (found["done"], found["queued"], found["launch_id"]) == (1_234, 5_678, LAUNCH.id)
    page = site.get(f"/jobs/{JOB}").text
    assert 'max="6912" value="1234"' in page
    assert 'id="running" data-refresh="5"' in page
    assert "&lt;i&gt;it \\u202eis slow" in page
    assert "1,234 done, 5,678 queued" in site.get("/jobs").text


@pytest.mark.parametrize("report", [
    b"", b"{", b"[]", b"{}", b'{"crawls": 1, "written": "x"}', b'{"crawls": [1, {}, null], "written": "2016"}',
    json.dumps({"written": "2016-10-19T23:44:28Z", "crawls": [{**CRAWL, "done": "many"}]}).encode(),
    json.dumps({"written": None, "crawls": [CRAWL]}).encode(), b"[" * 100_000,
])  # fmt: skip
def test_a_torn_report_is_none(site: JobSite, report: bytes) -> None:
    site.state.replace(health.PATH, report)
    assert site.document(f"/jobs/{JOB}")["crawl"] is None
    assert "no end on record" in site.get(f"/jobs/{JOB}").text
    assert site.get("/jobs").status == 200


def test_an_old_report_shows_its_age(site: JobSite) -> None:
    health.write(site.roots.state, {"written": "2016-10-19T23:44:28Z", "crawls": [CRAWL]})  # type: ignore[dict-item]
    assert "2016-10-19 23:44:28 UTC" in site.get(f"/jobs/{JOB}").text


def test_broken_markers_hide_nothing_else(site: JobSite) -> None:
    for path in (site.roots.folders["state"]).rglob("*.*"):
        if path.is_file() and "web" not in path.parts and path.name != ".warcmill.json":
            path.write_bytes(b"torn <b>")
    found = site.document(f"/jobs/{JOB}")
    assert found["feed"] is None, "status names its marker"
    assert [one["launch_id"] for one in found["launches"]] == [LAUNCH.id]
    assert site.get(f"/jobs/{JOB}").status == site.get("/jobs").status == 200


def test_a_section_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    site = JobSite(tmp_path, wrong=(BadConfig("[job.x] frequency", "<b> is none"),))
    assert "&lt;b&gt; is none" in site.get("/jobs").text
    assert site.document("/jobs")["wrong"]


@pytest.mark.parametrize("name", ["other", "../daily", "daily%00", "d\0", "\u202e", "x" * 100_000, "2016-10", "web"])
def test_a_job_that_there_is_not_is_not_found(site: JobSite, name: str) -> None:
    assert site.get(f"/jobs/{name}").status == 404


def test_a_job_that_only_the_state_knows_has_a_page_without_actions(site: JobSite) -> None:
    old = Launch("gone", "20150101000000")
    key = layout.key("operator.Close", old)
    site.roots.state.publish(key, Claim(key, facts={"reason": "it is over"}))
    found = site.document("/jobs/gone")
    assert (found["engine"], found["total"], found["frequency"]) == ("", 1, "")
    assert "/jobs/gone/start" not in site.get("/jobs/gone").text
    assert [one["job"] for one in site.document("/jobs")["jobs"]] == [JOB, "gone"]


def test_a_year_without_a_run_is_a_few_lines(tmp_path: Path) -> None:
    site = JobSite(tmp_path, schedules={JOB: Schedule(NOW - timedelta(days=365), HOURLY)})
    assert len(site.document(f"/jobs/{JOB}")["owed"]) > 1_000
    assert site.get(f"/jobs/{JOB}").text.count('<li class="gap') <= 3


def test_engines_are_asked_while_a_crawl_may_run_and_not_else(site: JobSite, tmp_path: Path) -> None:
    for path in ("/jobs", f"/jobs/{JOB}"):
        site.get(path)
    assert len(site.refreshed) == 2
    idle = JobSite(tmp_path / "idle")
    for path in ("/", "/jobs", f"/jobs/{JOB}"):
        assert "data-refresh" not in idle.get(path).text
    assert not idle.refreshed


def test_the_first_page_has_the_running_crawls(site: JobSite) -> None:
    health.write(site.roots.state, {"written": clock.now(), "crawls": [CRAWL]})  # type: ignore[dict-item]
    page = site.get("/").text
    assert "1,234" in page
    assert 'id="running" data-refresh="5"' in page
    assert [one["job"] for one in site.document("/")["running"]] == [JOB]
