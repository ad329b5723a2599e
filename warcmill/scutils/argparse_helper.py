"""A `--help` that lists the usage of every subcommand. Writes to stdout."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any


class ArgparseHelper(argparse.Action):
    """The action for `-h` and `--help` of a parser that was made with `add_help=False`."""

    def __init__(
        self,
        option_strings: Sequence[str],
        dest: str = argparse.SUPPRESS,
        default: Any = argparse.SUPPRESS,
        help: str | None = None,  # noqa: A002 argparse passes it by this name
    ) -> None:
        super().__init__(option_strings, dest, nargs=0, default=default, help=help)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,  # noqa: ARG002 argparse passes them
        values: Any,  # noqa: ARG002
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        """Print the parser's help, then the usage of each of its commands, and exit with 0."""
        commands = {
            name: command
            for action in parser._actions  # noqa: SLF001 argparse has no public way to its subcommands
            if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
            for name, command in action.choices.items()
        }
        usages = "".join(f"\nCommand '{name}'\n{command.format_usage()}" for name, command in commands.items())
        sys.stdout.write(f"{parser.format_help()}{usages}\n")
        parser.exit()
