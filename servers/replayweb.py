"""ReplayWeb.page, as a judge of WACZ files: does a page open in a browser, with its images and styles?

It is AGPL: a site of its own, which a test serves on loopback (its service worker needs that), never imported.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html import escape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from selenium.common.exceptions import TimeoutException, WebDriverException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.shadowroot import ShadowRoot
from selenium.webdriver.support.wait import WebDriverWait

from servers import npm, pins

_PATIENCE = 60  # seconds before the page is opened again
PAGE = """<!doctype html>
<html><head><meta charset="utf-8"><title>WACZ</title><script src="ui.js"></script>
<style>html,body{{margin:0;height:100%}} replay-web-page{{display:block;height:100vh}}</style></head>
<body><replay-web-page source="/archive.wacz" url="{url}" replaybase="/replay/" embed="default"></replay-web-page>
</body></html>
"""


@contextmanager
def served(folder: Path, wacz: Path, url: str) -> Iterator[str]:
    """Serve a page, out of `folder`, that replays `url` from a WACZ; yield the page's address."""
    files = npm.package(pins.REPLAYWEB, pins.REPLAYWEB_SHA256)
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
