"""A WACZ of ours in ReplayWeb.page, in a real browser: pages open with their styles and images, and links lead on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sample
from line import Line, new_line
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from servers import browser, replayweb

GUIDE = "http://docs.example/maint/start.en.html"
GREY = "rgba(238, 238, 238, 1)"  # the body's colour in debian.css
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


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with browser.opened(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def test_a_page_opens_with_its_styles_and_its_links_lead_on(wacz: Path, chrome: Chrome, tmp_path: Path) -> None:
    with replayweb.served(tmp_path / "site", wacz, GUIDE) as address:
        replayweb.open_page(chrome, address, SECONDS)
        assert chrome.find_element(By.CSS_SELECTOR, "h1.title").text == "Chapter 1. Getting started The Right Way"
        assert chrome.find_element(By.TAG_NAME, "body").value_of_css_property("background-color") == GREY
        chrome.find_element(By.CSS_SELECTOR, "a[accesskey=n]").click()
        wait = WebDriverWait(chrome, SECONDS, ignored_exceptions=[StaleElementReferenceException])
        wait.until(lambda page: "Chapter 2" in page.find_element(By.TAG_NAME, "h1").text)


def test_an_image_is_there(wacz: Path, chrome: Chrome, tmp_path: Path) -> None:
    with replayweb.served(tmp_path / "site", wacz, "http://gov.example/") as address:
        replayweb.open_page(chrome, address, SECONDS)
        assert chrome.find_element(By.TAG_NAME, "h1").text == "Welcome"
        crest = chrome.find_element(By.TAG_NAME, "img")
        WebDriverWait(chrome, SECONDS).until(lambda _: int(crest.get_property("naturalWidth") or 0) > 0)


def test_a_page_that_was_not_crawled_is_reported(wacz: Path, chrome: Chrome, tmp_path: Path) -> None:
    with replayweb.served(tmp_path / "site", wacz, "http://gov.example/never") as address:
        replayweb.open_page(chrome, address, SECONDS)
        assert "Archived Page Not Found" in chrome.find_element(By.TAG_NAME, "body").text
