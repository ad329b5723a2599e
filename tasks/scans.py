"""The scans that bring the line about, as the table of steps names them."""

from __future__ import annotations

from importlib import import_module

from luigi import Task
from luigi.task_register import Register

from tasks.step import LaunchScan
from warcmill import chain


def scans() -> tuple[type[LaunchScan], ...]:
    """Every scan, in the order they are run in."""
    return tuple(map(_scan, chain.scans(chain.ROWS)))


def _scan(name: str) -> type[LaunchScan]:
    import_module(f"tasks.{name.partition('.')[0]}")
    found: type[Task] = Register.get_task_cls(name)
    assert issubclass(found, LaunchScan), name
    return found
