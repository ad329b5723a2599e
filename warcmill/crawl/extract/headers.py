"""Links of an answer's header: Location, Link (RFC 8288), Refresh, Content-Location."""

from __future__ import annotations

import re

from warcmill.crawl.extract.links import LINK, REDIRECT, Found, Links
from warcmill.crawl.extract.rel import hop_of
from warcmill.crawl.head import Fields

_FIELDS = ("location", "refresh", "content-location", "link")
_LINK = re.compile(r"""<([^<>]*+)>((?:\s*+;\s*+[^\s=;,"]++(?:\s*+=\s*+(?:"(?:[^"\\]|\\.)*+"|[^\s;,"]*+))?+)*+)""")
_REL = re.compile(r"""(?:^|;)\s*+rel\s*+=\s*+"?+([^";]*+)""", re.IGNORECASE)
_refresh = re.compile(
    r"""\s*+[\d.]*+\s*+[;,]?+\s*+(?:url\s*+=\s*+)?+(?:"([^"]*+)|'([^']*+)|(.*+))""", re.IGNORECASE | re.DOTALL
).match


def links(fields: Fields, uri: str, status: int) -> Found:
    """The links of a header; a Location counts with a redirect or a 201."""
    if not any(map(fields.has, _FIELDS)):
        return Found()
    found = Links(uri)
    if 300 <= status < 400 or status == 201:
        found.add(text(fields.first("location")), REDIRECT, "location:")
    found.add(refreshed(text(fields.first("refresh"))), REDIRECT, "refresh:")
    found.add(text(fields.first("content-location")), LINK, "content-location:")
    for value in fields.all("link"):
        for written, parameters in _LINK.findall(text(value)):
            rel = _REL.search(parameters)
            if hop := hop_of(rel[1] if rel else ""):
                found.add(written, hop, "link:")
    return found.all()


def refreshed(content: str) -> str:
    """Where a refresh goes; '' when it only loads the page anew (HTML, "shared declarative refresh steps")."""
    match = _refresh(content)
    return next((part for part in match.groups() if part), "").strip() if match and not content.isdigit() else ""


def text(value: str) -> str:
    """A header's value as browsers read it: as UTF-8 when it is that."""
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value
