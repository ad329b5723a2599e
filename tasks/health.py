"""The engines, roots and servers of luigi.cfg, asked for `warcmill health`, by `warcmill scan` and by pages."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

from luigi.date_interval import DateInterval

from tasks.config import chains, engines, roots, sections
from tasks.config.requests import requests_place
from tasks.config.sections import jobs_of, value
from tasks.config.settings import Settings, settings
from warcmill.audit import remedies
from warcmill.audit.answers import health
from warcmill.audit.answers.health import Asker, DiskSpace, HealthQuestion, HealthReply, RunningCrawl
from warcmill.clients.cdx_server import CdxServer
from warcmill.clients.cdx_server import shown as shown_url
from warcmill.clients.solr import Solr
from warcmill.cluster.accounts import HOME, NO_HOME
from warcmill.cluster.compat import KAFKA
from warcmill.crawl.frontier.link import examined
from warcmill.errors import NotReady, Unavailable, WarcmillError
from warcmill.model import JsonObject, Root
from warcmill.stores.opening import is_remote, open_other, open_store

log = logging.getLogger(__name__)
AT_END = 5.0  # seconds that `warcmill scan` waits for answers


def look(asker: Asker, seconds: float = health.BOUND) -> JsonObject:
    """Ask everything, each within a bound; write the answer, and return it. Unavailable if the state is away."""
    config = settings()
    state = config.open_state()
    found = health.answer(state, asker.ask(list(questions(config)), seconds), config.scans())
    health.write(state, found)
    return found


def note_end(name: str, dates: DateInterval, troubles: int = 0) -> None:
    """Note that a scan, or the backup, has ended. Nothing is asked: a process that ends can begin no thread."""
    with _harmless():
        last = dates.date_b - timedelta(days=1)
        health.note_end(settings().open_state(), name, str(dates.date_a), str(last), troubles)


def look_after_scan() -> None:
    """Look once `warcmill scan` is done. An error is logged: it fails no scan."""
    with _harmless():
        look(Asker(), AT_END)


@contextmanager
def _harmless() -> Iterator[None]:
    try:
        yield
    except (WarcmillError, OSError) as error:
        log.error("health: %s", error)
    except Exception:  # a fault in Warcmill; what is reported here is not a reason to fail
        log.exception("health")


def questions(config: Settings) -> Iterator[HealthQuestion]:
    """All that luigi.cfg names, each once."""
    yield from (_engine(section) for section in engines.driven())
    yield from _roots(config)
    yield from _servers()
    if address := sections.luigid():
        todo = "start luigid there, or set local_scheduler=true in [core]"
        yield HealthQuestion("scheduler", "luigid", lambda: _connected(address), todo)


def _engine(section: str) -> HealthQuestion:
    name = section.removeprefix(roots.ENGINE)

    def ask() -> HealthReply:
        with closing(engines.engine_at(section)) as engine:
            reports = [(job, engine.progress(job)) for job in jobs_of(section)]
            running = (RunningCrawl(job, name, one) for job, one in reports if one and one.running)
            return HealthReply(engine.about(), tuple(running))

    return HealthQuestion("engine", name, ask, f"start the engine, or correct [{section}]; 'warcmill doctor' has more")


def _roots(config: Settings) -> Iterator[HealthQuestion]:
    places: dict[str, tuple[Root, str]] = {}  # one question a place: engines share theirs
    own: dict[Root, str] = {"state": config.state, "store": config.store, "index": config.index}
    for root, place in own.items():
        if place:
            places[place] = root, root
    for section in config.rootmap().all():
        label = "" if section.name == "[warcmill]" else f" {section.name}"
        places.setdefault(section.output, ("output", f"output{label}"))
        places.setdefault(section.jobs, ("jobs", f"jobs{label}"))
    for writer in config.rootmap().writers:
        places.setdefault(writer.place, (writer.root, writer.root))
    for place, (root, name) in places.items():
        yield HealthQuestion("root", name, _root(config, root, place), remedies.ROOT)
    if place := chains.destination():
        yield HealthQuestion("root", "destination", _destination(config, place), "see [package] destination")


def _root(config: Settings, root: Root, place: str) -> Callable[[], HealthReply]:
    def ask() -> HealthReply:
        open_store(root, place, config.access).stat("")
        return HealthReply(space=None if is_remote(place) else DiskSpace.of(Path(place)))

    return ask


def _destination(config: Settings, place: str) -> Callable[[], HealthReply]:
    def ask() -> HealthReply:
        if open_other("destination", place, config.access).stat("") is None:
            raise Unavailable(place, "there is no such folder")
        return HealthReply(space=None if is_remote(place) else DiskSpace.of(Path(place)))

    return ask


def _servers() -> Iterator[HealthQuestion]:
    if value(chains.TEXT, "solr"):
        yield HealthQuestion("server", "solr", _solr, "start Solr, or correct [text] solr")
    if chains.is_configured():
        yield HealthQuestion("server", "clamd", _clamd, "start it, or correct [viruses] clamd; no stage is scanned")
    if value("index", "cdx_server"):
        yield HealthQuestion("server", "cdx server", _cdx_server, "start it, or correct [index] cdx_server")
    for section in engines.driven():
        if value(section, "frontier"):
            yield HealthQuestion("server", f"redis [{section}]", _redis(section), f"start it, or correct [{section}]")
    if value("requests", "job"):
        yield HealthQuestion("server", "bus", _bus, "start Kafka, or correct [requests] bus")
        yield HealthQuestion("server", "requests", _requests, "start: warcmill run requests")


def _solr() -> HealthReply:
    target = chains.solr()
    assert target, "it is set"
    with Solr(target.server, health.BOUND) as solr:
        counts = [f"{collection}: {solr.count(collection):,} documents" for collection in target.routing.collections]
    return HealthReply(", ".join(counts))


def _clamd() -> HealthReply:
    return HealthReply(chains.scanner().clamd.version())


def _cdx_server() -> HealthReply:
    url = chains.cdx_server()
    with closing(CdxServer(url, health.BOUND)) as server:
        server.collections()
    return HealthReply(shown_url(url))


def _redis(section: str) -> Callable[[], HealthReply]:
    def ask() -> HealthReply:
        place = engines.frontier_of(section)
        assert place, "it is set"
        return HealthReply(examined(place))

    return ask


def _bus() -> HealthReply:
    place = requests_place()
    with closing(place.open_bus()) as bus:
        return HealthReply(f"{place.bus}, with {len(bus.topics())} topics")


def _requests() -> HealthReply:
    """The roles that take requests; NotReady where none does, or none on the job's own machine."""
    place = requests_place()
    if not place.redis and not place.accounts.exists():  # opening would make it
        raise NotReady(f"requests for {place.job}", "nobody takes them")
    with closing(place.open_accounts()) as accounts:
        alive = sum(map(len, accounts.lives(KAFKA).values()))
        if not alive:
            raise NotReady(f"requests for {place.job}", "nobody takes them")
        if not accounts.lives(HOME):
            raise NotReady(f"requests for {place.job}", NO_HOME)
    return HealthReply(f"{alive} take them for {place.job}")


def _connected(address: tuple[str, int]) -> HealthReply:
    socket.create_connection(address, health.BOUND).close()
    return HealthReply(f"{address[0]}:{address[1]}")
