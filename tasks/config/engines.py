"""The engine of each job, and the times of its crawls: [pulse], [engine.NAME] and [job.NAME] of luigi.cfg."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tasks.config import roots, sections
from tasks.config.sections import Section, TextKey, WholeKey, jobs_of, needed, value
from tasks.config.settings import settings
from tasks.config.source import configuration
from warcmill.base.escapes import did_you_mean
from warcmill.base.schedule import Frequency, Schedule, check_time
from warcmill.clients.engine import Engine
from warcmill.crawl.frontier.link import RedisPlace, read_place, read_wait
from warcmill.crawl.launch import folders
from warcmill.crawl.launch.folders import Places, require_root
from warcmill.errors import BadConfig, BadInput
from warcmill.model import parse_job
from warcmill.stores.opening import is_remote

if TYPE_CHECKING:
    from warcmill.crawl.control.calls import RunningJob
    from warcmill.crawl.engine import WarcmillEngine

JOB_KEYS = ("frequency", "start", "at", "zone", "overrun")
STOP, WAIT = "stop", "wait"
HERITRIX, WARCMILL = "heritrix", "warcmill"  # kinds
_LOGIN_KEYS = ("url", "user", "password", "password_file", "certificate", "engine_output")
_FRONTIER_KEYS = ("frontier_password_file", "leads_only", "checkpoint_wait")
_JOB = "job."
_FINGERPRINT = re.compile(r"[0-9A-Fa-f]{2}(:?[0-9A-Fa-f]{2}){31}")


class pulse(Section):  # noqa: N801 - the section has the name of the class
    """[pulse]: start crawls when they are due."""

    catch_up_hours = WholeKey(default=24, description="hours; a crawl that is more overdue is not launched")


class scripts(Section):  # noqa: N801 - the section has the name of the class
    """[scripts]: pyspider's scripts."""

    walls = TextKey(default="bubblewrap", description="what shuts scripts in: bubblewrap; none lets them do all")
    proxies = TextKey(default="", description="HOST:PORT, comma-separated; those that a script may name")


def script_walls() -> str:
    """The walls of scripts, `bubblewrap` or `none`; or BadConfig."""
    walls = str(sections.read(scripts).walls)
    if walls not in ("bubblewrap", "none"):
        raise BadConfig("[scripts] walls", f"is '{walls}'; bubblewrap or none")
    return walls


def has_script_walls() -> bool:
    """True if walls shut scripts in; or BadConfig."""
    return script_walls() != "none"


def script_proxies() -> list[str]:
    """The proxies that a script may name, each HOST:PORT; or BadConfig."""
    found = [*filter(None, re.split(r"[,\s]+", str(sections.read(scripts).proxies)))]
    for place in found:
        host, _, port = place.rpartition(":")
        if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16 or "@" in place:
            why = f"has '{place.rpartition('@')[2]}'; each is HOST:PORT, and a script adds the login"
            raise BadConfig("[scripts] proxies", why)
    return found


def catch_up() -> timedelta:
    """The time after its due time in which a crawl may still be launched, or BadConfig."""
    hours = int(sections.read(pulse).catch_up_hours)
    if not 0 < hours <= 24 * 366:
        raise BadConfig("[pulse] catch_up_hours", f"is {hours}; hours, from 1 up to a year's")
    return timedelta(hours=hours)


def engine_of(job: str) -> Engine:
    """The engine that crawls a job, or BadConfig. Close it after use. It is not contacted yet."""
    section = section_of(job)
    if not section:
        hint = did_you_mean(job, (known for name in roots.engines() for known in jobs_of(name)))
        why = f"no engine lists job '{job}'; add it to the jobs of the engine that crawls it{hint}"
        raise BadConfig("[engine.NAME] jobs", why)
    return engine_at(section)


def section_of(job: str) -> str:
    """The section of the engine that crawls a job; '' if there is none. BadConfig if there are two."""
    listed = [section for section in roots.engines() if job in jobs_of(section)]
    if len(listed) > 1:
        raise BadConfig(f"[{listed[1]}] jobs", f"job '{job}' is listed in [{listed[0]}] too; keep one")
    return next(iter(listed), "")


def has_engine(job: str) -> bool:
    """True if an engine that is controlled here crawls this job, or BadConfig."""
    return job in crawled()


def crawled(kind: str = "") -> tuple[str, ...]:
    """The jobs of all engines that are controlled here, or of those of one kind; or BadConfig."""
    return tuple(job for section in driven() if kind in ("", kind_of(section)) for job in jobs_of(section))


def driven() -> tuple[str, ...]:
    """The sections of engines with a url, and of our own. Other engines' crawls are processed here, not controlled."""
    return tuple(section for section in roots.engines() if value(section, "url") or kind_of(section) == WARCMILL)


def kind_of(section: str) -> str:
    """The kind of an engine: `heritrix` or `warcmill`; '' if it is not set."""
    return value(section, "kind")


def scheduled() -> tuple[str, ...]:
    """The jobs that have a [job.NAME] section, or BadConfig."""
    jobs = [section.removeprefix(_JOB) for section in sections.named(_JOB)]
    try:
        return tuple(parse_job(name) for name in jobs)
    except BadInput as error:
        raise BadConfig(f"[{_JOB}{error.path}]", error.why) from error


def schedules() -> tuple[dict[str, Schedule], list[BadConfig]]:
    """When each job with a [job.NAME] is due, and what is wrong with sections that cannot be read."""
    found, wrong = dict[str, Schedule](), list[BadConfig]()
    for section in sections.named(_JOB):
        name = section.removeprefix(_JOB)
        try:
            found[parse_job(name)] = schedule_of(name)
        except BadConfig as error:
            wrong.append(error)
        except BadInput as error:
            wrong.append(BadConfig(f"[{section}]", error.why))
    return found, wrong


def schedule_of(job: str) -> Schedule:
    """When a job is due, or BadConfig."""
    section = f"{_JOB}{job}"
    if not configuration().has_section(section):
        raise BadConfig(f"[{section}]", "there is no such section; it sets when the job is due: frequency and start")
    sections.refuse_unknown(section, JOB_KEYS)
    word, start = needed(section, "frequency"), needed(section, "start")
    try:
        frequency = Frequency.parse(word)
    except ValueError as error:
        raise BadConfig(f"[{section}] frequency", str(error)) from error
    at, zone = value(section, "at"), value(section, "zone") or "UTC"
    if at or value(section, "zone"):
        try:
            check_time(frequency, at, zone)
        except ValueError as error:
            raise BadConfig(f"[{section}] at, zone", str(error)) from error
    return Schedule(_moment(section, start), frequency, waits=_waits(section), at=at, zone=zone)


def _waits(section: str) -> bool:
    """True if a due crawl waits while one runs; False if it stops that one."""
    word = value(section, "overrun") or STOP
    if word not in (STOP, WAIT):
        raise BadConfig(f"[{section}] overrun", f"is {word}; {STOP} or {WAIT}")
    return word == WAIT


def _moment(section: str, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text).replace(microsecond=0)
    except ValueError as error:
        raise BadConfig(f"[{section}] start", f"is {text}; an ISO 8601 time, such as 2026-11-21T06:00:00Z") from error
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def engine_at(section: str) -> Engine:
    """The engine of a section, or BadConfig. Close it after use. It is not contacted yet."""
    sections.refuse_unknown(section, roots.ENGINE_KEYS)
    if (kind := kind_of(section)) == WARCMILL:
        return own_engine(section)
    if kind not in ("", HERITRIX):
        raise BadConfig(f"[{section}] kind", f"is {kind}; {HERITRIX} or {WARCMILL}")
    if not value(section, "url"):
        why = "is not set: the crawls of this engine are only processed here. To control it, set its"
        raise BadConfig(f"[{section}] url", f"{why} kind, url, user, password and certificate")
    needed(section, "kind")
    for key in ("allow_private", "frontier", *_FRONTIER_KEYS):
        if value(section, key):
            raise BadConfig(f"[{section}] {key}", f"is for kind={WARCMILL} alone; Heritrix has its own settings")
    from warcmill.clients.heritrix.engine import HeritrixEngine  # each engine has clients of its own
    from warcmill.clients.heritrix.rest import Heritrix

    pin = needed(section, "certificate")
    certificate = pin if _FINGERPRINT.fullmatch(pin) else Path(pin)
    return HeritrixEngine(Heritrix.at(needed(section, "url"), needed(section, "user"), _password(section), certificate))


def networks_of(job: str) -> tuple[str, ...]:
    """The inside addresses that the engine of a job lets in; none of an engine of another kind."""
    section = section_of(job)
    return _networks(section) if section else ()


def _networks(section: str) -> tuple[str, ...]:
    return tuple(filter(None, re.split(r"[,\s]+", value(section, "allow_private"))))


def own_engine(section: str) -> WarcmillEngine:
    """The built-in crawler of a section, or BadConfig: it writes to folders of this host, and nobody logs in."""
    from warcmill.crawl.engine import WarcmillEngine
    from warcmill.crawl.fetch.addresses import Judge

    for key in _LOGIN_KEYS:
        if value(section, key):
            raise BadConfig(f"[{section}] {key}", f"is not for kind={WARCMILL}: it runs on this host, without a login")
    site = roots.site_of(section, settings().site)
    output = folders.local(f"{site.name} output", site.output)
    jobs = folders.local(f"{site.name} job_files", site.jobs)
    networks = _networks(section)
    try:
        Judge(networks)
    except BadConfig as error:
        raise BadConfig(f"[{section}] allow_private", error.why) from error
    places = Places(output, jobs, site.layout, frontier_of(section), _owned())
    return WarcmillEngine(places, networks, _processes())


def _owned() -> frozenset[str]:
    """The jobs of groups whose hosts have owners."""
    return frozenset(job for one in sections.named("group.") if value(one, "rules") for job in jobs_of(one))


def check_frontier(job: str) -> None:
    """BadConfig for a job whose frontier cannot be in the Redis that its engine names."""
    section = section_of(job)
    if section and kind_of(section) == WARCMILL and frontier_of(section):
        with closing(own_engine(section)) as engine:
            engine.check_frontier(job)


def _processes() -> dict[str, tuple[str, ...]]:
    """The module that crawls a job of a service, and words for it, by the service's key in crawl.toml."""
    of_scripts = ("warcmill.scripts.process", script_walls(), ",".join(script_proxies()))
    return {"requests": ("warcmill.requests.process",), "scripts": of_scripts}


def running_job(job: str) -> RunningJob:
    """The way to the crawl of a job: its control socket, and the Redis that has its frontier; or BadConfig."""
    from warcmill.crawl.control.calls import RunningJob

    section = section_of(job)
    place = frontier_of(section) if section else None
    if place and not is_here(job):
        return RunningJob(job, None, place)
    if is_remote(jobs := settings().rootmap().section(job).jobs):
        raise BadConfig("job_files", f"'{jobs}' is on another machine; a crawl is steered where it runs")
    return RunningJob(job, folders.state_of(Path(jobs), job) / folders.CONTROL, place)


def is_here(job: str) -> bool:
    """True if the folder of a job is on this machine."""
    return folder_of(job) is not None


def folder_of(job: str) -> Path | None:
    """The folder of a job; None if it is not on this machine. Unavailable where the disk of its root is not mounted."""
    jobs = value(section_of(job), "job_files") or value("warcmill", "jobs")
    found = bool(jobs) and not is_remote(jobs) and (Path(jobs) / job).is_dir()
    if jobs and not found and not is_remote(jobs) and Path(jobs).is_dir():
        require_root(Path(jobs), "jobs")
    return Path(jobs) / job if found else None


def frontier_of(section: str) -> RedisPlace | None:
    """The Redis that has the frontiers of an engine's jobs; None if each job has its own database. Or BadConfig."""
    url, more = value(section, "frontier"), {key: value(section, key) for key in _FRONTIER_KEYS}
    if not url:
        for key in filter(more.get, more):
            raise BadConfig(f"[{section}] {key}", "is set, and frontier is not")
        return None
    place = read_place(f"[{section}] frontier", url, more["frontier_password_file"])
    if (leads := more["leads_only"].lower()) not in ("", "true", "false"):
        raise BadConfig(f"[{section}] leads_only", f"is '{leads}'; true or false")
    wait = read_wait(f"[{section}] checkpoint_wait", more["checkpoint_wait"] or str(place.checkpoint_wait))
    return replace(place, leads_only=place.leads_only if not leads else leads == "true", checkpoint_wait=wait)


def _password(section: str) -> str:
    """The engine's password, from the environment or a file."""
    password = sections.secret(section, "password")
    if not password:
        raise BadConfig(f"[{section}] password", "is not set: password=${NAME}, or password_file")
    return password
