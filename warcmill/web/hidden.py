"""The names of what is hidden, in the texts of answers: readers get none of them, others see them marked. Pure.

A text names what is hidden by its URL, its host, or the SURT of either: a seed, a row of a table of hosts, a line of a
log, a gap. So no view asks: `application` sends each answer to a reader through `HiddenNames.without`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import copy
from typing import Any
from urllib.parse import unquote

from markupsafe import Markup
from msgspec import Struct, structs

from warcmill.formats import hosts
from warcmill.formats.index.urlkey import urlkey
from warcmill.versions.hidden_list import is_hidden

HIDDEN = "[hidden]"  # in the place of a text that stands alone, and of a line of a log
# All are linear: a log is foreign text.
_WORD = re.compile(r"[^\s\"'<>\\]+")
_URL = re.compile(r"(?=https?://)", re.IGNORECASE)
_SCHEME = re.compile(r"(?<![\w+.-])[a-z][a-z0-9+.-]*+:", re.IGNORECASE)
_HOST = re.compile(r"[\w-]++(?:\.[\w-]++)*+(?::[0-9]{1,5})?")
_SURT = re.compile(r"(?<![\w-])([\w-]++(?:,[\w-]++)*+)((?:,?:[0-9]{1,5})?),?(\)?)((?<=\))/[^\s\"'<>\\]*)?")
_TIME = re.compile(r"(?<![0-9])[0-9]{14}")
_AT_A_PORT = re.compile(rb"([^:)]+):[0-9]+\)/?")  # a host that is hidden at a port: a table of hosts has no ports
_LABEL = re.compile(rb"(?:[\w-]+,)*([\w-]+)[,:)]")


class HiddenNames:
    """The names of what is hidden. `prefixes`: the beginnings of hidden lines, as `Hidden.prefixes` has them."""

    def __init__(self, prefixes: tuple[bytes, ...] = ()) -> None:
        self._prefixes = prefixes
        self._hosts = {match[1] for one in prefixes if (match := _AT_A_PORT.fullmatch(one))}
        labels = [_LABEL.match(one) for one in prefixes]
        known = {re.escape(match[1].decode()) for match in labels if match}
        self._needles = None if None in labels else re.compile("|".join(sorted(known)), re.IGNORECASE)

    def __bool__(self) -> bool:
        return bool(self._prefixes)

    def are_in(self, text: str) -> bool:
        """True if a text names something that is hidden."""
        if not self._prefixes:
            return False
        text = f"{text} {unquote(text)}" if "%" in text else text
        if self._needles and text.isascii() and not self._needles.search(text):
            return False
        ends = [b" ", *(b" " + time.encode() for time in _TIME.findall(text))]
        return any(is_hidden(key + end, self._prefixes) for key in _keys(text) for end in ends) or any(
            key.partition(b")")[0] in self._hosts for name in _HOST.findall(text) for key in _keys_of(f"http://{name}/")
        )

    def marked(self, text: str) -> str:
        """A text for those who may see what is hidden: each line that names it begins with a mark."""
        return "\n".join(f"{HIDDEN} {line}" if self.are_in(line) else line for line in text.split("\n"))

    def without(self, value: Any) -> Any:
        """A value for readers: each entry of a list, row of a table and key that names what is hidden is left out, each
        line and each text that stands alone is replaced."""
        return self._kept(value)[0] if self else value

    def _kept(self, value: Any, *, is_row: bool = False) -> tuple[Any, bool]:
        """A value for readers; and True if the entry in which it is has to go.

        A tuple in a list is a row, which keeps its length; another tuple is a list.
        """
        match value:
            case Markup():
                return value, False
            case str() if "\n" in value:
                return "\n".join(HIDDEN if self.are_in(line) else line for line in value.split("\n")), False
            case str():
                return (HIDDEN, True) if self.are_in(value) else (value, False)
            case bytes():
                text, is_gone = self._kept(value.decode("utf-8", "surrogateescape"))
                return text.encode("utf-8", "surrogateescape"), is_gone
            case dict():
                return self._kept_of_pairs(value)
            case tuple() if is_row or hasattr(value, "_fields"):
                row, are_gone = zip(*map(self._kept, value), strict=True) if value else ((), ())
                return (value._make(row) if hasattr(value, "_make") else row), any(are_gone)
            case list() | tuple() | set() | frozenset():
                entries = [self._kept(one, is_row=True) for one in value]
                return type(value)(one for one, is_gone in entries if not is_gone), False
            case Struct():
                old = {name: getattr(value, name) for name in value.__struct_fields__}
                new, is_gone = self._kept_of_pairs(old)
                changed = {name: one for name, one in new.items() if one is not old[name] and one != old[name]}
                return (structs.replace(value, **changed) if changed else value), is_gone
        return value, False

    def _kept_of_pairs(self, pairs: dict[Any, Any]) -> tuple[dict[Any, Any], bool]:
        found, is_gone = copy(pairs), False  # of its own class: a Counter stays one
        for key, value in pairs.items():
            if self._kept(key, is_row=True)[1]:
                del found[key]
            else:
                found[key], is_one = self._kept(value)
                is_gone = is_gone or is_one
        return found, is_gone


def _keys(text: str) -> Iterator[bytes]:
    """The keys of the URLs, hosts and SURTs in a text."""
    words = _WORD.findall(text)
    for word in dict.fromkeys((*words, *(one.rstrip(".,:;!?)]}") for one in words))):  # a sentence may end there
        if match := _SCHEME.search(word):
            yield word[match.start() :].lower().encode()  # as in `dns:example.org`, `urn:text:http://example.org/`
            yield from _keys_of(word[match.start() :])
        for url in _URL.split(word)[1:]:
            yield from _keys_of(url)
    for name in _HOST.findall(text):
        yield from _keys_of(f"http://{name}/")
    for host, port, end, path in _SURT.findall(text):
        if "," in host or end:
            yield f"{host}{port.lstrip(',')}){path or '/'}".lower().encode()


def _keys_of(url: str) -> Iterator[bytes]:
    """The keys of a URL: as it is written, and with its host by the one rule."""
    yield urlkey(url).encode()
    if not url.isascii():
        yield urlkey(hosts.in_url(url)).encode()
