"""Sections of luigi.cfg with a name of their own, such as [engine.first]: read by key; unknown keys are refused.

To read a section through Luigi takes a millisecond, and each task of a run needs it several times: `while_unchanged`
keeps what was read for as long as the configuration stays the same.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from configparser import InterpolationError
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar
from urllib.parse import urlsplit

import luigi
from luigi.cmdline_parser import CmdlineParser
from luigi.configuration import get_config
from luigi.interface import core

from warcmill.base.escapes import nearest
from warcmill.errors import BadConfig, BadInput
from warcmill.model import parse_job

CLOSE = 0.75  # how close a key must be to count as misspelt: Luigi reads keys that it does not list
Config = TypeVar("Config", bound=luigi.Config)
_VARIABLE = re.compile(r"\$\{[^}]+\}")
Value = TypeVar("Value")
Rest = ParamSpec("Rest")
_NAMED_VARIABLE = re.compile(r"\$\{([^}]+)\}")


def named(prefix: str) -> list[str]:
    """The sections whose names begin with `prefix`."""
    return [section for section in get_config().sections() if section.startswith(prefix)]


def refuse_unknown(section: str, keys: tuple[str, ...]) -> None:
    """BadConfig for a key that is not in `keys`: a misspelt key must not pass for one that is not set. No section has
    no such key."""
    if not get_config().has_section(section):
        return
    defaults = get_config().defaults()
    unknown = sorted(set(get_config().options(section)) - set(keys) - set(defaults))
    if unknown:
        meant = nearest(unknown[0], keys, CLOSE)
        ask = f"did you mean {meant}? There" if meant else "there"
        raise BadConfig(f"[{section}] {unknown[0]}", f"there is no such key; {ask} are {', '.join(keys)}")


def read(config: type[Config]) -> Config:
    """A section as Luigi reads it, or BadConfig naming the key whose value is wrong."""
    try:
        return config()
    except ValueError as error:
        section = str(config.get_task_family())
        raise BadConfig(f"[{section}] {_wrong_key(config)}".rstrip(), str(error.__cause__ or error)) from error


def _wrong_key(config: type[luigi.Config]) -> str:
    for name, parameter in config.get_params():
        try:
            parameter.task_value(config.get_task_family(), name)
        except (ValueError, InterpolationError):
            return str(name)
    return ""


def needed(section: str, key: str) -> str:
    """The value of a key, or BadConfig if it is not set."""
    text = value(section, key)
    if not text:
        raise BadConfig(f"[{section}] {key}", "is not set")
    return text


def value(section: str, key: str) -> str:
    """The value of a key; '' if it is not set."""
    try:
        return str(get_config().get(section, key, "")).strip()
    except InterpolationError as error:
        raise BadConfig(f"[{section}] {key}", str(error)) from error


def secret(section: str, key: str) -> str:
    """A password, from the environment or from the file in KEY_file; '' if neither is set.

    BadConfig for a password in luigi.cfg itself, which many can read.
    """
    path = value(section, f"{key}_file")
    if not path:
        raw = str(get_config().get(section, key, "", raw=True))
        if raw and not _VARIABLE.fullmatch(raw):
            why = f"may not be in luigi.cfg itself: set {key}=${{NAME}}, a variable of the environment, or {key}_file"
            raise BadConfig(f"[{section}] {key}", why)
        return value(section, key)
    if value(section, key):
        raise BadConfig(f"[{section}] {key}_file", f"is set beside {key}; keep one of them")
    try:
        return Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"[{section}] {key}_file", str(error)) from error


def jobs_of(section: str) -> tuple[str, ...]:
    """The jobs that a section lists, or BadConfig."""
    return names(needed(section, "jobs"), f"[{section}] jobs")


def names(text: str, key: str) -> tuple[str, ...]:
    """The jobs that a key lists, or BadConfig."""
    try:
        return tuple(parse_job(name) for name in re.split(r"[,\s]+", text) if name)
    except BadInput as error:
        raise BadConfig(key, str(error)) from error


def luigid() -> tuple[str, int] | None:
    """Host and port of luigid; None where each luigi schedules for itself."""
    config = core()
    if config.local_scheduler:
        return None
    if not config.scheduler_url:
        return config.scheduler_host, config.scheduler_port
    url = urlsplit(config.scheduler_url)
    return url.hostname or "", url.port or 80


def while_unchanged(read: Callable[Rest, Value]) -> Callable[Rest, Value]:
    """Call `read` again only for other arguments, or once the configuration has changed."""
    last: list[tuple[object, Value]] = []

    @wraps(read)
    def kept(*args: Rest.args, **kwargs: Rest.kwargs) -> Value:
        now = (_configuration(), args, kwargs)
        if not last or last[0][0] != now:
            last[:] = [(now, read(*args, **kwargs))]
        return last[0][1]

    return kept


def _configuration() -> list[object]:
    """All texts of the configuration, what the variables in them are, and the command, which may override keys."""
    config = get_config()
    texts = [(name, config.items(name, raw=True)) for name in config.sections()]
    raw = (text for _, items in texts for _, text in items if "${" in text)
    variables = [os.environ.get(name) for text in raw for name in _NAMED_VARIABLE.findall(text)]
    return [CmdlineParser.get_instance(), texts, variables]
