"""Findings as sentences, and the pages that do what the command of a finding does. Pure.

A finding has a command, `todo`; who may do the same on a page gets a button for it. A command without a page, such as
`warcmill restore`, is shown alone.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from urllib.parse import quote

from msgspec import Struct

from warcmill.web.access import Role

_COMMAND = re.compile(r"(?:^|: )warcmill ([^\n]+?)(?=; |$)")  # of several, each after `then:` or `else:`
_SHAPES = {
    "DAY": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    "DUE": re.compile(r"[0-9]{14}"),
    "LAUNCH": re.compile(r"[0-9]{14}"),
    "STAGE": re.compile(r"final|cp[0-9]{5}-[0-9]{14}"),
}
_STEPS = Role.OPERATOR
SENTENCES = {
    "absent": ("The file", "is absent"),
    "absent log": ("The log", "is absent"),
    "checkpoint hole": ("The checkpoint", "is missing"),
    "dead seed": ("The seed", "was not got"),
    "lacking": ("The step", "is not done"),
    "lost launch": ("The launch", "is lost"),
    "not launched": ("The crawl due", "was never launched"),
    "refused": ("The file", "was refused"),
    "serial hole": ("The file with the serial number", "is missing"),
    "unnamed": ("The file", "is in no log"),
    "untried seed": ("The seed", "was not tried"),
    "virus": ("The file", "has a virus"),
}


class _Remedy(Struct, frozen=True):
    """A row of the table: a command, the page that does the same, who may. Words in capitals are any word, or of the
    shape that they have in `_SHAPES`; a command may have more words."""

    words: str
    label: str
    path: str
    least: Role


REMEDIES = (
    _Remedy("accept --seeds --launch JOB LAUNCH", "Accept…", "/launches/{JOB}/{LAUNCH}/accept?finding=seeds", _STEPS),
    _Remedy("accept X --launch JOB LAUNCH", "Accept…", "/launches/{JOB}/{LAUNCH}/accept?finding=name:{X}", _STEPS),
    _Remedy("accept JOB DUE", "Accept…", "/jobs/{JOB}/accept?finding=due:{DUE}", _STEPS),
    _Remedy("close JOB LAUNCH", "Close…", "/launches/{JOB}/{LAUNCH}/close", _STEPS),
    _Remedy("redo JOB LAUNCH STEP STAGE", "Redo…", "/launches/{JOB}/{LAUNCH}/redo?step={STEP}&stage={STAGE}", _STEPS),
    _Remedy("redo JOB LAUNCH STEP", "Redo…", "/launches/{JOB}/{LAUNCH}/redo?step={STEP}", _STEPS),
    _Remedy("scan DAY", "Scan…", "/scan/{DAY}", _STEPS),
    _Remedy("scan", "Scan…", "/scan", _STEPS),
    _Remedy("pulse start JOB", "Start…", "/jobs/{JOB}/start", Role.CURATOR),
    _Remedy("pulse stop JOB", "Stop…", "/jobs/{JOB}/stop", Role.CURATOR),
    _Remedy("job JOB retry --missed", "Ask again…", "/jobs/{JOB}/retry", Role.CURATOR),
    _Remedy("report JOB LAUNCH --missed", "Look", "/launches/{JOB}/{LAUNCH}/pages?view=not-got", Role.READER),
    _Remedy("report JOB LAUNCH", "Look", "/launches/{JOB}/{LAUNCH}", Role.READER),
    _Remedy("why JOB LAUNCH", "Look", "/launches/{JOB}/{LAUNCH}", Role.READER),
    _Remedy("reconcile DAY", "Look", "/status?from={DAY}&to={DAY}", Role.READER),
)


def sentence(kind: str, number: int) -> str:
    """The words before (0) and after (1) the name of a finding."""
    return SENTENCES.get(kind, (f"{kind[:1].upper()}{kind[1:]}:", ""))[number]


def ways(todo: str, role: Role) -> list[tuple[str, str]]:
    """The buttons for a command, or for several: label and address, of those that need no more than this role."""
    found = (_page(_words(text)) for text in _COMMAND.findall(todo))
    return list(dict.fromkeys((one.label, path) for one, path in filter(None, found) if role >= one.least))


def _words(text: str) -> Sequence[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quote without its end: no command of ours
        return ()


def _page(words: Sequence[str]) -> tuple[_Remedy, str] | None:
    """The page for a command, and its address with the words filled in; None where there is none."""
    for row in REMEDIES:
        pattern = row.words.split()
        pairs = [*zip(pattern, words, strict=False)]
        if len(pattern) <= len(words) and all(_fits(one, word) for one, word in pairs):
            return row, row.path.format_map({one: quote(word, safe="") for one, word in pairs})
    return None


def _fits(one: str, word: str) -> bool:
    shape = _SHAPES.get(one)
    return bool(shape.fullmatch(word)) if shape else one.isupper() or one == word
