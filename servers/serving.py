"""A running `warcmill serve` with pywb, and browsers that look at it: for tests, demos and pictures.

The browser is Debian's Chromium without a window, driven by Selenium. ReplayWeb.page judges WACZ files in it: does a
page open, with its images and styles? It is AGPL: a site of its own, served on loopback (its service worker needs
that), never imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from html import escape
from http.client import HTTPConnection
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

from selenium.common.exceptions import TimeoutException, WebDriverException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.shadowroot import ShadowRoot
from selenium.webdriver.support.wait import WebDriverWait

from servers import packages, pins
from warcmill.errors import Unavailable

SECONDS = 300  # a loaded machine needs minutes to start pywb
ROOT = Path(__file__).resolve().parent.parent
SIZE = (1280, 900)
# The browser's maker is never reached from a closed network; each attempt would only be one more refused connection.
QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
)
# As root, which a build machine is, Chromium has no sandbox; containers have a small /dev/shm.
AS_ROOT = ("--no-sandbox", "--disable-dev-shm-usage")
_PATIENCE = 60  # seconds before the page is opened again
PAGE = """<!doctype html>
<html><head><meta charset="utf-8"><title>WACZ</title><script src="ui.js"></script>
<style>html,body{{margin:0;height:100%}} replay-web-page{{display:block;height:100vh}}</style></head>
<body><replay-web-page source="/archive.wacz" url="{url}" replaybase="/replay/" embed="default"></replay-web-page>
</body></html>
"""


@dataclass(frozen=True)
class RunningServe:
    """`address` is that of the pages, `token` opens them."""

    address: str
    token: str
    process: subprocess.Popen[str]

    @property
    def entrance(self) -> str:
        """The address at which a browser signs in."""
        return f"{self.address}sign-in?token={self.token}"

    def replay_of(self, url: str, time: str) -> str:
        """Where search sends a reader who follows a result; '' if it shows no such capture."""
        with closing(HTTPConnection(urlsplit(self.address).netloc, timeout=SECONDS)) as connection:
            path = f"/capture?{urlencode({'time': time, 'url': url})}"
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
            return connection.getresponse().headers.get("Location", "")

    def health(self) -> dict[str, object]:
        """The document of /healthz, well or not."""
        try:
            with urlopen(f"{self.address}healthz", timeout=SECONDS) as answer:  # noqa: S310
                return dict(json.load(answer))
        except HTTPError as unwell:
            return dict(json.load(unwell))

    def wait(self) -> None:
        """Until replay is ready; Unavailable after a generous time, or if serve has ended."""
        until = time.monotonic() + SECONDS
        while self.health()["replay"] != "ready":
            if self.process.poll() is not None or time.monotonic() > until:
                raise Unavailable("warcmill serve", "it is not ready; its log has the reason")
            time.sleep(0.1)


def configure(config: Path) -> None:
    """Add [serve] to a luigi.cfg: free ports, and the pywb that tests use."""
    chosen = pins.free({"port": 0, "replay_port": 0})
    lines = [f"{key}={port}" for key, port in chosen.items()]
    with config.open("a") as file:
        file.write("\n".join(["", "[serve]", *lines, f"pywb={packages.bin_folder('pywb') / 'wayback'}", ""]))


def follow(browser: Chrome, title: str) -> None:
    """Follow a result of a search, and leave the browser in pywb's frame once the archived page has a heading."""
    browser.find_element(By.LINK_TEXT, title).click()
    wait = WebDriverWait(browser, SECONDS)
    wait.until(lambda page: page.find_elements(By.ID, "replay_iframe"))
    browser.switch_to.frame("replay_iframe")
    wait.until(lambda page: page.find_elements(By.TAG_NAME, "h1"))


@contextmanager
def serving(config: Path, log: Path, token: str = "") -> Iterator[RunningServe]:
    """Start it over a configured line; `wait` until replay is there, too. It ends with the block.

    `token`: one that was added before; '' for the one-time token that is printed then.
    """
    words = [sys.executable, "-m", "commands.main", "serve"]
    environment = {**os.environ, "LUIGI_CONFIG_PATH": str(config), "PYTHONPATH": str(ROOT)}
    with (
        log.open("w") as err,
        subprocess.Popen(
            words, cwd=config.parent, env=environment, stdout=subprocess.PIPE, stderr=err, text=True
        ) as process,
    ):
        try:
            yield _started(process, log, token)
        finally:
            process.terminate()
            process.wait(SECONDS)


def _started(process: subprocess.Popen[str], log: Path, token: str) -> RunningServe:
    assert process.stdout
    printed = process.stdout.readline().strip()
    if not printed:
        raise Unavailable("warcmill serve", log.read_text("utf-8"))
    address, _, printed_token = printed.partition("sign-in")
    return RunningServe(address, token or printed_token.removeprefix("?token="), process)


@contextmanager
def opened(folder: Path) -> Iterator[Chrome]:
    """A browser whose profile and driver's log are in `folder`; it ends with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    options = ChromeOptions()
    options.binary_location = str(packages.program("chromium", "chromium"))
    look = ("--headless=new", "--disable-gpu", "--hide-scrollbars", f"--window-size={SIZE[0]},{SIZE[1]}")
    for one in (*look, *QUIET, *AS_ROOT, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(one)
    driver = str(packages.program("chromedriver", "chromium-driver"))
    browser = Chrome(options, Service(driver, log_output=str(folder / "chromedriver.log")))
    try:
        yield browser
    finally:
        browser.quit()


@contextmanager
def served(folder: Path, wacz: Path, url: str) -> Iterator[str]:
    """Serve a page, out of `folder`, that replays `url` from a WACZ; yield the page's address."""
    files = packages.package(pins.REPLAYWEB, pins.REPLAYWEB_SHA256)
    (folder / "replay").mkdir(parents=True)
    for name, source in {"ui.js": files / "ui.js", "replay/sw.js": files / "sw.js", "archive.wacz": wacz}.items():
        os.symlink(source.resolve(), folder / name)
    (folder / "index.html").write_text(PAGE.format(url=escape(url)), "utf-8")
    with ThreadingHTTPServer((pins.HOST, 0), partial(_Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{pins.HOST}:{server.server_port}/"
        finally:
            server.shutdown()


def open_page(browser: Chrome, address: str, seconds: float) -> None:
    """Open what `served` yielded, and leave the browser in the frame of the archived page, once that has text.

    On a loaded machine the player was seen to wait for its service worker for ever: then the page is opened again.
    """

    def has_text(_: Chrome) -> bool:
        _into_the_page(browser)
        return bool(browser.find_element(By.TAG_NAME, "body").text.strip())

    until = time.monotonic() + seconds
    while True:
        browser.get(address)
        try:
            WebDriverWait(browser, _PATIENCE, ignored_exceptions=(WebDriverException,)).until(has_text)
            return
        except TimeoutException:
            if time.monotonic() > until:
                raise


def _into_the_page(browser: Chrome) -> None:
    """Go through the frame of the player, whose parts are in shadow trees, into that of the page."""
    browser.switch_to.default_content()
    for parts in (("replay-web-page",), ("replay-app-main", "wr-item", "wr-coll-replay")):
        inside: Chrome | ShadowRoot = browser
        for part in parts:
            inside = inside.find_element(By.CSS_SELECTOR, part).shadow_root
        browser.switch_to.frame(inside.find_element(By.CSS_SELECTOR, "iframe"))


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print no line for a request."""
