"""Argument types that several verbs share; a malformed value is wrong usage, exit 2."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar

from msgspec import Struct

from warcmill.errors import BadInput
from warcmill.model import Launch, Stage, parse_checkpoint, parse_job, parse_reason, parse_stamp

Value = TypeVar("Value")
_DAY = r"\d{4}-\d\d-\d\d"
LAST = 7  # days, where a verb is typed without an interval
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
DAYS = "days, by launch id: 2016, 2016-10, 2016-W43, 2016-10-19, or FIRST-END with the end not included"


class Interval(Struct, frozen=True):
    """Days from `first` up to, but not including, `end`. `text` is what `luigi --date-interval` takes."""

    text: str
    first: date
    end: date
    note: str = ""

    @property
    def last(self) -> date:
        """The last day in it."""
        return self.end - timedelta(days=1)


def job(text: str) -> str:
    """JOB: the name of a crawl."""
    return _parsed(parse_job, text)


def launch_id(text: str) -> str:
    """LAUNCH: 14 digits."""
    return _parsed(parse_stamp, text)


def due(text: str) -> str:
    """TIME: 14 digits."""
    try:
        return parse_stamp(text)
    except BadInput as error:
        why = f"'{text}' is not a due time: 14 digits that are a UTC time, such as 20261121060000"
        raise argparse.ArgumentTypeError(why) from error


def checkpoint(text: str) -> str:
    """NAME: a checkpoint."""
    return _parsed(parse_checkpoint, text)


def stage(text: str) -> Stage:
    """STAGE: final, or a checkpoint."""
    return _parsed(Stage.parse, text)


def interval(text: str) -> Interval:
    """INTERVAL: days, as luigi takes them. The end of a custom one is not included; its `note` reports that."""
    try:
        first, end = _bounds(text)
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not {DAYS}") from error
    if not first < end:
        raise argparse.ArgumentTypeError(f"{text}: it has no day; its end is not included")
    note = f"the end, {end}, is not included" if re.match(_DAY + "-", text) else ""
    return Interval(text, first, end, note)


def _bounds(text: str) -> tuple[date, date]:
    """The first day, and the day after the last; or ValueError, OverflowError."""
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    if re.match(rf"{_DAY}-{_DAY}$", text):
        return date(*numbers[:3]), date(*numbers[3:])
    if re.match(rf"{_DAY}$", text):
        return date(*numbers), date(*numbers) + timedelta(days=1)
    if re.match(r"\d{4}-W\d\d$", text):
        first = date.fromisocalendar(numbers[0], numbers[1], 1)
        return first, first + timedelta(days=7)
    if re.match(r"\d{4}-\d\d$", text):
        year, month = numbers
        return date(year, month, 1), date(year + month // 12, 1 + month % 12, 1)
    if re.match(r"\d{4}$", text):
        return date(numbers[0], 1, 1), date(numbers[0] + 1, 1, 1)
    raise ValueError(text)


def last_days() -> Interval:
    """The last days (UTC), today included."""
    today = datetime.now(UTC).date()
    first, end = today - timedelta(days=LAST - 1), today + timedelta(days=1)
    return Interval(f"{first}-{end}", first, end, f"the last {LAST} days")


def reason(text: str) -> str:
    """TEXT of a reason: one printable line, short enough for a marker."""
    try:
        return parse_reason(text)
    except BadInput as error:
        raise argparse.ArgumentTypeError(error.why) from error


def add_launch(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """JOB and LAUNCH; `optional`: `launches` finds what was not typed."""
    job_help, launch_help = "the crawl's name", "its launch, 14 digits"
    if optional:
        parser.add_argument("job", type=job, metavar="JOB", nargs="?", help=f"{job_help} (default: any)")
        parser.add_argument(
            "launch_id", type=launch_id, metavar="LAUNCH", nargs="?", help=f"{launch_help} (default: the newest)"
        )
    else:
        parser.add_argument("job", type=job, metavar="JOB", help=job_help)
        parser.add_argument("launch_id", type=launch_id, metavar="LAUNCH", help=launch_help)


def add_interval(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """INTERVAL; `optional`: the last days where none is typed."""
    if optional:
        help_ = f"{DAYS} (default: the last {LAST} days)"
        parser.add_argument("interval", type=interval, metavar="INTERVAL", nargs="?", default=last_days(), help=help_)
    else:
        parser.add_argument("interval", type=interval, metavar="INTERVAL", help=DAYS)


def add_stage(parser: argparse.ArgumentParser) -> None:
    """STAGE, optional."""
    parser.add_argument("stage", type=stage, metavar="STAGE", nargs="?", help="final, or cp00002-20161020204551")


def add_scope(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """`scope`: an Interval or a Launch; `optional`: the last days where none is typed."""
    help_ = f"{DAYS}; or a job and its launch"
    if optional:
        parser.usage = "%(prog)s [OPTION ...] [INTERVAL | JOB LAUNCH]"
        help_ += f" (default: the last {LAST} days)"
        parser.add_argument("scope", nargs="*", action=_Scope, default=last_days(), metavar="WHAT", help=help_)
    else:
        parser.usage = "%(prog)s [OPTION ...] (INTERVAL | JOB LAUNCH)"
        parser.add_argument("scope", nargs="+", action=_Scope, metavar="WHAT", help=help_)


class _Scope(argparse.Action):
    """One word is an interval, two are a job and a launch."""

    def __call__(self, _parser: Any, namespace: Any, values: Any, _option: str | None = None) -> None:
        try:
            match values:
                case Interval():  # the default, where no word is typed
                    namespace.scope = values
                case [text]:
                    namespace.scope = interval(text)
                case [name, started]:
                    namespace.scope = Launch(job(name), launch_id(started))
                case _:
                    raise argparse.ArgumentTypeError(f"INTERVAL, or JOB and LAUNCH; not {len(values)} words")
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentError(self, str(error)) from error


def add_json(parser: argparse.ArgumentParser) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help="one JSON document, for machines")


def add_settings(parser: argparse.ArgumentParser) -> None:
    """-s FILE and --log-level, of what works on requests."""
    parser.add_argument(
        "-s", "--settings", default="", metavar="FILE", help="a settings file, instead of that of [requests] settings"
    )
    parser.add_argument("--log-level", choices=LEVELS, help="the level of its log, instead of LOG_LEVEL")


def _parsed(parse: Callable[[str], Value], text: str) -> Value:
    try:
        return parse(text)
    except (BadInput, ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error
