"""Bad days of a job of scripts: one that loops, processes that are killed, a disk that is full, a frontier in Redis. Each
is named, and the others and what is kept do not suffer."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import preloaded
from line import Line
from requesting.scrapy_runs import pages
from requesting.script_runs import HERE, environment, line_for, results, script
from sites import several_hosts
from sites.several_hosts import Page
from waiting import wait_for

from warcmill.scripts.folder import SCRIPTS, ScriptStatus, set_row

HEAD = "import os, time\nfrom pyspider.libs.base_handler import *\n"
GOOD = """
class Handler(BaseHandler):
    @every(seconds=1)
    def on_start(self):
        self.crawl("SITE/news", callback=self.page, force_update=True)
    def page(self, response):
        return {"title": response.doc("title").text()}
"""
LOOPS = """
class Handler(BaseHandler):
    @every(seconds=1)
    def on_start(self):
        for number in range(20):
            self.crawl("SITE/loop/%d" % number, callback=self.page)
        while True: pass
    def page(self, response):
        while True: pass
"""
NEVER_LOADS = "while True: pass\n"
LONGEST = 15.0  # seconds: a callback that loops has 30


@contextmanager
def running(line: Line, here: Path, port: int, texts: dict[str, str], settings: str = "") -> Iterator[Path]:
    """Have the job `papers` run these scripts while the block runs; yields its folder."""
    job, site = line.folders["jobs"] / "papers", f"http://{HERE}:{port}"
    here.mkdir(exist_ok=True)
    assert script(line, here, "new", "papers/first", "--start", "a.example").returncode == 0
    (job / SCRIPTS / "first.py").unlink()
    with (job / "crawl.toml").open("a") as file:
        file.write(settings or 'no_delay = true\nallow_private = ["127.0.0.0/8"]\n')
    for name, text in texts.items():
        (job / SCRIPTS / f"{name}.py").write_text(HEAD + text.replace("SITE", site))
        set_row(job, name, {"status": ScriptStatus.RUNNING, "rate": 100.0, "burst": 50.0})
    start = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    with line.config.open("a") as file:
        file.write(f"\n[job.papers]\nfrequency=daily\nstart={start}\n")
    pulse(line, here, "start")
    try:
        yield job
    finally:
        pulse(line, here, "stop", code=None)


def pulse(line: Line, here: Path, what: str, code: int | None = 0) -> str:
    done = preloaded.run("commands.main", "pulse", what, "papers", env=environment(line), folder=here)
    assert code is None or done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_script_that_loops_does_not_hold_up_the_others(tmp_path: Path) -> None:
    line, asked = line_for(tmp_path / "line"), list[tuple[float, str, str]]()
    web = {(HERE, "/news"): Page(b"<title>T</title>")}
    web |= {(HERE, f"/loop/{number}"): Page(b"x") for number in range(20)}
    with several_hosts.serve(web, asked) as port:
        texts = {"good": GOOD, "loops": LOOPS, "never": NEVER_LOADS}
        with running(line, tmp_path / "here", port, texts):
            wait_for(lambda: any(path == "/news" for _, _, path in asked), "the good one begins")
            time.sleep(40)
            ended = time.monotonic()
        moments = [moment for moment, _, path in asked if path == "/news" and moment < ended]
        gaps = [after - before for before, after in zip(moments, [*moments[1:], ended], strict=True)]
    assert max(gaps) < LONGEST, f"nothing of the good one for {max(gaps):.1f} s"
    logs = next((line.folders["output"] / "logs" / "papers").glob("*"))
    alerts = "".join(path.read_text() for path in logs.glob("alerts.log*"))
    assert "script never cannot be loaded: timeout" in alerts
    assert {one["script"] for one in results(line, "papers")} == {"good"}


def test_a_frontier_in_redis_is_refused_by_name(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    here.mkdir()
    assert script(line, here, "new", "papers/shop", "--start", "a.example").returncode == 0
    text = line.config.read_text()
    start = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    line.config.write_text(
        text.replace("kind=warcmill", "kind=warcmill\nfrontier=redis://127.0.0.1:1")
        + f"\n[job.papers]\nfrequency=daily\nstart={start}\n"
    )
    why = "a job of scripts runs on one machine, and has a frontier of its own"
    assert why in pulse(line, here, "start", code=3)
    done = script(line, here, "new", "others/shop", "--start", "a.example")
    assert (done.returncode, why in done.stderr) == (3, True), done.stderr
    done = script(line, here, "run", str(line.folders["jobs"] / "papers" / SCRIPTS / "shop.py"), "--job", "papers")
    assert (done.returncode, why in done.stderr) == (3, True), done.stderr
