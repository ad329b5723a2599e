"""Which engine crawls which job, and when: [pulse], [engine.NAME] and [job.NAME] of luigi.cfg, read when asked for."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import luigi
from luigi.configuration import get_config

from tasks import places, sections
from tasks.sections import jobs_of, needed, value
from warcmill.clients.engine import Engine
from warcmill.clients.heritrix import Heritrix
from warcmill.clients.heritrix_engine import HeritrixEngine
from warcmill.errors import BadConfig, BadInput
from warcmill.model import parse_job
from warcmill.nearest import did_you_mean
from warcmill.schedule import Frequency, Schedule

JOB_KEYS = ("frequency", "start")
_ENGINE, _JOB = places.ENGINE, "job."
_FINGERPRINT = re.compile(r"[0-9A-Fa-f]{2}(:?[0-9A-Fa-f]{2}){31}")


class pulse(luigi.Config):  # noqa: N801 - Luigi names the section after the class
    """[pulse]: starting crawls when they are due."""

    catch_up_hours = luigi.IntParameter(default=24, description="hours; a crawl missed for longer is not launched")


def catch_up() -> timedelta:
    """For how long a due crawl may still be launched, or BadConfig."""
    hours = int(sections.read(pulse).catch_up_hours)
    if not 0 < hours <= 24 * 366:
        raise BadConfig("[pulse] catch_up_hours", f"is {hours}; hours, from 1 up to a year's")
    return timedelta(hours=hours)


def engine_of(job: str) -> Engine:
    """The engine that crawls a job, to be closed after use, or BadConfig. It is not spoken to yet."""
    section = section_of(job)
    if not section:
        hint = did_you_mean(job, (one for name in sections.named(_ENGINE) for one in jobs_of(name)))
        why = f"no engine has job '{job}' among its jobs; add it where it is crawled{hint}"
        raise BadConfig("[engine.NAME] jobs", why)
    return engine_at(section)


def section_of(job: str) -> str:
    """The section of the engine that crawls a job; '' when there is none. BadConfig when there are two."""
    found = [section for section in sections.named(_ENGINE) if job in jobs_of(section)]
    if len(found) > 1:
        raise BadConfig(f"[{found[1]}] jobs", f"job '{job}' is among those of [{found[0]}] too; keep one")
    return next(iter(found), "")


def has_engine(job: str) -> bool:
    """Whether some engine of the configuration crawls this job, and can be spoken to."""
    return job in crawled()


def crawled() -> tuple[str, ...]:
    """The jobs that the engines of the configuration crawl, or BadConfig: of those that can be spoken to."""
    return tuple(job for section in driven() for job in jobs_of(section))


def driven() -> tuple[str, ...]:
    """The sections of engines that can be spoken to: the others' crawls are only processed here."""
    return tuple(section for section in sections.named(_ENGINE) if value(section, "url"))


def scheduled() -> tuple[str, ...]:
    """The jobs that have a [job.NAME] section, or BadConfig."""
    found = [section.removeprefix(_JOB) for section in sections.named(_JOB)]
    try:
        return tuple(parse_job(name) for name in found)
    except BadInput as error:
        raise BadConfig(f"[{_JOB}{error.path}]", error.why) from error


def schedule_of(job: str) -> Schedule:
    """When a job is due, or BadConfig."""
    section = f"{_JOB}{job}"
    if not get_config().has_section(section):
        raise BadConfig(f"[{section}]", "there is no such section: it says when the job is due, by frequency and start")
    sections.refuse_unknown(section, JOB_KEYS)
    word, start = needed(section, "frequency"), needed(section, "start")
    try:
        frequency = Frequency.parse(word)
    except ValueError as error:
        raise BadConfig(f"[{section}] frequency", str(error)) from error
    return Schedule(_moment(section, start), frequency)


def _moment(section: str, text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text).replace(microsecond=0)
    except ValueError as error:
        raise BadConfig(f"[{section}] start", f"is {text}; an ISO 8601 time, such as 2026-11-21T06:00:00Z") from error
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def engine_at(section: str) -> Engine:
    """The engine of a section, to be closed after use, or BadConfig. It is not spoken to yet."""
    sections.refuse_unknown(section, places.ENGINE_KEYS)
    if not value(section, "url"):
        why = "is not set: what this engine crawls is only processed here. To start, checkpoint and stop it, set its"
        raise BadConfig(f"[{section}] url", f"{why} kind, url, user, password and certificate")
    kind = needed(section, "kind")
    if kind != "heritrix":
        raise BadConfig(f"[{section}] kind", f"is {kind}; known is heritrix")
    pin = needed(section, "certificate")
    certificate = pin if _FINGERPRINT.fullmatch(pin) else Path(pin)
    return HeritrixEngine(Heritrix.at(needed(section, "url"), needed(section, "user"), _password(section), certificate))


def _password(section: str) -> str:
    """From the environment or from a file."""
    found = sections.secret(section, "password")
    if not found:
        raise BadConfig(f"[{section}] password", "is not set: password=${NAME}, or password_file")
    return found
