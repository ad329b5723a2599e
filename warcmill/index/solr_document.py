"""A document of a text extract as Solr takes it: fields as in webarchive-discovery's schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from warcmill.formats.surt import registered
from warcmill.formats.text import office
from warcmill.formats.text.document import Kind, kind_of

FILE = "source_file"  # the field with the name of the WARC
MOST_OF_A_TERM = 32_766  # bytes: Lucene's limit for a string that is found as a whole
_TAKEN = (
    "id",
    "url",
    "wayback_date",
    "record_type",
    "status_code",
    "content_type_served",
    "content_length",
    "content_encoding",
    "content_language",
    "hash",
    "source_file_offset",
    "title",
    "content",
    "content_text_length",
    "parse_error",
)
_MADE = (FILE, "host", "domain", "public_suffix", "crawl_date", "crawl_year", "content_type", "content_type_norm")
FIELDS = frozenset((*_TAKEN, *_MADE))
_WORDS = frozenset({"title", "content"})
_NORMS = {Kind.HTML: "html", Kind.PDF: "pdf", Kind.PLAIN: "text"}
_OF_OFFICE = {"word": office.WORD, "excel": office.EXCEL, "powerpoint": office.POWERPOINT}


def document(line: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What is posted of a document of this WARC, named as in a version's list. Empty fields are left out."""
    time, host = str(line["wayback_date"]), host_of(str(line["url"]))
    domain, suffix = registered(host)
    served = str(line.get("content_type_served", ""))
    made = {
        FILE: name,
        "host": host,
        "domain": domain,
        "public_suffix": suffix,
        "crawl_date": f"{time[:4]}-{time[4:6]}-{time[6:8]}T{time[8:10]}:{time[10:12]}:{time[12:]}Z",
        "crawl_year": int(time[:4]),
        "content_type": served,
        "content_type_norm": _norm(served),
    }
    taken = {field: value for field, value in line.items() if field in _TAKEN}
    return {field: _cut(field, value) for field, value in {**taken, **made}.items() if value != ""}


def _norm(served: str) -> str:
    """The kind of a document by its type, as webarchive-discovery names it."""
    kind, type_ = kind_of(served), served.strip().lower()
    if kind is Kind.OFFICE:
        return next((norm for norm, types in _OF_OFFICE.items() if type_ in types), "other")
    return _NORMS.get(kind or Kind.UNDECLARED, "other")


def _cut(field: str, value: object) -> object:
    """A string that is not too long for Lucene; a URL may have 40 kB."""
    if not isinstance(value, str) or field in _WORDS or len(value) <= MOST_OF_A_TERM // 4:
        return value
    return value.encode("utf-8", "replace")[:MOST_OF_A_TERM].decode("utf-8", "ignore")


def host_of(url: str) -> str:
    """The host of a URL, without its port; '' if it has none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
