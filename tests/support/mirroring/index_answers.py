"""Answers of a package index as a crawler keeps them: pages of projects, files, ends of files, refusals."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Mapping, Sequence

from records.captures import response

from warcmill.formats.pypi.simple_page import MEDIA_TYPE

PLACE = "https://index.example"


def wheel(project: str, version: str, *requires: str, modules: Sequence[str] = (), padding: int = 0) -> bytes:
    """A small wheel, with some bytes that do not compress at its begin."""
    lines = ["Metadata-Version: 2.1", f"Name: {project}", f"Version: {version}"]
    lines += [f"Requires-Dist: {one}" for one in requires]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("padding.bin", bytes(padding), zipfile.ZIP_STORED)
        for name in modules or [f"{project}/__init__.py"]:
            archive.writestr(name, "")
        archive.writestr(f"{project}-{version}.dist-info/METADATA", "\n".join(lines))
    return file.getvalue()


def sdist(project: str, version: str) -> bytes:
    """A small sdist."""
    file = io.BytesIO()
    contents = {"PKG-INFO": f"Metadata-Version: 2.4\nName: {project}\nVersion: {version}\n", f"{project}.py": ""}
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, text in contents.items():
            info = tarfile.TarInfo(f"{project}-{version}/{name}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return file.getvalue()


def page_url(project: str) -> str:
    """Where the page of a project is."""
    return f"{PLACE}/simple/{project}/"


def file_url(name: str) -> str:
    """Where a file is."""
    return f"{PLACE}/files/{name}"


def page(project: str, serial: int | None, files: Mapping[str, bytes | str], **more: object) -> bytes:
    """The record of a project's page. A file is its bytes, or the SHA-256 that the page has for it."""
    listed = []
    for name, content in files.items():
        digest = content if isinstance(content, str) else hashlib.sha256(content).hexdigest()
        listed.append({"filename": name, "url": f"../../files/{name}#x", "hashes": {"sha256": digest}, **more})
    meta = {"api-version": "1.1", **({} if serial is None else {"_last-serial": serial})}
    body = json.dumps({"meta": meta, "name": project, "files": listed}).encode()
    return response(page_url(project), b"Content-Type: " + MEDIA_TYPE.encode(), body=body)


def file(name: str, content: bytes, begin: int = 0) -> bytes:
    """The record of a file, or of its end."""
    if not begin:
        return response(file_url(name), b"Content-Type: application/octet-stream", body=content)
    part = b"Content-Range: bytes %d-%d/%d" % (begin, len(content) - 1, len(content))
    return response(file_url(name), part, body=content[begin:], status=b"HTTP/1.1 206 Partial Content")


def refused(url: str, status: int) -> bytes:
    """The record of an answer that is neither."""
    return response(url, b"Content-Type: text/html", body=b"no", status=b"HTTP/1.1 %d Refused" % status)
