"""The desk of jobs: the list, the calendar, several at once, a new title; by role, with hostile names and words."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from launches.engine import LAUNCH, Engine
from msgspec.structs import replace
from operating.job_desk import FolderDesk
from operating.web_client import WebAnswer, ask
from operating.web_site import WebSite
from waiting import wait_for

from warcmill.audit.answers.days import LaunchOfDay
from warcmill.audit.answers.line import JobEngine
from warcmill.audit.progress_grid import Mark
from warcmill.base.schedule import DAILY, HOURLY, Schedule
from warcmill.markers import job_edits
from warcmill.model import stamp_time
from warcmill.web.views.jobs import desk

JOB, OTHER, FOREIGN = LAUNCH.job, "other", "heritrix"
TITLE = "<b>News</b> \u202eof us"
ENGINES = {
    **{job: JobEngine("engine.own", "warcmill", driven=True) for job in (JOB, OTHER)},
    FOREIGN: JobEngine("engine.far", "heritrix", driven=True),
}
START = stamp_time("20261101010000")


@pytest.fixture
def site(tmp_path: Path) -> WebSite:
    """Two jobs of our own, one with a title and a schedule, and one of another engine; actions print their words."""
    engine = Engine(tmp_path)
    for job in (JOB, OTHER):
        folder = engine.folders["jobs"] / job
        folder.mkdir(exist_ok=True)
        (folder / "crawl.toml").write_text("hops = 3\n")
        (folder / "seeds.txt").write_text("http://a.example/\n")
    papers = FolderDesk(engine, JOB, OTHER)
    fields = {"title": TITLE.replace("\u202e", ""), "tags": "press & <i>, b"}
    job_edits.save(papers.papers(JOB), job_edits.of_form(fields), who="ada", why="")
    schedules = {JOB: Schedule(START, DAILY, at="02:00", zone="Europe/Berlin"), OTHER: Schedule(START, HOURLY)}
    line = replace(engine.audited, engines=ENGINES, schedules=schedules)
    return WebSite(engine, line, program=("echo", "done:"), more={"job_desk": papers})


def post(site: WebSite, path: str, role: str, form: str, **fields: Any) -> WebAnswer:
    """Post a form whose fields may come several times."""
    encoded = urlencode({"form": form, **fields}, doseq=True).encode()
    headers = site.headers(role, origin="http://127.0.0.1:8090")
    headers |= {"content-type": "application/x-www-form-urlencoded", "content-length": str(len(encoded))}
    return ask(site.app, path, method="POST", headers=headers, sent_form=encoded)


def query(**fields: Any) -> bytes:
    return urlencode(fields, doseq=True).encode()


def get(site: WebSite, path: str, role: str = "curator", **fields: Any) -> WebAnswer:
    return ask(site.app, path, headers=site.headers(role), query=query(**fields))


def test_the_list_has_each_job_with_its_title_and_its_next_due_time(site: WebSite) -> None:
    page = site.get("/jobs").text
    assert "&lt;b&gt;News&lt;/b&gt;" in page
    assert "<b>News" not in page
    assert "02:00 Europe/Berlin" in page
    assert 'href="/jobs?tag=press%20%26%20%3Ci%3E"' in page
    assert page.count('type="checkbox"') == 3
    assert "checkbox" not in site.get("/jobs", role="reader").text
    chosen = site.get("/jobs", {"tag": "press & <i>", "words": "news"}).text
    assert (f'value="{JOB}"' in chosen, f'value="{OTHER}"' in chosen) == (True, False)
    assert "warcmill jobs --tag=&#39;press &amp; &lt;i&gt;&#39; -- news" in chosen
    assert "No job has these words" in site.get("/jobs", {"words": "nothing"}).text
    document = site.get("/jobs", {"format": "json", "words": "news"}).document
    assert [one["tags"] for one in document["jobs"]] == [["press & <i>", "b"]]


def test_a_deleted_job_is_below_the_list_and_its_page_says_so(site: WebSite) -> None:
    job_edits.delete(site.more["job_desk"].papers(OTHER), who="ada")
    page = site.get("/jobs").text
    assert (f'value="{OTHER}"' in page, page.partition("<h2>Deleted</h2>")[2].count(f"/jobs/{OTHER}")) == (False, 1)
    assert "It was deleted" in site.get(f"/jobs/{OTHER}").text
    assert "its history brings it back" in site.get(f"/jobs/{OTHER}/start").text
    assert site.get(f"/jobs/{OTHER}/history", role="curator").status == 200


def test_the_calendar_has_the_days_in_both_clocks(site: WebSite) -> None:
    page = site.get("/calendar", role="reader").text
    assert page.count("<h2>") == 28
    assert page.count("02:00 Europe/Berlin") >= 27
    assert "24 times" in page
    document = site.get("/calendar", {"format": "json", "words": "news"}).document
    assert {due["job"] for day in document["days"] for due in day["due"]} == {JOB}
    day = document["days"][3]["day"]
    alone = site.get("/calendar", {"day": day}).text
    assert (alone.count("<h2>"), day in alone) == (1, True)
    assert site.get("/calendar", {"day": "2016-10-19"}).status == 400


def test_a_day_with_many_jobs_shows_some_and_leads_to_all(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    schedules = {f"job{number:02}": Schedule(START, DAILY) for number in range(30)}
    site = WebSite(engine, replace(engine.audited, schedules=schedules))
    page = site.get("/calendar").text
    assert page.count('href="/jobs/job') == 27 * desk.ON_A_DAY or page.count('href="/jobs/job') == 28 * desk.ON_A_DAY
    day = site.get("/calendar", {"format": "json"}).document["days"][5]["day"]
    assert f'<a href="/calendar?day={day}">All 30</a>' in page
    assert site.get("/calendar", {"day": day}).text.count('href="/jobs/job') == 30


def test_several_jobs_are_paused_at_once_and_each_says_what_came_of_it(site: WebSite) -> None:
    jobs = [JOB, OTHER, FOREIGN, "nobody"]
    seen = get(site, "/jobs-at-once", do="pause", job=jobs)
    assert f"warcmill job {JOB} pause" in seen.text
    assert seen.text.count('type="hidden" name="job"') == 4
    form = get(site, "/jobs-at-once", do="pause", job=jobs, format="json").document["form"]
    for _ in range(2):  # a form that is posted twice acts once
        done = post(site, "/jobs-at-once", "curator", form, do="pause", job=jobs)
        assert done.status == 303
    where, _, asked = done.header("Location").partition("?")
    assert where == "/jobs-at-once"

    def each() -> list[Any]:
        found = ask(site.app, where, headers=site.headers("curator"), query=f"{asked}&format=json".encode())
        return list(found.document["jobs"])

    wait_for(lambda: not any(one["action"] and one["action"]["running"] for one in each()))
    assert [(one["job"], one["said"]) for one in each()] == [
        (JOB, f"done: job {JOB} pause"), (OTHER, f"done: job {OTHER} pause"), (FOREIGN, ""), ("nobody", ""),
    ]  # fmt: skip
    assert ["built-in crawler" in one["why"] for one in each()] == [False, False, True, False]
    assert "no engine that crawls a job of this name" in each()[3]["why"]
    assert len([name for name in site.state.names("web/actions") if name.endswith(".json")]) == 2
    page = ask(site.app, where, headers=site.headers("curator"), query=asked.encode()).text
    assert "exit code 0" in page
    assert "<button>Pause" not in page


def test_what_another_curator_began_is_not_shown(site: WebSite) -> None:
    form = get(site, "/jobs-at-once", "operator", do="start", job=JOB, format="json").document["form"]
    done = post(site, "/jobs-at-once", "operator", form, do="start", job=[JOB])
    asked = done.header("Location").partition("?")[2].encode() + b"&format=json"
    documents = [
        ask(site.app, "/jobs-at-once", headers=site.headers(role), query=asked).document["jobs"][0]["action"]
        for role in ("operator", "curator")
    ]
    assert [bool(one) for one in documents] == [True, False]


@pytest.mark.parametrize(("fields", "status"), [
    ({}, 200), ({"do": "delete"}, 400), ({"do": "start", "job": [f"j{number}" for number in range(51)]}, 400),
    ({"do": "start", "job": "../x"}, 400), ({"do": "start", "job": JOB, "of": "../../../x"}, 200),
])  # fmt: skip
def test_an_odd_choice_is_refused(site: WebSite, fields: dict[str, Any], status: int) -> None:
    assert get(site, "/jobs-at-once", **fields).status == status
    assert get(site, "/jobs-at-once", "reader", **fields).status == 403


def test_many_at_once_take_turns(site: WebSite) -> None:
    jobs = {f"job{number:02}": JobEngine("engine.own", "warcmill", driven=True) for number in range(30)}
    site.audited = replace(site.audited, engines=jobs)
    form = get(site, "/jobs-at-once", do="resume", job=[*jobs], format="json").document["form"]
    done = post(site, "/jobs-at-once", "curator", form, do="resume", job=[*jobs])
    asked = done.header("Location").partition("?")[2].encode() + b"&format=json"

    def said() -> list[str]:
        found = ask(site.app, "/jobs-at-once", headers=site.headers("curator"), query=asked).document["jobs"]
        return [one["said"] for one in found if one["action"]["exit_code"] == 0]

    wait_for(lambda: len(said()) == 30)
    assert said() == [f"done: job {job} resume" for job in jobs]


def test_a_title_is_changed_by_an_edition(site: WebSite) -> None:
    path = f"/jobs/{OTHER}/rename"
    assert site.get(path, role="reader").status == 403
    done = site.post(path, {"title": " Weekly  <i> "}, role="curator")
    assert (done.status, done.header("Location")) == (303, f"/jobs/{OTHER}/history?saved=2")
    (newest, _) = site.get(f"/jobs/{OTHER}/history", {"format": "json"}, role="curator").document["editions"]
    assert (newest["who"], newest["why"]) == ("curator", "renamed")
    assert "Weekly &lt;i&gt;" in site.get(f"/jobs/{OTHER}").text
    refused = site.post(path, {"title": "  "}, role="curator")
    assert (refused.status, "it is empty" in refused.text) == (400, True)
    (site.roots.folders["jobs"] / OTHER / "crawl.toml").write_text("x = <")
    assert "not TOML" in site.post(path, {"title": "A"}, role="curator").text
    assert site.get(f"/jobs/{FOREIGN}/rename", role="curator").status == 404


def test_only_an_operator_deletes(site: WebSite) -> None:
    path = f"/jobs/{OTHER}/delete"
    assert site.get(path, role="curator").status == 403
    assert "Delete…" not in site.get(f"/jobs/{OTHER}", role="curator").text
    assert f"warcmill job {OTHER} delete" in site.get(path).text
    assert site.get(f"/jobs/{FOREIGN}/delete").status == 404
    assert site.post(path).status == 303


def test_a_sparkline_has_a_line_a_launch_those_in_trouble_apart_and_its_words() -> None:
    def launch(size: int, mark: Mark = Mark.DONE) -> LaunchOfDay:
        return LaunchOfDay(JOB, "", mark, "", 1, size, 0)

    past = {"4": launch(2_000), "3": None, "2": launch(0, Mark.FAILED), "1": launch(1_000)}
    line = desk.sparkline(past)
    assert line
    assert (line.sound, line.troubled) == ("M1 24v-11M10 24v-23", "M4 24v-1")
    assert line.words == "3 launches: 0 B to 2.00 kB, the last 2.00 kB, 1 in trouble"
    assert desk.sparkline({"1": None}) is None
    assert desk.sparkline({}) is None
