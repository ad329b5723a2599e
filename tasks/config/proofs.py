"""The proofs of services for `warcmill doctor`; nothing where one is not used. Writes small files into roots.

A proof is a round trip: a server, a disk or a program does what steps will ask of it. The files are removed again, and
a minter gives four ARKs, which nothing uses. `services` is the table.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tasks.config import chains, sections
from tasks.config import roots as places
from tasks.config.sections import jobs_of, value
from warcmill.audit import health
from warcmill.audit.health import Check, Level, check_clock, check_own, check_remote, check_roots
from warcmill.errors import BadConfig, Mismatch, NotReady, Unavailable, WarcmillError
from warcmill.layout import SENTINEL
from warcmill.stores.opening import is_remote

if TYPE_CHECKING:
    from tasks.config.settings import Settings
    from warcmill.clients.engine import CrawlProgress, Engine
    from warcmill.crawl.engine import WarcmillEngine
    from warcmill.extracts.tika import Tika
    from warcmill.index.sink_solr import SolrTarget
    from warcmill.model import Root

UNBUILT = "UNBUILT"
MIB = 1 << 20
PATIENCE = 10.0  # seconds for an answer of the minter, or of Solr
SCALE = "scale"
CDX_SERVER = "cdx server"
NOWHERE = ("http://warcmill.invalid/", "20000101000000")
_CORRECT = "correct luigi.cfg"
_WORD, _SMALL = "Zymurgy", rb"{\rtf1\ansi\pard Zymurgy\par}"
_JAVA = "it needs a JDK, Java 17 or later (apt-get install openjdk-17-jdk-headless), and a tika-app of version 3"


def check_places(config: Settings) -> Iterator[Check]:
    """Check every root, of the line, of engines and of writers; then the clock."""
    where: dict[Root, str] = {
        "output": config.output,
        "jobs": config.jobs,
        "state": config.state,
        "store": config.store,
    }
    folders = {root: Path(place) for root, place in where.items() if not is_remote(place)}
    yield from check_roots(folders, config.retire)
    yield from (check_remote(root, url, config.access) for root, url in where.items() if is_remote(url))
    yield from _index(config)
    for section in places.named():
        yield from _of_section(config, section)
    sentinel = Path(config.state) / SENTINEL
    if sentinel.exists():
        yield check_clock(sentinel)


def _index(config: Settings) -> Iterator[Check]:
    """The index root, which is optional."""
    if not config.index:
        yield Check("root index", Level.OK, "none is set, so there is no catalogue: warcmill init --adopt index")
        return
    todo = "mount its disk, or correct [warcmill] index"
    try:
        config.check_index()
        checks = list(check_roots({"index": Path(config.index)}, config.retire))
    except BadConfig as error:
        checks = [Check("root index", Level.FAIL, str(error))]
    else:
        checks += _catalogue(config.index)
    for check in checks:
        yield replace(check, todo=todo) if (check.name, check.level) == ("root index", Level.FAIL) else check


def _catalogue(index: str) -> Iterator[Check]:
    """The catalogue of SIPs can be read whole. A missing one is named where SIPs are switched on."""
    from warcmill.package.catalogue import REBUILD, Catalogue

    catalogue = Catalogue(Path(index))
    todo = f"{REBUILD}: it is made from the markers"
    try:
        sips = catalogue.check()
        yield Check("catalogue", Level.OK, f"{catalogue.path} is sound, and has {sips:,} SIP{'' if sips == 1 else 's'}")
    except NotReady:
        if chains.switch():
            yield Check("catalogue", Level.WARN, "there is none yet", todo)
    except WarcmillError as error:
        yield Check("catalogue", Level.FAIL, str(error), todo)


def _of_section(config: Settings, section: str) -> Iterator[Check]:
    """The own roots of an engine or another writer."""
    roots = {root: place for place, names in places.roots_of(section).items() for root in names}
    folders = {root: Path(place) for root, place in roots.items() if not is_remote(place)}
    remote = (check_remote(root, place, config.access) for root, place in roots.items() if is_remote(place))
    checks = [*check_roots(folders, config.retire), *remote]
    if section == places.IMPORTED and checks[0].level is Level.OK:
        checks += check_own("output", folders["output"])
    for check in checks:
        todo = f"mount its disk, or correct luigi.cfg; where it is a new one: warcmill init --adopt {section}"
        unreachable = check.level is Level.FAIL and check.name.startswith("root ")
        yield replace(check, name=f"{check.name} [{section}]", todo=todo if unreachable else check.todo)


def check_packages(config: Settings) -> Iterator[Check]:
    """Check [package]: where SIPs go, where they are read again, and the minter."""
    from warcmill.audit.health_services import check_destination, check_verified_at

    try:
        destination, verified_at = chains.destination(), chains.verified_at()
        terms = chains.terms() if chains.switch() else None
    except BadConfig as error:
        yield Check("packages", Level.FAIL, str(error), _CORRECT)
        return
    if destination:
        yield from check_destination(destination, config.access)
    if verified_at != destination:
        yield check_verified_at(verified_at, config.access)
    if terms:
        yield Check("packages", Level.OK, f"SIPs are built for {terms.organisation}, by {terms.form}")
    if terms and terms.minter:
        yield check_minter(terms.minter)


def check_minter(url: str) -> Check:
    """Have ARKs given, twice: only a minter that gives as many as are asked for, and new ones, is known to work."""
    from warcmill.clients import minter

    try:
        given = [*minter.arks(url, 2, PATIENCE), *minter.arks(url, 2, PATIENCE)]
        if len(set(given)) != len(given):
            raise Mismatch(f"ARKs of {minter.shown(url)}", "new ones each time", "the same again")
    except WarcmillError as error:
        return Check("minter", Level.FAIL, str(error), "start it, or correct [package] minter")
    return Check("minter", Level.OK, f"{minter.shown(url)} gave {', '.join(given)}, which nothing uses")


def check_notices(_: Settings, send: bool) -> Iterator[Check]:
    """Check that notices would arrive; with `send`, by sending one."""
    from tasks.config.settings import notice_channels

    try:
        channels = notice_channels()
    except BadConfig as error:
        yield Check("notices", Level.FAIL, str(error), _CORRECT)
        return
    if not channels.mail_to and not channels.webhook:
        level, todo = (Level.FAIL, "set [notice] mail_to, or webhook") if send else (Level.OK, "")
        yield Check("notices", level, "no address for them is configured", todo)
    yield from health.check_channels(channels, send)


def check_engines(_: Settings) -> Iterator[Check]:
    """Check each engine in which crawls are started, then each of its jobs. Changes nothing in it."""
    from tasks.config import engines

    for section in engines.driven():
        name = f"engine {section.removeprefix(places.ENGINE)}"
        try:
            with closing(engines.engine_at(section)) as engine:
                where = value(section, "url")
                yield Check(name, Level.OK, f"{where} answers: {engine.about()}" if where else engine.about())
                yield from (_check_job(engine, section, job) for job in jobs_of(section))
                yield from _check_browser(engine, jobs_of(section))
        except WarcmillError as error:
            yield Check(name, Level.FAIL, str(error), _todo(error, section))


def _check_browser(engine: Engine, jobs: Iterable[str]) -> Iterator[Check]:
    """Open a page by the browser of the jobs that render; a job whose files have a fault is reported with it."""
    from warcmill.crawl.engine import WarcmillEngine
    from warcmill.crawl.job import file
    from warcmill.crawl.render import BrowserSettings

    settings = set[BrowserSettings]()
    if not isinstance(engine, WarcmillEngine):
        return
    for job in jobs:
        with suppress(WarcmillError):
            if (found := file.read(engine.places.job(job), job)).renders:
                settings.add(BrowserSettings(sandbox=found.render.sandbox))
    for one in sorted(settings, key=lambda one: one.sandbox):
        from warcmill.crawl.render.browser import try_out  # of the extra `render`, which their files need

        how = "" if one.sandbox else ", without its sandbox"
        try:
            try_out(one)
        except WarcmillError as error:
            yield Check("browser", Level.FAIL, str(error), "until then a crawl that renders ends at its first page")
        else:
            yield Check("browser", Level.OK, f"Chromium has rendered a page{how}")


def _todo(error: WarcmillError, section: str) -> str:
    if isinstance(error, Unavailable):
        return f"start the engine, or correct url in [{section}]; until then its crawls neither start nor stop"
    if isinstance(error, Mismatch):
        return f"if its certificate was renewed, set it in [{section}] certificate; otherwise this is another server"
    if isinstance(error, BadConfig) and error.key == "user, password":
        return f"correct user and password_file (or password) in [{section}] to those of the engine's -a option"
    return f"correct [{section}] in luigi.cfg"


def _check_job(engine: Engine, section: str, job: str) -> Check:
    from tasks.config import engines, feed, pypi
    from warcmill.crawl.engine import WarcmillEngine
    from warcmill.crawl.job import file

    name = f"crawl {job}"
    progress = engine.progress(job)
    is_written = feed.is_fed(job) or pypi.mirrors(job)  # before each launch
    if progress is None and is_written:
        return Check(name, Level.OK, "its engine has no such job yet; the first start creates it")
    if isinstance(engine, WarcmillEngine) and progress and not is_written:
        try:
            file.read(engine.places.job(job), job)
        except BadConfig as error:
            return Check(name, Level.FAIL, str(error), f"correct it in {engine.places.job(job)}")
    if progress is None and engines.kind_of(section) == engines.WARCMILL:
        todo = f"warcmill crawl URL --job {job} writes one, or remove the job from [{section}] jobs"
        return Check(name, Level.FAIL, "it has no crawl.toml", todo)
    if progress is None:
        todo = f"create it in the engine, or add it to [feed] jobs, or remove it from [{section}] jobs"
        return Check(name, Level.FAIL, "its engine has no such job", todo)
    return _known(name, job, progress, _checkpoints(engine, job) if isinstance(engine, WarcmillEngine) else "")


def _checkpoints(engine: WarcmillEngine, job: str) -> str:
    """The room that the job's checkpoints take on the disk: an operator may delete old ones."""
    number, size = engine.checkpoints(job)
    return f"; {number} checkpoints, {size / MIB:.0f} MiB" if number else ""


def _known(name: str, job: str, progress: CrawlProgress, checkpoints: str) -> Check:
    launch = f"; newest launch {progress.launch_id}{checkpoints}" if progress.launch_id else "; never launched"
    if progress.state == UNBUILT and progress.said:
        text = f"{progress.state}{launch}; its engine said: {'; '.join(progress.said)}"
        return Check(name, Level.WARN, text, "if that is why it is not built: correct its crawler-beans.cxml")
    if progress.running and progress.alerts:
        text = f"{progress.state}{launch}; {progress.alerts} alerts: {'; '.join(progress.said)}"
        return Check(name, Level.WARN, text, f"warcmill pulse status {job} shows its progress")
    built = "; a start builds it" if progress.state == UNBUILT else ""
    return Check(name, Level.OK, f"{progress.state}{launch}{built}")


def check_viruses(_: Settings) -> Iterator[Check]:
    """Check [viruses]: the clamd, and both limits."""
    from warcmill.audit import health_services

    if not (value("viruses", "clamd") or value("viruses", "since")):
        return
    try:
        switch, scanner = chains.read("viruses"), chains.scanner()
    except BadConfig as error:
        yield Check(health_services.NAME, Level.FAIL, str(error), _CORRECT)
        return
    if switch is None:
        todo = "set [viruses] since to a day, or remove clamd"
        yield Check(health_services.NAME, Level.WARN, "the scan is off: since is not set", todo)
    limits = scanner.limits
    yield from health_services.check_clamd(scanner.clamd, limits.stream_max_length, limits.max_file_size)


def check_text(_: Settings) -> Iterator[Check]:
    """Check [text]: what extracts it, Tika and Solr; nothing where it is off."""
    from warcmill.formats.text import document
    from warcmill.formats.text.document import Kind

    try:
        if chains.read(chains.TEXT) is None:
            return
        chains.check_text_installed()
        yield Check("text", Level.OK, f"{document.tool_of(Kind.HTML)} and {document.tool_of(Kind.PDF)} extract it")
        place, tika = chains.solr(), chains.tika()
    except BadConfig as error:
        yield Check("text", Level.FAIL, str(error), "without it no scan starts")
    else:
        yield _check_tika(tika)
        if place:
            yield from _check_solr(place)


def _check_tika(tika: Tika | None) -> Check:
    """It begins, and extracts a word."""
    from warcmill.extracts.tika import TikaWorkers, java, java_version
    from warcmill.formats.text.document import Kind

    if tika is None:
        why = "office documents are counted, and have no text"
        return Check("tika", Level.OK, f"[text] tika is not set: {why}")
    try:
        with TikaWorkers(tika, 1) as workers:
            found = workers.submit(Kind.OFFICE, _SMALL, "").result()
            tool = workers.tool
    except Unavailable as error:
        return Check("tika", Level.FAIL, str(error), _JAVA)
    if found.text != _WORD:
        return Check("tika", Level.FAIL, f"{tika.jar} extracts no word of a small document: {found.why}", _JAVA)
    return Check("tika", Level.OK, f"{tool}, by {java_version(java())}, extracts office documents")


def _check_solr(place: SolrTarget) -> Iterator[Check]:
    """Each collection answers, has our fields, and takes documents by our update chain. Nothing is changed."""
    from warcmill.clients.solr import Solr
    from warcmill.index.sink_solr import FIELDS

    todo = "start Solr, or make the collection with the configuration in config/solr; the next scan posts what it lacks"
    with Solr(place.server, int(PATIENCE)) as solr:
        for collection in place.routing.collections:
            name = f"solr {collection}"
            try:
                missing = sorted(FIELDS - solr.fields(collection).keys())
                solr.check_chain(collection)
                number = solr.count(collection)
            except WarcmillError as error:
                yield Check(name, Level.FAIL, str(error), todo)
                continue
            if missing:
                why = f"its schema has no {', '.join(missing)}: it would refuse every document"
                yield Check(name, Level.FAIL, why, "give it the schema in config/solr, or add these fields")
            else:
                yield Check(name, Level.OK, f"{solr.name(collection)} has {number:,} documents and the fields of ours")


def check_columns(_: Settings) -> Iterator[Check]:
    """Check [columns]; nothing where it is off."""
    try:
        if chains.read(chains.COLUMNS) is None:
            return
        yield Check("columns", Level.OK, f"{chains.check_columns_installed()} writes them")
    except BadConfig as error:
        yield Check("columns", Level.FAIL, str(error), "without it no scan starts")


def check_documents(_: Settings) -> Iterator[Check]:
    """Check [documents]: what reads them; nothing where it is off."""
    from warcmill.formats.text import document
    from warcmill.formats.text.document import Kind

    try:
        if chains.read(chains.DOCUMENTS) is None:
            return
        chains.check_readers_installed(chains.DOCUMENTS)
        yield Check("documents", Level.OK, f"{document.tool_of(Kind.PDF)} reads them")
    except BadConfig as error:
        yield Check("documents", Level.FAIL, str(error), "without it no scan starts")


def check_scale(config: Settings) -> Iterator[Check]:
    """Check [scale]; nothing where processes of this machine do it, or where nothing is indexed."""
    from tasks.config import extractor, scale
    from warcmill.scale.opening import RunOn

    try:
        if not any(chains.read(name) for name in ("index", chains.TEXT, chains.DOCUMENTS)):
            return
        run_on, url = scale.run_on()
    except BadConfig as error:
        yield Check(SCALE, Level.FAIL, str(error), f"{_CORRECT}: without it no scan starts")
        return
    if run_on is RunOn.PROCESSES or not config.index:
        return
    try:
        extractor.probe(config)
    except WarcmillError as error:
        yield Check(SCALE, Level.FAIL, str(error), "put it right; until then nothing is read for the index")
        return
    reach = f"the workers of {url} have this Warcmill, and reach the store and the index"
    yield Check(SCALE, Level.OK, f"{scale.check_installed(run_on)}: {reach}")


def check_cdx_server(_: Settings) -> Iterator[Check]:
    """Check [index] cdx_server; nothing where none is set. Only questions are asked."""
    try:
        url, switch = chains.cdx_server(), chains.read("index")
    except BadConfig as error:
        yield Check(CDX_SERVER, Level.FAIL, str(error), _CORRECT)
        return
    if not url:
        return
    if switch is None:
        todo = "set [index] since, or remove cdx_server"
        yield Check(CDX_SERVER, Level.WARN, "the index is off: since is not set", todo)
    yield _answers(url)


def _answers(url: str) -> Check:
    from warcmill.clients.cdx_server import CdxServer
    from warcmill.index.sink_cdx import name_of
    from warcmill.index.sinks import FOLDER

    try:
        with closing(CdxServer(url)) as server:
            names = server.collections()
            server.captures(*NOWHERE)
    except Unavailable as error:
        todo = "start it, or correct [index] cdx_server; until then nothing is posted to it, and no stage is verified"
        return Check(CDX_SERVER, Level.FAIL, str(error), todo)
    is_there = url.rstrip("/").rpartition("/")[2] in names
    what = "" if is_there else "; the first post makes its collection"
    text = f"{url} answers{what}; its acknowledgements are in {FOLDER}/{name_of(url)} of the index root"
    return Check(CDX_SERVER, Level.OK, text)


def check_serve(config: Settings) -> Iterator[Check]:
    """Check [serve]: pywb, and what there is to search and to replay; nothing where there is no such section."""
    from tasks.config.serve import index_of, program_of, serving

    if not sections.named("serve"):
        return
    try:
        asked = serving()
        index_of(config)
        program = program_of(config, asked)
    except BadConfig as error:
        yield Check("serve", Level.FAIL, str(error), "warcmill serve does not replay without it")
        return
    yield Check("serve", Level.OK, f"{program} replays")
    yield from _published(config)


def _published(config: Settings) -> Iterator[Check]:
    from warcmill.stores.opening import open_folder
    from warcmill.web.archive import Archive

    try:
        state, index = open_folder("state", config.state), open_folder("index", config.index)
        store = config.open_store()
        versions = Archive(state, lambda: index, lambda: store).versions()
    except WarcmillError as error:
        yield Check("serve", Level.FAIL, str(error), "make the root reachable")
        return
    for name in sorted(name for name, number in versions.items() if number is None):
        todo = f"set [{'index' if name == 'cdx' else name}] since, then run 'warcmill scan'"
        yield Check("serve", Level.WARN, f"no version of {name} is published: there is nothing to serve of it", todo)


def check_scheduler(_: Settings | None = None) -> Iterator[Check]:
    """Check that luigid answers, if one is configured: without it every luigi waits for minutes, then fails."""
    address = sections.luigid()
    if address is None:
        yield Check("scheduler", Level.OK, "each luigi schedules for itself")
        return
    host, port = address
    try:
        socket.create_connection(address, 3).close()
    except OSError as error:
        todo = "start luigid there, or set local_scheduler=true in [core]"
        yield Check("scheduler", Level.FAIL, f"no luigid at {host}:{port}: {error.strerror or error}", todo)
    else:
        yield Check("scheduler", Level.OK, f"luigid answers at {host}:{port}")
