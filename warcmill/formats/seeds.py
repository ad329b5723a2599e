"""A seed list: the URLs that a crawl begins with, a line each; and the form in which seeds are compared. Pure.

    # a comment, or a line of blanks: no seed
    +http://(org,example,        a directive, such as a SURT prefix: no seed
    www.example.org              a seed; without a scheme it is crawled by http

Heritrix appends what seeds redirect to, each below a comment that names the seed: such a line is *added*.

A long list is `seeds.jsonl`, for the built-in crawler alone, and is read line by line:

    {"url": "https://index.example/simple/a/", "payload": {…}, "may_be_absent": true}
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple
from urllib.parse import quote

from warcmill.errors import BadInput
from warcmill.formats import hosts, surt

SEED_LIST = "seeds.jsonl"
_LONGEST = 2_000  # characters of a route
_IN_ROUTES = "!#$%&'()*+,/:;=?@[]_~"
_LONGEST_LINE = 1 << 18  # bytes: a URL and a payload, each of 64 KiB, escaped

_ADDED = re.compile(r"# Heritrix added seed redirect from (\S+)\.")
_NOTE = re.compile(r"\s#")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+:(?![0-9])")  # a number after it is a port
_USUAL = re.compile(  # nothing of it is spelled in two ways, but for the slash after the host
    r"(https?://(?:(?!xn--)[a-z0-9]{1,62}+\.){1,9}+[a-z]{2,62}+)((?:/[A-Za-z0-9_-]++(?:\.[A-Za-z0-9_-]++)*+)*+/?)"
)
_DIRECTIVES = ("+", "-")
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8: "utf-8-sig"}


class ListedSeed(NamedTuple):
    """A seed as it is written, its `url` in the form in which crawl logs are compared, and the seed that redirected to
    it, where Heritrix added it; else ''."""

    text: str
    url: str
    added_from: str = ""


def read(data: bytes) -> list[ListedSeed]:
    """Return the seeds of a list, each URL once, in their order. No content raises: an invalid URL is a seed too.

    The list may be in UTF-16, with or without its mark, and its last line without an end.
    """
    known: dict[str, ListedSeed] = {}
    for seed in _seeds(data.decode(coding_of(data), "backslashreplace")):
        known.setdefault(seed.url, seed)
    return list(known.values())


def comparable(text: str) -> str:
    """Return a URL in the form in which seeds and crawl logs are compared: canonical where it can be."""
    if usual := _USUAL.fullmatch(text):
        return usual[1] + (usual[2] or "/")
    url = text if _SCHEME.match(text) else f"http://{text}"
    try:
        return surt.canonical(url)
    except ValueError:
        scheme, colon, rest = hosts.in_url(url).partition(":")
        return scheme.lower() + colon + rest


def route_of(text: str) -> str:
    """The route in a URL, which a page's own script reads (`#/about`, `#!about`); '' for another fragment."""
    _, mark, fragment = text.partition("#")
    return mark + quote(fragment, safe=_IN_ROUTES) if fragment[:1] in ("/", "!") and len(fragment) <= _LONGEST else ""


class SeedLine(NamedTuple):
    """A seed of a long list. `payload` is JSON, or ''; if it `may_be_absent`, 404 and 410 are answers as well."""

    url: str
    payload: str = ""
    may_be_absent: bool = False

    def line(self) -> bytes:
        """The line of the list."""
        more = {"payload": json.loads(self.payload)} if self.payload else {}
        absent = {"may_be_absent": True} if self.may_be_absent else {}
        return json.dumps({"url": self.url, **more, **absent}, separators=(",", ":")).encode() + b"\n"


def lines(stream: BinaryIO) -> Iterator[SeedLine | BadInput]:
    """Yield the seeds of a long list; for an invalid line, the fault in it. Needs constant memory."""
    number = 0
    while line := stream.readline(_LONGEST_LINE):
        number += 1
        if line.endswith(b"\n") or len(line) < _LONGEST_LINE:
            if line.strip():
                yield _seed_line(line, number)
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(_LONGEST_LINE)
        yield BadInput(SEED_LIST, f"line {number} is longer than {_LONGEST_LINE} bytes")


def _seed_line(line: bytes, number: int) -> SeedLine | BadInput:
    try:
        found = json.loads(line)
        url, payload, absent = found["url"], found.get("payload"), found.get("may_be_absent", False)
        if not isinstance(url, str) or not isinstance(absent, bool):
            raise TypeError("its url is no text, or its may_be_absent neither true nor false")
        text = "" if payload is None else json.dumps(payload, sort_keys=True, separators=(",", ":"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return BadInput(SEED_LIST, f"line {number} is no seed: {error!r}")
    return SeedLine(url, text, absent)


def _seeds(text: str) -> Iterator[ListedSeed]:
    added_from = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("#"):
            match = _ADDED.match(line)
            added_from = match[1] if match else added_from
        elif line and not line.startswith(_DIRECTIVES):
            written = _NOTE.split(line, maxsplit=1)[0].rstrip()
            yield ListedSeed(written, comparable(written), added_from)
            added_from = ""


def coding_of(data: bytes) -> str:
    """Return the coding of a list: that of its mark, or UTF-16 where every other byte is zero, or UTF-8."""
    if marked := next((coding for mark, coding in _MARKS.items() if data.startswith(mark)), ""):
        return marked
    if b"\0" not in data[:2] or data[:2] == b"\0\0":
        return "utf-8"
    return "utf-16-le" if data[1:2] == b"\0" else "utf-16-be"
