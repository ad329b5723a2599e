"""Commands that are named, in the pages and in the code: each verb, action and option of one is there.

A command that is printed whole also runs: `test_commands_run.py`.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from functools import cache

import pytest
from operating.documented import CODE, PAGES, ROOT

from commands import main

VERBS = {verb for group in main.VERBS.values() for verb in group}
COMMAND = re.compile(r"(?:^|[ (/])warcmill ((?:[^|;<>&\"'\n]|\"[^\"\n]*\"|'[^'\n]*')+)", re.MULTILINE)
IN_CODE = re.compile(r"'(warcmill [^'\n]+)'|^  (?:[A-Z_]+=\S+ )*(warcmill .+)", re.MULTILINE)  # in a text, in an epilog
WORD = re.compile(r"[a-z][a-z_-]*")
PACKAGES = ("commands", "tasks", "targets", "warcmill")


@cache
def parser_of(verb: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=verb, allow_abbrev=False)
    importlib.import_module(f"commands.{verb}").add_arguments(parser)
    return parser


def named(text: str) -> Iterator[list[str]]:
    """The words of each command in a text, after `warcmill`."""
    for found in COMMAND.finditer(text):
        try:
            words = shlex.split(found[1])
        except ValueError:  # a quote that another line closes
            words = found[1].split()
        yield words


def fault(words: list[str]) -> str:
    """The first word that is not there; '' if all are."""
    verb, *rest = words or [""]
    if verb not in VERBS:
        return f"the verb {verb}" if WORD.fullmatch(verb) else ""
    parsers, skipped = [parser_of(verb)], 0
    for word in rest:
        actions = next((one for one in parsers[-1]._actions if isinstance(one, argparse._SubParsersAction)), None)
        if word.startswith("--") and word != "--":
            known = {option for parser in parsers for action in parser._actions for option in action.option_strings}
            name = re.match("--[a-z-]*", word)
            if name and name[0] not in known and name[0] != "--":
                return f"the option {name[0]} of {verb}"
        elif actions and skipped < [one for one in parsers[-1]._actions if not one.option_strings].index(actions):
            skipped += 1
        elif actions and word in actions.choices:
            parsers.append(actions.choices[word])
            skipped = 0
        elif actions and WORD.fullmatch(word):
            return f"the action {word} of {verb}"
    return ""


@pytest.mark.parametrize("page", sorted(PAGES))
def test_every_command_of_a_page_has_words_that_exist(page: str) -> None:
    found = list(CODE.finditer(PAGES[page]))
    spans = [" ".join(one["span"].split()) if one["span"] else one["block"].replace("\\\n", " ") for one in found]
    assert [(words, why) for span in spans for words in named(span) if (why := fault(words))] == []


def texts_of(tree: ast.AST) -> Iterator[str]:
    """The texts of a module, with `X` for what is filled in."""
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value


@pytest.mark.parametrize("package", PACKAGES)
def test_every_command_that_the_code_names_has_words_that_exist(package: str) -> None:
    found = [
        (str(path.relative_to(ROOT)), words, why)
        for path in sorted((ROOT / package).rglob("*.py"))
        for text in texts_of(ast.parse(path.read_text("utf-8")))
        for command in IN_CODE.findall(text)
        for words in named("".join(command))
        if (why := fault(words))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("warcmill pulse engines", "the action engines of pulse"),
        ("warcmill sacn 2016-10", "the verb sacn"),
        ("warcmill job daily stat", "the action stat of job"),
        ("warcmill crawl URL --nolimit 5", "the option --nolimit of crawl"),
        ("warcmill job daily state", ""),
        ("warcmill serve token add anna --role reader", ""),
        ("warcmill accept 'a --b' --reason 'why not --this'", ""),
    ],
)
def test_a_word_that_is_not_there_is_named(command: str, why: str) -> None:
    assert [fault(words) for words in named(command)] == [why]
