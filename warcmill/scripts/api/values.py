"""Values of scripts as JSON has them. Pure.

A value that JSON has no form for becomes text; one that contains itself, or
is nested too deep, is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

DEEPEST = 64
_EXACT = 1 << 63


class NoForm(Exception):
    """A value that JSON cannot have: it contains itself, or is nested too deep."""


def jsonable(value: Any, depth: int = 0) -> Any:
    """A value as JSON has it."""
    if depth > DEEPEST:
        raise NoForm(f"a value contains itself, or is nested deeper than {DEEPEST}")
    kind = type(value)  # most values are of these, and each page has hundreds
    if kind is str and value.isascii():
        return value
    if kind is dict or isinstance(value, Mapping):
        return {_name(name): jsonable(one, depth + 1) for name, one in value.items()}
    match value:
        case None | bool():
            return value
        case str():
            # lxml has texts of its own, and a lone surrogate is not UTF-8.
            return str(value).encode("utf-8", "replace").decode()
        case int():
            return int(value) if -_EXACT <= value < _EXACT else str(value)
        case float():
            return float(value) if math.isfinite(value) else str(value)
        case bytes() | bytearray():
            return bytes(value).decode("utf-8", "backslashreplace")
        case list() | tuple() | set() | frozenset():
            return [jsonable(one, depth + 1) for one in value]
    return jsonable(str(value), depth + 1)


def _name(name: object) -> str:
    if type(name) is str and name.isascii():
        return name
    return str(jsonable(name if isinstance(name, str | bytes) else str(name)))
