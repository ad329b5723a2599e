"""The process that crawls one launch of a job of scripts.

    python -m warcmill.scripts.process bubblewrap|none PROXY,... ...    its words: see `warcmill.crawl.process`

`run` makes one launch in the process that calls it, for a terminal.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from warcmill.crawl import process
from warcmill.crawl.frontier.link import FRONTIER
from warcmill.crawl.job.job import End
from warcmill.crawl.job.text import render
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.crawl.launch.folders import LATEST, Places
from warcmill.crawl.logs.statistics import Figures
from warcmill.crawl.visit.visit import Kit
from warcmill.errors import BadConfig, BadInput, WarcmillError
from warcmill.layout import RESULTS_LOG, OutputLayout, split_log_name
from warcmill.model import Launch
from warcmill.scripts.folder import ScriptFolder
from warcmill.scripts.loop import ResultListener, ScriptLoop
from warcmill.scripts.service import ScriptService
from warcmill.scripts.taskbook import TaskBook
from warcmill.scripts.visit import ScriptRun
from warcmill.scripts.walled import walls
from warcmill.scripts.walled.asking import ScriptAsker

NONE = "none"
HEAD = """\
# A job of scripts: pages of Python in the folder scripts, which decide what is asked for.
# surts.txt and exclude.txt decide what of that may be fetched.
"""


class ScriptEnd(NamedTuple):
    """The end of a launch; and when the next of those tasks is due that it has left, 0 if it has left none."""

    end: End
    waits_until: float


def files(settings: dict[str, object]) -> dict[str, bytes]:
    """The files of a job of scripts, with these keys of crawl.toml: all that scripts ask for belongs to it."""
    found = {**settings, "scripts": True, "endless": True}
    return {CONFIGURATION: render(found, HEAD).encode(), "seeds.txt": b"", "surts.txt": b"+http://(\n"}


def run(
    places: Places, job: str, names: Sequence[str], checkpoint: str, follows: str, allow_private: Sequence[str],
    script_walls: str, proxies: Sequence[str], ran: Callable[[ScriptRun], None], kept: ResultListener,
) -> ScriptEnd:  # fmt: skip
    """Crawl scripts of a job once: begin each, and end when only ticks wait. Raises what the crawl raised."""
    process.collect_garbage_less_often()
    loops: list[ScriptLoop] = []

    def made(kit: Kit, figures: Figures, began: float) -> ScriptLoop:
        loops.append(_loop(kit, figures, began, places, job, script_walls, proxies, once=names, ran=ran, kept=kept))
        return loops[-1]

    end = asyncio.run(process.crawl(places, job, checkpoint, allow_private, follows, made, ScriptService))
    return ScriptEnd(end, sum(loop.waits_until for loop in loops))


def _loop(
    kit: Kit, figures: Figures, began: float, places: Places, job: str, script_walls: str, proxies: Sequence[str], *,
    once: Sequence[str] = (), ran: Callable[[ScriptRun], None] | None = None, kept: ResultListener | None = None,
) -> ScriptLoop:  # fmt: skip
    folder, book = ScriptFolder(places.job(job)), TaskBook(places.state(job))
    folder.look()
    launch = (folder.job / LATEST).readlink().name
    book.begin(launch, partial(_result_logs, places, job), {*folder.all, *folder.unfit})
    asker = ScriptAsker(script_walls=script_walls != NONE)
    return ScriptLoop(kit, figures, began, folder, asker, book, once=once, ran=ran, kept=kept, proxies=proxies)


def _result_logs(places: Places, job: str, first: str) -> Iterator[Path]:
    """The logs of results of a job's launches from an id on, in their order."""
    for own in sorted(places.job(job).iterdir()):
        try:
            logs = places.folders(Launch.parse(job, own.name)).logs
        except BadInput:  # another folder of the job
            continue
        if own.name >= first and logs.is_dir():
            found = [(*split_log_name(path.name), path) for path in logs.iterdir()]
            yield from (path for name, _, path in sorted(found) if name == RESULTS_LOG)


def main(words: Sequence[str]) -> int:
    """Crawl the launch that the words name; return the exit code."""
    script_walls, proxies, *argv = words
    try:
        if argv[0] == FRONTIER:
            raise BadConfig("scripts", "a job of scripts has a frontier of its own; its engine names one in Redis")
        walls.check(walls=script_walls != NONE)
    except WarcmillError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code

    output, jobs, layout, name, *_ = argv
    places = Places(Path(output), Path(jobs), OutputLayout(layout))

    def made(kit: Kit, figures: Figures, began: float) -> ScriptLoop:
        return _loop(kit, figures, began, places, name, script_walls, proxies.split(","))

    return process.main(argv, ScriptService, made)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
