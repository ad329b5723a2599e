"""Which engine crawls which job, and when: [pulse], [engine.NAME] and [job.NAME] of luigi.cfg, read when asked for."""

from __future__ import annotations

import re
from configparser import InterpolationError
from datetime import UTC, datetime, timedelta
from pathlib import Path

import luigi
from luigi.configuration import get_config

from warcmill.clients.engine import Engine
from warcmill.clients.heritrix import Heritrix
from warcmill.clients.heritrix_engine import HeritrixEngine
from warcmill.errors import BadConfig, BadInput
from warcmill.model import parse_job
from warcmill.schedule import Frequency, Schedule

ENGINE_KEYS = ("kind", "url", "user", "password", "password_file", "certificate", "jobs")
JOB_KEYS = ("frequency", "start")
_ENGINE, _JOB = "engine.", "job."
_VARIABLE = re.compile(r"\$\{[^}]+\}")
_FINGERPRINT = re.compile(r"[0-9A-Fa-f]{2}(:?[0-9A-Fa-f]{2}){31}")


class pulse(luigi.Config):  # noqa: N801 - Luigi names the section after the class
    """[pulse]: starting crawls when they are due."""

    catch_up_hours = luigi.IntParameter(default=24, description="hours; a crawl missed for longer is not launched")


def catch_up() -> timedelta:
    """For how long a due crawl may still be launched, or BadConfig."""
    try:
        hours = int(pulse().catch_up_hours)
    except ValueError as error:
        raise BadConfig("[pulse] catch_up_hours", str(error)) from error
    if not 0 < hours <= 24 * 366:
        raise BadConfig("[pulse] catch_up_hours", f"is {hours}; hours, from 1 up to a year's")
    return timedelta(hours=hours)


def engine_of(job: str) -> Engine:
    """The engine that crawls a job, to be closed after use, or BadConfig. It is not spoken to yet."""
    sections = [section for section in _sections(_ENGINE) if job in jobs_of(section)]
    if not sections:
        raise BadConfig("[engine.NAME] jobs", f"no engine has job '{job}' among its jobs; add it where it is crawled")
    if len(sections) > 1:
        raise BadConfig(f"[{sections[1]}] jobs", f"job '{job}' is among those of [{sections[0]}] too; keep one")
    return _open(sections[0])


def has_engine(job: str) -> bool:
    """Whether some engine of the configuration crawls this job."""
    return any(job in jobs_of(section) for section in _sections(_ENGINE))


def crawled() -> tuple[str, ...]:
    """The jobs that the engines of the configuration crawl, or BadConfig."""
    return tuple(job for section in _sections(_ENGINE) for job in jobs_of(section))


def jobs_of(section: str) -> tuple[str, ...]:
    """The jobs of an engine's section, or BadConfig."""
    return names(_needed(section, "jobs"), f"[{section}] jobs")


def names(text: str, key: str) -> tuple[str, ...]:
    """The jobs that a key lists, or BadConfig."""
    try:
        return tuple(parse_job(name) for name in re.split(r"[,\s]+", text) if name)
    except BadInput as error:
        raise BadConfig(key, str(error)) from error


def scheduled() -> tuple[str, ...]:
    """The jobs that have a [job.NAME] section, or BadConfig."""
    names = [section.removeprefix(_JOB) for section in _sections(_JOB)]
    try:
        return tuple(parse_job(name) for name in names)
    except BadInput as error:
        raise BadConfig(f"[{_JOB}{error.path}]", error.why) from error


def schedule_of(job: str) -> Schedule:
    """When a job is due, or BadConfig."""
    section = f"{_JOB}{job}"
    if not get_config().has_section(section):
        raise BadConfig(f"[{section}]", "there is no such section: it says when the job is due, by frequency and start")
    _refuse_unknown(section, JOB_KEYS)
    word, start = _needed(section, "frequency"), _needed(section, "start")
    try:
        frequency = Frequency(word.upper())
    except ValueError as error:
        raise BadConfig(f"[{section}] frequency", f"is {word}; one of {', '.join(Frequency)}") from error
    return Schedule(_moment(section, start), frequency)


def _moment(section: str, text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text).replace(microsecond=0)
    except ValueError as error:
        raise BadConfig(f"[{section}] start", f"is {text}; an ISO 8601 time, such as 2026-11-21T06:00:00Z") from error
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def _open(section: str) -> Engine:
    _refuse_unknown(section, ENGINE_KEYS)
    kind = _needed(section, "kind")
    if kind != "heritrix":
        raise BadConfig(f"[{section}] kind", f"is {kind}; known is heritrix")
    pin = _needed(section, "certificate")
    certificate = pin if _FINGERPRINT.fullmatch(pin) else Path(pin)
    return HeritrixEngine(
        Heritrix.at(_needed(section, "url"), _needed(section, "user"), _password(section), certificate)
    )


def _password(section: str) -> str:
    """From the environment or from a file: a luigi.cfg is read by many."""
    path = _value(section, "password_file")
    if not path:
        if not _VARIABLE.fullmatch(get_config().get(section, "password", "", raw=True)):
            why = "may not stand in luigi.cfg: password=${NAME}, a variable of the environment, or password_file"
            raise BadConfig(f"[{section}] password", why)
        return _needed(section, "password")
    if _value(section, "password"):
        raise BadConfig(f"[{section}] password_file", "stands beside password; keep one of them")
    try:
        return Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"[{section}] password_file", str(error)) from error


def _sections(prefix: str) -> list[str]:
    return [section for section in get_config().sections() if section.startswith(prefix)]


def _refuse_unknown(section: str, keys: tuple[str, ...]) -> None:
    """A key that is misspelt must not pass for one that is not set."""
    defaults = get_config().defaults()
    unknown = sorted(set(get_config().options(section)) - set(keys) - set(defaults))
    if unknown:
        raise BadConfig(f"[{section}] {unknown[0]}", f"there is no such key; there are {', '.join(keys)}")


def _needed(section: str, key: str) -> str:
    found = _value(section, key)
    if not found:
        raise BadConfig(f"[{section}] {key}", "is not set")
    return found


def _value(section: str, key: str) -> str:
    try:
        return str(get_config().get(section, key, "")).strip()
    except InterpolationError as error:
        raise BadConfig(f"[{section}] {key}", str(error)) from error
