"""Which handler takes a message: the one of the lowest rank whose JSON Schema fits. Pure.

A message is bytes from anywhere. It is read under limits, by a parser and by schemas that take time in proportion to
its length.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, Final

import jsonschema_rs
import msgspec
from msgspec import Struct

from warcmill.errors import BadConfig
from warcmill.requests import compat
from warcmill.requests.compat import Schema

MOST_NESTED: Final = 100
_OF_VALUES: Final = ("$schema", "id", "definitions", "properties")
_SHOWN: Final = 200  # characters of what is wrong


def _refuse(address: str) -> Any:
    """A schema names no other one: nothing is fetched for it."""
    raise ValueError(f"it refers to {address}, which is not read")


class MessageHandler:
    """A name by which messages are counted, its rank, the schema of its messages, and the log line of one."""

    def __init__(self, name: str, rank: int, schema: Schema, line: str = "") -> None:
        self.name, self.rank, self.schema, self.line = name, rank, schema, line
        try:
            self._validator = jsonschema_rs.Draft4Validator(dict(schema), retriever=_refuse)
        except (ValueError, TypeError) as error:
            raise BadConfig(f"the JSON Schema of {name}", f"{_first_line(error)}; correct it") from None
        values = {key: schema[key] for key in _OF_VALUES if key in schema}
        self._values = jsonschema_rs.Draft4Validator(values, retriever=_refuse)

    def fault(self, document: Any) -> str:
        """Return what is wrong with a message; '' for one that fits."""
        try:
            self._validator.validate(document)
        except jsonschema_rs.ValidationError as error:
            return _first_line(error)
        return ""

    def filled(self, document: Any) -> Any:
        """Return a copy of the message, with the schema's defaults where it has no value."""
        made = copy.deepcopy(document)
        _fill(made, self.schema)
        return made

    def shown(self, document: Any) -> Any:
        """Return a message that does not fit as the original logs it: with the defaults, if its own values fit."""
        return self.filled(document) if isinstance(document, dict) and self._values.is_valid(document) else document


HANDLERS: Final = (
    MessageHandler("ScraperHandler", 100, compat.SCRAPER, compat.ADDED_CRAWL),
    MessageHandler("ActionHandler", 200, compat.ACTION, compat.ADDED_ACTION),
    MessageHandler("StatsHandler", 300, compat.STATISTICS, compat.ADDED_STATS),
    MessageHandler("ZookeeperHandler", 400, compat.ZOOKEEPER, compat.ADDED_POLICY),
)


class TakenMessage(Struct, frozen=True):
    """A message that fits: its handler, and its values, the defaults among them."""

    handler: MessageHandler
    document: dict[str, Any]


class DroppedMessage(Struct, frozen=True):
    """A message that nobody takes: the known log line, the fields that it has there, and why."""

    line: str
    parsed: bool
    data: Any
    why: str

    @property
    def extra(self) -> dict[str, Any]:
        """The fields of the log line."""
        return {"parsed": self.parsed, "valid": False, "data": self.data}


def sort_message(message: bytes, handlers: Sequence[MessageHandler] = HANDLERS) -> TakenMessage | DroppedMessage:
    """Return the handler that takes a message, and its values; or why nobody does."""
    try:
        document = msgspec.json.decode(message)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        return DroppedMessage(compat.NO_JSON, False, message.decode("utf-8", "backslashreplace"), _first_line(error))
    if _is_nested_deeper(document, MOST_NESTED):
        why = f"it is nested deeper than {MOST_NESTED}"
        return DroppedMessage(compat.NO_SCHEMA, True, None, why)
    faults = {}
    for handler in in_order(handlers):
        faults[handler.name] = fault = handler.fault(document)
        if not fault:
            return TakenMessage(handler, handler.filled(document))
    last = in_order(handlers)[-1:]
    data = last[0].shown(document) if last else document
    why = "; ".join(f"{name}: {fault}" for name, fault in faults.items()) or "there is no handler"
    return DroppedMessage(compat.NO_SCHEMA, True, data, why)


def in_order(handlers: Iterable[MessageHandler]) -> list[MessageHandler]:
    """Return handlers by rank; those of one rank in the order that they came in."""
    return sorted(handlers, key=lambda handler: handler.rank)


def _fill(document: Any, schema: Any) -> None:
    """Set defaults in place, also in the objects inside that the schema describes."""
    if not isinstance(document, dict) or not isinstance(schema, dict):
        return
    for name, inner in schema.get("properties", {}).items():
        if isinstance(inner, dict):
            if "default" in inner:
                document.setdefault(name, copy.deepcopy(inner["default"]))
            _fill(document.get(name), inner)


def _is_nested_deeper(document: Any, most: int) -> bool:
    """True if there are more than `most` objects and lists inside each other."""
    level = [document]
    for _ in range(most + 1):
        level = [one for one in level if isinstance(one, dict | list)]
        if not level:
            return False
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
    return True


def _first_line(error: object) -> str:
    text = getattr(error, "message", None) or str(error) or type(error).__name__
    return str(text).partition("\n")[0][:_SHOWN]
