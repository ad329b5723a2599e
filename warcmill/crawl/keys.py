"""The key by which a crawl knows a page, when a site writes a session's id into every URL: it has the id left out.

With it a page that was seen under one id is not fetched again under another. The
forms are those that Heritrix leaves out.
"""

from __future__ import annotations

import re

_IDS = re.compile(
    r"(?P<before>[;?&])(?:jsessionid=[0-9a-z]{32}(?:\.[^?&;/]{1,64})?|(?:phpsessid|sid)=[0-9a-z]{32}"
    r"|aspsessionid[a-z]{8}=[a-z]{24}|cfid=[^&]{1,64}&cftoken=[^&]{1,64})(?P<after>[?&/]|$)",
    re.IGNORECASE,
)
_IN_PATH = re.compile(r"/\((?:[a-z]\([0-9a-z]{24}\)|[0-9a-z]{24})\)(?=/)", re.IGNORECASE)


def without_session(uri: str) -> str:
    """Return a canonical URI without the ids of sessions."""
    if "?" in uri or ";" in uri or "&" in uri:
        uri = _IDS.sub(_joined, uri)
    return _without_folder(uri) if "/(" in uri else uri


def _without_folder(uri: str) -> str:
    """Leave out an id that is a folder, as pages that end in `.aspx` have it."""
    page = uri.partition("?")[0].lower().rfind(".aspx")
    found = _IN_PATH.search(uri, 0, page) if page >= 0 else None
    return uri[: found.start()] + uri[found.end() :] if found else uri


def _joined(match: re.Match[str]) -> str:
    """What is between the parts before and after an id: a `?` stays before the rest of a query."""
    before, after = match["before"], match["after"]
    if after == "&":
        return before if before in "?&" else after
    return after
