"""The frontier of a job as a file: dumped while it crawls or not, and lists of URIs that a launch takes.

A launch that runs takes URIs by its control socket, so its journal has them, and nothing of them is lost. One that
begins takes those that are to be asked for again, of its `retry.jsonl`: an object a line, with `uri`, `via`, `hops`,
`source`. Writes the dump, and that list.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from warcmill.crawl import durable
from warcmill.crawl.books import uri_list
from warcmill.crawl.books.uri_list import ListRead
from warcmill.crawl.control import control, messages
from warcmill.crawl.control.calls import RunningJob
from warcmill.crawl.frontier import Frontier, dump
from warcmill.crawl.job.job import Job
from warcmill.crawl.launch import folders
from warcmill.crawl.launch.database import lines_of
from warcmill.crawl.launch.folders import CONTROL, RETRY, Places
from warcmill.crawl.uri import Uri, make, without_session
from warcmill.crawl.visit.offers import AT_ONCE, Offers
from warcmill.errors import BadInput, NotReady

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


class Loaded(NamedTuple):
    """The answers to a list: how many URIs were `new`, `seen`, `refused` and `visited`; those that were refused, each
    with the reason."""

    counts: Counter[str]
    refused: list[str]


def load(job: RunningJob, path: Path, is_dry: bool = False) -> tuple[ListRead, Loaded]:
    """Load a list into the launch that runs; return what was read, and the answers. Bad lines are left out; `is_dry`:
    nothing is loaded. BadInput when the file cannot be read whole: then nothing was loaded. NotReady when no launch
    runs."""
    first = ListRead()
    visited = {(line["crawl"], line["key"]): line for line in uri_list.read(path, first) if "visited" in line}
    answers, refused = Counter[str](), list[str]()
    if is_dry:
        return first, Loaded(answers, refused)
    job.ask("state")
    for some in messages.parts(iter(visited.values())):
        answers += _counted(job.ask("load", LONG, visited=some))
    waits = (line for line in uri_list.read(path, ListRead()) if "uri" in line)
    fresh = (line for line in waits if (line.get("crawl", ""), line.get("key", line["uri"])) not in visited)
    for some in messages.parts(fresh):
        answer: Any = job.ask("load", LONG, uris=some)
        found = _counted(answer)
        answers += found + Counter(seen=len(some) - found["new"] - found["refused"])
        refused += answer["refused"]
    return first, Loaded(answers, refused)


def _counted(answer: Any) -> Counter[str]:
    return Counter(new=answer["new"], visited=answer["visited"], refused=len(answer["refused"]))


class Retried(NamedTuple):
    """A URI that is to be asked for again: how it was found."""

    uri: str
    via: str
    hops: str
    source: str


def judged(job: Job, one: Retried) -> str:
    """Why the scope of a job is against a URI; '' if it is not."""
    try:
        found = job.scope.judge(_uri_of(one))
    except BadInput as error:
        return error.why
    return found.why if found else ""


def write_retry(folder: Path, some: Iterable[Retried]) -> int:
    """Write the list of what the next launch of the job in `folder` asks for again, durable and whole; return how many
    URIs there are."""
    half, number = folder / f".{RETRY}.tmp", 0
    with half.open("w", encoding="utf-8") as file:
        for number, one in enumerate(some, 1):  # noqa: B007 the last number is that of all
            file.write(f"{json.dumps(one._asdict())}\n")
    if number:
        durable.sync(half)
        half.rename(folder / RETRY)
        durable.sync_folder(folder)
    else:
        half.unlink()
    return number


async def ask_again(offers: Offers, frontier: Frontier, own: Path) -> None:
    """Offer the URIs of a launch's list once more, as if they were new. A kill in the middle does it again."""
    if not (own / RETRY).exists():
        return
    with (own / RETRY).open(encoding="utf-8") as file:
        while some := [_uri_of(Retried(**json.loads(line))) for line in islice(file, AT_ONCE)]:
            await frontier.forget("", [uri.key for uri in some])
            offers.taken(some, await frontier.offer(some))
    (own / RETRY).rename(own / f"{RETRY}.taken")
    durable.sync_folder(own)


def _uri_of(one: Retried) -> Uri:
    uri = make(one.uri, hops=one.hops, via=one.via, source=one.source)
    uri.key = without_session(uri.uri)
    return uri
