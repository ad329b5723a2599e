"""The values in `meta` and `cb_kwargs` of a request, as JSON and back: a closed list of types. Pure.

A value that JSON has no form for is an object with the one key `_type`: a tag, and the parts of the value. A frontier
may be shared with others, so reading runs no code that it names: nothing is unpickled, no module is imported, and a
class is one of the spider's project, in a module that is imported already. Its objects are filled, its `__init__` is
not called.
"""

from __future__ import annotations

import base64
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from scrapy import Item, Request, Spider

from warcmill.errors import BadInput

TAG = "_type"
_NESTED = 60
_PLAIN = (int, bool, type(None))
_LONGEST_NUMBER = 1 << 13  # bits: Python writes longer ones as decimals in quadratic time, or not at all
_INSTALLED = frozenset(["site-packages", "dist-packages"])
_FAULTS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
_STALE = "_attrs_cached_hash"  # that of attrs: texts have another in each process


class Project:
    """The classes of a spider's project: those beside the spider, and of the packages that its settings name."""

    def __init__(self, spider: Spider) -> None:
        own = type(spider).__module__.partition(".")[0]
        settings = getattr(spider, "settings", None)
        named = settings.getlist("SPIDER_MODULES") if settings else []
        self._packages = {own, *(name.partition(".")[0] for name in named)}
        file = getattr(sys.modules.get(type(spider).__module__), "__file__", None)
        depth = type(spider).__module__.count(".")
        self._folder = Path(file).absolute().parents[depth] if file else None
        self._known: dict[str, bool] = {}

    def name(self, one: type) -> str | None:
        """The name by which a class is found again; None for one that is not of the project, or has no such name."""
        name = f"{one.__module__}:{one.__qualname__}"
        return name if self._has(one.__module__) and imported(name) is one else None

    def find(self, name: str) -> type:
        """The class of a name. LookupError without one."""
        found = imported(name)
        if found is None or not self._has(name.partition(":")[0]):
            raise LookupError(f"{name} is not a class of the spider's project, as that is imported now")
        return found

    def _has(self, module: str) -> bool:
        if module not in self._known:
            file = getattr(sys.modules.get(module), "__file__", None)
            self._known[module] = module.partition(".")[0] in self._packages or bool(file and self._is_beside(file))
        return self._known[module]

    def _is_beside(self, file: str) -> bool:
        path, folder = Path(file).absolute(), self._folder
        if folder is None or not path.is_relative_to(folder):
            return False
        return _INSTALLED.isdisjoint((folder.name, *path.relative_to(folder).parts))


def imported(name: str) -> type | None:
    """The class `MODULE:NAME` of a module that is imported already."""
    module, _, path = name.partition(":")
    first, *inner = path.split(".")
    found: Any = getattr(sys.modules.get(module), "__dict__", {}).get(first)
    for part in inner:
        found = vars(found).get(part) if isinstance(found, type) else None
    is_it = isinstance(found, type) and (found.__module__, found.__qualname__) == (module, path)
    return found if is_it else None


def state(value: object) -> dict[str, Any]:
    """The attributes that an object has of its own, in slots or not."""
    found: Any = object.__getstate__(value)
    both = found if isinstance(found, tuple) else (found,)
    return {name: one for some in both for name, one in (some or {}).items() if name != _STALE}


def is_plain(value: object, depth: int = 0) -> bool:
    """True if JSON gives a value back as it is."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return True
    if kind is int:
        return value.bit_length() <= _LONGEST_NUMBER  # type: ignore[attr-defined, no-any-return]
    if kind is float:
        return value - value == 0.0  # type: ignore[operator, no-any-return]
    if depth >= _NESTED:
        return False
    if kind is list:
        return all(is_plain(one, depth + 1) for one in value)  # type: ignore[attr-defined]
    if kind is dict:
        return all(_is_text(key) and is_plain(one, depth + 1) for key, one in value.items())  # type: ignore[attr-defined]
    return _is_text(value)


def _is_text(value: object) -> bool:
    """True for a text; lxml has some of a class of its own."""
    return type(value) is str or (isinstance(value, str) and not isinstance(value, Enum))


class Values:
    """The values of one project. `write_request` and `read_request` are for a request among them; the first takes its
    place, too."""

    def __init__(
        self, project: Project, write_request: Callable[[Request, str], Any], read_request: Callable[[Any], Request]
    ) -> None:
        self._project = project
        self._write_request, self._read_request = write_request, read_request

    def written(self, value: Any, place: str, depth: int = 0) -> Any:
        """The JSON of a value. BadInput, with its place, for one that would not come back."""
        if depth >= _NESTED:
            raise _cannot_wait(place, f"nested deeper than {_NESTED}, or contains itself")
        kind = type(value)
        if is_plain(value, _NESTED):
            return value
        if kind is list:
            return [self.written(one, f"{place}[{number}]", depth + 1) for number, one in enumerate(value)]
        if kind is dict:
            return self._mapping(value, place, depth)
        if tag := _BY_TYPE.get(kind):
            made = tag.write(value)
            if made is None:
                raise _cannot_wait(place, kind.__qualname__)
            inner = [self.written(one, f"{place}[{n}]", depth + 1) for n, one in enumerate(made)] if tag.nests else made
            return {TAG: [tag.name, inner]}
        if isinstance(value, Request):
            return {TAG: ["request", self._write_request(value, place)]}
        return self._of_class(value, place, depth)

    def _mapping(self, value: Mapping[Any, Any], place: str, depth: int) -> Any:
        inner = {key: self.written(one, f"{place}[{key!r}]", depth + 1) for key, one in value.items()}
        if inner.keys() != {TAG} and all(map(_is_text, inner)):
            return inner
        return {TAG: ["dict", [[self.written(key, f"{place}, a key", depth + 1), one] for key, one in inner.items()]]}

    def _of_class(self, value: Any, place: str, depth: int) -> Any:
        """A value of a class that Python has not."""
        kind = type(value)
        if isinstance(value, type) and (name := self._project.name(value)):
            return {TAG: ["class", name]}
        if name := self._project.name(kind):
            if isinstance(value, Enum) and kind.__members__.get(value.name) is value:
                return {TAG: ["enum", name, value.name]}
            if isinstance(value, tuple) and hasattr(kind, "_fields"):
                return {TAG: ["fields", name, self.written(list(value), place, depth)]}
            if _is_filled(kind):
                found = {key: self.written(one, f"{place}.{key}", depth + 1) for key, one in _fields(value, place)}
                return {TAG: ["object", name, found]}
        if isinstance(value, Enum) and isinstance(value, str | int):  # such as those of http
            return value.value
        raise _cannot_wait(place, kind.__qualname__)

    def read(self, value: Any) -> Any:
        """The value of its JSON. BadInput for what `written` does not write."""
        try:
            return self._read(value)
        except (*_FAULTS, RecursionError) as error:
            raise BadInput("its values", f"they cannot be read: {type(error).__name__}: {error}") from error

    def _read(self, value: Any) -> Any:
        if type(value) is list:
            return [self._read(one) for one in value]
        if type(value) is not dict:
            return value
        if value.keys() != {TAG}:
            return {key: self._read(one) for key, one in value.items()}
        name, *rest = value[TAG]
        match name, rest:
            case "dict", [pairs]:
                return {self._read(key): self._read(one) for key, one in pairs}
            case "request", [form]:
                return self._read_request(form)
            case (("class" | "enum" | "fields" | "object"), [kind, *more]):
                return self._read_of_class(name, self._project.find(kind), *more)
            case _, [inner]:
                tag = _BY_NAME[name]
                return tag.read([self._read(one) for one in inner] if tag.nests else inner)
        raise ValueError(f"{name!r} is not a type of a value")

    def _read_of_class(self, name: str, kind: type, value: Any = None) -> Any:
        """A class of the project, or a value of it."""
        match name:
            case "class":
                return kind
            case "enum":
                return kind.__members__[value]  # type: ignore[attr-defined]
            case "fields":
                return tuple.__new__(_checked(kind, tuple), self._read(value))
        return filled(kind, {key: self._read(one) for key, one in value.items()})


def filled(kind: type, fields: Mapping[str, Any]) -> Any:
    """An object of a class with these attributes."""
    if not _is_filled(kind):
        raise TypeError(f"{kind.__qualname__} is not an Item, a dataclass or a class of attrs")
    made: Any = object.__new__(kind)
    fill(made, fields)
    return made


def fill(made: object, fields: Mapping[str, Any]) -> None:
    """Set attributes of an object, whatever its class does when one is set."""
    for name, value in fields.items():
        object.__setattr__(made, name, value)


def _is_filled(kind: type) -> bool:
    return issubclass(kind, Item) or any(hasattr(kind, one) for one in ("__dataclass_fields__", "__attrs_attrs__"))


def _fields(value: object, place: str) -> list[tuple[str, Any]]:
    try:
        object.__new__(type(value))  # not that of a list, or of an exception
        return list(state(value).items())
    except TypeError as error:
        raise _cannot_wait(place, type(value).__qualname__) from error


def _cannot_wait(place: str, what: str) -> BadInput:
    return BadInput(place, f"its {place} is {what}, which cannot wait")


def _checked(kind: type, base: type) -> Any:
    if not issubclass(kind, base):
        raise TypeError(f"{kind.__qualname__} is not a {base.__name__}")
    return kind


class _Tag(NamedTuple):
    """A type of Python: what its values are made of, and back. None: this one cannot wait. `nests`: that is a list of
    values again."""

    name: str
    type: type
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    nests: bool = False


def _moment(value: datetime | time) -> list[Any]:
    """A time as ISO 8601 has it, and its zone if it has a name. Any other zone comes back as its offset."""
    if isinstance(value.tzinfo, ZoneInfo) and value.tzinfo.key:
        return [value.replace(tzinfo=None).isoformat(), value.fold, value.tzinfo.key]
    return [value.isoformat(), value.fold]


def _read_moment(kind: type[Any], parts: Sequence[Any]) -> Any:
    found = kind.fromisoformat(parts[0]).replace(fold=parts[1])
    return found.replace(tzinfo=ZoneInfo(parts[2])) if len(parts) > 2 else found


def _defaults(value: defaultdict[Any, Any]) -> list[Any] | None:
    """The name of the type that makes the defaults of a dictionary, and its pairs."""
    made = value.default_factory
    name = next((name for name, one in _DEFAULTS.items() if one is made), None)
    return None if name is None else [name, *value.items()]


_DEFAULTS = {"": None, "list": list, "dict": dict, "set": set, "int": int, "float": float, "str": str, "tuple": tuple}
_TAGS = (
    _Tag("date", date, date.isoformat, date.fromisoformat),
    _Tag("datetime", datetime, _moment, lambda parts: _read_moment(datetime, parts)),
    _Tag("time", time, _moment, lambda parts: _read_moment(time, parts)),
    _Tag("timedelta", timedelta, lambda one: [one.days, one.seconds, one.microseconds], lambda all_: timedelta(*all_)),
    _Tag("decimal", Decimal, str, Decimal),
    _Tag("float", float, str, float),  # not a number, or infinite
    _Tag("int", int, hex, lambda text: int(text, 16)),
    _Tag("bytes", bytes, lambda one: base64.b64encode(one).decode(), base64.b64decode),
    _Tag("tuple", tuple, list, tuple, nests=True),
    _Tag("set", set, list, set, nests=True),
    _Tag("frozenset", frozenset, list, frozenset, nests=True),
    _Tag("range", range, lambda one: [one.start, one.stop, one.step], lambda parts: range(*parts)),
    _Tag("uuid", UUID, str, UUID),
    _Tag("ordered", OrderedDict, lambda one: list(one.items()), OrderedDict, nests=True),
    _Tag("counter", Counter, lambda one: list(one.items()), lambda pairs: Counter(dict(pairs)), nests=True),
    _Tag("default", defaultdict, _defaults, lambda parts: defaultdict(_DEFAULTS[parts[0]], parts[1:]), nests=True),
    _Tag("deque", deque, lambda one: [one.maxlen, *one], lambda parts: deque(parts[1:], parts[0]), nests=True),
)
_BY_TYPE = {tag.type: tag for tag in _TAGS}
_BY_NAME = {tag.name: tag for tag in _TAGS}
