"""A WACZ of ours in ReplayWeb.page, in a real browser: pages open with their styles and images, and links lead on.

So they do in the WACZ of a second crawl, in which all of them are revisits, or were not modified.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import preloaded
import pytest
import sample
from line import Line, new_line
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait
from several_hosts import Page, serve

from servers import serving

GUIDE = "http://docs.example/maint/start.en.html"
GREY = "rgba(238, 238, 238, 1)"  # the body's colour in debian.css
GREEN, DARK = "rgba(1, 200, 3, 1)", "rgba(10, 20, 30, 1)"
SECONDS = 300


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


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with serving.opened(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def test_a_page_opens_with_its_styles_and_its_links_lead_on(wacz: Path, chrome: Chrome, tmp_path: Path) -> None:
    with serving.served(tmp_path / "site", wacz, GUIDE) as address:
        serving.open_page(chrome, address, SECONDS)
        assert chrome.find_element(By.CSS_SELECTOR, "h1.title").text == "Chapter 1. Getting started The Right Way"
        assert chrome.find_element(By.TAG_NAME, "body").value_of_css_property("background-color") == GREY
        chrome.find_element(By.CSS_SELECTOR, "a[accesskey=n]").click()
        wait = WebDriverWait(chrome, SECONDS, ignored_exceptions=[StaleElementReferenceException])
        wait.until(lambda page: "Chapter 2" in page.find_element(By.TAG_NAME, "h1").text)


def test_an_image_is_there(wacz: Path, chrome: Chrome, tmp_path: Path) -> None:
    with serving.served(tmp_path / "site", wacz, "http://gov.example/") as address:
        serving.open_page(chrome, address, SECONDS)
        assert chrome.find_element(By.TAG_NAME, "h1").text == "Welcome"
        crest = chrome.find_element(By.TAG_NAME, "img")
        WebDriverWait(chrome, SECONDS).until(lambda _: int(crest.get_property("naturalWidth") or 0) > 0)


def test_a_page_that_was_not_crawled_is_reported(wacz: Path, chrome: Chrome, tmp_path: Path) -> None:
    with serving.served(tmp_path / "site", wacz, "http://gov.example/never") as address:
        serving.open_page(chrome, address, SECONDS)
        assert "Archived Page Not Found" in chrome.find_element(By.TAG_NAME, "body").text


def test_a_second_crawl_opens_with_its_styles_and_images(chrome: Chrome, tmp_path: Path) -> None:
    wacz, url = crawled_twice(tmp_path)
    wait = WebDriverWait(chrome, SECONDS, ignored_exceptions=[StaleElementReferenceException])
    with serving.served(tmp_path / "site", wacz, url) as address:
        serving.open_page(chrome, address, SECONDS)
        wait.until(
            lambda _: (colour(chrome, "body", "background-color"), colour(chrome, "h1", "color")) == (GREEN, DARK)
        )
        wait.until(lambda _: [one.get_property("naturalWidth") for one in images(chrome)] == [40, 50])
        chrome.find_element(By.TAG_NAME, "a").click()
        wait.until(lambda page: page.find_element(By.TAG_NAME, "h1").text == "Next")
        assert colour(chrome, "body", "background-color") == GREEN


def colour(page: Chrome, name: str, style: str) -> str:
    return page.find_element(By.TAG_NAME, name).value_of_css_property(style)


def images(page: Chrome) -> list[WebElement]:
    return page.find_elements(By.TAG_NAME, "img")
