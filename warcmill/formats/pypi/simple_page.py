"""The page of a project in a package index, in JSON (PEP 691, 700, 792) or HTML (PEP 503, 592, 629, 714, 792). Pure.

A page is hostile: of a file that is not as the standard has it nothing is taken, and the page is noted to have it.

Indexes of one's own (pypiserver, a folder of files behind a web server, an older Artifactory) have pages in HTML alone.
One is read as the document that PEP 691 has of it, tag by tag, in linear time whatever it is. Without a file it is a
page of an index only if it names its version (PEP 629), is titled as PEP 503 shows it, or has a serial: any other may
be the page of an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from msgspec import Struct

from warcmill.errors import BadInput
from warcmill.formats.pypi import filenames
from warcmill.formats.pypi.dump import ListedFile
from warcmill.formats.pypi.projects import read_status

MEDIA_TYPE = "application/vnd.pypi.simple.v1+json"
LARGEST = 64 << 20  # bytes; the largest of PyPI has 12 MB
CORE = ("core-metadata", "data-dist-info-metadata", "dist-info-metadata")
"""The members by which a page says that a file's METADATA is beside it: that of PEP 714, and those of before."""
_LONGEST_URL = 10_000
_SHA256 = re.compile(r"[0-9a-f]{64}")
HTML = frozenset(["text/html", "application/vnd.pypi.simple.v1+html"])
_VALUE = r"""(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+)"""
_tags = re.compile(
    rf"<(?:!--SERIAL (?P<serial>[0-9]{{1,18}})-->|!--.*?(?:-->|\Z)|(?P<name>a|meta|base|title)(?=[\s/>])"
    rf"(?P<attributes>(?:[\s/]++|[^\s/>][^\s/>=]*+(?:\s*+=\s*+{_VALUE}?)?)*+)(?:>|\Z))",
    re.DOTALL | re.IGNORECASE,
).finditer
_attributes = re.compile(rf"([^\s/>][^\s/>=]*+)(?:\s*+=\s*+({_VALUE})?)?").finditer
_is_title = re.compile(r"[^<]{0,200}?\b(?:Links for|Simple (?:index|list))\b", re.IGNORECASE).match
_hash_in = re.compile(r"(?:^|&)(md5|sha1|sha224|sha256|sha384|sha512|blake2b)=([0-9A-Fa-f]{8,128})(?=&|$)").search
_VERSION = "pypi:repository-version"
_STATUS = {"pypi:project-status": "status", "pypi:project-status-reason": "reason"}


class SimplePage(Struct, frozen=True):
    """The page of a project, by its normalised name. `unfit`: the number of files that are not as the standard has
    them. `serial`: its last event's, or None. `status`, `reason`: the project's (PEP 792); None: unknown."""

    project: str
    serial: int | None
    files: tuple[ListedFile, ...]
    unfit: int
    status: str | None = None
    reason: str | None = None


def accepted(*, html: bool) -> str:
    """The header `Accept` by which a page is asked for in JSON, or else in HTML, if that may be (PEP 691)."""
    return f"{MEDIA_TYPE}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1" if html else MEDIA_TYPE


def is_page(media_type: str) -> bool:
    """True if a page of the index has this media type."""
    return media_type.partition(";")[0].strip().lower() == MEDIA_TYPE


def read(data: bytes, url: str, media_type: str = MEDIA_TYPE) -> SimplePage:
    """Read the page that was fetched from a URL, in JSON or HTML; BadInput if it is invalid."""
    try:
        raw = html_page(data, url) if is_html(media_type) else json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadInput(url, f"the page is no JSON: {error}") from error
    name, listed = (raw.get("name"), raw.get("files")) if isinstance(raw, dict) else (None, None)
    if not isinstance(name, str) or not filenames.is_project(name) or not isinstance(listed, list):
        raise BadInput(url, "the page has no name of a project, or no list of its files")
    meta = raw.get("meta")
    version = meta.get("api-version") if isinstance(meta, dict) else None
    if version is not None and str(version).partition(".")[0] != "1":
        raise BadInput(url, f"the page is of version {str(version)[:40]!a}, and 1 is known (PEP 691)")
    serial = meta.get("_last-serial") if isinstance(meta, dict) else None
    files = [file for one in listed if (file := _file(one, url))]
    by_name = {file.filename: file for file in files}  # of two with one name the last one, as of a JSON object
    return SimplePage(
        filenames.normalised(name),
        serial if isinstance(serial, int) and not isinstance(serial, bool) and serial >= 0 else None,
        tuple(by_name[filename] for filename in sorted(by_name)),
        len(listed) - len(files),
        *read_status(raw.get("project-status")),
    )


def is_html(media_type: str) -> bool:
    """True for the media types of pages in HTML."""
    return media_type.partition(";")[0].strip().lower() in HTML


def html_page(data: bytes, url: str) -> dict[str, Any]:
    """The page of a project that was fetched from a URL, as PEP 691 has it. BadInput for what is not such a page."""
    found = page_in(data, url)
    if found is None:
        raise BadInput(url, "it is not a page of an index (PEP 503): it names no file")
    return found


def page_in(data: bytes, url: str) -> dict[str, Any] | None:
    """The same; None for what is not such a page."""
    project, page = _last_of(url), _Page(data, url)
    files = [file for href, own in page.anchors if (file := _anchored(href, own))]
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


def _file(raw: object, url: str) -> ListedFile | None:
    if not isinstance(raw, dict):
        return None
    filename, place = raw.get("filename"), raw.get("url")
    if not isinstance(filename, str) or not isinstance(place, str) or len(place) > _LONGEST_URL:
        return None
    if not filename or len(filename) > filenames.LONGEST or not filename.isprintable() or "/" in filename:
        return None
    try:
        place = urljoin(url, place).partition("#")[0]
    except ValueError:
        return None
    hashes, size = raw.get("hashes"), raw.get("size")
    return ListedFile(
        filename=filename,
        url=place,
        sha256=_digest(hashes.get("sha256")) if isinstance(hashes, Mapping) else None,
        size=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
        requires_python=_text(raw.get("requires-python")),
        yanked=_yanked(raw.get("yanked")),
        uploaded=_text(raw.get("upload-time")),
        core=core_of(*map(raw.get, CORE)),
    )


def core_of(*values: object) -> str | None:
    """The digest of a METADATA beside its file, by the values of `CORE`, the first that is there; '' without a digest;
    None: there is no METADATA."""
    value = next((one for one in values if one is not None), None)
    if isinstance(value, Mapping):
        return _digest(value.get("sha256")) or ""
    return "" if value is True else None


def _digest(value: object) -> str | None:
    return value.lower() if isinstance(value, str) and _SHA256.fullmatch(value.lower()) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _yanked(value: object) -> str | None:
    """The reason of a yank, '' without one; None: it is not yanked."""
    if isinstance(value, str):
        return value
    return "" if value is True else None


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
            name, own = (tag["name"] or "").lower(), dict(_attributes_of(tag["attributes"] or ""))
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


def _anchored(href: str, own: Mapping[str, str]) -> dict[str, Any] | None:
    """The file of an anchor; None for one that leads elsewhere. Its name is the last part of its address (PEP 503)."""
    place, _, fragment = href.partition("#")
    name = "" if "rel" in own or urlsplit(place).path.endswith("/") else _last_of(place)
    if not name or filenames.parse(name) is None:
        return None
    hashed = _hash_in(fragment)
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
        known = _hash_in(core)
        found["core-metadata"] = {known[1]: known[2].lower()} if known else True
    return found


def _attributes_of(text: str) -> Iterator[tuple[str, str]]:
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
