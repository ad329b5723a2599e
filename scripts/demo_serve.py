"""The end of the demos: index what was crawled, search it, and open a page of it in replay."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import unescape
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from demo import HOST, run

from commands.console.scanner import moving
from commands.init import PUBLISHED
from servers import serving
from servers.serving import SECONDS, RunningServe
from warcmill.model import Json

INDEX = "\n[index]\nsince=2016-01-01\n[text]\nsince=2016-01-01\n"
_TITLE = re.compile(r"<title>(.*?)</title>", re.IGNORECASE | re.DOTALL)


def index(config: Path, days: str, sections: str = "") -> None:
    """Publish the indexes; with sections in the place of those that init has written."""
    text = config.read_text("utf-8")
    if sections not in text:
        print(f"\n{config} also gets:\n{sections}")
        config.write_text(text.replace(PUBLISHED, "") + sections, "utf-8")
    run("luigi", "--module", "tasks.index", "index.ScanForIndexing", "--date-interval", days)


def open_page(config: Path, words: str, job: str = "", museum: int = 0) -> None:
    """Serve, search, and open the first result; on a terminal, serve until Ctrl-C. The site of `job` can be crawled,
    and a museum at this port be archived."""
    with served(config) as server:
        with moving("starts pywb"):
            server.wait()
        _look(server, words)
        if sys.stdout.isatty():
            print(f"Open it in a browser: {server.entrance}", flush=True)
            print(f"New publications, for a curator: {server.address}documents?status=NEW", flush=True)
            if job:
                print(
                    f"The site of the job '{job}' is up: start a crawl of it at {server.address}jobs/{job}", flush=True
                )
            if museum:
                fields = urlencode({"url": f"http://{HOST}:{museum}/", "allow_private": f"{HOST}/32"})
                print(f"A curator's day: archive a museum at {server.address}archive-a-site?{fields}", flush=True)
            print("Ctrl-C ends it", flush=True)
            with suppress(KeyboardInterrupt):
                server.process.wait()


@contextmanager
def served(config: Path) -> Iterator[RunningServe]:
    """Serve the pages while the block runs; replay comes once there is an index of captures."""
    if "\n[serve]" not in config.read_text("utf-8"):
        print("pywb replays; it gets an environment of its own, the first time: about half a minute", flush=True)
        with moving("installs pywb"):
            serving.configure(config)
    print("$ warcmill serve", flush=True)
    with serving.serving(config, config.with_name("serve.log")) as server:
        yield server


def _look(server: RunningServe, words: str) -> None:
    """The sight of a reader: a page of results, and the page that the first one leads to."""
    address = f"{server.address}search?{urlencode({'q': words})}"
    found = asked(server, f"{address}&format=json")
    print(f"{address}    {found['captures']} captures found", flush=True)
    first = found["found"][0]  # type: ignore[index, call-overload]
    replayed = server.replay_of(first["url"], first["time"])  # type: ignore[index, call-overload, arg-type]
    print(f"{replayed}\n    {_title(replayed)}", flush=True)


def asked(server: RunningServe, address: str) -> dict[str, Json]:
    """The answer of a page in JSON."""
    request = Request(address, headers={"Authorization": f"Bearer {server.token}"})  # noqa: S310 - our own server
    with urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
        return dict(json.load(answer))


def _title(address: str) -> str:
    """The status and the title of the page that pywb's frame at this address shows."""
    framed = re.sub(r"(/[0-9]{14})/", r"\1mp_/", address, count=1)
    with urlopen(framed, timeout=SECONDS) as answer:  # noqa: S310
        title = _TITLE.search(answer.read().decode("utf-8", "replace"))
        words = " ".join(unescape(title[1]).split()) if title else "a page without a title"
        return f"{answer.status} {answer.reason}: {words}"
