"""A running `warcmill serve`, with pywb from its own environment: for tests, demos and pictures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from servers import oracles, ports
from warcmill.errors import Unavailable

SECONDS = 300  # a loaded machine needs minutes to start pywb
ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Serving:
    """`address` is search's, `token` opens it."""

    address: str
    token: str
    process: subprocess.Popen[str]

    def replay_of(self, url: str, time: str) -> str:
        """Where search sends a reader who follows a result; '' if it shows no such capture."""
        with closing(HTTPConnection(urlsplit(self.address).netloc, timeout=SECONDS)) as connection:
            path = f"/capture?{urlencode({'time': time, 'url': url})}"
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
            return connection.getresponse().headers.get("Location", "")

    def health(self) -> dict[str, object]:
        """What /healthz says, well or not."""
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
    chosen = ports.free({"port": 0, "replay_port": 0})
    lines = [f"{key}={port}" for key, port in chosen.items()]
    with config.open("a") as file:
        file.write("\n".join(["", "[serve]", *lines, f"pywb={oracles.bin_folder('pywb') / 'wayback'}", ""]))


def follow(browser: Chrome, title: str) -> None:
    """Follow a result of a search, and leave the browser in pywb's frame once the archived page has a heading."""
    browser.find_element(By.LINK_TEXT, title).click()
    wait = WebDriverWait(browser, SECONDS)
    wait.until(lambda page: page.find_elements(By.ID, "replay_iframe"))
    browser.switch_to.frame("replay_iframe")
    wait.until(lambda page: page.find_elements(By.TAG_NAME, "h1"))


@contextmanager
def serving(config: Path, log: Path) -> Iterator[Serving]:
    """Start it over a configured line; `wait` until replay is there, too. It ends with the block."""
    words = [sys.executable, "-m", "commands.main", "serve"]
    environment = {**os.environ, "LUIGI_CONFIG_PATH": str(config), "PYTHONPATH": str(ROOT)}
    with (
        log.open("w") as err,
        subprocess.Popen(
            words, cwd=config.parent, env=environment, stdout=subprocess.PIPE, stderr=err, text=True
        ) as process,
    ):
        try:
            yield _started(process, log)
        finally:
            process.terminate()
            process.wait(SECONDS)


def _started(process: subprocess.Popen[str], log: Path) -> Serving:
    assert process.stdout
    printed = process.stdout.readline().strip()
    if not printed:
        raise Unavailable("warcmill serve", log.read_text("utf-8"))
    address, _, token = printed.partition("?token=")
    return Serving(address, token, process)
