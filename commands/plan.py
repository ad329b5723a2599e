"""warcmill plan: list what a scan of some days would run, without running it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from commands.console.arguments import LAST, Interval, add_interval, add_json
from commands.console.launches import point_to, report_unreachable
from commands.console.show import as_json, days_json, heading, in_words
from commands.console.terminal import console, lines, styled
from tasks.line import MOST_TASKS, open_line
from warcmill import chain
from warcmill.launches import discovery
from warcmill.model import Json

if TYPE_CHECKING:
    import luigi

    from tasks.plan import Planned

SUMMARY = "show what a scan would run, without running it"
EPILOG = f"""\
examples:
  warcmill plan
  warcmill plan 2016-10
  warcmill plan 2016-W43 --json | jq '.tasks'

Without INTERVAL: the last {LAST} days (UTC), today included.

Lists the steps that {in_words(chain.scans(chain.ROWS))} would run now,
by launch, in an order in which they can run. A step that becomes possible only through
another one is listed once that one is done: files of a stage are planned when its list
is frozen.

--json: {{"first_day", "last_day", "tasks": number, "launches": [{{"job", "launch_id",
"error", "tasks": [{{"task", "params": {{name: value}}}}]}}]}}

exit codes: 0 listed, 2 usage, 3 configuration, 4 a disk or a folder did not answer
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """INTERVAL, --json."""
    add_interval(parser, optional=True)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Ask the scans what each launch lacks; print."""
    from tasks import plan  # it imports Luigi, which --help does without

    line = open_line()
    days: Interval = args.interval
    discovered = discovery.find(line.rootmap, days.first, days.end)
    planned = list(plan.planned(line, days.text, discovered.launches))
    if args.json:
        print(as_json(_json(days, planned)))
    else:
        lines(console(), *_texts(days, planned))
    point_to(line, discovered.launches, "plan")
    return 4 if report_unreachable(discovered) or any(each.unavailable for each in planned) else 0


def _texts(days: Interval, planned: list[Planned]) -> Iterator[Text | str]:
    number = sum(len(each.tasks) for each in planned)
    yield heading(days, len(planned))
    for each in planned:
        if each.tasks or each.error:
            yield Text(str(each.launch), style="bold")
        yield from (f"  {_label(task)}" for task in each.tasks)
        if each.error:
            yield styled(f"  cannot be read: {each.error}", "bold red")
    yield Text("nothing to run" if number == 0 else f"{number} to run", style="bold")
    if number > MOST_TASKS:
        yield f"one scan refuses more than {MOST_TASKS}; run: warcmill backfill {days.text}"


def _label(task: luigi.Task) -> str:
    stage = task.param_kwargs.get("stage", "")
    return f"{task.task_family} {stage}".rstrip()


def _json(days: Interval, planned: list[Planned]) -> dict[str, Json]:
    return {
        **days_json(days),
        "tasks": sum(len(each.tasks) for each in planned),
        "launches": [_launch(each) for each in planned],
    }


def _launch(each: Planned) -> dict[str, Json]:
    tasks: list[Json] = [{"task": task.task_family, "params": dict(task.to_str_params())} for task in each.tasks]
    return {"job": each.launch.job, "launch_id": each.launch.id, "error": each.error, "tasks": tasks}
