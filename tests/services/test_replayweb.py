"""A WACZ of ours in ReplayWeb.page, in a real browser: pages open with their styles and images, and links lead on.

So they do in the WACZ of a second crawl, in which all of them are revisits, or were not modified.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import preloaded
import pytest
import sample
from line import Line, new_line
from playwright.sync_api import Browser, expect
from sites.several_hosts import Page, serve

from servers import browsing, serving

GUIDE = "http://docs.example/maint/start.en.html"
GREY = "rgb(238, 238, 238)"  # the body's colour in debian.css
GREEN, DARK = "rgb(1, 200, 3)", "rgb(10, 20, 30)"


@pytest.fixture(scope="module")
def wacz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled launch, as an operator makes a WACZ of it."""
    line: Line = new_line(tmp_path_factory.mktemp("line"))
    assert line.scan() == [0, 0]
    path = line.config.parent / "weekly.wacz"
    done = line.warcmill("wacz", sample.JOB, sample.LAUNCH_ID, "-o", str(path))
    assert done.returncode == 0, done.stderr
    return path


def png(width: int) -> bytes:
    """A picture of one colour, of this width and a height of 20."""
    parts = [b"\x89PNG\r\n\x1a\n"]
    header = struct.pack(">IIBBBBB", width, 20, 8, 2, 0, 0, 0)
    for kind, data in (
        (b"IHDR", header),
        (b"IDAT", zlib.compress((b"\0" + b"\xc0\x20\x20" * width) * 20)),
        (b"IEND", b""),
    ):
        parts += [struct.pack(">I", len(data)), kind, data, struct.pack(">I", zlib.crc32(kind + data))]
    return b"".join(parts)


def styled(title: str, rest: str) -> bytes:
    head = f"<title>{title}</title><link rel=stylesheet href=/one.css><link rel=stylesheet href=/two.css>"
    return f"<html><head>{head}</head><body><h1>{title}</h1>{rest}</body></html>".encode()


# Of each kind one that is sent again, and is the same, and one of which the server says that it was not modified.
SITE = {
    "/": Page(styled("First & last", '<img src="/one.png"><img src="/two.png"><a href="/next">on</a>')),
    "/next": Page(styled("Next", "<p>words"), etag='"n"'),
    "/one.css": Page(b"body { background: rgb(1, 200, 3) }", "text/css"),
    "/two.css": Page(b"h1 { color: rgb(10, 20, 30) }", "text/css", etag='"c"'),
    "/one.png": Page(png(40), "image/png"),
    "/two.png": Page(png(50), "image/png", etag='"p"'),
}


def crawled_twice(folder: Path) -> tuple[Path, str]:
    """The WACZ of the second crawl of a site, by the commands of a newcomer; and the site's address."""
    env = {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"}

    def warcmill(*words: str) -> list[str]:
        done = preloaded.run("commands.main", *words, env=env, folder=folder)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    with serve({("site.example", path): page for path, page in SITE.items()}) as port:
        url = f"http://site.example:{port}/"
        words = ("crawl", url, "--allow-private", "127.0.0.0/8", "--no-delay", "--resolve", "site.example=127.0.0.1")
        warcmill(*words)
        config = folder / "archive/luigi.cfg"
        text = config.read_text()
        config.write_text(
            text + "".join(f"\n[{name}]\nsince=2016-01-01\n" for name in ("index", "text") if f"\n[{name}]" not in text)
        )
        if "\n[index]" not in text:
            warcmill("init", "--adopt", "index")
        warcmill("scan")
        warcmill(*words)
    first, second = warcmill("wacz")
    assert first.partition(", ")[2].startswith("7 captures, 1 page of seeds and 1 more, with text, "), first
    assert second.startswith("  with: the originals of 6 captures, from site-example/")
    (made,) = folder.glob("site-example-*.wacz")
    return made, url


def test_a_page_opens_with_its_styles_and_its_links_lead_on(wacz: Path, browser: Browser, tmp_path: Path) -> None:
    with serving.served(tmp_path / "site", wacz, GUIDE) as address, browsing.window(browser) as window:
        archived = serving.open_page(window, address)
        expect(archived.locator("h1.title")).to_have_text("Chapter 1. Getting started The Right Way")
        expect(archived.locator("body")).to_have_css("background-color", GREY)
        archived.locator("a[accesskey=n]").first.click()
        expect(archived.locator("h1")).to_contain_text("Chapter 2")


def test_an_image_is_there(wacz: Path, browser: Browser, tmp_path: Path) -> None:
    with serving.served(tmp_path / "site", wacz, "http://gov.example/") as address, browsing.window(browser) as window:
        archived = serving.open_page(window, address)
        expect(archived.locator("h1")).to_have_text("Welcome")
        expect(archived.locator("img")).not_to_have_js_property("naturalWidth", 0)


def test_a_page_that_was_not_crawled_is_reported(wacz: Path, browser: Browser, tmp_path: Path) -> None:
    never = "http://gov.example/never"
    with serving.served(tmp_path / "site", wacz, never) as address, browsing.window(browser) as window:
        expect(serving.open_page(window, address).locator("body")).to_contain_text("Archived Page Not Found")


def test_a_second_crawl_opens_with_its_styles_and_images(browser: Browser, tmp_path: Path) -> None:
    wacz, url = crawled_twice(tmp_path)
    with serving.served(tmp_path / "site", wacz, url) as address, browsing.window(browser) as window:
        archived = serving.open_page(window, address)
        expect(archived.locator("body")).to_have_css("background-color", GREEN)
        expect(archived.locator("h1")).to_have_css("color", DARK)
        for place, width in enumerate((40, 50)):
            expect(archived.locator("img").nth(place)).to_have_js_property("naturalWidth", width)
        archived.locator("a").click()
        expect(archived.locator("h1")).to_have_text("Next")
        expect(archived.locator("body")).to_have_css("background-color", GREEN)
