"""The services that luigi.cfg names, a row each: servers, disks and programs that the line depends on. Reads only.

`warcmill health` *asks* whether each is there: a cheap look at all at once, within a bound; pages show what it wrote.
`warcmill doctor` *proves* that each does what steps will ask of it: `proofs`. A row without a proof of its own is
proved by being asked. To add a service, add its row; its functions import its client when they are called.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from tasks.config import chains, proofs, register, sections
from tasks.config.roots import ENGINE
from tasks.config.sections import jobs_of, value
from warcmill.audit import remedies
from warcmill.audit.answers.health import BOUND, Asker, DiskSpace, HealthQuestion, HealthReply, RunningCrawl
from warcmill.audit.health import Check, Level
from warcmill.errors import BadConfig, NotReady, Unavailable
from warcmill.model import Root
from warcmill.stores.opening import is_remote, open_other, open_store

if TYPE_CHECKING:
    from tasks.config.settings import Settings

Kind = Literal["root", "notice", "engine", "server", "scheduler"]
_LINES = ("engine", "root", "solr", "server", "scheduler")
"""The order of health's lines, which programs read: by kind, and Solr before the other servers."""

PATIENCE = 5.0
"""Seconds for which one that doctor asks may be silent."""


class Service(NamedTuple):
    """A row of the table. In its name and remedy `{section}` is where it is used, `{name}` what follows the dot there.

    `keys` name it, as docs/configuration.md has them. `used` lists the sections that use it. `ask` answers or raises,
    after so many seconds if the service is silent; with `doctor_alone`, health does not ask. `prove` makes doctor's
    checks, with remedies of their own; rows of one section share it. Doctor only warns of one that is `optional` and
    does not answer.
    """

    kind: Kind
    name: str
    keys: tuple[str, ...]
    remedy: str = ""
    used: Callable[[Settings], Iterable[str]] = lambda _: ()
    ask: Callable[[Settings, str, float], HealthReply] | None = None
    prove: Callable[..., Iterable[Check]] | None = None
    doctor_alone: bool = False
    optional: bool = False

    def questions(self, config: Settings, seconds: float) -> Iterator[HealthQuestion]:
        """The question to each place where it is used, or BadConfig."""
        if self.ask is None:
            return
        for section in self.used(config):
            words = {"section": section, "name": section.partition(".")[2]}
            ask = partial(self.ask, config, section, seconds)
            yield HealthQuestion(self.kind, self.name.format(**words), ask, self.remedy.format(**words))


def questions(config: Settings) -> list[HealthQuestion]:
    """All that `warcmill health` asks, in the order of its lines."""
    rows = [row for row in SERVICES if row.ask and not row.doctor_alone]
    rows.sort(key=lambda row: _LINES.index(row.name if row.name in _LINES else row.kind))
    return [question for row in rows for question in row.questions(config, BOUND)]


def proved(config: Settings, *, send: bool = False) -> dict[Kind, list[Check]]:
    """Doctor's checks of all services, by kind. `send`: a test notice is sent."""
    found: dict[Kind, list[Check]] = {kind: [] for kind in get_args(Kind)}
    own = dict[Callable[..., Iterable[Check]], Kind]()
    asked = list[tuple[Service, HealthQuestion]]()
    for row in SERVICES:
        if row.prove:
            own.setdefault(row.prove, row.kind)
            continue
        try:
            asked += ((row, question) for question in row.questions(config, PATIENCE))
        except BadConfig as error:
            found[row.kind].append(Check(row.name.partition(" [")[0], Level.FAIL, str(error), "correct luigi.cfg"))
    for prove, kind in own.items():
        found[kind] += prove(config, send) if kind == "notice" else prove(config)
    outcomes = Asker().ask([question for _, question in asked])
    for (row, question), outcome in zip(asked, outcomes, strict=True):
        level = Level.OK if outcome.reply else Level.WARN if row.optional else Level.FAIL
        text, todo = (outcome.reply.text, "") if outcome.reply else (outcome.why, question.todo)
        found[row.kind].append(Check(question.name, level, text, todo))
    return found


def _where_set(section: str, *keys: str) -> Callable[[Settings], list[str]]:
    """The section, where one of its keys is set."""
    return lambda _: [section] if any(value(section, key) for key in keys) else []


def _engines(_: Settings) -> Iterable[str]:
    from tasks.config import engines

    return engines.driven()


def _ask_engine(_: Settings, section: str, *__: object) -> HealthReply:
    from tasks.config import engines

    with closing(engines.engine_at(section)) as engine:
        reports = [(job, engine.progress(job)) for job in jobs_of(section)]
        name = section.removeprefix(ENGINE)
        running = (RunningCrawl(job, name, one) for job, one in reports if one and one.running)
        return HealthReply(engine.about(), tuple(running))


def _roots(config: Settings) -> dict[str, tuple[Root, str]]:
    """The roots by what they are called, and their places, each once: engines share theirs."""
    found: dict[str, tuple[Root, str]] = {}  # by place
    own: dict[Root, str] = {"state": config.state, "store": config.store, "index": config.index}
    for root, place in own.items():
        if place:
            found[place] = root, root
    for section in config.rootmap().all():
        label = "" if section.name == "[warcmill]" else f" {section.name}"
        found.setdefault(section.output, ("output", f"output{label}"))
        found.setdefault(section.jobs, ("jobs", f"jobs{label}"))
    for writer in config.rootmap().writers:
        found.setdefault(writer.place, (writer.root, writer.root))
    return {name: (root, place) for place, (root, name) in found.items()}


def _ask_root(config: Settings, name: str, _: float) -> HealthReply:
    root, place = _roots(config)[name]
    open_store(root, place, config.access).stat("")
    return _room(place)


def _ask_destination(config: Settings, *_: object) -> HealthReply:
    place = chains.destination()
    if open_other("destination", place, config.access).stat("") is None:
        raise Unavailable(place, "there is no such folder")
    return _room(place)


def _room(place: str) -> HealthReply:
    return HealthReply(space=None if is_remote(place) else DiskSpace.of(Path(place)))


def _ask_clamd(*_: object) -> HealthReply:
    return HealthReply(chains.scanner().clamd.version())


def _ask_solr(_: Settings, __: str, seconds: float) -> HealthReply:
    from warcmill.clients.solr import Solr

    target = chains.solr()
    assert target, "it is set"
    with Solr(target.server, seconds) as solr:
        counts = [f"{collection}: {solr.count(collection):,} documents" for collection in target.routing.collections]
    return HealthReply(", ".join(counts))


def _ask_cdx_server(_: Settings, __: str, seconds: float) -> HealthReply:
    from warcmill.clients.cdx_server import CdxServer, shown

    url = chains.cdx_server()
    with closing(CdxServer(url, seconds)) as server:
        server.collections()
    return HealthReply(shown(url))


def _ask_documents_solr(_: Settings, __: str, seconds: float) -> HealthReply:
    from warcmill.clients.solr import Solr

    server, core = chains.documents_solr()
    with Solr(server, seconds) as solr:
        return HealthReply(f"{solr.name(core)}: {solr.count(core):,} documents")


def _ask_w3act(_: Settings, __: str, seconds: float) -> HealthReply:
    from warcmill.clients.w3act import W3act

    login = chains.w3act()
    assert login, "it is set"
    with closing(W3act(login.url, login.user, login.password, seconds)) as w3act:
        w3act.log_in()
    return HealthReply(login.url)


def _ask_register(config: Settings, *__: object) -> HealthReply:
    """The lag of the register, which nobody asks; Unavailable if it is behind."""
    from warcmill.audit.answers import register as answers

    url, _ = register.place()
    lag = answers.lag(config.open_state(), url)
    if lag.launches:
        raise Unavailable(f"the register {url}", str(lag))
    return HealthReply(f"{url}: {lag}")


def _ask_frontier(_: Settings, section: str, *__: object) -> HealthReply:
    from tasks.config import engines
    from warcmill.crawl.frontier.link import examined

    place = engines.frontier_of(section)
    assert place, "it is set"
    return HealthReply(examined(place))


def _groups(_: Settings) -> Iterable[str]:
    from tasks.config import groups

    return sections.named(groups.GROUP)


def _ask_centre(_: Settings, section: str, seconds: float) -> HealthReply:
    """The centre of a group; NotReady where a cluster that is crawled on this machine has no updater, or where one
    cannot read the journals of a worker."""
    import asyncio

    from tasks.config import engines, groups
    from warcmill.clusters import group

    found = groups.group_named(section.removeprefix(groups.GROUP))
    clusters = asyncio.run(group.status(found, seconds))
    idle = [str(one["cluster"]) for one in clusters if not one["updater"] and engines.is_here(str(one["cluster"]))]
    if idle:
        raise NotReady(f"group {found.name}", f"nobody updates {', '.join(idle)}")
    if unread := [f"{one['cluster']}: {what}" for one in clusters for what in group.unread(one)]:
        raise NotReady(f"group {found.name}", "; ".join(unread))
    return HealthReply(f"it has {len(clusters)} clusters, and what is crawled here is updated")


def _ask_bus(_: Settings, __: str, seconds: float) -> HealthReply:
    from tasks.config.requests import requests_place

    place = requests_place()
    with closing(place.open_bus(seconds)) as bus:
        return HealthReply(f"{place.bus}, with {len(bus.topics())} topics")


def _ask_requests(*_: object) -> HealthReply:
    """The roles that take requests; NotReady where none does, or none on the job's own machine."""
    from tasks.config.requests import requests_place
    from warcmill.requests.accounts import HOME, NO_HOME
    from warcmill.requests.compat import KAFKA

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


def _monitors(_: Settings) -> Iterable[str]:
    from tasks.config.requests import requests_place

    try:
        return ["requests"] if value("requests", "job") and requests_place().values()["REDIS_HOST"] else []
    except BadConfig:
        return []  # reported with the bus


def _ask_monitors_redis(*_: object) -> HealthReply:
    from tasks.config.requests import requests_place
    from warcmill.requests.plugins.process import open_redis

    with closing(open_redis(requests_place())):
        return HealthReply("it answers the monitors of the plugins")


def _feed(_: Settings) -> Iterable[str]:
    from tasks.config import feed

    return ["feed"] if feed.jobs() and value("feed", "source") else []


def _ask_feed(_: Settings, __: str, seconds: float) -> HealthReply:
    from warcmill.clients import feed_source

    return HealthReply(f"{feed_source.probe(value('feed', 'source'), seconds)} is there")


def _package_index(_: Settings) -> Iterable[str]:
    from tasks.config import pypi

    return ["pypi"] if pypi.jobs() and value("pypi", "index") else []


def _ask_package_index(*_: object) -> HealthReply:
    from warcmill.clients.feed_source import shown
    from warcmill.clients.package_index import IndexClient

    with IndexClient(value("pypi", "index"), value("pypi", "contact"), sleep=lambda _: None) as index:
        return HealthReply(f"{shown(index.url)} answers: its last serial is {index.last_serial()}")


def _ask_watched(config: Settings, *_: object) -> HealthReply:
    from warcmill.versions.documents import watching

    state = config.open_state()
    watched = watching.targets(state, value("documents", "watched"))
    if unseen := watching.unseen(state, watched):
        first = ", ".join(f"{one} ({title}; {job})" for one, (title, job) in islice(unseen.items(), 3))
        more = f" and {len(unseen) - 3} more" if len(unseen) > 3 else ""
        why = f"the last {watching.LAUNCHES} launches got no page of {first}{more}"
        raise NotReady(f"{len(unseen)} of {len(watched.targets)} watched targets", why)
    return HealthReply(f"{len(watched.targets)}; the last launches got pages of each that they asked for")


def _ask_luigid(_: Settings, __: str, seconds: float) -> HealthReply:
    address = sections.luigid()
    assert address, "it is set"
    socket.create_connection(address, seconds).close()
    return HealthReply(f"{address[0]}:{address[1]}")


_OF_THE_LINE = ("[warcmill] output", "[warcmill] jobs", "[warcmill] state", "[warcmill] store", "[warcmill] index")
_OF_OTHERS = ("[engine.NAME] output", "[engine.NAME] job_files", "[engine.imported] output", "[writer.NAME] root")
# fmt: off
SERVICES: tuple[Service, ...] = (
    Service("root", "{section}", (*_OF_THE_LINE, *_OF_OTHERS, "[s3] endpoint"), remedies.ROOT,
            used=_roots, ask=_ask_root, prove=proofs.check_places),
    Service("root", "destination", ("[package] destination",), "see [package] destination",
            used=lambda _: ["package"] if chains.destination() else [], ask=_ask_destination,
            prove=proofs.check_packages),
    Service("root", "verified_at", ("[package] verified_at",), prove=proofs.check_packages),
    Service("server", "minter", ("[package] minter",), prove=proofs.check_packages),
    Service("notice", "mail", ("[notice] smtp_host",), prove=proofs.check_notices),
    Service("notice", "webhook", ("[notice] webhook", "[notice] proxy"), prove=proofs.check_notices),
    Service("engine", "{name}", ("[engine.NAME] url",),
            "start the engine, or correct [{section}]; 'warcmill doctor' has more",
            used=_engines, ask=_ask_engine, prove=proofs.check_engines),
    Service("server", "clamd", ("[viruses] clamd",), "start it, or correct [viruses] clamd; no stage is scanned",
            used=_where_set("viruses", "clamd", "since"), ask=_ask_clamd, prove=proofs.check_viruses),
    Service("server", "solr", ("[text] solr",), "start Solr, or correct [text] solr",
            used=_where_set("text", "solr"), ask=_ask_solr, prove=proofs.check_text),
    Service("server", "tika", ("[text] tika",), prove=proofs.check_text),
    Service("server", "watched targets", ("[documents] watched",),
            "see the address of each, and correct the feed; no document of it can be found",
            used=_where_set("documents", "since"), ask=_ask_watched, optional=True),
    Service("server", "columns", ("[columns] since",), prove=proofs.check_columns),
    Service("server", "documents", ("[documents] since",), prove=proofs.check_documents),
    Service("server", "scale", ("[scale] url",), prove=proofs.check_scale),
    Service("server", "cdx server", ("[index] cdx_server",), "start it, or correct [index] cdx_server",
            used=_where_set("index", "cdx_server"), ask=_ask_cdx_server, prove=proofs.check_cdx_server),
    Service("server", "solr of documents", ("[documents] solr",), "start Solr, or correct [documents] solr",
            used=_where_set("documents", "solr"), ask=_ask_documents_solr),
    Service("server", "w3act", ("[documents] w3act",),
            "start it, or correct w3act, user and password_file of [documents]",
            used=_where_set("documents", "w3act"), ask=_ask_w3act),
    Service("server", "register", ("[register] url",),
            "start it, or correct [register] url; each scan sends what it lacks",
            used=_where_set("register", "url"), ask=_ask_register, optional=True),  # nothing waits for it
    Service("server", "pywb", ("[serve] pywb",), prove=proofs.check_serve),
    Service("server", "redis [{section}]", ("[engine.NAME] frontier",), "start it, or correct [{section}]",
            used=lambda config: [section for section in _engines(config) if value(section, "frontier")],
            ask=_ask_frontier),
    Service("server", "centre [{section}]", ("[group.NAME] centre",),
            "start PostgreSQL, or correct [{section}]; an updater that is missing: warcmill run updater JOB",
            used=_groups, ask=_ask_centre),
    Service("server", "bus", ("[requests] bus",), "start Kafka, or correct [requests] bus or [kafka]",
            used=_where_set("requests", "job"), ask=_ask_bus),
    Service("server", "requests", ("[requests] job",), "start: warcmill run requests",
            used=_where_set("requests", "job"), ask=_ask_requests, optional=True),  # they wait on the bus
    Service("server", "redis of monitors", ("[requests] settings",),
            "start it, or correct REDIS_HOST and REDIS_PORT; only monitors of your own ask it",
            used=_monitors, ask=_ask_monitors_redis, doctor_alone=True, optional=True),
    Service("server", "feed source", ("[feed] source",),
            "make it reachable, or correct [feed] source; until then no crawl of the feed starts",
            used=_feed, ask=_ask_feed, doctor_alone=True),
    Service("server", "package index", ("[pypi] index",),
            "make it reachable, or correct [pypi] index; until then no crawl of it starts",
            used=_package_index, ask=_ask_package_index, doctor_alone=True),
    Service("scheduler", "luigid", ("[core] scheduler_host",),
            "start luigid there, or set local_scheduler=true in [core]",
            used=lambda _: ["core"] if sections.luigid() else [], ask=_ask_luigid, prove=proofs.check_scheduler),
)
# fmt: on
"""The table, in the order of doctor's checks."""
