"""A new folder, four commands and no editor: crawl, serve, a look at the page in a real browser, wacz."""

from __future__ import annotations

import os
from pathlib import Path

import preloaded
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait
from several_hosts import Page, serve

from servers import serving
from servers.serving import SECONDS

BLUE = "rgba(38, 139, 210, 1)"
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


def test_four_commands_in_a_new_folder_show_the_crawl(tmp_path: Path) -> None:
    with serve(SITE) as port:
        url = f"http://a.example:{port}/"
        done = preloaded.run("commands.main", "crawl", url, *HERE, env=dict(os.environ), folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"\n{url} (The Heron Society)\n" in done.stdout
    assert done.stdout.endswith("\nlook at it: warcmill serve\n")
    config = tmp_path / "archive/luigi.cfg"
    serving.configure(config)  # free ports, and the pywb of the tests: nothing is installed twice
    with serving.serving(config, tmp_path / "log") as server, serving.opened(tmp_path / "browser") as chrome:
        server.wait()
        chrome.get(server.entrance)
        chrome.find_element(By.NAME, "q").send_keys(f"a.example:{port}/")
        chrome.find_element(By.TAG_NAME, "button").click()
        wait = WebDriverWait(chrome, SECONDS)
        wait.until(lambda page: "1 capture of this URL" in page.find_element(By.TAG_NAME, "body").text)
        chrome.find_element(By.CSS_SELECTOR, "li a").click()
        wait.until(lambda page: page.find_elements(By.ID, "replay_iframe"))
        chrome.switch_to.frame("replay_iframe")
        wait.until(lambda page: page.find_elements(By.TAG_NAME, "h1"))
        heading = chrome.find_element(By.TAG_NAME, "h1")
        assert heading.text == "The Heron Society"
        wait.until(lambda _: heading.value_of_css_property("color") == BLUE)
        picture = chrome.find_element(By.TAG_NAME, "img")
        wait.until(lambda _: int(picture.get_property("naturalWidth") or 0) > 0)
    made = preloaded.run("commands.main", "wacz", env=dict(os.environ), folder=tmp_path)
    assert made.returncode == 0, made.stdout + made.stderr
    assert list(tmp_path.glob("*.wacz"))
