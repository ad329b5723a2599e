"""A new folder, four commands and no editor: crawl, serve, a look at the page in a real browser, wacz."""

from __future__ import annotations

import os
from pathlib import Path

import preloaded
from playwright.sync_api import Browser, expect
from sites.several_hosts import Page, serve

from servers import browsing, serving

BLUE = "rgb(38, 139, 210)"
PICTURE = b'<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"><circle cx="45" cy="45" r="40"/></svg>'
HERE = ["--allow-private", "127.0.0.0/8", "--no-delay", "--resolve", "a.example=127.0.0.1"]


def html(title: str, more: str) -> Page:
    return Page(f"<title>{title}</title><link rel=stylesheet href=/s.css><h1>{title}</h1>{more}".encode(), "text/html")


SITE = {
    ("a.example", "/"): html("The Heron Society", "<img src=/h.svg><a href=/news/>News</a>"),
    ("a.example", "/news/"): html("News of the society", "<p>The osprey has come back."),
    ("a.example", "/s.css"): Page(f"h1 {{ color: {BLUE} }}".encode(), "text/css"),
    ("a.example", "/h.svg"): Page(PICTURE, "image/svg+xml"),
    ("a.example", "/robots.txt"): Page(b"User-agent: *\nDisallow:\n", "text/plain"),
}


def test_four_commands_in_a_new_folder_show_the_crawl(browser: Browser, tmp_path: Path) -> None:
    with serve(SITE) as port:
        url = f"http://a.example:{port}/"
        done = preloaded.run("commands.main", "crawl", url, *HERE, env=dict(os.environ), folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"\n{url} (The Heron Society)\n" in done.stdout
    assert done.stdout.endswith("\nlook at it: warcmill serve\n")
    config = tmp_path / "archive/luigi.cfg"
    serving.configure(config)  # free ports, and the pywb of the tests: nothing is installed twice
    with serving.serving(config, tmp_path / "log") as server, browsing.window(browser) as page:
        server.wait()
        page.goto(server.entrance)
        page.locator("main [name=q]").fill(f"a.example:{port}/")
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_contain_text("1 capture of this URL")
        page.locator("main li a").click()
        archived = page.frame_locator("#replay_iframe")
        expect(archived.locator("h1")).to_have_text("The Heron Society")
        expect(archived.locator("h1")).to_have_css("color", BLUE)
        expect(archived.locator("img")).not_to_have_js_property("naturalWidth", 0)
    made = preloaded.run("commands.main", "wacz", env=dict(os.environ), folder=tmp_path)
    assert made.returncode == 0, made.stdout + made.stderr
    assert list(tmp_path.glob("*.wacz"))
