"""Settings files in Python's syntax, read and never executed. Reads only.

A file has assignments of literals, arithmetic, earlier names, `os.getenv`, `int`, `float` and `str2bool`, and lists
split from a text, `[x.strip() for x in os.getenv('HOSTS', 'a,b').split(',')]`. Anything else raises `SettingsError`.
"""

from __future__ import annotations

import ast
import logging
import operator
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

_log = logging.getLogger(__name__)

MOST_BYTES: Final = 1 << 20
_LONGEST: Final = 1 << 16  # items of a list, characters of a text, bits of a number: nobody writes longer ones
_TRUE: Final = ("true", "1")
_ARITHMETIC: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_SIGNS: Final[dict[type[ast.unaryop], Callable[[Any], Any]]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}
_TEXT_METHODS: Final = ("lower", "rstrip", "split", "strip", "upper")
_MAY: Final = "a settings file may have literals, arithmetic, os.getenv, int, float and str2bool"


class SettingsError(ValueError):
    """A settings file that cannot be read: `path:line`, and what is wrong there."""


def str2bool(value: object) -> bool:
    """Return True for `true` or `1` in any case, or for a true value that is not text."""
    return value.lower() in _TRUE if isinstance(value, str) else bool(value)


def read_settings(text: str, where: str) -> dict[str, Any]:
    """Return the settings of a text by their names; `where` is its path, for messages."""
    if len(text) > MOST_BYTES:
        raise SettingsError(f"{where}: more than {MOST_BYTES:,} characters; a settings file has a few hundred lines")
    try:
        body = ast.parse(text).body
        return _Reading(where).all(body)
    except (RecursionError, MemoryError):
        raise SettingsError(f"{where}: nested too deep; write the value in fewer brackets") from None
    except SyntaxError as error:
        raise SettingsError(f"{where}:{error.lineno or 1}: {error.msg}; correct the line") from None
    except ValueError as error:
        raise error if isinstance(error, SettingsError) else SettingsError(f"{where}: {error}") from None


class SettingsWrapper:
    """The settings of a program: its own, and over them those of an installation."""

    def __init__(self) -> None:
        self.my_settings: dict[str, Any] = {}

    def load(self, local: str = "localsettings.py", default: str = "settings.py") -> dict[str, Any]:
        """Read `default`, then `local` over it, and return the settings. A file that is not there has none.

        A dictionary of both is merged, one level deep; any other value is replaced. A name without a folder is looked
        for in the current one, then in Python's path.
        """
        self.my_settings = self._read(default, logging.WARNING, "No default settings found")
        for key, value in self._read(local, logging.INFO, "No override settings found").items():
            before = self.my_settings.get(key)
            if isinstance(before, dict) and isinstance(value, dict):
                self.my_settings[key] = {**before, **value}
            else:
                self.my_settings[key] = value
        return self.my_settings

    def load_from_string(self, settings_string: str = "", module_name: str = "customsettings") -> dict[str, Any]:
        """Read the settings of a text; `module_name` stands for its path in messages."""
        self.my_settings = read_settings(settings_string, module_name)
        return self.my_settings

    def settings(self) -> dict[str, Any]:
        """Return the settings that were loaded last."""
        return self.my_settings

    @staticmethod
    def _read(name: str, level: int, absent: str) -> dict[str, Any]:
        path = next((path for path in _places(name) if path.is_file()), None)
        if path is None:
            _log.log(level, absent)
            return {}
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        try:
            return read_settings(data.decode("utf-8-sig"), str(path))
        except UnicodeDecodeError as error:
            raise SettingsError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None


def _places(name: str) -> Iterator[Path]:
    """The paths at which a settings file of that name may be; a name may be that of a module, `crawling.settings`."""
    names = [name] if name.endswith(".py") else [name, f"{name.replace('.', '/')}.py"]
    for folder in (".", *sys.path):
        yield from (Path(folder, one) for one in names)


class _Reading:
    """The names of one file as far as it was read. A method that begins with `_of_` gives a node's value."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.names: dict[str, Any] = {}

    def all(self, body: list[ast.stmt]) -> dict[str, Any]:
        for statement in body:
            self._run(statement)
        return self.names

    def _run(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=targets, value=value):
                made = self._of(value)
                for target in targets:
                    self.names[self._name(target)] = made
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.names[self._name(target)] = self._of(value)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass  # a docstring
            case ast.Import(names=[ast.alias(name="os", asname=None)]) | ast.ImportFrom(module="__future__"):
                pass
            case ast.FunctionDef(name="str2bool"):
                pass  # files of Scrapy Cluster define it; ours does the same
            case ast.Try(body=[ast.ImportFrom(module="localsettings", names=[ast.alias(name="*")])]):
                pass  # the end of a crawler's settings.py; who loads that file loads the other one over it
            case _:
                raise self._wrong(statement, f"{ast.unparse(statement)[:60]!a} is not read")

    def _name(self, target: ast.expr) -> str:
        if isinstance(target, ast.Name):
            return target.id
        raise self._wrong(target, f"{ast.unparse(target)[:60]!a} is not a name to assign to")

    def _of(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.List(elts=parts):
                return [self._of(part) for part in parts]
            case ast.Tuple(elts=parts):
                return tuple(self._of(part) for part in parts)
            case ast.Set(elts=parts):
                return self._tried(node, lambda: {self._of(part) for part in parts})
            case ast.Dict(keys=keys, values=values):
                return self._tried(node, lambda: dict(self._pairs(node, keys, values)))
            case _:
                return self._of_computed(node)

    def _of_computed(self, node: ast.expr) -> Any:
        match node:
            case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _SIGNS:
                turn, value = _SIGNS[type(sign)], self._of(operand)
                return self._tried(node, lambda: turn(value))
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _ARITHMETIC:
                return self._of_arithmetic(node, type(sign), self._of(left), self._of(right))
            case ast.Call(func=called, args=args, keywords=[]):
                return self._of_call(node, called, [self._of(argument) for argument in args])
            case ast.ListComp(elt=part, generators=[ast.comprehension(target=ast.Name(id=name), iter=of, ifs=[])]):
                return self._of_each(node, part, name, self._of(of))
            case _:
                raise self._wrong(node, f"{ast.unparse(node)[:60]!a} is not read")

    def _of_arithmetic(self, node: ast.expr, sign: type[ast.operator], left: Any, right: Any) -> Any:
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        joined = sign is ast.Add and type(left) is type(right) and isinstance(left, str | list | tuple)
        if not numbers and not joined:
            raise self._wrong(node, f"{ast.unparse(node)[:60]!a} is not arithmetic of numbers, and joins no two texts")
        if sign is ast.Pow and (abs(left) > _LONGEST or abs(right) > 64):
            raise self._wrong(node, "a power this large; write the number")
        value = self._tried(node, lambda: _ARITHMETIC[sign](left, right))
        if (value.bit_length() if isinstance(value, int) else len(value) if joined else 0) > _LONGEST:
            raise self._wrong(node, "a value this long")
        return value

    def _of_call(self, node: ast.expr, called: ast.expr, args: list[Any]) -> Any:
        match called:
            case ast.Name(id="int"):
                return self._tried(node, lambda: int(*args))
            case ast.Name(id="float"):
                return self._tried(node, lambda: float(*args))
            case ast.Name(id="str2bool"):
                return self._tried(node, lambda: str2bool(*args))
            case ast.Attribute(value=ast.Name(id="os"), attr="getenv"):
                return self._tried(node, lambda: os.getenv(*args))
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="os"), attr="environ"), attr="get"):
                return self._tried(node, lambda: os.environ.get(*args))
            case ast.Attribute(value=of, attr=method) if method in _TEXT_METHODS:
                text = self._of(of)
                if isinstance(text, str):
                    return self._tried(node, lambda: getattr(text, method)(*args))
        raise self._wrong(node, f"{ast.unparse(node)[:60]!a} is a call that is not made")

    def _of_each(self, node: ast.expr, part: ast.expr, name: str, values: Any) -> list[Any]:
        if not isinstance(values, list | tuple) or any(isinstance(inner, ast.ListComp) for inner in ast.walk(part)):
            raise self._wrong(node, "a list made of something else than one list")
        inner = _Reading(self.where)
        made = []
        for value in values:
            inner.names = {**self.names, name: value}
            made.append(inner._of(part))
        return made

    def _pairs(self, node: ast.expr, keys: list[ast.expr | None], values: list[ast.expr]) -> Iterator[tuple[Any, Any]]:
        for key, value in zip(keys, values, strict=True):
            if key is None:
                raise self._wrong(node, "a dictionary that takes in another one; write its keys")
            yield self._of(key), self._of(value)

    def _tried(self, node: ast.expr, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except SettingsError:
            raise
        except (TypeError, ValueError, ArithmeticError) as error:
            raise self._wrong(node, f"{ast.unparse(node)[:60]!a}: {error}") from None

    def _wrong(self, node: ast.stmt | ast.expr, why: str) -> SettingsError:
        return SettingsError(f"{self.where}:{node.lineno}: {why}; {_MAY}")
