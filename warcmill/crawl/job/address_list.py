"""A list of addresses as people have it, pasted or in a file: plain text, CSV, UTF-8 or UTF-16. Pure; hostile input.

Each line without an address is named by its number, with the reason. In CSV and TSV the address is the first cell of a
line that looks like one, and a first line without any is the head of the table.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from warcmill.crawl.fetch.addresses import Judge
from warcmill.crawl.uri import canonical, shown
from warcmill.errors import BadInput
from warcmill.formats import surt
from warcmill.formats.seeds import coding_of, route_of

MOST = 100_000  # lines
LARGEST = 16 << 20  # bytes of a file
_LONGEST = 1 << 17  # letters of a line
_QUOTES = "\"'<>\u201c\u201d\u2018\u2019\u00ab\u00bb\u201e"
_SEPARATORS = ("\t", ";", ",")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}:(?![0-9])")
_is_name = re.compile(r"[^\s/?#@:\\\"<>]{1,253}\.[^\s/?#@:\\\"<>.]{2,63}\.?(:[0-9]{1,5})?([/?#]\S*)?").fullmatch
_begins_cell = re.compile(r'[\s"]|https?://').match
_FETCHED = ("http", "https")
_INSIDE = ("localhost", ".localhost", ".local", ".internal")


class ListedAddress(NamedTuple):
    """An address of a list: in the canonical form, with its route if it has one; and its line."""

    line: int
    url: str


class WrongLine(NamedTuple):
    """A line of a list that is not taken: its number, its text, and why."""

    line: int
    text: str
    why: str

    @property
    def words(self) -> str:
        """The fault in one line."""
        return f"line {self.line}: {self.text}: {self.why}"


class AddressList(NamedTuple):
    """The addresses of a list, each once, in its order. `wrong`: the lines without one. `inside`: those that name a
    host of the own network, which only an operator lets in. `repeated`: the number of lines that name one again."""

    found: tuple[ListedAddress, ...]
    wrong: tuple[WrongLine, ...]
    inside: tuple[WrongLine, ...]
    repeated: int

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses alone."""
        return tuple(one.url for one in self.found)


def decoded(data: bytes, name: str = "the list", most: int = LARGEST) -> str:
    """The text of a file: UTF-8 or UTF-16, with or without its mark. BadInput for another, and a file too large."""
    if len(data) > most:
        raise BadInput(name, f"it has {len(data):,} bytes; {most:,} are the most")
    try:
        return data.decode(coding_of(data))
    except UnicodeDecodeError as error:
        todo = "save it as UTF-8"
        raise BadInput(name, f"it is not {error.encoding.upper()}: {error.reason}; {todo}", error.start) from error


def read(text: str, allow_private: Iterable[str] = ()) -> AddressList:
    """The addresses of a text. BadInput for more lines than a list may have."""
    judge, known, wrong, inside = Judge(allow_private), dict[str, int](), list[WrongLine](), list[WrongLine]()
    repeated, is_first, table = 0, True, ""
    for number, line in _lines(text):
        table = _of_head(line) if is_first else table
        cells = _row(line, table) if table else _cells(line)
        try:
            url = _address(cells, is_table=len(cells) > 1)
        except BadInput as error:
            if not (is_first and table):  # it is the head
                wrong.append(WrongLine(number, shown(line)[:200], error.why))
            is_first = False
            continue
        is_first = False
        if url in known:
            repeated += 1
            continue
        if why := why_inside(url, judge):
            inside.append(WrongLine(number, url, why))
        known[url] = number
    found = tuple(ListedAddress(number, url) for url, number in known.items())
    return AddressList(found, tuple(wrong), tuple(inside), repeated)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are neither empty nor a comment, with their numbers."""
    lines = text.splitlines()
    if len(lines) > MOST:
        raise BadInput(f"line {MOST + 1}", f"the list has {len(lines):,} lines; {MOST:,} are the most")
    for number, line in enumerate(map(str.strip, lines), start=1):
        if line and not line.startswith("#"):
            yield number, line


def _of_head(line: str) -> str:
    """The separator of the table that a line is the head of: it has several cells, and none is an address; else ''."""
    for separator in _SEPARATORS:
        cells = _row(line, separator)
        if len(cells) > 1 and not any(_SCHEME.match(cell) or "/" in cell or "." in cell for cell in cells):
            return separator
    return ""


def _row(line: str, separator: str) -> Sequence[str]:
    """The cells of a line of a table."""
    try:
        cells = next(csv.reader([line], delimiter=separator))
    except csv.Error:  # a cell that is too long
        return [line]
    return [cell.strip().strip(_QUOTES).strip() for cell in cells]


def _cells(line: str) -> Sequence[str]:
    """The cells of a line; one, unless it has a separator that no address of a line of its own has."""
    if len(line) > _LONGEST:
        return [line]
    bare = line.strip(_QUOTES + " ,;")
    for separator in _SEPARATORS:
        if separator not in line or (separator != "\t" and _SCHEME.match(bare) and not _is_row(line, separator)):
            continue
        return _row(line, separator)
    return [bare]


def _is_row(line: str, separator: str) -> bool:
    """True for a line of a table, whose first cell is an address; a comma may be in an address, too."""
    head, _, rest = line.partition(separator)
    return line.startswith('"') or not rest.strip() or bool(_begins_cell(rest)) or head.endswith(" ")


def _address(cells: Sequence[str], *, is_table: bool) -> str:
    """The address in the first cell that looks like one. BadInput if none does, or it is not fetched."""
    why = BadInput("", "it is not an address, such as https://www.example.org/")
    for cell in cells:
        if not cell:
            continue
        scheme = _SCHEME.match(cell)
        if scheme and scheme[0][:-1].lower() not in _FETCHED:
            why = BadInput("", f"{scheme[0][:-1].lower()}: is not fetched; an address begins with http:// or https://")
            continue
        if not scheme and (not _is_name(cell) if is_table else any(map(str.isspace, cell))):
            continue
        try:
            url = canonical(cell if scheme else f"https://{cell}")
        except BadInput as error:
            why = error
            continue
        if not scheme and not _is_host(url):
            continue
        return url + route_of(cell)
    raise why


def _is_host(url: str) -> bool:
    """True if the host of an address that has no scheme could be one: it has a dot, or is an address or localhost."""
    host = urlsplit(url).hostname or ""
    return "." in host or ":" in host or host == "localhost"


def why_inside(url: str, judge: Judge) -> str:
    """Why an address is one of the own network, as far as its text says; '' if it may be asked."""
    host = (urlsplit(url).hostname or "").removesuffix(".")
    if surt.is_address(host) or ":" in host:
        why = judge.why_refused(host)
        return f"an inside address: {why}" if why else ""
    return "an inside address: the name of this machine or network" if host.endswith(_INSIDE) or "." not in host else ""
