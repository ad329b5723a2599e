"""warcmill doctor: check that each engine of luigi.cfg answers, accepts our login, and has its jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from tasks.config import engines, roots
from tasks.config import feed as feeds
from tasks.config.sections import jobs_of, value
from warcmill.audit.health import Check, Level
from warcmill.clients.engine import CrawlProgress, Engine
from warcmill.crawl import job_file
from warcmill.crawl.engine import WarcmillEngine
from warcmill.errors import BadConfig, Mismatch, Unavailable, WarcmillError

UNBUILT = "UNBUILT"
MIB = 1 << 20


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
    if progress is None and feeds.is_fed(job):
        return Check(name, Level.OK, "its engine has no such job yet; the first start creates it")
    if isinstance(engine, WarcmillEngine) and progress and not feeds.is_fed(job):
        try:
            job_file.read(engine.places.job(job), job)
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
    """What the job's checkpoints take of the disk: an operator may delete old ones."""
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
