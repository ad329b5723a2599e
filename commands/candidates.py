"""List what the next word of a command line may be: verbs, options, choices, jobs, launches and stages."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass, field

from commands.known import Known
from commands.parser import arguments, nested, parser_of
from warcmill import chain


def candidates(words: list[str], verbs: Iterable[str], known: Known) -> list[str]:
    """What the last word may become; it may be empty. None: the shell offers files."""
    *before, begun = words or [""]
    if not before:
        offers: Iterable[str] = [*verbs, "--help", "--version"]
    elif before[0] in verbs:
        offers = _next(parser_of(before[0]), before[1:], begun, known)
    else:
        offers = ()
    return [word for word in offers if word.startswith(begun)]


@dataclass
class _Read:
    """The words before the one to complete: their values, and what may follow."""

    positionals: list[argparse.Action]
    values: dict[str, str] = field(default_factory=dict)  # by metavar: the last
    awaited: list[str] = field(default_factory=list)  # metavars of an option that is not complete
    option: argparse.Action | None = None


def _next(parser: argparse.ArgumentParser, before: list[str], begun: str, known: Known) -> Iterable[str]:
    options = {name: action for action in arguments(parser) for name in action.option_strings}
    read = _Read([action for action in arguments(parser) if not action.option_strings])
    for place, word in enumerate(before):
        if read.awaited:
            read.values[read.awaited.pop(0)] = word
        elif word in options:
            read.option, read.awaited = options[word], _metavars(options[word])
        elif word in nested(parser):
            return _next(nested(parser)[word], before[place + 1 :], begun, known)
        elif read.positionals:
            _take(read, word)
    if read.awaited and read.option:
        return _values(read.option, read.awaited[0], read.values, known)
    if begun.startswith("-"):
        return sorted(options)
    if not read.positionals:
        return ()
    return _values(read.positionals[0], str(read.positionals[0].metavar), read.values, known)


def _take(read: _Read, word: str) -> None:
    action = read.positionals[0]
    read.values[str(action.metavar)] = word
    if action.nargs not in ("+", "*"):
        read.positionals.pop(0)


def _metavars(option: argparse.Action) -> list[str]:
    """The values that an option takes."""
    if option.nargs == 0:
        return []
    return list(option.metavar) if isinstance(option.metavar, tuple) else [str(option.metavar)]


def _values(action: argparse.Action, metavar: str, values: dict[str, str], known: Known) -> Iterable[str]:
    if action.choices is not None:
        return map(str, action.choices)
    match metavar:
        case "JOB":
            return known.jobs()
        case "LAUNCH":
            return known.launches(values.get("JOB", ""))
        case "STAGE":
            return known.stages(values.get("JOB", ""), values.get("LAUNCH", ""))
        case "STEP":
            return chain.by_word(chain.ROWS)
        case "INTERVAL":
            return known.months()
        case "WHAT":  # an interval, or a job and its launch
            return known.launches(values["WHAT"]) if "WHAT" in values else [*known.months(), *known.jobs()]
    return ()
