"""An operator's day by the keyboard alone, with and without JavaScript: a crawl is started, watched, stopped, archived,
and a page of it found and replayed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import preloaded
import pytest
from operating.keyboard import Keyboard
from playwright.sync_api import Browser, expect
from sites.several_hosts import Page as SitePage
from sites.several_hosts import serve

from servers import browsing, serving

HOST, PAGES = "a.example", 400
HERE = ["--allow-private", "127.0.0.0/8", "--resolve", f"{HOST}=127.0.0.1"]
SEARCH = "Words, a “phrase”, or a URL"


def html(title: str, *links: str) -> SitePage:
    ways = "".join(f"<a href={link}>{link}</a> " for link in links)
    return SitePage(f"<title>{title}</title><h1>{title}</h1>{ways}".encode(), "text/html")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The luigi.cfg of an archive of a site, crawled while it had one page; now it has many, and a crawl takes long."""
    folder, site = tmp_path_factory.mktemp("archive"), {(HOST, "/"): html("The Heron Society")}
    with serve(site) as port:
        done = preloaded.run(
            "commands.main", "crawl", f"http://{HOST}:{port}/", *HERE, env=dict(os.environ), folder=folder
        )
        assert done.returncode == 0, done.stdout + done.stderr
        site[HOST, "/"] = html("The osprey has come back", *(f"/{number}" for number in range(PAGES)))
        site |= {(HOST, f"/{number}"): html(f"Page {number}") for number in range(PAGES)}
        config = folder / "archive/luigi.cfg"
        serving.configure(config)
        yield config


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_crawl_is_started_watched_stopped_archived_found_and_replayed(
    browser: Browser, archive: Path, tmp_path: Path, scripts: bool
) -> None:
    with (
        serving.serving(archive, tmp_path / "log") as server,
        browsing.window(browser, scripts=scripts) as page,
    ):
        keyboard = Keyboard(page, scripts=scripts)
        page.goto(server.entrance)
        expect(page.locator("main")).to_contain_text("Newest launches")
        keyboard.press("Jobs")
        job = page.locator("main tbody th a").first.inner_text()
        keyboard.press(job)
        keyboard.act("Start…", "Start")
        keyboard.press("The job")
        keyboard.wait_for("As its engine reported")
        expect(page.locator("#running")).to_contain_text("running")
        keyboard.act("Stop…", "Stop")
        keyboard.press("All jobs")
        keyboard.act("Scan…", "Scan")
        keyboard.press("Search")
        browsing.press_to(page, SEARCH)
        page.keyboard.type("osprey")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        server.wait()
        browsing.press_to(page, "The osprey has come back")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        if scripts:
            expect(page.frame_locator("#replay_iframe").locator("h1")).to_have_text("The osprey has come back")
        assert page.url.startswith("http://localhost:"), "pywb's frame needs scripts; the way to it does not"
