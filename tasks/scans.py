"""The scans of the line, as the table of steps names them."""

from __future__ import annotations

from importlib import import_module

from luigi import Task
from luigi.task_register import Register

from tasks.config.settings import settings
from tasks.step import LaunchScan


def scans() -> tuple[type[LaunchScan], ...]:
    """Every scan that has a step to schedule, in the order in which they run. One whose switches are off has none."""
    return tuple(map(_scan, settings().scans()))


def _scan(name: str) -> type[LaunchScan]:
    import_module(f"tasks.{name.partition('.')[0]}")
    scan: type[Task] = Register.get_task_cls(name)
    assert issubclass(scan, LaunchScan), name
    return scan
