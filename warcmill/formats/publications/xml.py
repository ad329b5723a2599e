"""Properties and paragraphs in the XML of a file, within limits: entities are refused, what is long is cut. Pure.

Names are compared without their namespaces: those of Dublin Core, OOXML, ODF and OPF do not clash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml import ElementTree as Defused

from warcmill.formats.publications.identifiers import texts

MOST = 8 << 20  # bytes of a part that are read
FAULTS = (ParseError, DefusedXmlException)
_DEEPEST = 500  # elements in each other
DUBLIN = {
    "title": "title",
    "creator": "authors",
    "subject": "subject",
    "publisher": "publisher",
    "date": "date",
    "language": "language",
    "identifier": "identifier",
}


def properties_of(data: bytes, names: Mapping[str, str]) -> tuple[dict[str, tuple[str, ...]], str]:
    """The values of elements by the property that their name stands for; and the fault, '' if all was read."""
    found = dict[str, list[str]]()
    try:
        for element in Defused.fromstring(data).iter():
            if name := names.get(local(element.tag)):
                items = [one.text or "" for one in element.iter() if local(one.tag) == "li"]
                found.setdefault(name, []).extend(items or [element.text or ""])
    except FAULTS as error:
        return {}, f"its XML cannot be read: {type(error).__name__}"
    return {name: kept for name, values in found.items() if (kept := texts(values)[:50])}, ""


def local(tag: object) -> str:
    """The name of an element without its namespace; '' of a comment."""
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def paragraphs(stream: IO[bytes], name: str, most: int) -> Iterator[Element]:
    """The elements of that name, each whole, up to so many characters of their text. Raises one of FAULTS."""
    left, depth = most, 0
    for event, element in Defused.iterparse(Bounded(stream), ("start", "end")):
        depth += 1 if event == "start" else -1
        if depth > _DEEPEST:
            raise ParseError(f"over {_DEEPEST} elements in each other")
        if event == "end" and local(element.tag) == name:
            yield element
            left -= sum(map(len, element.itertext()))
            if left < 0:
                return
            element.clear()


class Bounded:
    """A stream of which MOST bytes can be read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._left = stream, MOST

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes."""
        data = self._stream.read(min(self._left, size if size >= 0 else self._left))
        self._left -= len(data)
        return data
