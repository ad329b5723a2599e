"""A trial of a job's pages by its verb: real, polite, and without a trace in the archive or in the job's launches."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import preloaded
import pytest
from sites.several_hosts import Page, page, serve

from warcmill.crawl import trial
from warcmill.crawl.launch import folders

HOST, JOB, PAGES = "127.0.0.1", "127-0-0-1", 40
INSIDE = ("--allow-private", "127.0.0.0/8", "--no-delay")
WEB = {
    **{(HOST, f"/{n or ''}"): page([f"/{m}" for m in (2 * n + 1, 2 * n + 2) if m < PAGES], f"/{n}.png")
       for n in range(PAGES)},
    (HOST, "/robots.txt"): Page(b"User-agent: *\nDisallow: /2\n", "text/plain"),
    (HOST, "/"): page(["/1", "/2", "/old", "/calendar/1", "/calendar/2", "http://other.example/"], "/0.png"),
    (HOST, "/old"): Page(b"/new", status=301), (HOST, "/new"): page([]),
}  # fmt: skip


class TrialDesk:
    """A folder in which commands are typed, and a site that notes what it is asked."""

    def __init__(self, folder: Path, port: int, asked: list[tuple[float, str, str]]) -> None:
        self.folder, self.url, self._asked = folder, f"http://{HOST}:{port}/", asked
        self.env = {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"}

    def run(self, *words: str, code: int = 0) -> str:
        done = preloaded.run("commands.main", *words, env=self.env, folder=self.folder)
        assert done.returncode == code, done.stdout + done.stderr
        return str(done.stdout)

    def tried(self, *words: str) -> Any:
        return json.loads(self.run("job", JOB, "try", "--crawl", "--json", *words))

    @contextmanager
    def begun(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """A trial that takes long, once it crawls."""
        words = ("job", JOB, "try", "--crawl", *words, "--from", self.form('crawl_toml = """\n' + SLOW + '"""\n'))
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "commands.main", *words], cwd=self.folder, env=self.env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            try:
                before = len(self._asked)
                until(lambda: len(self._asked) > before + 2)
                yield process
            finally:
                process.kill()

    def form(self, text: str) -> str:
        path = self.folder / f"form-{time.monotonic_ns()}.toml"
        path.write_text(text)
        return str(path)

    def asked(self) -> list[str]:
        """The paths that were asked for since the last look."""
        found = [path for _, _, path in self._asked]
        self._asked.clear()
        return found

    @property
    def trials(self) -> list[Path]:
        return sorted((self.folder / "archive/state/web/files").iterdir())


SLOW = """
allow_private = ["127.0.0.0/8"]
[politeness]
least = 0.7
respected = 0
"""


def until(holds: Any) -> None:
    for _ in range(600):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to that in 30 s")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[TrialDesk]:
    asked = list[tuple[float, str, str]]()
    with serve(WEB, asked) as port:
        found = TrialDesk(tmp_path, port, asked)
        found.run("init", "archive")
        yield found


def test_a_new_job_is_tried_and_nothing_knows_of_it(desk: TrialDesk) -> None:
    before = desk.run("status", "--json")
    fields = f'addresses = ["{desk.url}"]\nallow_private = "127.0.0.0/8"\nleast = 0\nleave_out = ["calendar"]\n'
    found = desk.tried("--new", "--pages", "5", "--from", desk.form(fields))
    assert len([one for one in found["pages"] if one["status"] == 200]) == 5
    assert found["pages"][0] == {
        "picture": 0, "size": len(WEB[HOST, "/"].body), "status": 200, "title": "x", "type": "text/html",
        "url": desk.url,
    }  # fmt: skip
    assert {one["rule"]: one["number"] for one in found["left_out"]} == {"calendar": 2, "what to keep": 1}
    assert found["robots"] == {"first": [f"{desk.url}2"], "number": 1}
    assert f"{desk.url}9" in found["next"]["first"]
    assert (found["ended"], found["most"], found["parts"], found["failed"]) == ("it had its pages", 5, 0, [])
    assert sorted(desk.asked()) == ["/", "/1", "/3", "/4", "/new", "/old", "/robots.txt"], "no part of a page"
    (folder,) = desk.trials
    assert [path.name for path in folder.iterdir()] == ["trial.json"], "its WARCs are gone"
    for root in ("output", "jobs", "store", "index"):
        assert {path.name for path in (desk.folder / "archive" / root).rglob("*")} <= {".warcmill.json"}, root
    assert desk.run("status", "--json") == before
    assert not any(word in desk.run(verb) for verb in ("scan", "health", "status") for word in ("trial", JOB))
    assert "job" not in (desk.folder / "archive/luigi.cfg").read_text().partition("[engine.crawl]")[2]


def test_the_launch_after_a_trial_fetches_all(desk: TrialDesk) -> None:
    fields = f'addresses = ["{desk.url}"]\nallow_private = "127.0.0.0/8"\nleast = 0\n'
    form = desk.form(fields + "documents = 3\n")
    found = desk.tried("--new", "--from", form)
    assert (found["most"], len([one for one in found["pages"] if one["status"] == 200])) == (3, 3), "its own limit"
    of_trial = desk.asked()
    desk.run("crawl", desk.url, *INSIDE, "--job", JOB)
    of_launch = desk.asked()
    assert set(of_trial) < set(of_launch)
    assert f"/{PAGES - 1}" in of_launch
    found = desk.tried("--pages", "4")
    assert "/1" in desk.asked(), "nor does a launch go before its trial"
    rows = json.loads(desk.run("pages", JOB, "--all", "--json"))["urls"]
    assert {one["url"] for one in rows if one["got"]} >= {desk.url, f"{desk.url}1"}
    assert len([*(desk.folder / "archive/jobs" / JOB).glob("2*")]) == 1
    (log,) = (desk.folder / "archive/output").rglob("crawl.log")
    assert "duplicate" not in log.read_text()


def test_a_trial_is_never_beside_another_or_beside_the_crawl_of_its_job(desk: TrialDesk) -> None:
    desk.run("crawl", desk.url, *INSIDE, "--limit", "2", "--no-line", "--job", JOB)
    state = desk.folder / "archive/jobs" / JOB / "state"
    with folders.held(state):
        desk.run("job", JOB, "try", "--crawl", code=5)
    with desk.begun() as process:
        desk.run("job", JOB, "try", "--crawl", code=5)
        with folders.held(state):  # the crawl of the job begins
            said = process.communicate(timeout=60)[0]
        assert process.returncode == 0, said
        assert f"the crawl of {JOB} began" in said
    assert [[path.name for path in folder.iterdir()] for folder in desk.trials] == [["trial.json"]]


def test_a_trial_that_is_killed_leaves_nothing_that_matters(desk: TrialDesk) -> None:
    desk.run("crawl", desk.url, *INSIDE, "--limit", "2", "--no-line", "--job", JOB)
    with desk.begun() as process:
        process.kill()
        process.wait()
    assert [path.name for path in desk.trials[0].iterdir()] == ["crawl"], "the sweep removes it"
    assert desk.tried("--pages", "2")["most"] == 2, "the next one begins"
    with desk.begun() as process:
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[0]
    assert "it was stopped" in said


def test_a_full_disk_and_words_that_do_not_fit(desk: TrialDesk, tmp_path: Path) -> None:
    desk.run("crawl", desk.url, *INSIDE, "--limit", "2", "--no-line", "--job", JOB)
    for words, code in ((("--pages", "0"), 2), (("--pages", "51"), 2), (("--id", "../x"), 1), (("--new",), 1)):
        desk.run("job", JOB, "try", "--crawl", *words, code=code)
    desk.run("job", JOB, "try", "--pages", "5", code=2)
    place = desk.folder / "archive/state/web/files"
    place.parent.mkdir(exist_ok=True)
    place.symlink_to("/dev/full")  # takes nothing
    desk.run("job", JOB, "try", "--crawl", code=4)
    place.unlink()
    assert trial.MOST == 50
