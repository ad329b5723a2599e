"""warcmill doctor: does each engine of luigi.cfg answer, know us, and know its jobs?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from tasks import engines, feeds, places
from tasks.sections import jobs_of, value
from warcmill.clients.engine import Engine, Progress
from warcmill.errors import BadConfig, Mismatch, Unavailable, WarcmillError
from warcmill.health import Check, Level

UNBUILT = "UNBUILT"


def check_engines() -> Iterator[Check]:
    """Each engine that crawls are started in, then each of its jobs. Nothing is changed in it."""
    for section in engines.driven():
        name = f"engine {section.removeprefix(places.ENGINE)}"
        try:
            with closing(engines.engine_at(section)) as engine:
                yield Check(name, Level.OK, f"{value(section, 'url')} answers: {engine.about()}")
                yield from (_check_job(engine, section, job) for job in jobs_of(section))
        except WarcmillError as error:
            yield Check(name, Level.FAIL, str(error), _todo(error, section))


def _todo(error: WarcmillError, section: str) -> str:
    if isinstance(error, Unavailable):
        return f"start the engine, or correct url in [{section}]; until then no crawl of it starts, and none is stopped"
    if isinstance(error, Mismatch):
        return f"if its certificate was renewed, name the new one in [{section}] certificate; else it is another server"
    if isinstance(error, BadConfig) and error.key == "user, password":
        return f"correct user and password_file (or password) in [{section}]: they are those of the engine's -a option"
    return f"correct [{section}] in luigi.cfg"


def _check_job(engine: Engine, section: str, job: str) -> Check:
    name = f"crawl {job}"
    found = engine.progress(job)
    if found is None and feeds.is_fed(job):
        return Check(name, Level.OK, "its engine has no such job yet; the first start makes it")
    if found is None:
        todo = f"make it in the engine, or feed it ([feed] jobs), or take it out of [{section}] jobs"
        return Check(name, Level.FAIL, "its engine has no such job", todo)
    return _known(name, job, found)


def _known(name: str, job: str, found: Progress) -> Check:
    launch = f"; newest launch {found.launch_id}" if found.launch_id else "; never launched"
    if found.state == UNBUILT and found.said:
        text = f"{found.state}{launch}; its engine said: {'; '.join(found.said)}"
        return Check(name, Level.WARN, text, "if that is why it was not built: correct its crawler-beans.cxml")
    if found.running and found.alerts:
        text = f"{found.state}{launch}; {found.alerts} alerts: {'; '.join(found.said)}"
        return Check(name, Level.WARN, text, f"warcmill pulse status {job} shows its progress")
    built = "; a start builds it" if found.state == UNBUILT else ""
    return Check(name, Level.OK, f"{found.state}{launch}{built}")
