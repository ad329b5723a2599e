"""The values of a job's crawl.toml: each of its type and within its bounds, or refused by name. Pure."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from warcmill.base.escapes import nearest
from warcmill.errors import BadConfig

CONFIGURATION = "crawl.toml"
ABOUT = "about"
"""The table for people: it changes no crawl."""
_LIKE = 0.6
T = TypeVar("T")
D = TypeVar("D", bound=Struct)


def toml_of(data: bytes) -> dict[str, Any]:
    """The keys of a crawl.toml as it writes them; BadConfig for what is not TOML."""
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadConfig(CONFIGURATION, f"it is not TOML: {error}") from error


def about(found: Mapping[str, Any]) -> tuple[str, tuple[str, ...], str]:
    """Title, tags and owner in a crawl.toml; BadConfig if its [about] has other keys than these and a description."""
    where = f"{CONFIGURATION} [{ABOUT}]"
    table = as_table(found.get(ABOUT, {}), where)
    refuse_unknown(where, table, ("title", "description", "tags", "owner"))
    if not isinstance(table.get("description", ""), str):
        raise BadConfig(f"{where} description", f"is {table['description']!r}; it takes a text")
    title, owner = (text(table, key, where) for key in ("title", "owner"))
    return title, text_list(table, "tags", where), owner


def refuse_unknown(where: str, found: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """BadConfig for a key that is not in `known`."""
    for key in found:
        if key not in known:
            meant = nearest(key, known, _LIKE)
            ask = f"did you mean {meant}? There" if meant else "there"
            raise BadConfig(f"{where} {key}", f"there is no such key; {ask} are {', '.join(known)}")


def table(found: Mapping[str, Any], key: str, base: D, where: str = CONFIGURATION) -> D:
    """Return `base` with a table's values for its fields, each a number or a word of its type, or a list of numbers."""
    where = f"{where} [{key}]"
    table = dict(as_table(found.get(key, {}), where))
    types = {name: type(getattr(base, name)) for name in base.__struct_fields__}
    refuse_unknown(where, table, tuple(types))
    for name, value in table.items():
        if types[name] is tuple:
            table[name] = _numbers(value, f"{where} {name}")
            continue
        wanted = (int, float) if types[name] is float else (types[name],)
        if type(value) not in wanted or (not isinstance(value, bool) and not 0 <= value < 1 << 60):
            raise BadConfig(f"{where} {name}", f"is {value!r}; it takes a {_kind(types[name])}, not below 0")
    return replace(base, **table)


def as_table(value: object, where: str) -> dict[str, Any]:
    """Return a table; BadConfig for anything else."""
    if not isinstance(value, dict):
        raise BadConfig(where, "it is not a table")
    return value


def tables(found: Mapping[str, Any], key: str, where: str = CONFIGURATION) -> list[tuple[str, dict[str, Any]]]:
    """Return a list of tables, each with its place in the file; an empty list when it is not set."""
    value = found.get(key, [])
    if not isinstance(value, list):
        raise BadConfig(f"{where} [[{key}]]", "it is not a list of tables")
    places = (f"{where} [[{key}]] {number}" for number in range(1, len(value) + 1))
    return [(place, as_table(one, place)) for place, one in zip(places, value, strict=True)]


def moment(found: Mapping[str, Any], key: str) -> float | None:
    """Return a time in seconds since 1970; None when it is not set."""
    value = found.get(key)
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise BadConfig(f"{CONFIGURATION} {key}", f"is {value!r}; it takes a time with an offset: 2026-12-01T00:00:00Z")
    return value.timestamp()


def _numbers(value: object, where: str) -> tuple[int, ...]:
    if not isinstance(value, list) or any(type(one) is not int for one in value):
        raise BadConfig(where, f"is {value!r}; it takes a list of whole numbers")
    return tuple(value)


def _kind(wanted: type) -> str:
    return {int: "whole number", float: "number", bool: "true or false"}[wanted]


def number(found: Mapping[str, Any], key: str, least: int, most: int) -> int | float:
    """Return a number of these bounds."""
    value: int | float = found[key]
    fraction = key == "checkpoint_hours"
    if type(value) not in ((int, float) if fraction else (int,)) or not least <= value <= most:
        raise BadConfig(f"{CONFIGURATION} {key}", f"is {value!r}; it takes a number from {least} to {most}")
    return value


def text(found: Mapping[str, Any], key: str, where: str = CONFIGURATION) -> str:
    """Return a text on one line; '' when it is not set."""
    value = found.get(key, "")
    if not isinstance(value, str) or not value.isprintable():
        raise BadConfig(f"{where} {key}", f"is {value!r}; it takes a text on one line")
    return value


def flag(found: Mapping[str, Any], key: str, *, default: bool = False) -> bool:
    """Return true or false; the default when it is not set."""
    value = found.get(key, default)
    if not isinstance(value, bool):
        raise BadConfig(f"{CONFIGURATION} {key}", f"is {value!r}; it takes true or false")
    return value


def choice(found: Mapping[str, Any], key: str, words: Mapping[str, T], default: str, where: str = CONFIGURATION) -> T:
    """Return what a word stands for."""
    value = found.get(key, default)
    if not isinstance(value, str) or value not in words:
        raise BadConfig(f"{where} {key}", f"is {value!r}; one of {', '.join(words)}")
    return words[value]


def text_list(found: Mapping[str, Any], key: str, where: str = CONFIGURATION) -> tuple[str, ...]:
    """Return a list of texts; an empty one when it is not set."""
    value = found.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadConfig(f"{where} {key}", f"is {value!r}; it takes a list of texts")
    return tuple(value)
