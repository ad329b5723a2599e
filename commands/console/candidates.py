"""List what the next word of a command line may be: verbs, options, choices, jobs, launches and stages.

Reads only: the folders of this host, without Luigi and without a network. A folder that cannot be read offers nothing.
A job on another host is offered only once a scan has left a marker of it.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct, field

from commands.console.parser import arguments, nested, parser_of
from tasks.config import folders
from warcmill import chain, layout
from warcmill.errors import BadInput
from warcmill.model import FINAL, Launch, parse_job


def candidates(words: list[str], verbs: Iterable[str], names: ArchiveNames) -> list[str]:
    """The words that the last one may become; it may be empty. None: the shell offers files."""
    *before, begun = words or [""]
    if not before:
        offers: Iterable[str] = [*verbs, "--help", "--version"]
    elif before[0] in verbs:
        offers = _next(parser_of(before[0]), before[1:], begun, names)
    else:
        offers = ()
    return [word for word in offers if word.startswith(begun)]


class _Read(Struct):
    """The words before the one to complete: their values, and what may follow."""

    positionals: list[argparse.Action]
    values: dict[str, str] = field(default_factory=dict)  # by metavar: the last
    awaited: list[str] = field(default_factory=list)  # metavars of an option that is not complete
    option: argparse.Action | None = None


def _next(parser: argparse.ArgumentParser, before: list[str], begun: str, names: ArchiveNames) -> Iterable[str]:
    options = {name: action for action in arguments(parser) for name in action.option_strings}
    read = _Read([action for action in arguments(parser) if not action.option_strings])
    for place, word in enumerate(before):
        if read.awaited:
            read.values[read.awaited.pop(0)] = word
        elif word in options:
            read.option, read.awaited = options[word], _metavars(options[word])
        elif word in nested(parser):
            return _next(nested(parser)[word], before[place + 1 :], begun, names)
        elif read.positionals:
            _take(read, word)
    if read.awaited and read.option:
        return _values(read.option, read.awaited[0], read.values, names)
    if begun.startswith("-"):
        return sorted(options)
    if not read.positionals:
        return ()
    return _values(read.positionals[0], str(read.positionals[0].metavar), read.values, names)


def _take(read: _Read, word: str) -> None:
    action = read.positionals[0]
    read.values[str(action.metavar)] = word
    if action.nargs not in ("+", "*"):
        read.positionals.pop(0)


def _metavars(option: argparse.Action) -> list[str]:
    """The values that an option takes."""
    if option.nargs == 0:
        return []
    return list(option.metavar) if isinstance(option.metavar, tuple) else [str(option.metavar)]


def _values(action: argparse.Action, metavar: str, values: dict[str, str], names: ArchiveNames) -> Iterable[str]:
    if action.choices is not None:
        return map(str, action.choices)
    match metavar:
        case "JOB":
            return names.jobs()
        case "LAUNCH":
            return names.launches(values.get("JOB", ""))
        case "STAGE":
            return names.stages(values.get("JOB", ""), values.get("LAUNCH", ""))
        case "STEP":
            return chain.by_word(chain.ROWS)
        case "INTERVAL":
            return names.months()
        case "WHAT":  # an interval, or a job and its launch
            return names.launches(values["WHAT"]) if "WHAT" in values else [*names.months(), *names.jobs()]
    return ()


_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")


class ArchiveNames:
    """The names found in the state root and in the engines' job folders."""

    def __init__(self) -> None:
        self._state, self._engines = folders.state_and_jobs()

    def months(self) -> list[str]:
        """The months that have a marker: `2016-10`."""
        return [name for name in _folders(self._state) if _MONTH.fullmatch(name)] if self._state else []

    def jobs(self) -> list[str]:
        """The names of all jobs."""
        return sorted({name for folder in self._job_parents() for name in _folders(folder) if _is_job(name)})

    def launches(self, job: str) -> list[str]:
        """The ids of a job's launches."""
        if not _is_job(job):
            return []
        names = {name for folder in self._job_parents() for name in _folders(folder / job)}
        return sorted(name for name in names if len(name) == 14 and name.isdigit())

    def stages(self, job: str, launch_id: str) -> list[str]:
        """The stages of a launch that have a marker, and `final`."""
        try:
            folder = layout.state_folder(Launch.parse(job, launch_id))
        except BadInput:
            return []
        names = _names(self._state / folder) if self._state else []
        keys = filter(None, map(layout.parse_marker_name, names))
        return sorted({str(FINAL), *(params["stage"] for key in keys if "stage" in (params := dict(key.params)))})

    def _job_parents(self) -> Iterator[Path]:
        """The folders that hold one folder a job."""
        yield from self._engines
        if self._state:
            yield from (self._state / month for month in self.months())


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _folders(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())
    except OSError:
        return []


def _is_job(name: str) -> bool:
    try:
        return bool(parse_job(name)) and not layout.NEVER_A_LAUNCH.fullmatch(name)
    except BadInput:
        return False
