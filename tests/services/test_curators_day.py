"""A curator's day in Chromium, as the left column of docs/start/archive-a-site.md has it, by the keyboard alone: with
JavaScript and without, in a wide window and in a narrow one. It begins in an empty folder; the site has a calendar
without end."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

import preloaded
import pytest
from loopback_site import living_museum
from operating.documented import PAGES
from operating.keyboard import Keyboard
from packing.wacz_judge import VALID, validate
from playwright.sync_api import Browser, expect

from servers import browsing, packages, page_judges, pins, serving
from warcmill.crawl.launch import folders

SITE, HOST, JOB = "http://windmills.example/", "127.0.0.1", "127-0-0-1"
ROW = re.compile(r"^\| (.*?) \| .* \|$", re.MULTILINE)
# `text` into **Field**; **pressed**, or twice **pressed**; *said*, or *another text*.
STEP = re.compile(
    r"`(?P<text>[^`]+)` into \*\*(?P<field>.+?)\*\*"
    r"|(?P<twice>twice )?\*\*(?P<name>.+?)\*\*"
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
            entrance = started.stdout.readline().strip()
            with (folder / "archive/luigi.cfg").open("a") as config:  # for checks; this server shows no archived page
                config.write(f"\n[serve]\npywb={packages.bin_folder('pywb') / 'wayback'}\n")
            yield entrance
        finally:
            if (found := folders.holder(folder / "archive/jobs" / JOB / "state")) and found.pid:
                os.kill(found.pid, signal.SIGKILL)
            started.send_signal(signal.SIGTERM)
            assert started.wait(60) == 0


def take(keyboard: Keyboard, step: re.Match[str], here: Callable[[str], str], wacz: Path) -> None:
    """Do a step of the page, or wait for what it says."""
    if step["field"]:
        keyboard.type(here(step["text"]), step["field"])
        if step["field"] == "Address":  # the site is on loopback
            keyboard.type("127.0.0.0/8", "Inside addresses")
    elif step["said"]:
        keyboard.wait_for(*(here(text) for text in (step["said"], step["other"]) if text))
    elif step["name"] == DOWNLOAD:
        with keyboard.page.expect_download() as download:
            keyboard.await_and_press(DOWNLOAD, leads_on=False)
        download.value.save_as(wacz)
    else:
        if step["name"] == "Start…" and not os.geteuid():  # root's Chromium has no sandbox, which a check needs
            with (wacz.parent / "archive/jobs" / JOB / "crawl.toml").open("a") as config:
                config.write("\n[render]\nsandbox = false\n")
        for _ in range(2 if step["twice"] else 1):
            keyboard.await_and_press(here(step["name"]))


@pytest.mark.parametrize(("width", "scripts"), WINDOWS)
def test_a_curator_s_day(browser: Browser, tmp_path: Path, width: int, scripts: bool) -> None:
    saved, faults, wacz = list[Path](), list[str](), tmp_path / "day.wacz"
    is_judged = (width, scripts) == WINDOWS[0]

    def judge() -> None:
        """Have the width of the page judged; and once for each title all of it."""
        if wide := page.evaluate(page_judges.TOO_WIDE):
            faults.append(f"{page.url}: {wide} px wider than the window")
        path = tmp_path / f"{re.sub(r'[^a-z]+', '-', page.title().lower())}.html"
        if is_judged and not path.exists():
            path.write_text(page.content())
            saved.append(path)
            faults.extend(page_judges.faults(page))

    with (
        living_museum() as port,
        served(tmp_path) as entrance,
        browsing.window(browser, width, scripts=scripts) as page,
    ):

        def here(text: str) -> str:
            return text.replace(SITE, f"http://{HOST}:{port}/").replace("windmills-example", JOB)

        keyboard = Keyboard(page, scripts=scripts)
        page.goto(entrance)
        for step in STEPS:
            take(keyboard, step, here, wacz)
            judge()
        page.goto(f"{entrance.partition('/sign-in')[0]}/captures?url={here(SITE)}visit.html")
        expect(page.locator("main")).to_contain_text("There is no capture")
    assert faults == []
    with ZipFile(wacz) as file:
        assert file.testzip() is None
    if is_judged:
        assert len(saved) > 15
        assert page_judges.nu(*saved) == []
        opens(browser, tmp_path, wacz, here(SITE))


def opens(browser: Browser, folder: Path, wacz: Path, url: str) -> None:
    """A WACZ passes the validator, and replays."""
    assert validate(wacz) == (0, VALID)
    with serving.served(folder / "site", wacz, url) as address, browsing.window(browser) as page:
        expect(serving.open_page(page, address).locator("h1")).to_have_text("The Windmill Museum")
