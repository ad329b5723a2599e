"""Write the description of a package in unqualified Dublin Core (DCMES 1.1), as `oai_dc` has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from warcmill.formats.xml_text import DECLARATION, chunks, escape

VERSION = "1.1"


@dataclass(frozen=True, slots=True)
class Description:
    """The elements of Dublin Core that are used, each as often as it has values, in this order; "" is no value.

    Of a web archive: `creator` owns the targets, `publisher` submits the package, `date` is when the crawl began and
    ended, `source` are the seeds, `relation` the packages before, continued or replaced.
    """

    title: tuple[str, ...]
    creator: tuple[str, ...] = ()
    subject: tuple[str, ...] = ()
    description: tuple[str, ...] = ()
    publisher: tuple[str, ...] = ()
    date: tuple[str, ...] = ()
    type: tuple[str, ...] = ("Collection",)
    format: tuple[str, ...] = ()
    identifier: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    language: tuple[str, ...] = ()
    relation: tuple[str, ...] = ()
    coverage: tuple[str, ...] = ()
    rights: tuple[str, ...] = ()


def write(description: Description) -> Iterator[bytes]:
    """Yield the document."""
    return chunks(_pieces(description))


def _pieces(description: Description) -> Iterator[str]:
    yield DECLARATION
    yield '<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"'
    yield ' xmlns:dc="http://purl.org/dc/elements/1.1/">\n'
    for element in fields(description):
        for value in filter(None, getattr(description, element.name)):
            yield f"  <dc:{element.name}>{escape(value)}</dc:{element.name}>\n"
    yield "</oai_dc:dc>\n"
