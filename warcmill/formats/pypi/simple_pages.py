"""Pages of a package index, as installers read them: PEP 503, 658, 691, 700 and 792, made of the rows of dumps. Pure.

Links to files are relative to a project's page: `../../files/PROJECT/FILENAME`. A wheel whose requirements are known
has its METADATA beside it, at the same address and `.metadata`, with the fields that its row has: so an installer
resolves without the file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from html import escape
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from warcmill.formats.pypi.dump import DistributionRow, DistType, ListedFile
from warcmill.formats.pypi.lives import StatusInterval
from warcmill.formats.pypi.projects import status_json

_EXTRA = re.compile(r"""extra\s*==\s*['"]([A-Za-z0-9][A-Za-z0-9._-]*)['"]""")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_AT_ONCE = 1_000  # names of a list


class PageKind(StrEnum):
    """The kinds of a page, by their types; a client that accepts none of them gets the first."""

    HTML = "text/html"
    HTML_V1 = "application/vnd.pypi.simple.v1+html"
    JSON_V1 = "application/vnd.pypi.simple.v1+json"

    @property
    def type(self) -> str:
        """The page's Content-Type."""
        return str(self) if self is PageKind.JSON_V1 else f"{self}; charset=utf-8"


class OfferedFile(Struct, frozen=True):
    """A file that a page lists. `row`: its facts; None where they are not known."""

    listed: ListedFile
    row: DistributionRow | None = None


def preferred(accept: str) -> PageKind:
    """The kind that an Accept header prefers (RFC 9110, 12.5.1); of equal ones that with the most in it."""
    weights: dict[str, float] = {}
    for part in accept.split(","):
        kind, *parameters = (word.strip().lower() for word in part.split(";"))
        given = next((word.removeprefix("q=") for word in parameters if word.startswith("q=")), "1")
        weights[kind] = float(given) if re.fullmatch(r"[01](\.[0-9]{0,3})?", given) else 0.0

    def weight(kind: PageKind) -> float:
        ranges = (str(kind), f"{kind.partition('/')[0]}/*", "*/*")
        return next((weights[one] for one in ranges if one in weights), 0.0)

    named = [kind for kind in reversed(PageKind) if str(kind) in weights and weight(kind)]
    return max(named, key=weight) if named else PageKind.HTML


def project_page(
    kind: PageKind, project: str, serial: int, files: Iterable[OfferedFile], status: StatusInterval | None = None
) -> bytes:
    """The page of a project, with its files as of a serial, and its status then; None: it is unknown."""
    offered = list(files)
    if kind is PageKind.JSON_V1:
        page = _project_in_json(project, serial, offered)
        return _json({**page, "project-status": status_json(status)} if status else page)
    links = (_anchor(project, one) for one in offered)
    return _html(f"Links for {project}", links, serial, _status_tags(status)).encode("utf-8", "replace")


def index_page(kind: PageKind, serial: int, projects: Iterable[str]) -> Iterator[bytes]:
    """The list of all projects, in pieces: it may have a million."""
    if kind is PageKind.JSON_V1:
        meta = json.dumps({"_last-serial": serial, "api-version": "1.0"})
        yield f'{{"meta": {meta}, "projects": ['.encode()
        yield from _in_pieces(projects, lambda name: json.dumps({"name": name}), ", ")
        yield b"]}\n"
        return
    head, _, foot = _html("Simple index", ["\0"], serial).partition("\0")
    yield head.encode()
    yield from _in_pieces(projects, lambda name: f'<a href="{quote(name)}/">{escape(name)}</a>', "\n")
    yield foot.encode()


def metadata(row: DistributionRow | None) -> bytes | None:
    """The METADATA of a wheel, its fields as they were but for those that describe. None where they are not known, or
    would not be read as they were written. A row of an earlier version has requirements alone."""
    if row is None or row.dist_type is not DistType.WHEEL or row.version is None or row.requires_dist is None:
        return None
    if row.metadata is not None:
        return _document(row.metadata)
    extras = sorted({extra for requirement in row.requires_dist for extra in _EXTRA.findall(requirement)})
    fields = [("Metadata-Version", "2.1"), ("Name", row.project), ("Version", row.version)]
    fields += [("Requires-Python", row.requires_python)] if row.requires_python else []
    fields += [("Provides-Extra", extra) for extra in extras]
    fields += [("Requires-Dist", requirement) for requirement in row.requires_dist]
    return _document([f"{name}: {value}" for name, value in fields])


def _document(lines: Sequence[str]) -> bytes | None:
    if not lines or any(map(_CONTROL.search, lines)):
        return None
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")


def _project_in_json(project: str, serial: int, offered: list[OfferedFile]) -> dict[str, Any]:
    """By PEP 700 where all that it asks for is known, else by PEP 691; a status (PEP 792) comes beside either."""
    versions = list(dict.fromkeys(one.row.version if one.row else None for one in offered))
    is_whole = None not in versions and all(one.listed.size is not None for one in offered)
    page: dict[str, Any] = {
        "meta": {"api-version": "1.1" if is_whole else "1.0", "_last-serial": serial},
        "name": project,
        "files": [_file_in_json(project, one) for one in offered],
    }
    return {**page, "versions": versions} if is_whole else page


def _file_in_json(project: str, one: OfferedFile) -> dict[str, Any]:
    listed, core = one.listed, metadata(one.row)
    found: dict[str, Any] = {
        "filename": listed.filename,
        "url": _address(project, listed),
        "hashes": {"sha256": listed.sha256} if listed.sha256 else {},
        "yanked": False if listed.yanked is None else listed.yanked or True,
        "core-metadata": {"sha256": _sha256(core)} if core else False,
    }
    more = {"requires-python": listed.requires_python, "size": listed.size, "upload-time": listed.uploaded}
    return found | {name: value for name, value in more.items() if value is not None}


def _anchor(project: str, one: OfferedFile) -> str:
    listed, core = one.listed, metadata(one.row)
    digest = f"#sha256={listed.sha256}" if listed.sha256 else ""
    fields = [("href", f"{_address(project, listed)}{digest}")]
    fields += [("data-requires-python", listed.requires_python)] if listed.requires_python else []
    fields += [("data-yanked", listed.yanked)] if listed.yanked is not None else []
    fields += [("data-core-metadata", f"sha256={_sha256(core)}")] if core else []
    fields += [("data-dist-info-metadata", f"sha256={_sha256(core)}")] if core else []
    text = " ".join(f'{name}="{escape(value)}"' for name, value in fields)
    return f"<a {text}>{escape(listed.filename)}</a><br>"


def _address(project: str, listed: ListedFile) -> str:
    return f"../../files/{quote(project, '')}/{quote(listed.filename, '')}"


def _status_tags(status: StatusInterval | None) -> str:
    """The tags of a status (PEP 792)."""
    names = {"status": "pypi:project-status", "reason": "pypi:project-status-reason"}
    found = ((names[word], value) for word, value in status_json(status).items())
    return "".join(f'<meta name="{name}" content="{escape(value)}">' for name, value in found)


def _html(title: str, links: Iterable[str], serial: int, more: str = "") -> str:
    version = '<meta name="pypi:repository-version" content="1.0">'
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8">{version}<title>{escape(title)}</title>{more}</head>
<body>
<h1>{escape(title)}</h1>
{chr(10).join(links)}
</body>
</html>
<!--SERIAL {serial}-->
"""


def _in_pieces(names: Iterable[str], shown: Callable[[str], str], between: str) -> Iterator[bytes]:
    held: list[str] = []
    for name in names:
        if len(held) == _AT_ONCE:
            yield (between.join(held) + between).encode()
            held = []
        held.append(shown(name))
    yield between.join(held).encode()


def _json(page: dict[str, Any]) -> bytes:
    return json.dumps(page, sort_keys=True).encode() + b"\n"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
