"""The steps that scans would run, without running them. Reads only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import luigi
from luigi.task import flatten
from msgspec import Struct

from tasks.line import OpenRoots
from tasks.step import LaunchScan
from warcmill.errors import Unavailable, WarcmillError
from warcmill.model import Launch


class Planned(Struct, frozen=True):
    """The steps that one launch lacks. `error`: it could not be read; a scan would fail for it, after the others."""

    launch: Launch
    tasks: tuple[luigi.Task, ...]
    error: str = ""
    unavailable: bool = False


def plan(line: OpenRoots, scans: list[LaunchScan], launch: Launch, planned: Collection[str] = ()) -> Planned:
    """The steps that scans would run for one launch, each after those it requires; none of `planned` (task ids).

    A launch that resumes another one's checkpoint requires steps of that one.
    """
    try:
        roots = [task for scan in scans for task in scan.missing(line, line.view(launch))]
        return Planned(launch, tuple(in_order(roots, planned)))
    except WarcmillError as error:
        return Planned(launch, (), str(error), isinstance(error, Unavailable))


def each_once(line: OpenRoots, scans: list[LaunchScan], launches: Iterable[Launch]) -> Iterator[Planned]:
    """The steps that each launch lacks, no step twice."""
    seen: set[str] = set()
    for launch in launches:
        planned = plan(line, scans, launch, seen)
        seen.update(task.task_id for task in planned.tasks)
        yield planned


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
