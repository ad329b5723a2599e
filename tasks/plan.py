"""The steps that scans would run, without running them. Reads only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib import import_module

import luigi
from luigi.parameter import DateIntervalParameter
from luigi.task import flatten
from luigi.task_register import Register
from msgspec import Struct

from tasks.line import MOST_TASKS, OpenRoots
from tasks.step import LaunchScan
from warcmill.errors import Unavailable, WarcmillError
from warcmill.model import Launch


class Planned(Struct, frozen=True):
    """The steps that one launch lacks. `error`: it could not be read; a scan would fail for it, after the others."""

    launch: Launch
    tasks: tuple[luigi.Task, ...]
    error: str = ""
    unavailable: bool = False


def planned(line: OpenRoots, days: str, launches: Iterable[Launch]) -> Iterator[Planned]:
    """The steps that scans of these days would run for each launch, no step twice."""
    scans = [_scan(name, days) for name in line.settings.scans()]
    seen: set[str] = set()
    for launch in launches:
        one = _planned(line, scans, launch, seen)
        seen.update(task.task_id for task in one.tasks)
        yield one


def portions(line: OpenRoots, scan: str, days: str, launches: Sequence[Launch]) -> Iterator[list[Launch]]:
    """The launches that lack something, in portions that one scan takes; an empty list means all at once."""
    steps = [_planned(line, [_scan(scan, days)], launch) for launch in launches]
    counts = [(each.launch, len(each.tasks) or bool(each.error)) for each in steps]
    Register.clear_instance_cache()  # Luigi keeps every task ever created
    if sum(number for _, number in counts) <= MOST_TASKS:
        yield []
        return
    portion, room = list[Launch](), MOST_TASKS
    for launch, number in counts:
        if number > room and portion:
            yield portion
            portion, room = [], MOST_TASKS
        portion += [launch] if number else []
        room -= number
    yield portion


def _scan(name: str, days: str) -> LaunchScan:
    """A scan, as the table of steps names it."""
    import_module(f"tasks.{name.partition('.')[0]}")
    kind: type[luigi.Task] = Register.get_task_cls(name)
    assert issubclass(kind, LaunchScan), name
    return kind(date_interval=DateIntervalParameter().parse(days))


def _planned(line: OpenRoots, scans: list[LaunchScan], launch: Launch, seen: Collection[str] = ()) -> Planned:
    """The steps that scans would run for one launch, each after those it requires; none of `seen` (task ids).

    A launch that resumes another one's checkpoint requires steps of that one.
    """
    try:
        roots = [task for scan in scans for task in scan.missing(line, line.view(launch))]
        return Planned(launch, tuple(in_order(roots, seen)))
    except WarcmillError as error:
        return Planned(launch, (), str(error), isinstance(error, Unavailable))


def in_order(roots: list[luigi.Task], planned: Collection[str] = ()) -> Iterator[luigi.Task]:
    """The incomplete tasks among `roots` and all that they require, but none of `planned` (task ids).

    A required task comes before those that require it.
    """
    seen = set(planned)
    stack = [(task, False) for task in reversed(roots)]
    while stack:
        task, required_are_out = stack.pop()
        if required_are_out:
            yield task
        elif task.task_id not in seen:
            seen.add(task.task_id)
            if not task.complete():
                stack += [(task, True), *((required, False) for required in reversed(flatten(task.requires())))]
