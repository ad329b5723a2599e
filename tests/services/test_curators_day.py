"""A curator's day in Chromium, as the left column of docs/start/archive-a-site.md has it: with JavaScript and without, in
a wide window and in a narrow one, by the keyboard alone. It begins in an empty folder, with a site that has a calendar
without end."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

import preloaded
import pytest
from loopback_site import living_museum
from operating.documented import PAGES
from operating.keyboard import Keyboard
from playwright.sync_api import Browser, expect

from servers import browsing, packages, page_judges, pins, process, serving
from warcmill.crawl.launch import folders

SITE, HOST, JOB = "http://windmills.example/", "127.0.0.1", "127-0-0-1"
ROW = re.compile(r"^\| (.*?) \| .* \|$", re.MULTILINE)
# `text` into **Field**; **pressed**, or twice; *said*, or *another text*.
STEP = re.compile(
    r"`(?P<text>[^`]+)` into \*\*(?P<field>.+?)\*\*"
    r"|\*\*(?P<name>.+?)\*\*(?P<twice> twice)?"
    r"|\*(?P<said>.+?)\*(?: or \*(?P<other>.+?)\*)?"
)
STEPS = [step for row in ROW.findall(PAGES["start/archive-a-site.md"]) for step in STEP.finditer(row)]
DOWNLOAD = "Download the WACZ"
WINDOWS = [(1280, True), (360, True), (1280, False), (360, False)]


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """`warcmill serve` in an empty folder, and the address that it prints; a crawl that still runs ends with it."""
    words = ("serve", "--port", str(pins.free({"port": 0})["port"]), "--no-replay")
    env = {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"}
    with preloaded.start("commands.main", *words, env=env, folder=folder) as started:
        try:
            assert started.stdout
            yield started.stdout.readline().strip()
        finally:
            if (found := folders.holder(folder / "archive/jobs" / JOB / "state")) and found.pid:
                os.kill(found.pid, signal.SIGKILL)
            started.send_signal(signal.SIGTERM)
            assert started.wait(60) == 0


@pytest.mark.parametrize(("width", "scripts"), WINDOWS)
def test_a_curator_s_day(browser: Browser, tmp_path: Path, width: int, scripts: bool) -> None:
    saved, faults, wacz = list[Path](), list[str](), tmp_path / "day.wacz"
    is_judged = (width, scripts) == WINDOWS[0]

    def judge() -> None:
        """Have a page judged, once for each title; its width, for each page."""
        if wide := page.evaluate(page_judges.TOO_WIDE):
            faults.append(f"{page.url}: {wide} px wider than the window")
        name = re.sub(r"\W+", "-", page.title())
        if is_judged and not (path := tmp_path / f"{name}.html").exists():
            path.write_text(page.content())
            saved.append(path)
            faults.extend(page_judges.faults(page))

    def here(text: str) -> str:
        return text.replace(SITE, f"http://{HOST}:{port}/").replace("windmills-example", JOB)

    with (
        living_museum() as port,
        served(tmp_path) as entrance,
        browsing.window(browser, width, scripts=scripts) as page,
    ):
        keyboard = Keyboard(page, scripts=scripts)
        page.goto(entrance)
        for step in STEPS:
            judge()
            if step["field"]:
                keyboard.type(here(step["text"]), step["field"])
            elif step["said"]:
                keyboard.wait_for(*(here(text) for text in (step["said"], step["other"]) if text))
            elif step["name"] == DOWNLOAD:
                with page.expect_download() as download:
                    keyboard.await_and_press(DOWNLOAD, leads_on=False)
                download.value.save_as(wacz)
            else:
                for _ in range(2 if step["twice"] else 1):
                    keyboard.await_and_press(here(step["name"]))
            if step["field"] == "Address":
                keyboard.type("127.0.0.0/8", "Inside addresses")
        judge()
        page.goto(f"{entrance.partition('/sign-in')[0]}/captures?url={here(SITE)}visit.html")
        expect(page.locator("main")).to_contain_text("There is no capture")
    assert faults == []
    with ZipFile(wacz) as file:
        assert file.testzip() is None
    if is_judged:
        assert page_judges.nu(*saved) == []
        assert {"Archive-a-site-Warcmill", "Search-Warcmill"} < {path.stem for path in saved}
        opens(browser, tmp_path, wacz, here(SITE))


def opens(browser: Browser, folder: Path, wacz: Path, url: str) -> None:
    """A WACZ passes the validator, and replays."""
    said = process.run("wacz", folder, [packages.bin_folder("wacz") / "wacz", "validate", "-f", wacz], 60)
    assert VALID in said
    with serving.served(folder / "site", wacz, url) as address, browsing.window(browser) as page:
        expect(serving.open_page(page, address).locator("h1")).to_have_text("The Windmill Museum")
