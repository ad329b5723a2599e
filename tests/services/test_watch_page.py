"""A running crawl in Chromium: its page follows it without a reload, passes the judges, and leads to the end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import preloaded
import pytest
from line import Line, line_at
from playwright.sync_api import Browser, expect
from sites.several_hosts import page, serve

from servers import browsing, page_judges, pins
from warcmill.crawl.launch import folders
from warcmill.formats import surt

JOB, HOST, PAGES = "daily", "a.example", 400
SETTINGS = """\
contact = "http://archive.example/"
allow_private = ["127.0.0.0/8"]
resolve = ["a.example=127.0.0.1"]

[politeness]
factor = 0
least = 0.1
most = 0.1
"""
WAIT = 60_000  # milliseconds


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    """A line with one job, of a site that takes a minute."""
    made = line_at(tmp_path)
    job = made.folders["jobs"] / JOB
    job.mkdir()
    ports = "\n".join(f"{key}={port}" for key, port in pins.free({"port": 0, "replay_port": 0}).items())
    engine = f"\n[engine.own]\nkind=warcmill\njobs={JOB}\n\n[serve]\nreplay=false\n{ports}\n"
    made.config.write_text(made.config.read_text() + engine)
    pages = {(HOST, f"/{n or ''}"): page([f"/{m}" for m in (2 * n + 1, 2 * n + 2) if m < PAGES]) for n in range(PAGES)}
    with serve(pages) as port:
        seed = f"http://{HOST}:{port}/"
        for name, text in (("crawl.toml", SETTINGS), ("seeds.txt", f"{seed}\n"), ("surts.txt", f"{surt.surt(seed)}\n")):
            (job / name).write_text(text)
        yield made
        if (found := folders.holder(job / "state")) and found.pid:
            os.kill(found.pid, signal.SIGKILL)


@pytest.fixture
def entrance(line: Line) -> Iterator[str]:
    """The address that `warcmill serve` prints."""
    with preloaded.start(
        "commands.main", "serve", env={**os.environ, "LUIGI_CONFIG_PATH": str(line.config)}
    ) as process:
        try:
            assert process.stdout
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


def test_a_page_follows_its_crawl_to_the_end(browser: Browser, line: Line, entrance: str, tmp_path: Path) -> None:
    saved, faults = list[Path](), list[object]()
    base = entrance.partition("/sign-in")[0]
    with browsing.window(browser, 320) as window:

        def judged(name: str) -> None:
            saved.append(tmp_path / f"{name}.html")
            saved[-1].write_text(window.content())
            faults.extend(page_judges.faults(window))

        window.goto(entrance)
        window.goto(f"{base}/jobs/{JOB}/watch")
        expect(window.locator("#figures")).to_contain_text("no crawl of it runs")
        judged("none")
        assert line.warcmill("pulse", "start", JOB, "--again").returncode == 0
        window.goto(f"{base}/jobs/{JOB}/watch")
        first = window.locator("#recent tbody tr").first
        expect(first).to_contain_text(HOST, timeout=WAIT)
        expect(first).not_to_contain_text(first.inner_text(), timeout=WAIT)
        expect(window.locator("#hosts")).to_contain_text(HOST)
        judged("watched")
        window.locator("#hosts").get_by_role("link", name=HOST).focus()
        window.keyboard.press("Enter")
        window.wait_for_url("**/queue?host=*")
        judged("queue")
        window.goto(f"{base}/jobs/{JOB}/leave-out?rule={HOST}/calendar")
        judged("leave out")
        window.goto(f"{base}/jobs/{JOB}/limits")
        judged("limits")
        window.goto(f"{base}/jobs/{JOB}/watch")
        expect(window.get_by_role("link", name="Pause…")).to_be_visible()
        assert line.warcmill("pulse", "stop", JOB).returncode == 0
        expect(window.locator("#figures")).to_contain_text("This crawl has ended", timeout=WAIT)
        expect(window.get_by_role("link", name="Pause…")).to_have_count(0)
        judged("ended")
        window.locator("#figures .button").click()
        window.wait_for_url(f"**/launches/{JOB}/*")
    assert faults == []
    assert page_judges.nu(*saved) == []
