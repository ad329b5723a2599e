"""Read out of the code the texts that are wire: from the syntax tree alone. Nothing is run.

A text is written as a JSON string. In an f-string `{}` stands for a field, with its conversion and format.
Of a dict with constant keys there is also a line `keys: a, b, **`, where `**` stands for keys that are not
constant; of a dataclass that becomes JSON as it is, a line `fields: a, b`.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
# Raised where no claim takes them up: messages, which may be put in better words.
MESSAGES = {
    "BadConfig", "Busy", "Conflict", "Mismatch", "NotImplementedError", "NotReady", "Unavailable", "Unsettled",
    "ValueError",
}  # fmt: skip
# What wire is made of.
MADE_BY = {
    "Claim", "CrawlFinding", "Difference", "FileVerdict", "FixityFinding", "Gap", "Item", "LeftOut", "Notice",
    "Trouble", "Unsound",
}  # fmt: skip
REFUSED_BY = {"BadInput", "bad"}  # in a step that works on files: the `why` of an item
NO_TEXT = {"NewType", "TypeVar", "add_note", "cast", "compile", "decode", "encode", "from_bytes"}  # calls without any
WRITTEN_BY = {"as_json", "asdict", "dumps"}
_FIELD = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True)
class Place:
    """Where wire texts are in a module. `only` and `but` are functions, methods, classes or assigned names.

    `only` empty: the whole module. `documents`: its dicts alone, and what `only` names. `raised`: also the errors
    that are messages elsewhere. `fields`: dataclasses whose fields are keys.
    """

    module: str
    only: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    documents: bool = False
    raised: bool = False


def tree(module: str) -> ast.Module:
    """The syntax tree of a module, by its path in the repository."""
    path = ROOT / module
    assert path.exists(), f"{module} is gone: where it went, tests/unit/test_wire.py must name it"
    return ast.parse(path.read_text("utf-8"))


def texts(place: Place) -> set[str]:
    """The wire texts of a place, each as a line of the stored list; AssertionError for a name it has not."""
    module = tree(place.module)
    known = dict(_named(module, ""))
    lost = {*place.only, *place.but, *place.fields} - set(known)
    assert not lost, f"{place.module} has no {', '.join(sorted(lost))} any more: name its successor in test_wire.py"
    reader = _Reader({id(known[name]) for name in place.but}, place.raised)
    for name in place.only:
        reader.read(known[name], at_top=name.isupper())
    if place.documents:
        reader.read_dicts(module)
    elif not place.only:
        reader.read(module)
    return reader.found | {_fields(known[name]) for name in place.fields}


def makes_wire(module: str, *, refuses: bool) -> set[str]:
    """The calls by which a module makes claims, gaps, notices or JSON; if it `refuses` files, also those that do."""
    return _calls(tree(module), set()) & (MADE_BY | WRITTEN_BY | (REFUSED_BY if refuses else set()))


def overlooked(places: Sequence[Place], *, refuses: bool) -> set[str]:
    """Calls that make claims, gaps or notices, or refuse files, in parts of a module that none of its places reads."""
    module = tree(places[0].module)
    known = dict(_named(module, ""))
    makers = MADE_BY | (REFUSED_BY if refuses else set())
    unread: set[str] | None = None
    for place in places:
        parts = [_calls(known[name], set()) for name in place.but]
        if place.only and not place.documents:
            parts.append(_calls(module, {id(known[name]) for name in place.only}))
        calls = set[str]().union(*parts) & makers
        unread = calls if unread is None else unread & calls
    return unread or set()


def _calls(node: ast.AST, without: set[int]) -> set[str]:
    """The names of all that is called within a node, but for some nodes in it."""
    if id(node) in without:
        return set()
    return {_called(node)}.union(*(_calls(child, without) for child in ast.iter_child_nodes(node)))


def checks(module: str) -> set[str]:
    """The names of the checks that a module makes: first in `Check(...)`, or assigned to `name` before."""
    found: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Call) and _called(node) == "Check":
            found.add(_canonical(node.args[0]))
        elif isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                target, value = target.elts[0], value.elts[0]
            if isinstance(target, ast.Name) and target.id == "name":
                found.add(_canonical(value))
    return {json.dumps(text) for text in found if text}


def classes(module: str) -> list[str]:
    """The classes of a module."""
    return [node.name for node in tree(module).body if isinstance(node, ast.ClassDef)]


def _named(node: ast.AST, before: str) -> Iterator[tuple[str, ast.AST]]:
    """Functions, classes, methods (`Class.method`), and names that are assigned at the top."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield f"{before}{child.name}", child
            yield from _named(child, f"{before}{child.name}.")
        elif isinstance(child, ast.Assign | ast.AnnAssign) and not before:
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            yield from ((name.id, child) for one in targets for name in ast.walk(one) if isinstance(name, ast.Name))


def _fields(node: ast.AST) -> str:
    assert isinstance(node, ast.ClassDef)
    own = (one.target for one in node.body if isinstance(one, ast.AnnAssign))
    return f"fields: {', '.join(one.id for one in own if isinstance(one, ast.Name))}"


class _Reader:
    """Gathers the texts of nodes, but for those of `but`."""

    def __init__(self, but: set[int], raised: bool) -> None:
        self.found: set[str] = set()
        self._but, self._raised = but, raised

    def read(self, node: ast.AST, *, at_top: bool = False) -> None:
        """All texts within a node. `at_top`: in an assignment, where a sign such as "-" is a word too."""
        if id(node) in self._but or self._is_none(node):
            return
        if isinstance(node, ast.Constant | ast.JoinedStr):
            self._text(node, at_top)
        if isinstance(node, ast.Dict):
            self._keys(node)
        top = at_top or isinstance(node, ast.Module)
        for child in _children(node):
            self.read(child, at_top=top and not isinstance(child, ast.FunctionDef | ast.ClassDef))

    def read_dicts(self, node: ast.AST) -> None:
        """The texts of dicts alone."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Dict):
                self.read(child)
            elif id(child) not in self._but:
                self.read_dicts(child)

    def _is_none(self, node: ast.AST) -> bool:
        """Whether a node holds no wire: a log line, an assertion, a pattern, a codec, an error that is a message."""
        if isinstance(node, ast.Raise):
            return not self._raised and _called(node.exc) in MESSAGES
        if isinstance(node, ast.Call):
            return _called(node) in NO_TEXT or _of(node) == "log"
        return isinstance(node, ast.Assert)

    def _text(self, node: ast.Constant | ast.JoinedStr, at_top: bool) -> None:
        """Not a sign alone, such as the "/" of a path, unless fields are set around it."""
        text = _canonical(node)
        if _FIELD.sub("", text) and (at_top or isinstance(node, ast.JoinedStr) or any(map(str.isalnum, text))):
            self.found.add(json.dumps(text, ensure_ascii=False))

    def _keys(self, node: ast.Dict) -> None:
        known = sorted(key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
        if known:
            self.found.add(f"keys: {', '.join([*known, *['**'] * (len(known) < len(node.keys))])}")


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """What is below a node, but for docstrings, annotations, and the pieces of an f-string."""
    if isinstance(node, ast.JoinedStr):
        yield from (one.value for one in node.values if isinstance(one, ast.FormattedValue))
        return
    without = ("annotation", "returns", "format_spec")
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            is_docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if isinstance(child, ast.AST) and name not in without and not is_docstring:
                yield child


def _canonical(node: ast.expr) -> str:
    """A text with `{}` for each of its fields; '' for what is not text."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.FormattedValue):
        conversion = "" if node.conversion < 0 else f"!{chr(node.conversion)}"
        form = f":{_canonical(node.format_spec)}" if node.format_spec else ""
        return f"{{{conversion}{form}}}"
    return "".join(map(_canonical, node.values)) if isinstance(node, ast.JoinedStr) else ""


def _called(node: ast.AST | None) -> str:
    """The name of the function that is called, without what is before its dot."""
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _of(node: ast.Call) -> str:
    """What is before the dot of a call."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    return owner.id if isinstance(owner, ast.Name) else ""
