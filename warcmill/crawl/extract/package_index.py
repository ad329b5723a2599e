"""Links of a package index: the files of a project's page (PEP 691), and the part of a wheel that still lacks. Pure.

A URI is read so if its payload, which the feed of the index or this module has made, has `package_index`:

    {"package_index": {"page": "pyyaml", "files": ["PyYAML-6.0.tar.gz"], "newest": true, "whole": true}}
    {"package_index": {"wheel": 1}}

A page embeds its files, so that they belong to the crawl on whatever host. Of them those named are wanted, or all;
those of the newest release alone, or of all. A wheel is a zip file (PEP 427): its last 64 KiB mostly have its directory
and its METADATA. Where they begin before, it is asked for once more from there on, by a hop `R`, so that one record
suffices to read it. Installers for Windows and RPMs are not wanted: their names have all that is known of them.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ada_url import join_url

from warcmill.crawl.extract.links import EMBED, LIMIT, LONGEST, REDIRECT, Link, Outlinks
from warcmill.crawl.fetch.answer import HeaderFields

NAME = "package_index"
TAIL = 1 << 16  # bytes of a wheel that are asked for first; of those before its directory, if that is longer
MOST_TAIL = 64 << 20  # bytes of a wheel that are asked for; a directory of so many is of no package
MOST_TIMES = 3  # requests for parts of one wheel
WHEEL, EGG = ".whl", ".egg"
SDISTS = (".tar.gz", ".tgz", ".zip", ".tar.bz2", ".tbz", ".tar.xz", ".txz", ".tar.Z", ".tar")

_PART = re.compile(r"bytes (\d{1,18})-\d{1,18}/(?:\d{1,18}|\*)")
_END, _END_SIZE = struct.Struct("<4s4x2xHLL2x"), 22  # APPNOTE, 4.3.16
_END64, _END64_SIZE, _LOCATOR_SIZE = struct.Struct("<4s36xQQ"), 56, 20  # 4.3.14, 4.3.15
_ENTRY, _ENTRY_SIZE = struct.Struct("<4s24xHHH8xL"), 46  # 4.3.12
_IN_64 = 0xFFFFFFFF
_METADATA = re.compile(rb"[^/]+\.dist-info/METADATA").fullmatch
_RUNS = re.compile(r"[-_.]+")


def page(
    project: str, files: Iterable[str] | None = None, *, newest: bool = False, whole: bool = False
) -> dict[str, Any]:
    """The part of a payload by which a project's page is read; without `files` all are wanted."""
    named = {} if files is None else {"files": [*files]}
    flags = {name: True for name, value in (("newest", newest), ("whole", whole)) if value}
    return {NAME: {"page": project, **named, **flags}}


def reads(payload: str) -> bool:
    """True if a URI with this payload is read here."""
    return f'"{NAME}"' in payload and bool(_asked(payload))


def find(data: bytes, uri: str, status: int, fields: HeaderFields, payload: str) -> Outlinks:
    """The links of an answer; none of one that is no page, no part of a wheel, or damaged."""
    asked = _asked(payload)
    if status == 200 and isinstance(asked.get("page"), str):
        return _files(data, uri, asked)
    times, part = asked.get("wheel"), _PART.match(fields.first("content-range"))
    if status == 206 and part and isinstance(times, int) and times < MOST_TIMES:
        begin = int(part[1])
        first = first_needed(data, begin)
        if first < begin and begin + len(data) - first <= MOST_TAIL:
            return Outlinks([Link(uri, REDIRECT, NAME, payload=_part(first, times + 1))])
    return Outlinks()


def first_needed(tail: bytes, begin: int) -> int:
    """The first byte of a wheel that is needed to read its directory and its METADATA, of which the bytes from `begin`
    on are here. If the directory is not, some bytes before it count: METADATA is mostly there. `begin` if nothing is
    lacking, or if this is the end of no zip file.
    """
    found = _directory(tail, begin)
    if found is None:
        return begin
    if found.start < begin:
        return max(0, found.start - TAIL)
    starts = [start for name, start in _entries(tail[found.start - begin : found.end - begin]) if _METADATA(name)]
    return min([begin, *(max(0, start + found.shift) for start in starts)])


class _Directory(NamedTuple):
    """Where the directory of a zip file is, and by how much the offsets in it are too small."""

    start: int
    end: int
    shift: int


def _directory(tail: bytes, begin: int) -> _Directory | None:
    """The directory, by the record at the end: it ends where that begins, whatever is before the zip file."""
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END_SIZE:
        return None
    _, entries, size, offset = _END.unpack_from(tail, at)
    if (_IN_64 in (size, offset) or entries == 0xFFFF) and at >= _END64_SIZE + _LOCATOR_SIZE:
        at64 = at - _END64_SIZE - _LOCATOR_SIZE
        mark, size64, offset64 = _END64.unpack_from(tail, at64)
        if mark == b"PK\x06\x06":
            at, size, offset = at64, size64, offset64
    start = begin + at - size
    return _Directory(start, begin + at, start - offset) if start >= 0 else None


def _entries(directory: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield the name of each member, and where it begins by the directory."""
    at = 0
    while at + _ENTRY_SIZE <= len(directory):
        mark, name, extra, comment, start = _ENTRY.unpack_from(directory, at)
        if mark != b"PK\x01\x02":
            return
        at += _ENTRY_SIZE
        yield directory[at : at + name], start
        at += name + extra + comment


def _files(data: bytes, uri: str, asked: Mapping[str, Any]) -> Outlinks:
    """The files of a page that are wanted."""
    files = _listed(data)
    named = asked.get("files")
    wanted = [file for file in files if (named is None or file.filename in named) and _is_fetched(file.filename)]
    if asked.get("newest"):
        newest = _of_newest(asked["page"], {file.filename: bool(file.yanked) for file in files})
        wanted = [file for file in wanted if file.filename in newest]
    found = Outlinks()
    for file in wanted:
        try:
            place = join_url(uri, file.url).partition("#")[0] if len(file.url) <= LONGEST else ""
        except ValueError:
            place = ""
        if not place.startswith(("http://", "https://")) or len(found) == LIMIT:
            found.cut = True
            continue
        is_part = file.filename.endswith(WHEEL) and not asked.get("whole")
        is_short = file.size is not None and file.size <= TAIL
        found.append(Link(place, EMBED, NAME, payload=_part(-TAIL, 1) if is_part and not is_short else ""))
    return found


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of a project's page."""

    filename: str
    url: str
    size: int | None = None
    yanked: bool | str = False


@dataclass(frozen=True, slots=True)
class ProjectPage:
    """A project's page, of which nothing else is read."""

    files: list[PageFile]


def _listed(data: bytes) -> list[PageFile]:
    """The files of a page; none of one that cannot be read."""
    import msgspec  # noqa: PLC0415 20 ms of the crawler's start, and few jobs are of an index

    try:
        return msgspec.json.decode(data, type=ProjectPage).files
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []


def _part(first: int, times: int) -> str:
    """The payload of a wheel that is asked for from its byte `first` on."""
    payload = {"fetch": {"range": [first, None]}, NAME: {"wheel": times}}
    return json.dumps(payload, sort_keys=True, separators=(",", ":"))


def _is_fetched(name: str) -> bool:
    return name.endswith((WHEEL, EGG, *SDISTS))


def _of_newest(project: str, files: Mapping[str, bool]) -> set[str]:
    """The names of the files of the newest release, as installers choose it: none that is yanked (True), no
    pre-release, unless there are no others. All files where no name has a version (PEP 440)."""
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415 few jobs want the newest alone

    known = dict[str, Version]()
    for name in files:
        try:
            known[name] = Version(_version(project, name))
        except InvalidVersion:
            continue
    if not known:
        return set(files)
    newest = max(known, key=lambda name: (not files[name], not known[name].is_prerelease, known[name]))
    return {name for name, version in known.items() if version == known[newest]}


def _version(project: str, name: str) -> str:
    """The version in the name of a file; '' if there is none."""
    if name.endswith((WHEEL, EGG)):
        return "".join(name.removesuffix(EGG).split("-")[1:2])
    base = next((name.removesuffix(end) for end in SDISTS if name.endswith(end)), "")
    parts, wanted = base.split("-"), _normal(project)
    places = (at for at in range(1, len(parts)) if _normal("-".join(parts[:at])) == wanted)
    return "-".join(parts[next(places, len(parts)) :])


def _normal(project: str) -> str:
    """A project's name as indexes compare it (PEP 503)."""
    return _RUNS.sub("-", project).lower()


def _asked(payload: str) -> dict[str, Any]:
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    asked = found.get(NAME) if isinstance(found, dict) else None
    return asked if isinstance(asked, dict) else {}
