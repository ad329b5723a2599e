"""The frontier of a job as a file: dumped while it crawls or not, and a list of URIs loaded into a launch that runs.

A launch takes URIs by its control socket, so its journal has them, and nothing of them is lost. Writes the dump alone.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from warcmill.crawl.books import uri_list
from warcmill.crawl.books.uri_list import ListRead
from warcmill.crawl.control import control, messages
from warcmill.crawl.control.calls import RunningJob
from warcmill.crawl.frontier import dump
from warcmill.crawl.launch import folders
from warcmill.crawl.launch.database import lines_of
from warcmill.crawl.launch.folders import CONTROL, Places
from warcmill.errors import NotReady

LONG = 600.0  # seconds


def dump_to(places: Places, name: str, path: Path) -> dict[str, int]:
    """Dump the frontier of a job; return how many URIs wait in it, and were visited. Conflict when the file exists."""
    with current(places, name, path.absolute().parent) as lines:
        return dump.write(lines, path)


@contextmanager
def current(places: Places, name: str, folder: Path) -> Iterator[Iterator[dict[str, Any]]]:
    """Yield the lines of a dump of a job's frontier as it is now. A crawl that has it in SQLite copies it into a new
    file in `folder` for that. NotReady for a job without a frontier yet."""
    if places.frontier:
        yield lines_of(places.database(name), name, places.frontier)
        return
    if not places.database(name).exists():
        raise NotReady(f"job {name}", f"it has no frontier yet: {places.database(name)} is not there")
    if folders.holder(places.state(name)) is None:
        with folders.held(places.state(name)):
            yield lines_of(places.database(name))
        return
    copy = folder / f".{name}.{os.getpid()}.tmp"
    try:
        control.ask(places.state(name) / CONTROL, "dump", LONG, to=str(copy))
        yield lines_of(copy)
    finally:
        for part in (copy, Path(f"{copy}-wal"), Path(f"{copy}-shm")):
            part.unlink(missing_ok=True)


def load(job: RunningJob, path: Path, is_dry: bool = False) -> tuple[ListRead, Counter[str]]:
    """Load a list into the launch that runs; return what was read, and how many URIs were `new`, `seen`, `refused` and
    `visited`. Bad lines are left out; `is_dry`: nothing is loaded. BadInput when the file cannot be read whole: then
    nothing was loaded. NotReady when no launch runs."""
    first = ListRead()
    visited = {(line["crawl"], line["key"]): line for line in uri_list.read(path, first) if "visited" in line}
    answers = Counter[str]()
    if is_dry:
        return first, answers
    job.ask("state")
    for some in messages.parts(iter(visited.values())):
        answers += _loaded(job.ask("load", LONG, visited=some))
    waits = (line for line in uri_list.read(path, ListRead()) if "uri" in line)
    fresh = (line for line in waits if (line.get("crawl", ""), line.get("key", line["uri"])) not in visited)
    for some in messages.parts(fresh):
        found = _loaded(job.ask("load", LONG, uris=some))
        answers += found + Counter(seen=len(some) - found["new"] - found["refused"])
    return first, answers


def _loaded(answer: Any) -> Counter[str]:
    return Counter(new=answer["new"], visited=answer["visited"], refused=len(answer["refused"]))
