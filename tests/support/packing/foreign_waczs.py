"""WACZ files as others write them, and as nobody should: any members, any declarations."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

PAGE_LIST = {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}


def sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def pages(*listed: tuple[str, str, str]) -> bytes:
    """A list of pages: of each its time, URL and title."""
    lines = [{"id": url, "url": url, "ts": time, "title": title} for time, url, title in listed]
    return b"".join(json.dumps(line).encode() + b"\n" for line in (PAGE_LIST, *lines))


def package(members: Mapping[str, bytes], **more: Any) -> bytes:
    """The datapackage.json of these members."""
    resources = [
        {"name": path.rpartition("/")[2].lower(), "path": path, "hash": sha256(data), "bytes": len(data)}
        for path, data in members.items()
    ]
    return json.dumps({"profile": "data-package", "resources": resources, "wacz_version": "1.1.1"} | more).encode()


def digest_of(data: bytes) -> bytes:
    """The datapackage-digest.json of a datapackage.json."""
    return json.dumps({"path": "datapackage.json", "hash": sha256(data)}).encode()


def whole(members: Mapping[str, bytes], **more: Any) -> dict[str, bytes]:
    """Members with the package that declares them, and its digest."""
    about = package(members, **more)
    return {**members, "datapackage.json": about, "datapackage-digest.json": digest_of(about)}


def write(path: Path, members: Mapping[str, bytes] | Sequence[tuple[str, bytes]], method: int = ZIP_STORED) -> Path:
    """Write a zip of any members, also of two with one name."""
    pairs = members.items() if isinstance(members, Mapping) else members
    with ZipFile(path, "w") as archive, warnings.catch_warnings(action="ignore"):
        for name, data in pairs:
            info = ZipInfo("x")
            info.filename = info.orig_filename = name  # as it is: ZipInfo would change it
            info.compress_type = method
            archive.writestr(info, data)
    return path
