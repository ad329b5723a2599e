"""The process that crawls one launch of a job. `engine` starts it, detached; it holds the job's lock while it lives.

    python -m warcmill.crawl.process OUTPUT JOBS LAYOUT JOB CHECKPOINT FOLLOWS [NETWORK...]

CHECKPOINT and FOLLOWS, a launch id, are '' for a launch that begins afresh; the networks are inside addresses that
it may dial.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from warcmill.base import clock
from warcmill.base.printable import printable
from warcmill.crawl import job_file, launch_folders, lock, restore
from warcmill.crawl.opening import open_launch
from warcmill.crawl.order import put_in_order
from warcmill.crawl.places import Places
from warcmill.crawl.session import Session
from warcmill.crawl.stop import End
from warcmill.errors import WarcmillError
from warcmill.layout import OutputLayout
from warcmill.model import Launch


async def crawl(
    places: Places, name: str, checkpoint: str = "", allow_private: Sequence[str] = (), follows: str = ""
) -> End:
    """Crawl a job to its end: afresh, from a checkpoint, or with what waited in the launch before. That one is put in
    order first, if its process died."""
    with lock.held(places.state(name)) as held:
        job = job_file.read(places.job(name), name)
        job = replace(job, allow_private=(*job.allow_private, *allow_private))
        await put_in_order(places, name)
        resume = restore.named(places.job(name) / launch_folders.CHECKPOINTS, name, checkpoint) if checkpoint else None
        launch = Launch.parse(name, launch_folders.next_id(places.job(name), clock.stamp()))
        held.name(launch)
        return await Session(await open_launch(places, job, launch, resume, follows)).run()


def main(argv: Sequence[str]) -> int:
    """Crawl what the words say; return the exit code."""
    _collect_garbage_less_often()
    output, jobs, layout, name, checkpoint, follows, *networks = argv
    places = Places(Path(output), Path(jobs), OutputLayout(layout))
    try:
        asyncio.run(crawl(places, name, checkpoint, networks, follows))
    except WarcmillError as error:
        sys.stderr.write(f"{printable(str(error))}\n")
        return error.exit_code
    return 0


def _collect_garbage_less_often() -> None:
    """A page makes thousands of objects that go by themselves; by default the collector would look at them, and at all
    modules, many times a second."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
