"""The parser of a verb, with hints for mistyped words."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from importlib import import_module
from typing import NoReturn, Protocol, cast

from warcmill.base.escapes import did_you_mean, printable


class Verb(Protocol):
    """The interface of a verb's module."""

    SUMMARY: str
    EPILOG: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...
    def run(self, args: argparse.Namespace) -> int: ...


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that suggests the closest option or choice for an unknown one.

    The typed word, perhaps a file's name, is repeated only as printable text.
    """

    def error(self, message: str) -> NoReturn:
        super().error(printable(message + self._hint(message)))

    def _hint(self, message: str) -> str:
        if unknown_choice := re.search(r"invalid choice: '([^']*)'", message):
            return did_you_mean(unknown_choice[1], choices_of(self))
        unknown = message.removeprefix("unrecognized arguments: ")
        mistyped = [word for word in unknown.split() if word.startswith("--")] if unknown != message else []
        return did_you_mean(mistyped[0].partition("=")[0], options_of(self)) if mistyped else ""


def verb(name: str) -> Verb:
    """The module of a verb."""
    return cast(Verb, import_module(f"commands.{name}"))


def parser_of(name: str) -> Parser:
    """The parser of a verb, with its help."""
    module = verb(name)
    parser = Parser(
        prog=f"warcmill {name}",
        description=module.SUMMARY,
        epilog=module.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    return parser


def arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The options and arguments of a parser, in order."""
    return list(parser._actions)  # noqa: SLF001 argparse has no other way to ask


def nested(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of a verb's actions, such as `pulse start`, by name; empty for most verbs."""
    by_name = (action.choices for action in arguments(parser) if isinstance(action.choices, dict))
    return {name: of_action for choices in by_name for name, of_action in choices.items()}


def options_of(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The options of a verb and of its actions."""
    for part in (parser, *nested(parser).values()):
        yield from (option for action in arguments(part) for option in action.option_strings)


def choices_of(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The words allowed for those arguments of a verb that have choices."""
    yield from (str(choice) for action in arguments(parser) for choice in action.choices or ())
