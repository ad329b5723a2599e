"""The pages of a running crawl: who may do what there, and what they say when it cannot be asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from launches.engine import Engine
from operating.web_site import WebSite

from warcmill.audit.answers.line import AuditedLine, JobEngine
from warcmill.errors import BadConfig, NotReady, Unavailable
from warcmill.model import Json
from warcmill.web.askers import Askers, CrawlNow
from warcmill.web.hidden import HiddenNames

JOB, LAUNCH_ID = "daily", "20261121081844"
MARKUP = "http://a.example/<script>\u202e"
ANSWERS: Mapping[str, Any] = {
    "state": {
        "launch": LAUNCH_ID, "state": "RUNNING", "done": 12, "queued": 3000, "failed": 2, "bytes": 5000, "seconds": 60,
        "documents": 11, "ceilings": {"seconds": 3660},
    },
    "recent": {
        "pages": [{"uri": MARKUP, "status": 200, "type": "text/html", "size": 9, "time": "2026-11-21T08:17:37Z"}]
    },
    "active": {"elsewhere": 4, "number": 1, "uris": [{"uri": "http://a.example/now", "seconds": 3, "tries": 1}]},
    "hosts": {
        "counted": 10, "whole": False, "why": "",
        "hosts": [{"host": "a.example", "waiting": 9, "done": 12, "failed": None, "status": None, "bytes": 5000}],
    },
    "list": {"uris": [{"uri": f"http://a.example/{n}", "status": "Scheduled"} for n in range(300)], "next": 0},
}  # fmt: skip


class Crawl:
    """The way to a crawl that answers the same again and again, or raises."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def ask(self, verb: str, seconds: float, **fields: Json) -> Json:
        if self.error:
            raise self.error
        return cast("Json", ANSWERS[verb])

    def close(self) -> None:
        """Nothing is open."""


def site_of(base: Path, opened: Callable[[str], Crawl]) -> WebSite:
    engine = Engine(base)
    engines = {JOB: JobEngine("engine.own", "warcmill", driven=True), "foreign": JobEngine("engine.other", "heritrix")}
    line = AuditedLine(engine.state, engine.rootmap, {}, lambda: engine.store, engines=engines)
    return WebSite(engine, line, more={"askers": Askers(opened)})


@pytest.fixture
def site(tmp_path: Path) -> WebSite:
    return site_of(tmp_path, lambda _: Crawl())


@pytest.mark.parametrize("role", ["reader", "curator", "operator"])
def test_readers_look_and_curators_steer(site: WebSite, role: str) -> None:
    page = site.get(f"/jobs/{JOB}/watch", role=role).text
    for word in ("pause", "resume", "checkpoint", "stop"):
        assert (f"/jobs/{JOB}/{word}" in page) is (role != "reader")
    queue = site.get(f"/jobs/{JOB}/queue", {"begins": "a.example/1"}, role=role).text
    assert (f"/jobs/{JOB}/leave-out?begins=a.example%2F1" in queue) is (role != "reader")


def test_all_that_a_crawl_answers_is_shown_and_escaped(site: WebSite) -> None:
    answer = site.get(f"/jobs/{JOB}/watch", {"format": "json"}).document
    assert (answer["running"], answer["launch_id"]) == (True, LAUNCH_ID)
    assert answer["left"] == [{"by": "by its limit of time", "seconds": 3600}]
    page = site.get(f"/jobs/{JOB}/watch").text
    assert "<script>\u202e" not in page
    assert "1 h by its limit of time" in page
    assert "http://a.example/now" in page
    assert "Its other workers fetch 4 besides" in page
    assert "10 of what waits are counted so far" in page
    assert page.count('data-refresh="2"') == 5


def test_the_queue_lists_200_and_counts_what_begins_so(site: WebSite) -> None:
    every = site.get(f"/jobs/{JOB}/queue", {"format": "json"}).document
    assert (every["hits"], every["looked"], len(every["uris"])) == (300, 300, 200)
    some = site.get(f"/jobs/{JOB}/queue", {"begins": "A.example/1", "format": "json"}).document
    assert (some["hits"], some["prefix"]) == (111, "http://(example,a,)/1")
    assert site.get(f"/jobs/{JOB}/queue", {"host": "b.example", "format": "json"}).document["hits"] == 0
    assert site.get(f"/jobs/{JOB}/queue", {"begins": "javascript:x y"}).status == 400


def test_a_crawl_that_cannot_be_asked_is_named_with_what_to_do(tmp_path: Path) -> None:
    def elsewhere(job: str) -> Crawl:
        raise BadConfig("job_files", "'sftp://w2/jobs' is on another machine; a crawl is steered where it runs")

    found = site_of(tmp_path / "1", elsewhere).get(f"/jobs/{JOB}/watch", {"format": "json"}).document
    assert ("on another machine" in found["why"], "by the same command" in found["todo"]) == (True, True)
    away = site_of(tmp_path / "2", lambda _: Crawl(NotReady("job daily", "no crawl of it runs on this machine")))
    found = away.get(f"/jobs/{JOB}/watch", {"format": "json"}).document
    assert ("no crawl of it runs" in found["why"], found["running"], found["ended"]) == (True, False, False)
    assert "data-refresh" not in away.get(f"/jobs/{JOB}/watch").text
    found = away.get(f"/jobs/{JOB}/queue", {"format": "json"}).document
    assert ("no crawl of it runs" in found["why"], found["todo"]) == (True, "Start it: warcmill pulse start daily")
    silent = site_of(tmp_path / "3", lambda _: Crawl(Unavailable("the socket", "timed out")))
    found = silent.get(f"/jobs/{JOB}/watch", {"format": "json"}).document
    assert ("timed out" in found["why"], "warcmill doctor" in found["todo"]) == (True, True)


def test_a_job_of_another_engine_leads_to_its_page(site: WebSite) -> None:
    answer = site.get("/jobs/foreign/watch")
    assert (answer.status, "built-in crawler" in answer.text) == (404, True)
    assert site.get("/jobs/foreign/pause").status == 404
    assert site.get("/jobs/none/watch").status == 404


def test_leaving_out_shows_its_command_and_refuses_what_begins_no_url(site: WebSite) -> None:
    begins = "a.example/über?x=1&y='2'"
    path = f"/jobs/{JOB}/leave-out"
    shown = site.get(path, {"begins": begins, "format": "json"}, role="curator").document
    assert shown["words"] == ["job", JOB, "leave-out", "--", begins]
    assert site.get(path, role="curator").status == 200
    refused = site.post(path, {"begins": "x y"}, role="curator")
    assert (refused.status, "is not the beginning of a URL" in refused.text) == (400, True)
    assert site.post(path, {"begins": begins}, role="curator").status == 303
    assert site.get(path, {"begins": begins}, role="reader").status == 403


def test_readers_get_no_name_of_what_is_hidden() -> None:
    pages = [{"uri": "http://a.example/x"}, {"uri": "http://b.example/"}]
    now = CrawlNow({"recent": {"pages": pages}, "hosts": {"hosts": [{"host": "a.example"}]}, "state": {"first": "ok"}})
    found = HiddenNames((b"example,a)/",)).without(now)
    assert found.answers == {"recent": {"pages": pages[1:]}, "hosts": {"hosts": []}, "state": {"first": "ok"}}
