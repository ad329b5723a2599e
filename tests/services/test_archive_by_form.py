"""A curator begins in an empty folder: archives a site, edits its job, tries its rules; by the keyboard, no script."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import preloaded
import pytest
from playwright.sync_api import Browser, Page, expect
from sites.several_hosts import Page as Site
from sites.several_hosts import page, serve

from servers import browsing, page_judges, pins

HOST, DAYS, NEWS = "127.0.0.1", 12, 3
JOB = "127-0-0-1"
PAGES = {
    (HOST, "/"): page([f"/calendar/{day}" for day in range(DAYS)] + [f"/news/{one}" for one in range(NEWS)]),
    **{(HOST, f"/calendar/{day}"): page([f"/calendar/{day}/notes"]) for day in range(DAYS)},
    **{(HOST, f"/calendar/{day}/notes"): page([]) for day in range(DAYS)},
    **{(HOST, f"/news/{one}"): page([]) for one in range(NEWS)},
}
FORBIDDEN = {(HOST, "/robots.txt"): Site(b"User-agent: *\nDisallow: /\n", "text/plain")}


@pytest.fixture
def entrance(tmp_path: Path) -> Iterator[str]:
    """The address that `warcmill serve` prints in an empty folder."""
    words = ("serve", "--port", str(pins.free({"port": 0})["port"]), "--no-replay")
    env = {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"}
    with preloaded.start("commands.main", *words, env=env, folder=tmp_path) as process:
        try:
            assert process.stdout
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


def type_into(window: Page, label: str, text: str) -> None:
    browsing.press_to(window, label)
    window.keyboard.type(text)


def press(window: Page, name: str) -> None:
    browsing.press_to(window, name)
    window.keyboard.press("Enter")


def test_a_site_is_archived_and_its_job_edited(browser: Browser, entrance: str, tmp_path: Path) -> None:
    saved: list[Path] = []
    faults: list[object] = []

    def judged(window: Page) -> None:
        saved.append(tmp_path / f"{len(saved)}.html")
        saved[-1].write_text(window.content())
        with_scripts.goto(window.url)
        faults.extend(page_judges.faults(with_scripts))

    with (
        serve(PAGES) as port,
        browsing.window(browser, 320, scripts=False) as window,
        browsing.window(browser, 320) as with_scripts,
    ):
        window.goto(entrance)
        base = entrance.partition("/sign-in")[0]
        assert window.url == f"{base}/archive-a-site", "there is nothing else to see"
        with_scripts.context.add_cookies(window.context.cookies())
        judged(window)
        type_into(window, "Address", f"{HOST}:1/")
        window.keyboard.press("Enter")
        expect(window.locator("main")).to_contain_text("an inside address: loopback; an operator lets it in")
        window.get_by_label("Address", exact=True).fill(f"http://{HOST}:{port}/")
        type_into(window, "Inside addresses", "127.0.0.0/8")
        window.keyboard.press("Enter")
        window.wait_for_url(f"**/jobs/{JOB}/watch?action=*")
        window.goto(f"{base}/actions/{window.url.partition('action=')[2]}")
        while window.locator("#action[data-refresh]").count():
            window.reload()
        expect(window.locator("main")).to_contain_text("exit code 0")

        window.goto(f"{base}/jobs/{JOB}")
        press(window, "Edit…")
        window.wait_for_url("**/edit")
        judged(window)
        type_into(window, "Title", "A site")
        type_into(window, "Leave out", "calendar\nre: (a+)+$\n")
        type_into(window, "Addresses to look at", f"http://{HOST}:{port}/calendar/3\nhttp://{HOST}:{port}/news/9\n")
        press(window, "Look at them")
        rows = window.locator("table tbody tr")
        expect(rows.nth(0)).to_contain_text("out")
        expect(rows.nth(0)).to_contain_text("calendar")
        expect(rows.nth(1)).to_contain_text("in")
        press(window, "Try the rules on the newest launch")
        expect(window.locator("main")).to_contain_text(f"would leave out {2 * DAYS} of {1 + 2 * DAYS + NEWS}")
        saved.append(tmp_path / "tried.html")
        saved[-1].write_text(window.content())
        window.get_by_label("Schedule").fill("daily at 02:30")
        window.get_by_label("Time zone").fill("Europe/Berlin")
        press(window, "Save")
        window.wait_for_url("**/history?saved=2")
        expect(window.locator("main")).to_contain_text("Edition 2 is saved.")
        judged(window)
        window.goto(f"{base}/jobs/{JOB}/edit")
        assert window.get_by_label("Leave out", exact=True).input_value() == "calendar\nre: (a+)+$\n"
        expect(window.locator("main")).to_contain_text("Next: ")
        window.goto(f"{base}/jobs/{JOB}/papers")
        judged(window)
        assert 'title = "A site"' in window.get_by_label("crawl.toml").input_value()
        window.goto(f"{base}/jobs/{JOB}/history")
        press(window, "Back to 1")
        window.wait_for_url("**/history?saved=3")
        window.goto(f"{base}/new-job?copy={JOB}")
        judged(window)
        PAGES.update(FORBIDDEN)
        window.goto(f"{base}/archive-a-site?url=http://{HOST}:{port}/news/0")
        window.get_by_label("Inside addresses").fill("127.0.0.0/8")
        press(window, "Archive it")
        expect(window.locator("main")).to_contain_text("robots.txt forbids all of it: Disallow: /")
        expect(window.get_by_role("button", name="Archive it all the same")).to_be_visible()
        saved.append(tmp_path / "forbidden.html")
        saved[-1].write_text(window.content())
    assert faults == []
    assert page_judges.nu(*saved) == []
    assert f"[job.{JOB}]" in (tmp_path / "archive/luigi.cfg").read_text()
