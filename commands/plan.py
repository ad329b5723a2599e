"""warcmill plan: what a scan of some days would run, told and not done."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import luigi
from luigi.parameter import DateIntervalParameter
from luigi.task import flatten
from rich.text import Text

from commands.arguments import Interval, add_interval, add_json
from commands.printing import in_words
from commands.show import as_json, console, days_json, heading, lines, styled, tell_away
from tasks.scans import scans
from tasks.step import MOST_TASKS, LaunchScan, Line, open_line
from warcmill import chain, sites
from warcmill.errors import Unavailable, WarcmillError
from warcmill.model import Json, Launch

SUMMARY = "show what a run would do, and do nothing"
EPILOG = f"""\
examples:
  warcmill plan 2016-10
  warcmill plan 2016-W43 --json | jq '.tasks'

The steps that {in_words(chain.scans(chain.ROWS))} would run now,
by launch, in an order that they could be run in. A step that another one only
makes possible is not told before that one is done: files of a stage are planned
once its list is frozen.

--json: {{"first_day", "last_day", "tasks": number, "launches": [{{"job", "launch_id",
"error", "tasks": [{{"task", "params": {{name: value}}}}]}}]}}

exit codes: 0 told, 2 usage, 3 configuration, 4 a disk or a folder did not answer
"""


@dataclass(frozen=True, slots=True)
class Planned:
    """What one launch lacks. `error`: it could not be read, and a scan would fail for it after the others."""

    launch: Launch
    tasks: tuple[luigi.Task, ...]
    error: str = ""
    unavailable: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """INTERVAL, --json."""
    add_interval(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Ask the scans what each launch lacks; print."""
    line = open_line()
    days: Interval = args.interval
    dates = DateIntervalParameter().parse(days.text)
    found = sites.find(line.sites, days.first, days.end)
    planned = list(each_once(line, [scan(date_interval=dates) for scan in scans()], found.launches))
    if args.json:
        print(as_json(_json(days, planned)))
    else:
        lines(console(), *_texts(days, planned))
    return 4 if tell_away(found) or any(one.unavailable for one in planned) else 0


def plan(line: Line, scans: list[LaunchScan], launch: Launch, planned: Collection[str] = ()) -> Planned:
    """The steps that scans would run for one launch, each after those it requires; none that is `planned` already:
    a launch that continues another's checkpoint requires steps of that one."""
    try:
        roots = [task for scan in scans for task in scan.missing(line, launch)]
        return Planned(launch, tuple(in_order(roots, planned)))
    except WarcmillError as error:
        return Planned(launch, (), str(error), isinstance(error, Unavailable))


def each_once(line: Line, scans: list[LaunchScan], launches: Iterable[Launch]) -> Iterator[Planned]:
    """What each launch lacks, no step twice."""
    seen: set[str] = set()
    for launch in launches:
        planned = plan(line, scans, launch, seen)
        seen.update(task.task_id for task in planned.tasks)
        yield planned


def in_order(roots: list[luigi.Task], planned: Collection[str] = ()) -> Iterator[luigi.Task]:
    """The incomplete tasks among some and all that they require, but for those planned already: what is required
    comes first."""
    seen = set(planned)
    stack = [(task, False) for task in reversed(roots)]
    while stack:
        task, required_are_out = stack.pop()
        if required_are_out:
            yield task
        elif task.task_id not in seen:
            seen.add(task.task_id)
            if not task.complete():
                stack += [(task, True), *((one, False) for one in reversed(flatten(task.requires())))]


def _texts(days: Interval, planned: list[Planned]) -> Iterator[Text | str]:
    number = sum(len(one.tasks) for one in planned)
    yield heading(days, len(planned))
    for one in planned:
        if one.tasks or one.error:
            yield Text(str(one.launch), style="bold")
        yield from (f"  {_label(task)}" for task in one.tasks)
        if one.error:
            yield styled(f"  cannot be read: {one.error}", "bold red")
    yield Text("nothing to run" if number == 0 else f"{number} to run", style="bold")
    if number > MOST_TASKS:
        yield f"more than {MOST_TASKS} in one scan are refused: warcmill backfill {days.text}"


def _label(task: luigi.Task) -> str:
    stage = task.param_kwargs.get("stage", "")
    return f"{task.task_family} {stage}".rstrip()


def _json(days: Interval, planned: list[Planned]) -> dict[str, Json]:
    return {
        **days_json(days),
        "tasks": sum(len(one.tasks) for one in planned),
        "launches": [_launch(one) for one in planned],
    }


def _launch(one: Planned) -> dict[str, Json]:
    tasks: list[Json] = [{"task": task.task_family, "params": dict(task.to_str_params())} for task in one.tasks]
    return {"job": one.launch.job, "launch_id": one.launch.id, "error": one.error, "tasks": tasks}
