"""The pages of a running crawl: who may do what there, and what they say when it cannot be asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from launches import launch_sorts
from launches.engine import Engine
from msgspec.structs import replace
from operating.job_desk import FolderDesk
from operating.web_site import WebSite

from warcmill.audit.answers.line import AuditedLine, JobEngine
from warcmill.base import clock
from warcmill.errors import BadConfig, NotReady, Unavailable
from warcmill.markers.papers import JobPapers
from warcmill.model import Json
from warcmill.web.actions import TakenAction
from warcmill.web.askers import Askers, CrawlNow
from warcmill.web.hidden import HiddenNames

JOB, LAUNCH_ID, ID = "daily", "20261121081844", "20261130060249-914cb9048908"
MARKUP = "http://a.example/<script>\u202e"
ANSWERS: Mapping[str, Any] = {
    "state": {
        "launch": LAUNCH_ID, "state": "RUNNING", "done": 12, "queued": 3000, "failed": 2, "bytes": 5000, "seconds": 60,
        "documents": 11, "ceilings": {"seconds": 3660}, "least_ms": 500,
    },
    "recent": {
        "pages": [{"uri": MARKUP, "status": 200, "type": "text/html", "size": 9, "time": "2026-11-21T08:17:37Z"}]
    },
    "active": {"elsewhere": 4, "number": 1, "uris": [{"uri": "http://a.example/now", "seconds": 3, "tries": 1}]},
    "hosts": {
        "counted": 10, "whole": False, "why": "",
        "hosts": [{"host": "a.example", "waiting": 9, "done": 12, "failed": None, "status": None, "bytes": 5000}],
    },
}  # fmt: skip
QUEUE = [{"uri": f"http://a.example/{n}", "status": "Scheduled"} for n in range(6000)]


class Crawl:
    """The way to a crawl that answers the same again and again, or raises."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def ask(self, verb: str, seconds: float, **fields: Json) -> Json:
        if self.error:
            raise self.error
        if verb == "list":
            after, limit = cast("int", fields["after"]), cast("int", fields["limit"])
            end = after + limit
            return {"uris": [*QUEUE[after:end]], "next": end if end < len(QUEUE) else 0}
        return cast("Json", ANSWERS[verb])

    def close(self) -> None:
        """Nothing is open."""


def site_of(base: Path, opened: Callable[[str], Crawl]) -> WebSite:
    engine = Engine(base)
    engines = {JOB: JobEngine("engine.own", "warcmill", driven=True), "foreign": JobEngine("engine.other", "heritrix")}
    line = AuditedLine(engine.state, engine.rootmap, {}, lambda: engine.store, engines=engines)
    return WebSite(engine, line, more={"askers": Askers(opened)})


def desk_of(base: Path, crawl: Crawl | None = None) -> tuple[WebSite, JobPapers]:
    """The pages of a job that has papers."""
    base.mkdir(exist_ok=True)
    made = site_of(base, lambda _: crawl or Crawl())
    folder = made.roots.folders["jobs"] / JOB
    folder.mkdir(exist_ok=True)
    (folder / "crawl.toml").write_text("hops = 3\n")
    (folder / "seeds.txt").write_text("http://a.example/\n")
    desk = FolderDesk(cast("Engine", made.roots), JOB)
    made.more["job_desk"] = desk
    return made, desk.papers(JOB)


@pytest.fixture
def site(tmp_path: Path) -> WebSite:
    return site_of(tmp_path, lambda _: Crawl())


@pytest.mark.parametrize("role", ["reader", "curator", "operator"])
def test_readers_look_and_curators_steer(site: WebSite, role: str) -> None:
    page = site.get(f"/jobs/{JOB}/watch", role=role).text
    for word in ("pause", "resume", "checkpoint", "stop", "limits", "leave-out"):
        assert (f"/jobs/{JOB}/{word}" in page) is (role != "reader")
    queue = site.get(f"/jobs/{JOB}/queue", {"rule": "a.example/1"}, role=role).text
    assert (f"/jobs/{JOB}/leave-out?by=beginning&amp;rule=a.example%2F1" in queue) is (role != "reader")


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


def test_the_queue_lists_200_at_a_time_of_all_and_of_what_a_rule_hits(site: WebSite) -> None:
    def listed(**fields: str) -> Any:
        return site.get(f"/jobs/{JOB}/queue", {**fields, "format": "json"}).document

    every = listed()
    assert (every["hits"], every["looked"], len(every["uris"]), every["next"]) == (200, 200, 200, 200)
    for fields in ({"rule": "A.example/1"}, {"by": "rule", "rule": "example/1"}, {"by": "rule", "rule": "re: .*/1.*"}):
        found, after, parts = list[str](), 0, 0
        while parts == 0 or after:
            part = listed(**fields, after=str(after))
            assert len(part["uris"]) <= 200
            found += [one["uri"] for one in part["uris"]]
            after, parts = part["next"], parts + 1
        assert found == [one["uri"] for one in QUEUE if "/1" in one["uri"]]
        assert parts > len(found) // 200, "none is counted alone"
    assert listed(rule="A.example/1")["rule"] == "http://(example,a,)/1"
    assert listed(host="b.example")["hits"] == 0
    for wrong in ({"rule": "javascript:x y"}, {"by": "rule", "rule": "re: ("}):
        assert site.get(f"/jobs/{JOB}/queue", wrong).status == 400


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


def test_leaving_out_shows_what_it_hits_before_the_job_keeps_the_rule(tmp_path: Path) -> None:
    site, papers = desk_of(tmp_path)
    path = f"/jobs/{JOB}/leave-out"
    shown = site.get(path, {"rule": "a.example/5", "format": "json"}, role="curator").document
    assert (shown["hits"], shown["looked"], shown["more"], shown["rule"]) == (111, 5000, True, "http://(example,a,)/5")
    page = site.get(path, {"rule": "a.example/5"}, role="curator").text
    assert f"warcmill job {JOB} leave-out -- a.example/5" in page
    assert "At least 111 of the first 5,000 that wait would be left out." in page
    assert site.get(path, {"rule": "x"}, role="reader").status == 403
    assert "Leave out</button>" not in site.get(path, role="curator").text, "nothing is shown yet"
    for by, rule, why in (
        ("beginning", "x y", "is not the beginning of a URL"),
        ("rule", "re: (", "expression of RE2"),
    ):
        refused = site.post(path, {"by": by, "rule": rule, "do": "leave"}, role="curator")
        assert (refused.status, why in refused.text) == (400, True)
    rule = {"by": "rule", "rule": "re: (a+)+[^/]*$"}
    looked = site.post(path, {**rule, "do": "leave", "seen": shown["seen"]}, role="curator")
    assert (looked.status, "0 of the first 5,000" in looked.text) == (200, True), "another rule was shown"
    seen = site.get(path, {**rule, "format": "json"}, role="curator").document["seen"]
    assert site.post(path, {**rule, "seen": seen}, role="curator").status == 200, "the other button"
    assert not [*papers.editions.all()]
    for number in ("2", "0"):
        done = site.post(path, {**rule, "seen": seen, "do": "leave"}, role="curator")
        assert (done.status, done.header("location")) == (303, f"/jobs/{JOB}/watch?saved={number}")
    newest = next(iter(papers.editions.all()))
    assert (newest.who, newest.why) == ("curator", "leave out re: (a+)+[^/]*$")
    assert "Edition 2 of the job is saved" in site.get(f"/jobs/{JOB}/watch", {"saved": "2"}, role="curator").text


def test_limits_are_set_at_once_and_kept_if_that_is_wished(tmp_path: Path) -> None:
    site, papers = desk_of(tmp_path)
    path = f"/jobs/{JOB}/limits"
    shown = site.get(path, {"format": "json"}, role="curator").document
    assert shown["limits"] == {"bytes": "", "documents": "", "least": "0.5", "seconds": "61 min"}
    for fields, why in (({}, "nothing has changed"), ({"bytes": "much"}, "is not an amount")):
        refused = site.post(path, {**shown["limits"], **fields}, role="curator")
        assert (refused.status, why in refused.text) == (400, True)
    wanted = {**shown["limits"], "documents": "500", "seconds": "", "least": ""}
    done = site.post(path, wanted, role="curator")
    assert (done.status, f"/jobs/{JOB}/watch?action=" in done.header("location")) == (303, True)
    action = site.get(f"/actions/{done.header('location').partition('=')[2]}", {"format": "json"}, role="curator")
    assert action.document["words"] == ["job", JOB, "set", "--documents=500", "--seconds=0"]
    assert not [*papers.editions.all()]
    kept = site.post(path, {**wanted, "keep": "1"}, role="curator").header("location")
    assert kept.startswith(f"/jobs/{JOB}/watch?saved=2&action=")
    assert b"documents = 500" in (papers.folder / "crawl.toml").read_bytes()
    assert site.get(path, role="reader").status == 403
    idle, papers = desk_of(tmp_path / "idle", Crawl(NotReady("job daily", "no crawl of it runs")))
    assert idle.post(path, {"documents": "5"}, role="curator").status == 400
    assert idle.post(path, {"documents": "5", "keep": "1"}, role="curator").header("location").endswith("?saved=2")


def test_readers_get_no_name_of_what_is_hidden() -> None:
    pages = [{"uri": "http://a.example/x"}, {"uri": "http://b.example/"}]
    now = CrawlNow({"recent": {"pages": pages}, "hosts": {"hosts": [{"host": "a.example"}]}, "state": {"first": "ok"}})
    found = HiddenNames((b"example,a)/",)).without(now)
    assert found.answers == {"recent": {"pages": pages[1:]}, "hosts": {"hosts": []}, "state": {"first": "ok"}}


def test_a_wish_leads_to_its_crawl_before_that_has_begun_and_says_how_it_went_after(tmp_path: Path) -> None:
    away = Crawl(NotReady("job daily", "no crawl of it runs on this machine"))
    site, path = site_of(tmp_path, lambda _: away), f"/jobs/{JOB}/watch"
    site.actions.program = ("sh", "-c", "sleep 3; exit 4")
    action = TakenAction(ID, "crawl", ("crawl", "--", "http://a.example/"), "curator", JOB, started=clock.now())
    site.actions.start(site.state, action)
    shown = site.get(path, {"action": ID}, role="curator").text
    assert ("The crawl has not begun yet" in shown, 'data-refresh="2"' in shown) == (True, True)
    assert f'href="/actions/{ID}"' in shown
    for role, fields in (("reader", {"action": ID}), ("curator", {"action": "x"}), ("curator", {})):
        assert "not begun yet" not in site.get(path, fields, role=role).text
    while site.actions.is_running(ID):
        time.sleep(0.05)
    shown = site.get(path, {"action": ID}, role="curator").text
    assert ("exit code 4" in shown, "not begun yet" in shown, "data-refresh" in shown) == (True, False, False)
    away.error = None
    deadline = time.monotonic() + 60
    while "http://a.example/now" not in site.get(path, {"action": ID}, role="curator").text:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_crawl_that_has_ended_leads_to_what_the_line_did_with_it(tmp_path: Path) -> None:
    away = Crawl(NotReady("job", "no crawl of it runs on this machine"))
    site = site_of(tmp_path, lambda _: away)
    job = "refused"
    assert job in launch_sorts.leave_all(cast("Engine", site.roots))
    site.audited = replace(site.audited, engines={job: JobEngine("engine.own", "warcmill", driven=True)})
    found, shown = site.get(f"/jobs/{job}/watch", {"format": "json"}).document, site.get(f"/jobs/{job}/watch").text
    assert found["line"]["In the store"]
    assert f'href="/launches/{job}/{found["launch_id"]}/pages"' in shown
