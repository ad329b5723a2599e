"""The parser of a verb, and what it says to a word that it does not know."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from importlib import import_module
from typing import NoReturn, Protocol, cast

from warcmill.nearest import did_you_mean
from warcmill.printable import printable


class Verb(Protocol):
    """What a module of a verb offers."""

    SUMMARY: str
    EPILOG: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...
    def run(self, args: argparse.Namespace) -> int: ...


class Parser(argparse.ArgumentParser):
    """As argparse has it; of an unknown option or choice it also says which one may be meant.

    What was typed, of which a part may be a file's name, is repeated harmlessly.
    """

    def error(self, message: str) -> NoReturn:
        super().error(printable(message + self._hint(message)))

    def _hint(self, message: str) -> str:
        if found := re.search(r"invalid choice: '([^']*)'", message):
            return did_you_mean(found[1], choices_of(self))
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
    """The parsers of a verb's actions, such as `pulse start`, by name; none for most verbs."""
    some = (one.choices for one in arguments(parser) if isinstance(one.choices, dict))
    return {name: each for choices in some for name, each in choices.items()}


def options_of(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The options of a verb and of its actions."""
    for one in (parser, *nested(parser).values()):
        yield from (option for action in arguments(one) for option in action.option_strings)


def choices_of(parser: argparse.ArgumentParser) -> Iterator[str]:
    """All words that arguments of a verb may be, where only some may."""
    yield from (str(choice) for action in arguments(parser) for choice in action.choices or ())
