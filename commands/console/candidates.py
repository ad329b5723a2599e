"""List what the next word of a command line may be: verbs, options, choices, jobs, launches and stages.

MERGED commands/console/candidates.py: List jobs, launches and stages for tab completion: without Luigi, without a
network, from folders on this host.

A folder that cannot be read offers nothing. A job on another host is offered only once a scan has left a marker of it.

MERGED commands/console/candidates.py: Find the newest launch, for verbs that are typed without one, and for days
that have none. Reads only.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from commands.console.parser import arguments, nested, parser_of
from commands.console.show import err
from tasks.config import folders
from tasks.step import OpenRoots
from warcmill import chain, layout
from warcmill.audit import survey
from warcmill.errors import BadInput
from warcmill.launches.discovery import with_markers
from warcmill.model import FINAL, Launch, parse_job


def candidates(words: list[str], verbs: Iterable[str], known: Known) -> list[str]:
    """What the last word may become; it may be empty. None: the shell offers files."""
    *before, begun = words or [""]
    if not before:
        offers: Iterable[str] = [*verbs, "--help", "--version"]
    elif before[0] in verbs:
        offers = _next(parser_of(before[0]), before[1:], begun, known)
    else:
        offers = ()
    return [word for word in offers if word.startswith(begun)]


@dataclass
class _Read:
    """The words before the one to complete: their values, and what may follow."""

    positionals: list[argparse.Action]
    values: dict[str, str] = field(default_factory=dict)  # by metavar: the last
    awaited: list[str] = field(default_factory=list)  # metavars of an option that is not complete
    option: argparse.Action | None = None


def _next(parser: argparse.ArgumentParser, before: list[str], begun: str, known: Known) -> Iterable[str]:
    options = {name: action for action in arguments(parser) for name in action.option_strings}
    read = _Read([action for action in arguments(parser) if not action.option_strings])
    for place, word in enumerate(before):
        if read.awaited:
            read.values[read.awaited.pop(0)] = word
        elif word in options:
            read.option, read.awaited = options[word], _metavars(options[word])
        elif word in nested(parser):
            return _next(nested(parser)[word], before[place + 1 :], begun, known)
        elif read.positionals:
            _take(read, word)
    if read.awaited and read.option:
        return _values(read.option, read.awaited[0], read.values, known)
    if begun.startswith("-"):
        return sorted(options)
    if not read.positionals:
        return ()
    return _values(read.positionals[0], str(read.positionals[0].metavar), read.values, known)


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


def _values(action: argparse.Action, metavar: str, values: dict[str, str], known: Known) -> Iterable[str]:
    if action.choices is not None:
        return map(str, action.choices)
    match metavar:
        case "JOB":
            return known.jobs()
        case "LAUNCH":
            return known.launches(values.get("JOB", ""))
        case "STAGE":
            return known.stages(values.get("JOB", ""), values.get("LAUNCH", ""))
        case "STEP":
            return chain.by_word(chain.ROWS)
        case "INTERVAL":
            return known.months()
        case "WHAT":  # an interval, or a job and its launch
            return known.launches(values["WHAT"]) if "WHAT" in values else [*known.months(), *known.jobs()]
    return ()


_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")


class Known:
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


NONE_YET = "no launch yet; 'warcmill crawl URL' makes one"
_ALL_DAYS = date.min, date.max


def launch_of(line: OpenRoots, args: argparse.Namespace, *, in_state: bool = False) -> Launch:
    """The launch that was typed; else the newest, of the job where one was typed. BadInput if there is none.

    `in_state`: of those with a marker, so that no engine's disk is read.
    """
    if args.launch_id:
        return Launch(args.job, args.launch_id)
    found = newest(line, args.job, in_state=in_state)
    if found is None:
        raise BadInput(f"job {args.job}" if args.job else "this archive", NONE_YET)
    return found


def newest(line: OpenRoots, job: str | None = None, *, in_state: bool = False) -> Launch | None:
    """The launch that began last, of a job or of all; None if there is none. A root that is away is reported on
    stderr."""
    if in_state:
        known = survey.in_order(with_markers(line.state, *_ALL_DAYS))
    else:
        discovered = survey.find(line.state, line.rootmap, *_ALL_DAYS)
        for error in discovered.unreachable:
            err(f"{error}; a launch that is only there may be newer")
        known = discovered.launches
    return next((launch for launch in reversed(known) if job in (None, launch.job)), None)


def point_to(line: OpenRoots, launches: Sized, verb: str) -> None:
    """Where the days of a verb have no launch: report on stderr which days have one."""
    if not launches:
        found = newest(line)
        nearest = f"no launch in these days; the newest is {found}: warcmill {verb} {found.day}" if found else NONE_YET
        err(nearest)
