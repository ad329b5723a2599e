"""A launch by a spider of Scrapy, in this process: Twisted's reactor runs on the loop of asyncio, which both share.

Writes what any launch does.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from scrapy.utils.log import configure_logging
from scrapy.utils.reactor import install_reactor

from warcmill.crawl.frontier.link import RedisPlace
from warcmill.crawl.job.file import SURTS
from warcmill.crawl.job.job import End
from warcmill.crawl.job.text import render
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.crawl.launch.folders import Places
from warcmill.crawl.launch.launch import SpiderMaker
from warcmill.crawl.launch.worker import OWN, Worker, WorkerPlaces
from warcmill.crawl.logs.statistics import Figures
from warcmill.crawl.process import collect_garbage_less_often, crawl
from warcmill.crawl.visit.visit import Kit
from warcmill.errors import NotReady
from warcmill.requests.serving.service import RequestService
from warcmill.spiders.addon import REACTOR
from warcmill.spiders.loop import ScrapyLoop
from warcmill.spiders.project import ScrapyProject

T = TypeVar("T")
HEAD = """\
# Written by 'warcmill run spider', as the job had none. It is yours: the next run leaves it as it is.
# The spider decides what is asked for; surts.txt and exclude.txt what of that may be fetched.
"""


class SpiderEnd(NamedTuple):
    """The end of a launch, and why the spider has closed itself; '' if it has not. The number of requests that this
    process has refused, and of those that middlewares have answered themselves, by the name of each."""

    end: End
    closed_by: str
    refused: int
    unarchived: Mapping[str, int]


def files() -> dict[str, bytes]:
    """The files of a job whose URIs come from a spider: all that it asks for belongs to it. Its list of seeds is
    empty."""
    return {CONFIGURATION: render({}, HEAD).encode(), SURTS: b"+http://(\n"}


def run(
    places: Places, job: str, project: ScrapyProject, checkpoint: str = "", allow_private: Sequence[str] = (),
    follows: str = "",
) -> SpiderEnd:  # fmt: skip
    """Crawl a job by a spider: afresh, from a checkpoint, or after a launch of an endless job. Raises what the crawl
    raised."""
    loops: list[ScrapyLoop] = []
    end = _beside_reactor(
        project, loops, places.state(job),
        lambda made: crawl(places, job, checkpoint, allow_private, follows, spider=made, service=RequestService),
    )  # fmt: skip
    return _ended(end, loops)


def work(
    output: Path, name: str, job: str, place: RedisPlace, project: ScrapyProject, *, unserved: str,
    beside: Callable[[Worker], AbstractContextManager[None]],
) -> SpiderEnd:  # fmt: skip
    """Join the launches of a job as a worker, by a spider, until that ends or a signal comes. `beside` does something
    while it works, such as to send results; `unserved`: why none are sent, so that a job of requests is refused; '' if
    they are."""
    loops: list[ScrapyLoop] = []

    async def whole(made: SpiderMaker) -> None:
        service = None if unserved else RequestService
        worker = Worker(output, name, job, place, spider=made, service=service, unserved=unserved)
        with beside(worker):
            await worker.run()

    _beside_reactor(project, loops, WorkerPlaces(output, output / OWN).state(job), whole)
    return _ended(End.EMPTY, loops)


def _ended(end: End, loops: Sequence[ScrapyLoop]) -> SpiderEnd:
    unarchived = sum((loop.bridge.unarchived for loop in loops), Counter())
    closed_by = "".join(loop.closed_by for loop in loops)
    return SpiderEnd(end, closed_by, sum(loop.bridge.refused for loop in loops), unarchived)


def _beside_reactor(
    project: ScrapyProject, loops: list[ScrapyLoop], state: Path, act: Callable[[SpiderMaker], Coroutine[Any, Any, T]]
) -> T:
    """Do something on the loop of Twisted's reactor, with the maker of loops that it is given."""
    collect_garbage_less_often()
    logging.root.handlers.clear()  # the project decides what is logged, and where
    configure_logging(project.settings)
    install_reactor(REACTOR)
    reactor: Any = importlib.import_module("twisted.internet.reactor")

    def made(kit: Kit, figures: Figures, began: float) -> ScrapyLoop:
        loops.append(ScrapyLoop(kit, figures, began, state, *project))
        return loops[-1]

    async def whole() -> T:
        try:
            return await act(made)
        finally:
            asyncio.get_running_loop().call_soon(reactor.stop)

    tasks: list[asyncio.Task[T]] = []
    reactor.callWhenRunning(lambda: tasks.append(asyncio.get_event_loop().create_task(whole())))
    try:
        reactor.run(installSignalHandlers=False)  # the session of the launch has its own
    except SystemExit as error:
        why = f"its code has called sys.exit({error.code!r}); what was under way is made again by the same command"
        raise NotReady(f"spider {project.spider.name}", why) from error
    return tasks[0].result()
