"""The process that crawls one launch of a job. `engine` starts it, detached; it holds the job's lock while it lives.

    python -m warcmill.crawl.process [--frontier URL FILE] OUTPUT JOBS LAYOUT JOB CHECKPOINT FOLLOWS [NETWORK...]

CHECKPOINT and FOLLOWS, a launch id, are '' for a launch that begins afresh; the networks are inside addresses that
it may connect to. A last word `owned` says that other crawls share its hosts: it asks those that it is told of. The
frontier is in the Redis at URL, whose password is in FILE, or in the job's database.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec.structs import replace

from warcmill.base import clock
from warcmill.base.escapes import printable
from warcmill.crawl import durable
from warcmill.crawl.frontier.link import FRONTIER, read_place
from warcmill.crawl.job import file
from warcmill.crawl.job.job import End
from warcmill.crawl.launch import checkpoint as restore
from warcmill.crawl.launch import folders
from warcmill.crawl.launch.folders import OWNED, Places
from warcmill.crawl.launch.job_log import JobLog
from warcmill.crawl.launch.launch import ServiceMaker, SpiderMaker, open_launch
from warcmill.crawl.launch.repair import put_in_order
from warcmill.crawl.launch.session import Session
from warcmill.crawl.visit.spider import Spider
from warcmill.errors import BadConfig, Unavailable, WarcmillError, describe
from warcmill.layout import OutputLayout
from warcmill.model import Launch

BALLAST, ROOM = "ballast", 1 << 18  # a file in the job's `state`; its bytes


async def crawl(
    places: Places, name: str, checkpoint: str = "", allow_private: Sequence[str] = (), follows: str = "",
    spider: SpiderMaker = Spider, service: ServiceMaker | None = None,
) -> End:  # fmt: skip
    """Crawl a job to its end: afresh, from a checkpoint, or with what waited in the launch before. That one is put in
    order first, if its process died. An error that ends it is in job.log. `service` serves a job that has one; without
    it such a job is BadConfig."""
    with folders.held(places.state(name)) as held:
        job = file.read(places.job(name), name)
        job = replace(job, allow_private=(*job.allow_private, *allow_private))
        if job.service and service is None:
            why = f"this process does not serve its {job.service}; 'warcmill pulse start {name}' begins one that does"
            raise BadConfig(f"job {name}", why)
        with _named_in_job_log(places, name) as launches:
            await put_in_order(places, name)
            checkpoints = places.job(name) / folders.CHECKPOINTS
            resume = restore.named(checkpoints, name, checkpoint) if checkpoint else None
            launch = Launch.parse(name, folders.next_id(places.job(name), clock.stamp()))
            held.name(launch)
            launches.append(launch)
            return await Session(await open_launch(places, job, launch, resume, follows, spider, service)).run()


@contextmanager
def _named_in_job_log(places: Places, name: str) -> Iterator[list[Launch]]:
    """Report an error in job.log, of the launch that is added to the list.

    The ballast is a file that keeps some room on the disk of the job. It is written before anything of a launch, so
    that no launch begins on a full disk. When a crawl breaks off it is removed, which leaves job.log room for why.
    """
    launches, ballast = list[Launch](), places.state(name) / BALLAST
    try:
        durable.replace(ballast, os.urandom(ROOM))  # a disk that compresses would keep no room for zeros
        yield launches
    except Exception as error:
        _drop(ballast)
        for launch in launches:
            with suppress(WarcmillError, OSError):  # what is gone may be job.log; stderr names the error, too
                log = JobLog(places.job(name), places.job(name) / launch.id, launch)
                log.broke_off(_code(error), describe(error))
        raise
    finally:
        _drop(ballast)


def _drop(ballast: Path) -> None:
    for path in (ballast, ballast.with_name(f".{ballast.name}.tmp")):
        with suppress(OSError):  # it is gone already, as its folder may be, which another error names
            path.unlink(missing_ok=True)


def main(argv: Sequence[str], service: ServiceMaker | None = None, spider: SpiderMaker = Spider) -> int:
    """Crawl the launch that the words name, by a service if its job has one; return the exit code."""
    collect_garbage_less_often()
    frontier, argv = (argv[1:3], argv[3:]) if argv[0] == FRONTIER else ((), argv)
    output, jobs, layout, name, checkpoint, follows, *networks = argv
    try:
        place = read_place(FRONTIER, *frontier) if frontier else None
        owned = frozenset([name] if OWNED in networks else ())
        networks = [one for one in networks if one != OWNED]
        places = Places(Path(output), Path(jobs), OutputLayout(layout), place, owned)
        asyncio.run(crawl(places, name, checkpoint, networks, follows, spider, service))
    except (WarcmillError, OSError) as error:
        sys.stderr.write(f"{printable(str(error))}\n")
        return _code(error)
    return 0


def _code(error: Exception) -> int:
    """The exit code of an error; an OSError comes from a disk, and counts as Unavailable."""
    return Unavailable.exit_code if isinstance(error, OSError) else getattr(error, "exit_code", WarcmillError.exit_code)


def collect_garbage_less_often() -> None:
    """A page makes thousands of objects that go by themselves; by default the collector would look at them, and at all
    modules, many times a second."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
