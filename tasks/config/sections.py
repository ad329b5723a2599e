"""The sections of luigi.cfg: those whose keys a class lists, and those with a name of their own: [engine.first].

Of these, unknown keys are refused. A key of the command line of a `luigi` goes before that of a file. Each task of
a run needs them several times: `while_unchanged` keeps what was read for as long as the configuration stays the same.
"""

from __future__ import annotations

import os
import pkgutil
import re
import sys
from collections.abc import Callable
from configparser import InterpolationError
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Generic, ParamSpec, Self, TypeVar, overload
from urllib.parse import urlsplit

from tasks.config.source import configuration
from warcmill.base.escapes import nearest
from warcmill.errors import BadConfig, BadInput
from warcmill.model import parse_job

CLOSE = 0.75  # how close a key must be to count as misspelt: Luigi reads keys that it does not list
_VARIABLE = re.compile(r"\$\{[^}]+\}")
Value = TypeVar("Value")
Rest = ParamSpec("Rest")
_NAMED_VARIABLE = re.compile(r"\$\{([^}]+)\}")


class ConfigKey(Generic[Value]):
    """A key of a section: its description, and its value where it is not set; None if it must be."""

    name = ""

    def __init__(self, *, description: str, default: Value | None = None) -> None:
        self.description, self.default = description, default

    def __set_name__(self, _: type[Section], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, section: None, of: type[Section]) -> Self: ...
    @overload
    def __get__(self, section: Section, of: type[Section]) -> Value: ...
    def __get__(self, section: Section | None, of: type[Section]) -> Self | Value:
        if section is None:
            return self
        value: Value = section.values[self.name]
        return value

    def parse(self, text: str) -> Value:
        """The value that a text stands for, or ValueError."""
        raise NotImplementedError


class TextKey(ConfigKey[str]):
    """Any text."""

    def parse(self, text: str) -> str:
        return text


class WholeKey(ConfigKey[int]):
    """A whole number."""

    def parse(self, text: str) -> int:
        return int(text)


class FlagKey(ConfigKey[bool]):
    """True or false."""

    def parse(self, text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise ValueError(f"cannot interpret '{text}' as boolean")
        return text.lower() == "true"


class Section:
    """A section of luigi.cfg. The class has its name, and a ConfigKey for each of its keys."""

    known: ClassVar[list[type[Section]]] = []
    hearers: ClassVar[list[Callable[[type[Section]], None]]] = []  # of those that are imported later

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def __init_subclass__(cls) -> None:
        Section.known.append(cls)
        for hear in Section.hearers:
            hear(cls)

    @classmethod
    def listed(cls) -> list[ConfigKey[Any]]:
        """Its keys, in order."""
        return [key for key in vars(cls).values() if isinstance(key, ConfigKey)]


Known = TypeVar("Known", bound=Section)


def named(prefix: str) -> list[str]:
    """The sections whose names begin with `prefix`."""
    return [section for section in configuration().sections() if section.startswith(prefix)]


def refuse_unknown(section: str, keys: tuple[str, ...]) -> None:
    """BadConfig for a key that is not in `keys`: a misspelt key must not pass for one that is not set. No section has
    no such key."""
    if not configuration().has_section(section):
        return
    unknown = sorted(own_keys(section) - set(keys))
    if unknown:
        meant = nearest(unknown[0], keys, CLOSE)
        ask = f"did you mean {meant}? There" if meant else "there"
        raise BadConfig(f"[{section}] {unknown[0]}", f"there is no such key; {ask} are {', '.join(keys)}")


def own_keys(section: str) -> set[str]:
    """The keys that a section itself has: not those of [DEFAULT]."""
    return set(configuration().options(section)) - set(configuration().defaults())


def every() -> list[type[Section]]:
    """Every section that a class lists, of all modules beside this one."""
    for found in pkgutil.iter_modules([str(Path(__file__).parent)]):
        import_module(f"tasks.config.{found.name}")
    return Section.known


def read(section: type[Known]) -> Known:
    """A section, or BadConfig naming the key whose value is wrong."""
    name, values = section.__name__, {}
    for key in section.listed():
        try:
            text = _text(name, key.name)
            values[key.name] = key.default if text is None else key.parse(text)
        except (ValueError, InterpolationError) as error:
            raise BadConfig(f"[{name}] {key.name}", str(error)) from error
    return section(values)


def missing(section: type[Section]) -> str:
    """The first key that must be set, and is not; '' if all are."""
    must = (key.name for key in section.listed() if key.default is None)
    return next((name for name in must if _text(section.__name__, name, raw=True) is None), "")


def _text(section: str, key: str, *, raw: bool = False) -> str | None:
    """The text of a key: of the command line where Luigi runs, else of the files; None if it is not set."""
    command = _command()
    typed = getattr(command.known_args, f"{section}_{key}", None) if command else None
    return str(typed) if typed else configuration().text(section, key, raw=raw)


def _command() -> Any:
    """The command line that Luigi runs; None where it runs none."""
    luigis = sys.modules.get("luigi.cmdline_parser")
    return luigis.CmdlineParser.get_instance() if luigis else None


def needed(section: str, key: str) -> str:
    """The value of a key, or BadConfig if it is not set."""
    text = value(section, key)
    if not text:
        raise BadConfig(f"[{section}] {key}", "is not set")
    return text


def value(section: str, key: str) -> str:
    """The value of a key; '' if it is not set."""
    try:
        return (configuration().text(section, key) or "").strip()
    except InterpolationError as error:
        raise BadConfig(f"[{section}] {key}", str(error)) from error


def secret(section: str, key: str) -> str:
    """A password, from the environment or from the file in KEY_file; '' if neither is set.

    BadConfig for a password in luigi.cfg itself, which many can read.
    """
    path = value(section, f"{key}_file")
    if not path:
        raw = configuration().text(section, key, raw=True)
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
    """Host and port of luigid; None where each luigi schedules for itself. Or BadConfig."""
    try:
        if FlagKey(description="").parse(_text("core", "local_scheduler") or "false"):
            return None
        if address := _scheduler("url"):
            parts = urlsplit(address)
            return parts.hostname or "", parts.port or 80
        return _scheduler("host") or "localhost", int(_scheduler("port") or 8082)
    except (ValueError, InterpolationError) as error:
        raise BadConfig("[core]", str(error)) from error


def _scheduler(key: str) -> str:
    """A key of luigid's, by either of the names that Luigi has for it."""
    return _text("core", f"scheduler_{key}") or _text("core", f"default-scheduler-{key}") or ""


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
    config = configuration()
    texts = [(name, config.items(name, raw=True)) for name in config.sections()]
    raw = (text for _, items in texts for _, text in items if "${" in text)
    variables = [os.environ.get(name) for text in raw for name in _NAMED_VARIABLE.findall(text)]
    return [_command(), texts, variables]
