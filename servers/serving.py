"""A running `warcmill serve` with pywb, and ReplayWeb.page, which judges WACZ files: for tests, demos and pictures.

ReplayWeb.page shows a WACZ in a browser (`servers/browsing.py`): does a page open, with its images and styles? It is
AGPL: a site of its own, served on loopback (its service worker needs that), never imported.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from html import escape
from http.client import HTTPConnection
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

from msgspec import Struct
from playwright.sync_api import FrameLocator, Page, expect

from servers import packages, pins
from warcmill.errors import Unavailable

SECONDS = 300  # a loaded machine needs minutes to start pywb
ROOT = Path(__file__).resolve().parent.parent
_PATIENCE = 30  # seconds before the page is opened again
PAGE = """<!doctype html>
<html><head><meta charset="utf-8"><title>WACZ</title><script src="ui.js"></script>
<style>html,body{{margin:0;height:100%}} replay-web-page{{display:block;height:100vh}}</style></head>
<body><replay-web-page source="/archive.wacz" url="{url}" replaybase="/replay/" embed="default"></replay-web-page>
</body></html>
"""


class RunningServe(Struct, frozen=True):
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


def follow(page: Page, title: str) -> FrameLocator:
    """Follow a result of a search; return pywb's frame, once the archived page in it has a heading."""
    page.get_by_role("link", name=title, exact=True).first.click()
    archived = page.frame_locator("#replay_iframe")
    archived.locator("h1").first.wait_for()
    return archived


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


def open_page(page: Page, address: str) -> FrameLocator:
    """Open the address that `served` yielded; return the frame of the archived page, once that has text.

    On a loaded machine the player was seen to wait for its service worker for ever: then the page is opened again.
    """
    archived = page.frame_locator("replay-web-page iframe").frame_locator("wr-coll-replay iframe")
    until = time.monotonic() + SECONDS
    while True:
        page.goto(address)
        try:
            expect(archived.locator("body")).to_have_text(re.compile(r"\S"), timeout=_PATIENCE * 1000)
        except AssertionError:
            if time.monotonic() > until:
                raise
        else:
            return archived


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print no line for a request."""
