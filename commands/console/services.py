"""The services and tools that luigi.cfg names, each checked for `warcmill doctor`: nothing where it is not used.

Apart from the verb, which checks the machine itself. Asks the services, and changes nothing in them; the minter gives
four ARKs, which nothing uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from tasks.config import chains, engines, roots, scale, sections
from tasks.config import feed as feeds
from tasks.config import pypi as indexes
from tasks.config.sections import jobs_of, value
from tasks.config.serve import index_of, program_of, serving
from tasks.config.settings import Settings
from warcmill.audit import health_services
from warcmill.audit.health import Check, Level
from warcmill.audit.health_services import check_destination, check_verified_at
from warcmill.clients import minter
from warcmill.clients.cdx_server import CdxServer
from warcmill.clients.engine import CrawlProgress, Engine
from warcmill.clients.solr import Solr
from warcmill.crawl.engine import WarcmillEngine
from warcmill.crawl.job import file
from warcmill.errors import BadConfig, Mismatch, Unavailable, WarcmillError
from warcmill.extracts.tika import Tika, TikaWorkers, java, java_version
from warcmill.formats.text import document
from warcmill.formats.text.document import Kind
from warcmill.index.sink_cdx import name_of
from warcmill.index.sink_solr import FIELDS, SolrTarget
from warcmill.index.sinks import FOLDER
from warcmill.scale.opening import RunOn
from warcmill.stores.opening import Access, open_folder
from warcmill.web.archive import Archive

UNBUILT = "UNBUILT"
MIB = 1 << 20
PATIENCE = 10.0  # seconds for an answer of the minter, or of Solr
SCALE = "scale"
CDX_SERVER = "cdx server"
NOWHERE = ("http://warcmill.invalid/", "20000101000000")
_WORD, _SMALL = "Zymurgy", rb"{\rtf1\ansi\pard Zymurgy\par}"
_JAVA = "it needs a JDK, Java 17 or later (apt-get install openjdk-17-jdk-headless), and a tika-app of version 3"


def check_columns() -> Iterator[Check]:
    """Check [columns]; nothing where it is off."""
    try:
        if chains.read(chains.COLUMNS) is None:
            return
        yield Check("columns", Level.OK, f"{chains.check_columns_installed()} writes them")
    except BadConfig as error:
        yield Check("columns", Level.FAIL, str(error), "without it no scan starts")


def check_engines() -> Iterator[Check]:
    """Check each engine in which crawls are started, then each of its jobs. Changes nothing in it."""
    for section in engines.driven():
        name = f"engine {section.removeprefix(roots.ENGINE)}"
        try:
            with closing(engines.engine_at(section)) as engine:
                where = value(section, "url")
                yield Check(name, Level.OK, f"{where} answers: {engine.about()}" if where else engine.about())
                yield from (_check_job(engine, section, job) for job in jobs_of(section))
        except WarcmillError as error:
            yield Check(name, Level.FAIL, str(error), _todo(error, section))


def _todo(error: WarcmillError, section: str) -> str:
    if isinstance(error, Unavailable):
        return f"start the engine, or correct url in [{section}]; until then its crawls neither start nor stop"
    if isinstance(error, Mismatch):
        return f"if its certificate was renewed, set it in [{section}] certificate; otherwise this is another server"
    if isinstance(error, BadConfig) and error.key == "user, password":
        return f"correct user and password_file (or password) in [{section}] to those of the engine's -a option"
    return f"correct [{section}] in luigi.cfg"


def _check_job(engine: Engine, section: str, job: str) -> Check:
    name = f"crawl {job}"
    progress = engine.progress(job)
    is_written = feeds.is_fed(job) or indexes.mirrors(job)  # before each launch
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


def check_packages(access: Access) -> Iterator[Check]:
    """Check [package]; nothing where it is not used."""
    try:
        places = chains.destination(), chains.verified_at()
        terms = chains.terms() if chains.switch() else None
    except BadConfig as error:
        yield Check("packages", Level.FAIL, str(error), "correct luigi.cfg")
        return
    yield from _places(*places, access)
    if terms:
        yield Check("packages", Level.OK, f"SIPs are built for {terms.organisation}, by {terms.form}")
    if terms and terms.minter:
        yield check_minter(terms.minter)


def _places(destination: str, verified_at: str, access: Access) -> Iterator[Check]:
    if destination:
        yield from check_destination(destination, access)
    if verified_at != destination:
        yield check_verified_at(verified_at, access)


def check_minter(url: str) -> Check:
    """Have ARKs given, twice: only a minter that gives as many as are asked for, and new ones, is known to work."""
    try:
        given = [*minter.arks(url, 2, PATIENCE), *minter.arks(url, 2, PATIENCE)]
        if len(set(given)) != len(given):
            raise Mismatch(f"ARKs of {minter.shown(url)}", "new ones each time", "the same again")
    except WarcmillError as error:
        return Check("minter", Level.FAIL, str(error), "start it, or correct [package] minter")
    return Check("minter", Level.OK, f"{minter.shown(url)} gave {', '.join(given)}, which nothing uses")


def check_scale(config: Settings) -> Iterator[Check]:
    """Check [scale]; nothing where processes of this machine do it, or where nothing is indexed."""
    try:
        if not any(chains.read(name) for name in ("index", chains.TEXT)):
            return
        run_on, url = scale.run_on()
    except BadConfig as error:
        yield Check(SCALE, Level.FAIL, str(error), "correct luigi.cfg: without it no scan starts")
        return
    if run_on is RunOn.PROCESSES or not config.index:
        return
    try:
        scale.probe(config)
    except WarcmillError as error:
        yield Check(SCALE, Level.FAIL, str(error), "put it right; until then nothing is read for the index")
        return
    text_ = (
        f"{scale.check_installed(run_on)}: the workers of {url} have this Warcmill, and reach the store and the index"
    )
    yield Check(SCALE, Level.OK, text_)


def check_serve(config: Settings) -> Iterator[Check]:
    """Check [serve]; nothing where there is none."""
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
    """Check that there is something to search, and to replay."""
    try:
        state, index, store = (
            open_folder("state", config.state),
            open_folder("index", config.index),
            config.open_store(),
        )
        versions = Archive(state, lambda: index, lambda: store).versions()
    except WarcmillError as error:
        yield Check("serve", Level.FAIL, str(error), "make the root reachable")
        return
    for name in sorted(name for name, number in versions.items() if number is None):
        todo = f"set [{'index' if name == 'cdx' else name}] since, then run index.ScanForIndexing"
        yield Check("serve", Level.WARN, f"no version of {name} is published: there is nothing to serve of it", todo)


def check_sinks() -> Iterator[Check]:
    """Check [index] cdx_server; nothing where none is set. Only questions are asked."""
    try:
        url, switch = chains.cdx_server(), chains.read("index")
    except BadConfig as error:
        yield Check(CDX_SERVER, Level.FAIL, str(error), "correct luigi.cfg")
        return
    if not url:
        return
    if switch is None:
        yield Check(
            CDX_SERVER, Level.WARN, "the index is off: since is not set", "set [index] since, or remove cdx_server"
        )
    yield _answers(url)


def _answers(url: str) -> Check:
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


def check_text() -> Iterator[Check]:
    """Check [text]; nothing where it is off."""
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


def check_viruses() -> Iterator[Check]:
    """Check [viruses]; nothing where it is not used."""
    if not chains.is_configured():
        return
    try:
        switch, scanner = chains.read("viruses"), chains.scanner()
    except BadConfig as error:
        yield Check(health_services.NAME, Level.FAIL, str(error), "correct luigi.cfg")
        return
    if switch is None:
        todo = "set [viruses] since to a day, or remove clamd"
        yield Check(health_services.NAME, Level.WARN, "the scan is off: since is not set", todo)
    limits = scanner.limits
    yield from health_services.check_clamd(scanner.clamd, limits.stream_max_length, limits.max_file_size)
