"""An entry of the data set `documents`: one body with all its URLs, captures and candidates for each field. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

FIELDS = ("title", "landing_page_url", "publisher", "publication_date", "authors", "isbn", "doi")


class Candidate(Struct, frozen=True, omit_defaults=True):
    """A value for a field. `by`: the extractor: citation, dc, jsonld, microdata, og, up, link, heading, h1, title,
    property, largest, text (of the first pages), filename, modified (the Last-Modified of the response), or version
    (taken over from the version before). `url`, `date`: the record that has
    it. `why_not`: why it is not good; '' if it may be shown."""

    value: str
    by: str
    url: str = ""
    date: str = ""
    why_not: str = ""


class DocumentCapture(Struct, frozen=True, omit_defaults=True):
    """A capture of the body, or a revisit of one."""

    url: str
    date: str
    job: str
    launch: str
    warc: str
    offset: int
    is_revisit: bool = False


class Entry(Struct, frozen=True, omit_defaults=True):
    """One body, as the archive has it, without decisions.

    `id`: its SHA-256. `first_seen`: the time of its first capture, 14 digits. `urls`: its URLs, first captured first;
    `more_urls` at least are beyond the bound. `captures`: likewise. `fields`: the candidates of each of FIELDS, best
    first; the first good one is shown.
    `version_of`: the id of the body that its URL had before.
    """

    id: str
    type: str
    size: int
    first_seen: str
    urls: tuple[str, ...]
    captures: tuple[DocumentCapture, ...]
    filename: str = ""
    declared: str = ""
    fault: str = ""
    fields: Mapping[str, tuple[Candidate, ...]] = {}
    version_of: str = ""
    more_urls: int = 0
    more_captures: int = 0

    def shown(self, field: str) -> str:
        """The value of a field that is shown; '' without a good candidate."""
        return next((one.value for one in self.fields.get(field, ()) if not one.why_not), "")
