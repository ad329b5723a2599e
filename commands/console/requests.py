"""The roles of `warcmill run` that take requests of applications, and the parts of the configuration that they need."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from tasks.config import sections
from tasks.config.engines import engine_of, is_here, running_job
from tasks.config.requests import requests as requests_section
from tasks.config.requests import requests_place
from tasks.config.settings import settings
from warcmill.crawl.durable import make_folder
from warcmill.crawl.launch.folders import Places
from warcmill.errors import BadConfig
from warcmill.requests.compat import CRAWLER, REDIS
from warcmill.requests.settings import RequestsPlace

if TYPE_CHECKING:
    from warcmill.crawl.launch.worker import Worker

SERVICE = "requests"  # of a job's crawl.toml


def place_of(args: argparse.Namespace) -> RequestsPlace:
    """The place of requests, with the settings of the command line; or BadConfig."""
    given: dict[str, Any] = {"LOG_LEVEL": args.log_level} if args.log_level else {}
    return requests_place(str(Path(args.settings).absolute()) if args.settings else "", given)


def places_of(job: str) -> Places:
    """The folders of the job that serves requests; BadConfig for one that does not."""
    from warcmill.crawl.engine import WarcmillEngine
    from warcmill.crawl.job import file

    engine = engine_of(job)
    if not isinstance(engine, WarcmillEngine):
        engine.close()
        raise BadConfig("[requests] job", f"job {job} is one of an engine that serves no requests; take kind=warcmill")
    if file.read(engine.places.job(job), job).service != SERVICE:
        raise BadConfig("[requests] job", f"job {job} serves none: set 'requests = true' in its crawl.toml")
    return engine.places


def home_of(place: RequestsPlace) -> Places | None:
    """The folders of the job that serves requests; None on another machine, which reaches it over Redis."""
    return None if place.redis and not is_here(place.job) else places_of(place.job)


def unserved(job: str) -> str:
    """The reason for which a worker cannot take part in a job that serves requests, as no [requests] is for it."""
    why = f"it serves requests, and the luigi.cfg of this worker has no [requests] with 'job = {job}'"
    return f"{why}: set it, with the bus, as pages are sent from here"


def place_of_worker(job: str) -> RequestsPlace | None:
    """The place of requests, for a worker of a job that serves them; None where luigi.cfg has none for that job."""
    return requests_place() if sections.read(requests_section).job == job else None


@contextmanager
def sending(worker: Worker, place: RequestsPlace | None) -> Iterator[None]:
    """Send the results of a worker while it works, and then those that are left. Raises at the end what has ended the
    sender before: results that were not sent stay, for the same command."""
    if place is None:
        yield
        return
    from warcmill.requests.monitor import log_of
    from warcmill.requests.sender import ResultSender, ResultSource

    ended, source = Event(), ResultSource.of_worker(worker)
    if source.places.output.is_dir():  # the worker refuses another
        make_folder(source.kept)
    sender, log, faults = ResultSender(place, source), log_of(place.values())(CRAWLER), list[BaseException]()

    def send() -> None:
        try:
            sender.run(ended, log, to_end=True)
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            faults.append(error)

    thread = Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if faults:
        raise faults[0]


def run(args: argparse.Namespace, rest: Callable[[RequestsPlace], Callable[[Event], None]] | None = None) -> int:
    """Take requests until a signal. `rest` makes the REST service of a place, which then runs beside; the first part
    that ends by an error ends all."""
    from warcmill.requests.answers import RequestsJob
    from warcmill.requests.monitor import RequestMonitor, log_of
    from warcmill.requests.plugins.runners import PluginHandlers, PluginMonitors
    from warcmill.requests.sender import ResultSender, ResultSource

    place = place_of(args)
    places = home_of(place)
    job = RequestsJob(running_job(place.job), places.job(place.job) if places else None)
    ended = Event()
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda *_: ended.set())
    log = log_of(place.values())
    parts = {"rest": rest(place)} if rest else {}
    handlers = PluginHandlers(place)
    if places:
        sender = ResultSender(place, ResultSource.of_job(place, places), open_store=settings().open_store)
        parts["sender"] = lambda ended: sender.run(ended, log(CRAWLER))
    if handlers.monitors:
        monitors = PluginMonitors(place, handlers.monitors, log(REDIS))
        parts["monitors"] = monitors.run
    faults: list[BaseException] = []

    def run_part(part: Callable[[Event], None]) -> None:
        try:
            part(ended)
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            faults.append(error)
            ended.set()

    beside = [Thread(target=run_part, args=(part,), name=name) for name, part in parts.items()]
    for thread in beside:
        thread.start()
    try:
        RequestMonitor(place, job, log, handlers).run(ended)
    finally:
        ended.set()
        for thread in beside:
            thread.join()
        handlers.close()
    if faults:
        raise faults[0]
    return 0
