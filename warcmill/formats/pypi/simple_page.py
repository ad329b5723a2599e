"""The page of a project in a package index, as JSON (PEP 691, PEP 700), or in HTML. Pure.

A page is hostile: of a file that is not as the standard has it nothing is taken, and the page is noted to have it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin

from msgspec import Struct

from warcmill.errors import BadInput
from warcmill.formats.pypi import filenames, simple_html
from warcmill.formats.pypi.dump import ListedFile
from warcmill.formats.pypi.projects import read_status

MEDIA_TYPE = "application/vnd.pypi.simple.v1+json"
LARGEST = 64 << 20  # bytes; the largest of PyPI has 12 MB
CORE = ("core-metadata", "data-dist-info-metadata", "dist-info-metadata")
"""The members by which a page says that a file's METADATA is beside it: that of PEP 714, and those of before."""
_LONGEST_URL = 10_000
_SHA256 = re.compile(r"[0-9a-f]{64}")


class SimplePage(Struct, frozen=True):
    """The page of a project, by its normalised name. `unfit`: the number of files that are not as the standard has
    them. `serial`: its last event's, or None. `status`, `reason`: the project's (PEP 792); None: unknown."""

    project: str
    serial: int | None
    files: tuple[ListedFile, ...]
    unfit: int
    status: str | None = None
    reason: str | None = None


def is_page(media_type: str) -> bool:
    """True if a page of the index has this media type."""
    return media_type.partition(";")[0].strip().lower() == MEDIA_TYPE


def read(data: bytes, url: str, media_type: str = MEDIA_TYPE) -> SimplePage:
    """Read the page that was fetched from a URL, in JSON or HTML; BadInput if it is invalid."""
    try:
        raw = simple_html.project_page(data, url) if simple_html.is_html(media_type) else json.loads(data)
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
