"""The process that crawls one launch of a job of scripts.

    python -m warcmill.scripts.process bubblewrap|none ...      its words: see `python -m warcmill.crawl.process`

`run` makes one launch in the process that calls it, for a terminal.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from warcmill.crawl import process
from warcmill.crawl.job.job import End
from warcmill.crawl.job.text import render
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.crawl.launch.folders import Places
from warcmill.crawl.logs.statistics import Figures
from warcmill.crawl.visit.visit import Kit
from warcmill.errors import WarcmillError
from warcmill.scripts import walls
from warcmill.scripts.asking import ScriptAsker
from warcmill.scripts.folder import ScriptFolder
from warcmill.scripts.loop import ResultListener, ScriptLoop
from warcmill.scripts.service import ScriptService
from warcmill.scripts.visit import ScriptRun

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
    return {CONFIGURATION: render(found, HEAD).encode(), "surts.txt": b"+http://(\n"}


def run(
    places: Places, job: str, checkpoint: str, follows: str, allow_private: Sequence[str], script_walls: str,
    told: Callable[[ScriptRun], None], kept: ResultListener,
) -> ScriptEnd:  # fmt: skip
    """Crawl a job of scripts once: begin each, and end when only ticks wait. Raises what the crawl raised."""
    process.collect_garbage_less_often()
    loops: list[ScriptLoop] = []

    def made(kit: Kit, figures: Figures, began: float) -> ScriptLoop:
        loops.append(_loop(kit, figures, began, places.job(job), script_walls, once=True, told=told, kept=kept))
        return loops[-1]

    end = asyncio.run(process.crawl(places, job, checkpoint, allow_private, follows, made, ScriptService))
    return ScriptEnd(end, sum(loop.waits_until for loop in loops))


def _loop(
    kit: Kit, figures: Figures, began: float, job: Path, script_walls: str, *, once: bool = False,
    told: Callable[[ScriptRun], None] | None = None, kept: ResultListener | None = None,
) -> ScriptLoop:  # fmt: skip
    asker = ScriptAsker(script_walls=script_walls != NONE)
    return ScriptLoop(kit, figures, began, ScriptFolder(job), asker, once=once, told=told, kept=kept)


def main(words: Sequence[str]) -> int:
    """Crawl the launch that the words name; return the exit code."""
    script_walls, *argv = words
    try:
        walls.check(walls=script_walls != NONE)
    except WarcmillError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code

    def made(kit: Kit, figures: Figures, began: float) -> ScriptLoop:
        return _loop(kit, figures, began, kit_folder(argv), script_walls)

    return process.main(argv, ScriptService, made)


def kit_folder(argv: Sequence[str]) -> Path:
    """The folder of the job that the words of a crawl name."""
    output, jobs, layout, name, *_ = argv
    _ = output, layout
    return Path(jobs) / name


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
