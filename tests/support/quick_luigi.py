"""Luigi builds its parser of all tasks' parameters nine times for one command: most of the time of a short one.

Here a parser is built again only when a task was added meanwhile. It depends on nothing else: not on the configuration.
And Luigi looks through all attributes of a class for its parameters whenever one is made; here once for each class.
"""

from __future__ import annotations

from argparse import ArgumentParser
from functools import cache

import luigi
from luigi.cmdline_parser import CmdlineParser
from luigi.task_register import Register

_parameters = cache(luigi.Task.get_params.__func__)  # type: ignore[attr-defined]
_build = CmdlineParser._build_parser


@cache
def _built(root_task: str | None, help_all: bool, _tasks: int) -> ArgumentParser:
    parser: ArgumentParser = _build(root_task, help_all)
    return parser


def install() -> None:
    """Have Luigi keep them in this process, and in all that are forked from it."""
    CmdlineParser._build_parser = staticmethod(  # type: ignore[assignment]
        lambda root_task=None, help_all=False: _built(root_task, help_all, len(Register._reg))
    )
    luigi.Task.get_params = classmethod(lambda task: list(_parameters(task)))  # type: ignore[assignment]
    CmdlineParser._build_parser()
