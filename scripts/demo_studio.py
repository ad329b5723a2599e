"""Follow a site by a script that always runs: its template changes, that is named, and the script is mended.

Run by `scripts/demo --studio`. The site and the crawler are on this machine. Every page that the script reads is
archived, so the mended script is tried over stored pages before it asks the site again.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from demo import HOST, PATIENCE, RECONCILED, SCANNED, run
from loopback_site import gazette

from warcmill.scripts import answers

JOB, NAME = "papers", "gazette"
SCRIPT = f"{JOB}/{NAME}"
PULSED = r"^papers:|ERROR|^warcmill:"
ON_LOOPBACK = f'allow_private = ["{HOST}/32"]\nno_delay = true\n'
FIRST, CHANGED, LAST = 12, 6, 4  # articles
BEFORE, AFTER = 'response.doc("h1.title").text()', 'response.doc("article > h2").text()'
TEXT = """\
from pyspider.libs.base_handler import *


class Handler(BaseHandler):
    @every(minutes=24 * 60)
    def on_start(self):
        self.crawl("{address}", callback=self.index_page, age=1)

    def index_page(self, response):
        for link in response.doc("nav a").items():
            self.crawl(link.attr.href, callback=self.article)

    def article(self, response):
        return {{"url": response.url, "title": {title}, "text": response.doc("p").text()}}
"""


def main(folder: Path) -> int:
    """Follow the site, meet its new template, mend the script; return 0 if the archive reconciles."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.pop("LUIGI_CONFIG_PATH", None)  # of another line; Luigi warns if its file does not exist yet
    os.chdir(folder)
    archive = folder / "archive"
    job = archive / "jobs" / JOB
    again = ["--again"] if (archive / "output" / "logs" / JOB).exists() else []
    with gazette(FIRST) as (site, port):
        address = f"http://{HOST}:{port}/"
        if not again:
            run("warcmill", "script", "new", SCRIPT, "--start", address)
            crawl = job / "crawl.toml"
            crawl.write_text(f"{crawl.read_text()}\n{ON_LOOPBACK}")
            run("warcmill", "schedule", JOB, "daily")
        _write(job, TEXT.format(address=address, title=BEFORE))
        run("warcmill", "script", "set", SCRIPT, "--status", "RUNNING", "--rate", "50", "--burst", "50")
        run("warcmill", "pulse", "start", JOB, *again, shown=PULSED)
        run("warcmill", "script", "start", SCRIPT)
        _wait(lambda: len(_titles(job, address)) == FIRST, "results")
        print(f"    the site gets a new template, and {CHANGED} articles", flush=True)
        site.change(CHANGED)
        run("warcmill", "script", "start", SCRIPT)
        _wait(lambda: _states(job) == ["changed"], "finding of the watch")
        run("warcmill", "script", "list", JOB)
        run("warcmill", "script", "try", SCRIPT, "--last", str(CHANGED), may_be=(0, 1))
        _write(job, TEXT.format(address=address, title=AFTER))
        run("warcmill", "script", "try", SCRIPT, "--last", str(CHANGED))
        run("warcmill", "script", "set", SCRIPT, "--status", "RUNNING")
        site.publish(LAST)
        run("warcmill", "script", "start", SCRIPT)
        _wait(lambda: sum(map(bool, _titles(job, address))) == FIRST + LAST and not _states(job), "results")
        run("warcmill", "script", "list", JOB)
        run("warcmill", "pulse", "stop", JOB, shown=PULSED)
        run("warcmill", "scan", shown=SCANNED)
        return run("warcmill", "reconcile", may_be=(0, 1), shown=RECONCILED)


def _write(job: Path, text: str) -> None:
    """Write the script, as an editor does."""
    path = job / "scripts" / f"{NAME}.py"
    print(f"    {path.relative_to(Path.cwd())} gets its text: {text.count(chr(10))} lines", flush=True)
    path.write_text(text)


def _titles(job: Path, address: str) -> list[str]:
    """The titles of the results from a site."""
    found = [json.loads(line) for text in answers.results(job, NAME, "jsonl", 0) for line in text.splitlines()]
    return [one["result"]["title"] for one in found if one["url"].startswith(address)]


def _states(job: Path) -> list[str]:
    """What the watch says of the script."""
    listed: Any = answers.listed(job, time.time())
    return [one["state"] for script in listed["scripts"] for one in script["watch"]]


def _wait(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > deadline:
            sys.exit(f"demo: no {what} came in {PATIENCE} s")
        time.sleep(0.2)
