"""A job's papers by verbs, after a real crawl: its launch names their edition; edited, tried, undone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import preloaded
import pytest
from sites.several_hosts import page, serve

from warcmill.crawl.launch import folders

HOST, JOB, DAYS = "127.0.0.1", "127-0-0-1", 6
PAGES = {
    (HOST, "/"): page([f"/calendar/{day}" for day in range(DAYS)] + ["/news"]),
    **{(HOST, f"/calendar/{day}"): page([f"/calendar/{day}/notes"]) for day in range(DAYS)},
    **{(HOST, f"/calendar/{day}/notes"): page([]) for day in range(DAYS)},
    (HOST, "/news"): page([]),
}


class Desk:
    """A folder in which commands are typed."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.url = folder, f"http://{HOST}:{port}/"
        self.env = {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"}

    def run(self, *words: str, code: int = 0) -> str:
        done = preloaded.run("commands.main", *words, env=self.env, folder=self.folder)
        assert done.returncode == code, done.stdout + done.stderr
        return str(done.stdout + done.stderr)

    def document(self, *words: str) -> Any:
        done = preloaded.run("commands.main", *words, "--json", env=self.env, folder=self.folder)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def form(self, text: str) -> str:
        (self.folder / "form.toml").write_text(text)
        return "form.toml"

    def read(self, name: str) -> str:
        return (self.folder / "archive/jobs" / JOB / name).read_text()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with serve(PAGES) as port:
        yield Desk(tmp_path, port)


def test_the_papers_of_a_job_that_was_crawled(desk: Desk) -> None:
    inside = ("--allow-private", "127.0.0.0/8", "--no-delay")
    (look,) = desk.document("crawl", desk.url, "--look", *inside)["looks"]
    assert (look["status"], look["forbidden"], (desk.folder / "archive").exists()) == (200, False, False)
    assert "loopback" in desk.run("crawl", desk.url, "--look", code=1)
    desk.run("crawl", desk.url, *inside)
    assert json.loads(desk.read("latest/edition.json"))["number"] == 1, "its launch names the edition"
    assert "# Written by 'warcmill crawl'" in desk.read("crawl.toml")

    rules = desk.form('title = "News"\nleave_out = ["calendar", "re: (a+)+$"]\nbytes = "2 GB"\ntags = ["a", "b"]\n')
    found = desk.document("job", JOB, "try", "--from", rules)
    assert (found["asked"], found["left_out_number"], found["taken"]["number"]) == (2 + 2 * DAYS, 2 * DAYS, 0)
    assert [(one["rule"], one["number"]) for one in found["left_out"]] == [("calendar", 2 * DAYS)]
    assert f"would leave out {2 * DAYS} of {2 + 2 * DAYS}" in desk.run("job", JOB, "try", "--from", rules)
    assert desk.document("job", JOB, "edit")["leave_out"] == "", "nothing is saved by that"

    saved = desk.document("job", JOB, "edit", "--from", rules, "--why", "no calendars")
    assert (saved["edition"], saved["changed"]) == (2, ["crawl.toml"])
    assert 'title = "News"' in desk.read("crawl.toml")
    assert "Written by" not in desk.read("crawl.toml"), "it is a person's now"
    assert "has one of its own" in desk.run("crawl", desk.url, *inside, code=3)
    when = desk.form('schedule = "daily at 02:30"\nzone = "Europe/Berlin"\n')
    assert "crawled daily at 02:30 Europe/Berlin" in desk.run("job", JOB, "edit", "--from", when)
    assert desk.document("job", JOB, "edit")["zone"] == "Europe/Berlin"
    assert "is not one of" in desk.run("job", JOB, "edit", "--from", desk.form('schedule = "at noon"'), code=1)
    wrong = desk.form(f'addresses = ["{desk.url}", "x"]')
    assert "addresses: line 2" in desk.run("job", JOB, "edit", "--from", wrong, code=1)
    assert "did you mean title" in desk.run("job", JOB, "edit", "--from", desk.form('titel = "x"'), code=1)

    assert desk.document("job", JOB, "undo")["edition"] == 3
    assert [one["why"] for one in desk.document("job", JOB, "history")["editions"]] == [
        "back to edition 1", "no calendars", "as it was found",
    ]  # fmt: skip
    desk.run("job", JOB, "undo", "--edition", "2")
    assert 'title = "News"' in desk.read("crawl.toml")

    new = desk.form('addresses = ["a.example"]\nkeep = "domain"\n')
    desk.run("job", "other", "edit", "--new", "--from", new)
    assert desk.document("job", "other", "edit")["prefixes"] == "+http://(example,a,\n"
    desk.run("job", "other", "edit", "--new", "--from", new, code=1)
    assert "it was never launched" in desk.run("job", "other", "try", code=1)
    assert "no engine crawls it" in desk.run("job", "nobody", "history", code=1)


def test_a_job_is_renamed_deleted_and_brought_back(desk: Desk) -> None:
    desk.run("crawl", desk.url, "--allow-private", "127.0.0.0/8", "--no-delay")
    desk.run("schedule", JOB, "daily", "at", "02:00", "--zone", "Europe/Berlin")
    desk.run("job", JOB, "rename", "News <b>")
    (listed,) = desk.document("jobs")["jobs"]
    assert (listed["title"], listed["newest"]["state"]) == ("News <b>", "done")
    assert (listed["newest"]["got"], listed["newest"]["not_got"]) == (2 + 2 * DAYS, 1), "robots.txt is a 404"
    assert "02:00 Europe/Berlin" in desk.run("jobs", "news")
    assert f"01:00  {JOB}, News <b>" in desk.run("jobs", "--due") or f"00:00  {JOB}" in desk.run("jobs", "--due")

    config = desk.folder / "archive/luigi.cfg"
    before = config.read_text()
    config.write_text(f"{before}\n[group.web]\njobs={JOB}\n")
    assert "[group.web] jobs" in desk.run("job", JOB, "delete", code=3)
    config.write_text(before)
    with folders.held(desk.folder / "archive/jobs" / JOB / "state"):
        assert f"the crawl of job {JOB}" in desk.run("job", JOB, "delete", code=5)
    deleted, scheduled = desk.document("job", JOB, "delete")["said"]
    assert (f"{JOB}: deleted, edition 3" in deleted, "no longer scheduled" in scheduled) == (True, True)
    assert "it was deleted already" in desk.run("job", JOB, "delete")
    assert (desk.document("jobs")["jobs"], desk.document("jobs")["deleted"]) == ([], [JOB])
    desk.run("why", JOB)
    assert f"job {JOB} has none" in desk.run("pulse", "start", JOB, "--again", code=30)

    desk.run("job", JOB, "undo")
    (listed,) = desk.document("jobs")["jobs"]
    assert (listed["title"], listed["frequency"]) == ("News <b>", "")
