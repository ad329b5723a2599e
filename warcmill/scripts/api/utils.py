"""Helpers that scripts import from `pyspider.libs.utils`: texts, digests, values of dictionaries. Pure.

It stands alone, as `pyspider.libs.utils` is this module.
"""

from __future__ import annotations

import base64
from typing import Any

from warcmill.scripts.api.handler import md5string

__all__ = ["ObjectDict", "getitem", "md5string", "pretty_unicode", "text", "unicode_obj", "unicode_string", "utf8"]
md5 = md5string


def utf8(value: object) -> bytes:
    """A text in UTF-8, or what a value prints."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


def text(value: object, encoding: str = "utf-8") -> str:
    """A text of bytes, or what a value prints."""
    return value.decode(encoding) if isinstance(value, bytes) else str(value)


def pretty_unicode(value: str | bytes) -> str:
    """A text of bytes in UTF-8; of others with their escapes."""
    if isinstance(value, str):
        return value
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1").encode("unicode_escape").decode("ascii")


def unicode_string(value: str | bytes) -> str:
    """A text of bytes in UTF-8; of others in base64 between marks."""
    if isinstance(value, str):
        return value
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return f"[BASE64-DATA]{base64.b64encode(value).decode('ascii')}[/BASE64-DATA]"


def unicode_obj(value: Any) -> Any:
    """A value whose bytes are texts."""
    match value:
        case dict():
            return {unicode_obj(name): unicode_obj(one) for name, one in value.items()}
        case list() | tuple():
            return [unicode_obj(one) for one in value]
        case bytes():
            return unicode_string(value)
        case None | bool() | int() | float() | str():
            return value
    return str(value)


def getitem(value: Any, key: Any = 0, default: Any = None) -> Any:
    """An item of a value, or another value without one."""
    try:
        return value[key]
    except (KeyError, IndexError, TypeError):
        return default


class ObjectDict(dict[str, Any]):
    """A dictionary whose values are attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(name) from error
