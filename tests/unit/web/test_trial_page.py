"""A trial by the form of a job: who may begin it by which papers, its page, its pictures, its end by the sweep."""

from __future__ import annotations

import json
import os
import re
from html import unescape
from pathlib import Path

import pytest
from launches.engine import LAUNCH, Engine
from msgspec.structs import replace
from operating.job_desk import FolderDesk
from operating.page_trials import ID, MARKUP, PNG, leave
from operating.web_client import WebAnswer
from operating.web_site import WebSite

from warcmill.audit.answers.line import JobEngine
from warcmill.reports import page_trial
from warcmill.web.handover import files

JOB = LAUNCH.job
_HIDDEN = re.compile(r'type="hidden" name="(\w+)" value="([^"]*)"')


class TrialSite(WebSite):
    def tried(self, path: str, role: str = "curator", **fields: str) -> WebAnswer:
        """Press the button that begins a trial."""
        hidden = {name: unescape(value) for name, value in _HIDDEN.findall(self.get(path, role=role).text)}
        return self.post(path, {**hidden, "do": "crawl", **fields}, role=role)


@pytest.fixture
def site(tmp_path: Path) -> TrialSite:
    engine = Engine(tmp_path)
    folder = engine.folders["jobs"] / JOB
    folder.mkdir(exist_ok=True)
    (folder / "crawl.toml").write_text("# ours\nhops = 3\n")
    (folder / "seeds.txt").write_text("http://a.example/\n")
    engines = {JOB: JobEngine("engine.own", "warcmill", driven=True)}
    audited = replace(engine.audited, engines=engines)
    return TrialSite(engine, audited, more={"job_desk": FolderDesk(engine, JOB)}, program=("echo",))


@pytest.mark.parametrize(("path", "job"), [(f"/jobs/{JOB}/edit", JOB), ("/new-job", "b-example")])
def test_papers_that_are_not_saved_are_tried_by_the_verb(site: TrialSite, path: str, job: str) -> None:
    begun = site.tried(path, addresses="http://b.example/", leave_out="calendar")
    assert begun.status == 303, begun.text
    match = re.fullmatch(rf"/jobs/{job}/trial/([-0-9a-f]+)", begun.header("location"))
    assert match
    place = site.state.real(f"{files.FOLDER}/{match[1]}/papers.json")
    papers = json.loads(place.read_text())
    assert (papers["seeds_txt"], "calendar" in papers["crawl_toml"]) == ("http://b.example/\n", True)
    words = ["job", job, "try", "--crawl", f"--from={place}", f"--id={match[1]}"]
    page = site.get(begun.header("location"), {"format": "json"}, role="curator").document
    assert page["action"]["words"] == [*words, *(["--new"] if job != JOB else [])]
    assert (site.roots.folders["jobs"] / JOB / "seeds.txt").read_text() == "http://a.example/\n", "nothing is saved"
    assert not (site.roots.folders["jobs"] / "b-example").exists()
    for role, status in (("curator", 200), ("operator", 200), ("reader", 403)):
        assert site.get(begun.header("location"), role=role).status == status
    site.actions.start(site.state, replace(site.actions.newest(site.state, 1)[0], id=ID, who="another"))
    assert site.get(f"/jobs/{job}/trial/{ID}", role="curator").status == 403, "another curator's"


def test_papers_that_may_not_be_saved_are_not_tried(site: TrialSite) -> None:
    path = f"/jobs/{JOB}/edit"
    for fields, why in (
        ({"allow_private": "10.0.0.0/8"}, "this needs the role operator|needs the role operator"),
        ({"robots": "ignore"}, "needs the role operator"),
        ({"addresses": "http://10.1.1.1/"}, "an operator lets it in"),
        ({"addresses": ""}, "."),
        ({"leave_out": "re: ("}, "."),
    ):
        answer = site.tried(path, **fields)
        assert (answer.status, bool(re.search(why, answer.text))) == (400, True), (fields, answer.status)
    assert site.tried("/new-job", addresses="http://b.example/", name=JOB).status == 400, "there is such a job"
    assert site.tried(path, "operator", allow_private="10.0.0.0/8").status == 303
    assert len(site.actions.newest(site.state, 9)) == 1


def test_a_report_is_shown_and_its_texts_are_harmless(site: TrialSite) -> None:
    folder = leave(site.state, JOB)
    answer = site.get(f"/jobs/{JOB}/trial/{ID}", role="curator")
    assert (answer.status, MARKUP in answer.text, "\u202e" in answer.text) == (200, False, False)
    for text in ("1 of at most 50 pages: it had its pages", "and 20 more", f"/jobs/{JOB}/trial/{ID}/pictures/1"):
        assert text in answer.text
    picture = site.get(f"/jobs/{JOB}/trial/{ID}/pictures/1", role="curator")
    assert (picture.body, picture.header("content-type")) == (PNG, "image/png")
    for other in ("2", "0", "4", "\u0661", "..", "trial.json"):
        assert site.get(f"/jobs/{JOB}/trial/{ID}/pictures/{other}", role="curator").status == 404
    for path in (f"/jobs/other/trial/{ID}", f"/jobs/{JOB}/trial/20161019234428-0123456789ac", f"/jobs/{JOB}/trial/x"):
        assert site.get(path, role="curator").status == 404
    assert site.get(f"/jobs/{JOB}/trial/{ID}", role="reader").status == 403
    (folder / page_trial.REPORT).write_text("{")
    assert site.get(f"/jobs/{JOB}/trial/{ID}", role="curator").status == 503


def test_the_sweep_removes_a_trial_after_its_days(site: TrialSite) -> None:
    folder = leave(site.state, JOB)
    (folder / "crawl/jobs").mkdir(parents=True)
    assert files.sweep(site.state, 7, lambda _: False) == 0
    os.utime(folder, (0, 0))
    assert files.sweep(site.state, 7, lambda _: True) == 0
    assert files.sweep(site.state, 7, lambda _: False) == 1
    assert not folder.exists()
