"""Pages of a package index in HTML (PEP 503, 592, 629, 658, 714, 792), as the documents that PEP 691 has of them. Pure.

Indexes of one's own (pypiserver, a folder of files behind a web server, an older Artifactory) have no other pages. Tags
are read one after another, in linear time whatever the page is. A page without a file is one of an index only if it
names its version (PEP 629), is titled as PEP 503 shows it, or has a serial: any other may be an error's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from warcmill.errors import BadInput
from warcmill.formats.pypi import filenames

MEDIA_TYPES = frozenset(["text/html", "application/vnd.pypi.simple.v1+html"])
_VALUE = r"""(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+)"""
_tags = re.compile(
    rf"<(?:!--SERIAL (?P<serial>[0-9]{{1,18}})-->|!--.*?(?:-->|\Z)|(?P<name>a|meta|base|title)(?=[\s/>])"
    rf"(?P<attributes>(?:[\s/]++|[^\s/>][^\s/>=]*+(?:\s*+=\s*+{_VALUE}?)?)*+)(?:>|\Z))",
    re.DOTALL | re.IGNORECASE,
).finditer
_attributes = re.compile(rf"([^\s/>][^\s/>=]*+)(?:\s*+=\s*+({_VALUE})?)?").finditer
_is_title = re.compile(r"\s*+(?:Links for|Simple index)\b", re.IGNORECASE).match
_digest = re.compile(r"(?:^|&)(md5|sha1|sha224|sha256|sha384|sha512|blake2b)=([0-9A-Fa-f]{8,128})(?=&|$)").search
_VERSION = "pypi:repository-version"
_STATUS = {"pypi:project-status": "status", "pypi:project-status-reason": "reason"}


def is_html(media_type: str) -> bool:
    """True for the media types of pages in HTML."""
    return media_type.partition(";")[0].strip().lower() in MEDIA_TYPES


def project_page(data: bytes, url: str) -> dict[str, Any]:
    """The page of a project that was fetched from a URL, as PEP 691 has it. BadInput for what is not such a page."""
    found = page_in(data, url)
    if found is None:
        raise BadInput(url, "it is not a page of an index (PEP 503): it names no file")
    return found


def page_in(data: bytes, url: str) -> dict[str, Any] | None:
    """The same; None for what is not such a page."""
    project, page = _last_of(url), _Page(data, url)
    files = [file for href, own in page.anchors if (file := _file(href, own))]
    begin = filenames.normalised(project)
    is_of_it = any(filenames.normalised(file["filename"]).startswith(begin) for file in files)
    if not filenames.is_project(project) or not (page.is_of_index or is_of_it):
        return None
    found: dict[str, Any] = {"meta": page.meta, "name": project, "files": files}
    return found | ({"project-status": page.status} if page.status else {})


def project_list(data: bytes, url: str) -> dict[str, Any]:
    """The list of an index's projects, as PEP 691 has it. BadInput for what is not such a list."""
    page = _Page(data, url)
    names = [name for href, own in page.anchors if "rel" not in own and (name := _last_of(href))]
    names = [name for name in names if name.strip(".")]  # a server's own links lead up
    if not page.is_of_index and not names:
        raise BadInput(url, "it is not the list of an index (PEP 503): it names no project")
    return {"meta": page.meta, "projects": [{"name": name} for name in names]}


class _Page:
    """The parts of a page that an index gives."""

    def __init__(self, data: bytes, url: str) -> None:
        text, base = data.decode("utf-8", "replace"), url
        self.meta: dict[str, Any] = {"api-version": "1.0"}
        self.status: dict[str, str] = {}
        self.anchors: list[tuple[str, Mapping[str, str]]] = []
        self.is_of_index = False
        for tag in _tags(text):
            if tag["serial"]:
                self.meta["_last-serial"], self.is_of_index = int(tag["serial"]), True
            name, own = (tag["name"] or "").lower(), dict(_read(tag["attributes"] or ""))
            if name == "title":
                self.is_of_index = self.is_of_index or _is_title(text, tag.end()) is not None
            elif name == "base" and base == url and own.get("href"):
                base = _joined(url, own["href"]) or url
            elif name == "meta" and own.get("name", "").lower() == _VERSION:
                self.meta["api-version"], self.is_of_index = own.get("content", ""), True
            elif name == "meta" and (word := _STATUS.get(own.get("name", "").lower())):
                self.status[word] = own.get("content", "")
            elif name == "a" and (place := _joined(base, own.get("href", ""))):
                self.anchors.append((place, own))


def _file(href: str, own: Mapping[str, str]) -> dict[str, Any] | None:
    """The file of an anchor; None for one that leads elsewhere. Its name is the last part of its address (PEP 503)."""
    place, _, fragment = href.partition("#")
    name = "" if "rel" in own or urlsplit(place).path.endswith("/") else _last_of(place)
    if not name or filenames.parse(name) is None:
        return None
    hashed = _digest(fragment)
    found: dict[str, Any] = {
        "filename": name,
        "url": place,
        "hashes": {hashed[1]: hashed[2].lower()} if hashed else {},
        "yanked": own["data-yanked"] or True if "data-yanked" in own else False,
    }
    if own.get("data-requires-python"):
        found["requires-python"] = own["data-requires-python"]
    core = own.get("data-core-metadata") or own.get("data-dist-info-metadata")
    if core and core != "false":
        known = _digest(core)
        found["core-metadata"] = {known[1]: known[2].lower()} if known else True
    return found


def _read(text: str) -> Iterator[tuple[str, str]]:
    """The attributes of a tag; of two with one name the first counts (HTML, 13.2.5.33)."""
    seen = set[str]()
    for one in _attributes(text):
        name, value = one[1].lower(), one[2] or ""
        if name not in seen:
            seen.add(name)
            is_quoted = value[:1] in ('"', "'") and len(value) > 1
            yield name, unescape(value[1:-1] if is_quoted else value)


def _joined(base: str, href: str) -> str:
    if not href:
        return ""
    try:
        return urljoin(base, href.strip())
    except ValueError:
        return ""


def _last_of(url: str) -> str:
    """The last part of a URL's path, without the slash at its end."""
    try:
        return unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2])
    except ValueError:
        return ""
