"""[text] solr and [collection.NAME]: which Solr gets the text, and which of its collections what."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from tasks.config import sections
from warcmill.errors import BadConfig, BadInput
from warcmill.index.routing import Routing, routing
from warcmill.index.sink_solr import Place

COLLECTION, COLLECTION_KEYS = "collection.", ("hosts", "surts")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")  # as Solr allows them
_NO_NAME = re.compile(r"[^A-Za-z0-9.-]+")
_KEY = "[text] solr"


def solr() -> Place | None:
    """The configured Solr, or BadConfig; None if there is none. It is not asked for anything."""
    url = sections.value("text", "solr").rstrip("/")
    named = sections.named(COLLECTION)
    if not url:
        if named:
            raise BadConfig(_KEY, f"is not set, and [{named[0]}] routes to one of its collections")
        return None
    server, _, default = url.rpartition("/")
    parts = urlsplit(server)
    if parts.scheme not in ("http", "https") or len(parts.path) < 2 or not _NAME.fullmatch(default):
        raise BadConfig(_KEY, "is not the URL of a collection, such as http://127.0.0.1:8983/solr/discovery")
    place = f"{parts.netloc.rpartition('@')[2]}{parts.path}"
    return Place(server, _routing(default, named), f"solr-{_NO_NAME.sub('-', place)}")


def _routing(default: str, named: list[str]) -> Routing:
    tables = {}
    for section in named:
        name = section.removeprefix(COLLECTION)
        if not _NAME.fullmatch(name):
            raise BadConfig(f"[{section}]", "its name is not that of a collection of Solr")
        sections.refuse_unknown(section, COLLECTION_KEYS)
        tables[name] = (_list(section, "hosts"), _list(section, "surts"))
        if not any(tables[name]):
            raise BadConfig(f"[{section}]", "routes nothing: set hosts or surts")
    try:
        return routing(default, tables)
    except BadInput as error:
        section = next((one for one in named if error.path in _entries(one)), named[0])
        raise BadConfig(f"[{section}]", str(error)) from error


def _entries(section: str) -> tuple[str, ...]:
    return (*_list(section, "hosts"), *_list(section, "surts"))


def _list(section: str, key: str) -> tuple[str, ...]:
    """Entries by blanks or the ends of lines: SURTs have commas in them. Hosts may be separated by commas too."""
    return tuple(filter(None, re.split(r"[,\s]+" if key == "hosts" else r"\s+", sections.value(section, key))))
