"""A day by the pages of `warcmill serve`: a real crawl is started, watched, steered, stopped, and archived."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import preloaded
import pytest
import requests
from line import Line, line_at
from sites.several_hosts import page, serve

from servers import pins
from warcmill.crawl.launch import folders
from warcmill.formats import surt

JOB, HOST, PAGES = "daily", "a.example", 400
SETTINGS = """\
contact = "http://archive.example/"
allow_private = ["127.0.0.0/8"]
resolve = ["{host}=127.0.0.1"]

[politeness]
factor = 0
least = 0.1
most = 0.1
"""
CONFIGURATION = """
[engine.own]
kind=warcmill
jobs={job}

[job.{job}]
frequency=daily
start={start}

[serve]
port={port}
replay_port={replay_port}
"""
_FORM = re.compile(r'name="form" value="([^"]+)"')


@pytest.fixture(scope="module")
def site() -> Iterator[int]:
    pages = {(HOST, f"/{n or ''}"): page([f"/{m}" for m in (2 * n + 1, 2 * n + 2) if m < PAGES]) for n in range(PAGES)}
    with serve(pages) as port:
        yield port


@pytest.fixture
def line(tmp_path: Path, site: int) -> Iterator[Line]:
    """A line whose one job was due an hour ago; nothing has started it."""
    made = line_at(tmp_path)
    job = made.folders["jobs"] / JOB
    job.mkdir()
    (job / "crawl.toml").write_text(SETTINGS.format(host=HOST))
    seed = f"http://{HOST}:{site}/"
    (job / "seeds.txt").write_text(f"{seed}\n")
    (job / "surts.txt").write_text(f"{surt.surt(seed)}\n")
    start = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    ports = pins.free({"port": 0, "replay_port": 0})
    made.config.write_text(made.config.read_text() + CONFIGURATION.format(job=JOB, start=start, **ports))
    yield made
    if (found := holder(made)) and found.pid:
        os.kill(found.pid, signal.SIGKILL)


def holder(line: Line) -> folders.Holder | None:
    return folders.holder(line.folders["jobs"] / JOB / "state")


class Operator(requests.Session):
    """A person at a browser without JavaScript, who is signed in by the address that was printed."""

    def __init__(self, printed: str) -> None:
        super().__init__()
        self.trust_env = False
        self.base = printed.partition("/sign-in")[0]
        assert super().get(printed).url == f"{self.base}/"

    def page(self, path: str) -> str:
        answer = self.get(f"{self.base}{path}")
        assert answer.status_code == 200, answer.text
        return unescape(answer.text)

    def document(self, path: str) -> Any:
        return self.get(f"{self.base}{path}", params={"format": "json"}).json()

    def submit(self, path: str, **fields: str) -> requests.Response:
        """Open a page, press the button of its form, and go where it leads."""
        form = _FORM.search(self.page(path))
        assert form
        return self.post(f"{self.base}{path}", {"form": form[1], **fields}, headers={"Origin": self.base})

    def press(self, path: str, **fields: str) -> str:
        """The same; return the page."""
        return unescape(self.submit(path, **fields).text)

    def act(self, path: str, **fields: str) -> Any:
        """Open the page of an action, press its button, and wait for its end; return its document."""
        done = self.submit(path, **fields)
        shown = done.url.removeprefix(self.base)
        assert shown.startswith("/actions/"), done.text
        until(lambda: self.document(shown)["exit_code"] is not None)
        return self.document(shown)


@contextmanager
def served(line: Line) -> Iterator[Operator]:
    """`warcmill serve`, and someone who has opened the address that it prints."""
    env = {**os.environ, "LUIGI_CONFIG_PATH": str(line.config)}
    with preloaded.start("commands.main", "serve", env=env) as process:
        try:
            assert process.stdout
            yield Operator(process.stdout.readline().strip())
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_crawl_is_started_watched_stopped_and_archived_by_pages(line: Line) -> None:
    with served(line) as operator:
        owed = operator.document(f"/jobs/{JOB}")["owed"]
        started = operator.act(f"/jobs/{JOB}/start")
        assert (started["exit_code"], started["words"]) == (0, ["pulse", "start", JOB]), started["output"]
        assert "was started for the crawl due" in started["output"]
        assert holder(line), "the crawl outlives the command that began it"
        until(lambda: (operator.document(f"/jobs/{JOB}")["crawl"] or {}).get("done", 0) > 5)
        crawl = operator.document(f"/jobs/{JOB}")["crawl"]
        assert "▶" in operator.page(f"/jobs/{JOB}")
        assert crawl["launch_id"] in operator.page("/jobs")

        assert operator.act(f"/jobs/{JOB}/start")["exit_code"] == 1, "one runs"
        checked = operator.act(f"/jobs/{JOB}/checkpoint")
        assert (checked["exit_code"], "is assembled" in checked["output"]) == (0, True), checked["output"]
        stopped = operator.act(f"/jobs/{JOB}/stop")
        assert (stopped["exit_code"], "has ended" in stopped["output"]) == (0, True), stopped["output"]
        assert holder(line) is None
        scanned = operator.act("/scan")
        assert scanned["exit_code"] == 0, scanned["output"]
        (launch,) = operator.document(f"/jobs/{JOB}")["launches"]
        assert (launch["launch_id"], launch["state"]) == (crawl["launch_id"], "cut short")
        until(lambda: operator.document(f"/jobs/{JOB}")["crawl"] is None)
        assert "✔" in operator.page(f"/jobs/{JOB}")
        taken = [one["action"] for one in operator.document(f"/jobs/{JOB}")["actions"]]
        assert sorted(taken) == ["checkpoint", "start", "start", "stop"]
        assert operator.document(f"/jobs/{JOB}")["owed"] == []
    assert {one["kind"] for one in owed} <= {"not launched"}


def of_host(watched: Any) -> Any:
    return next((one for one in watched["hosts"]["hosts"] if one["host"] == HOST), {}) if "hosts" in watched else {}


def test_a_crawl_is_watched_and_steered_by_pages(line: Line, site: int) -> None:
    here = f"/jobs/{JOB}"
    with served(line) as curator:
        unknown = curator.document(f"{here}/watch")
        assert (unknown["running"], unknown["ended"], "no crawl of it runs" in unknown["why"]) == (False, False, True)
        assert curator.act(f"{here}/start")["exit_code"] == 0
        until(lambda: len(curator.document(f"{here}/watch").get("recent", {}).get("pages", ())) > 5)
        until(lambda: of_host(curator.document(f"{here}/watch")).get("waiting"))
        watched = curator.document(f"{here}/watch")
        assert (watched["running"], of_host(watched)["status"], of_host(watched)["done"] > 5) == (True, 200, True)
        shown = curator.page(f"{here}/watch")
        newest = watched["recent"]["pages"][-1]["uri"]
        assert f'href="/captures?url={quote(newest, safe="/")}"' in shown
        assert 'data-refresh="2"' in shown
        assert f"warcmill job {JOB} watch" in shown

        until(lambda: curator.document(f"{here}/queue?rule={HOST}:{site}/3")["hits"])
        waits = curator.document(f"{here}/queue?rule={HOST}:{site}/3")
        assert waits["hits"] < waits["looked"]
        assert all(f":{site}/3" in one["uri"] for one in waits["uris"])
        looked = curator.document(f"{here}/leave-out?rule={HOST}:{site}/3")
        assert looked["hits"]
        rule = {"rule": f"{HOST}:{site}/3", "seen": looked["seen"], "do": "leave"}
        assert "of the job is saved" in curator.press(f"{here}/leave-out", **rule)
        log = line.folders["output"] / "logs" / JOB / watched["launch_id"] / "crawl.log"
        until(lambda: f" -5000 - http://{HOST}:{site}/3" in re.sub(" +", " ", log.read_text()))
        assert "http://(example,a,:" in (line.folders["jobs"] / JOB / "exclude.txt").read_text()

        assert "Limits and pace" in curator.press(f"{here}/limits", documents="390", keep="1")
        until(lambda: curator.document(f"{here}/watch")["state"]["ceilings"] == {"documents": 390})
        assert "documents = 390" in (line.folders["jobs"] / JOB / "crawl.toml").read_text()
        looked = curator.document(f"{here}/leave-out?by=rule&rule=*/4*")
        curator.press(f"{here}/leave-out", by="rule", rule="*/4*", seen=looked["seen"], do="leave")
        until(lambda: f" -5000 - http://{HOST}:{site}/4" in re.sub(" +", " ", log.read_text()))
        assert curator.document(f"{here}/watch")["state"]["ceilings"] == {"documents": 390}

        assert curator.act(f"{here}/pause")["exit_code"] == 0
        until(lambda: curator.document(f"{here}/watch")["state"]["state"] == "PAUSED")
        assert curator.act(f"{here}/resume")["exit_code"] == 0
        until(lambda: curator.document(f"{here}/watch")["state"]["state"] == "RUNNING")


def test_a_crawl_that_ends_while_it_is_watched_leads_to_its_launch(line: Line) -> None:
    here = f"/jobs/{JOB}"
    with served(line) as curator:
        assert curator.act(f"{here}/start")["exit_code"] == 0
        until(lambda: curator.document(f"{here}/watch")["running"])
        assert line.warcmill("pulse", "stop", JOB).returncode == 0
        until(lambda: curator.document(f"{here}/watch")["ended"])
        watched, shown = curator.document(f"{here}/watch"), curator.page(f"{here}/watch")
        assert watched["state"]["launch"] == watched["launch_id"]
        assert ("This crawl has ended" in shown, "data-refresh" in shown) == (True, False)
        way = f"/launches/{JOB}/{watched['launch_id']}"
        assert f'href="{way}"' in shown
        assert watched["launch_id"] in curator.page(way)
        assert f"/jobs/{JOB}/pause" not in shown
