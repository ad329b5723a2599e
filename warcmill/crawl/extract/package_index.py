"""Links of a package index: the files of a project's page (PEP 691), and the part of a wheel that still lacks. Pure.

A URI is read so if its payload, which the feed of the index or this module has made, has `package_index`:

    {"package_index": {"page": "pyyaml", "files": ["PyYAML-6.0.tar.gz"], "newest": true, "whole": true}}
    {"package_index": {"page": "pyyaml", "older": 31415, "needed": true}}
    {"package_index": {"size": 81920, "wheel": 1, "modules": true}}
    {"package_index": {"size": 81920, "metadata": "9f86d0…"}}

A page embeds its files, so that they belong to the crawl on whatever host. Of them those named are wanted, or all;
those of the newest release alone, or of all; or all `older` ones, while the page has the serial that it had when the
newest were asked for. With `needed` no sdist is wanted of a release that has a wheel. A wheel is a zip file (PEP 427):
its last 64 KiB mostly have its directory and its METADATA. Where they begin before, it is asked for once more from
there on, by a hop `R`, so that one record suffices to read it. Servers refuse a range that counts from the end, or
misread it: such a wheel is asked for by its size, which its page has, or an answer for its first byte; and where that
is refused, too, it is asked for whole. Installers for Windows and RPMs are not wanted: their names have all that is
known of them.

Where the index has the METADATA of a wheel beside it (PEP 658, 714), that is asked for: `FILE.metadata`. Of the wheels
of one version and Python tag, which differ in their platforms, then one alone is asked for its modules. Where the
METADATA is not the one that the page has the digest of, or was not got, its wheel is asked for as if it had none.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec
from ada_url import join_url
from msgspec import Struct, field

from warcmill.crawl.extract.links import DAMAGED, EMBED, LIMITS, LINKS, LONGEST, REDIRECT, Link, LinkLimits, Outlinks
from warcmill.crawl.fetch import exchange
from warcmill.crawl.fetch.answer import HeaderFields
from warcmill.formats.pypi import distribution, filenames, simple_page
from warcmill.formats.pypi.dump import DistType
from warcmill.formats.pypi.filenames import METADATA, FileForm
from warcmill.formats.pypi.zip_directory import TAIL

if TYPE_CHECKING:
    from warcmill.formats.pypi.releases import Order

NAME, FIRST = "package_index", "first"
MOST_TAIL = 64 << 20  # bytes of a wheel that are asked for; a directory of so many is of no package
MOST_WHOLE = 64 << 20  # bytes of a wheel that is asked for whole because the ranges of it are refused
MOST_TIMES = 3  # requests for parts of one wheel

_REFUSED = frozenset([400, 405, 406, 416, 500, 501, 502, 505])  # others are of the file, or of whoever asks
_WHOLE = '{"fetch":{"method":"GET"}}'  # as without a payload, by which a redirect to the same URI leads nowhere
_part_of = re.compile(r"bytes (?:(\d{1,18})-(\d{1,18})|\*)/(?:(\d{1,18})|\*)").match


def page(
    project: str,
    files: Iterable[str] | None = None,
    *,
    newest: bool | str = False,
    older: int | None = None,
    needed: bool = False,
    whole: bool = False,
) -> dict[str, Any]:
    """The part of a payload by which a project's page is read; without `files` all are wanted. `newest` is True, or
    FIRST where the others come later; `older`: the serial of the page by which the newest were asked for."""
    named: dict[str, Any] = {} if files is None else {"files": [*files]}
    flags = {"newest": newest, "older": older, "needed": needed, "whole": whole}
    return {NAME: {"page": project, **named, **{name: value for name, value in flags.items() if value}}}


def reads(payload: str) -> bool:
    """True if a URI with this payload is read here."""
    return f'"{NAME}"' in payload and bool(_asked(payload))


def find(
    data: bytes, uri: str, status: int, fields: HeaderFields, payload: str, limits: LinkLimits = LIMITS
) -> Outlinks:
    """The links of an answer; none if it is damaged, or neither a page nor a part of a wheel, nor its METADATA."""
    asked = _asked(payload)
    if status == 200 and isinstance(asked.get("page"), str):
        if simple_page.is_html(fields.first("content-type")):
            data = _in_json(data, uri)
        return _files(data, uri, asked, limits.links)
    if isinstance(asked.get("metadata"), str):
        return _instead(data, uri, status, asked)
    if isinstance(asked.get("wheel"), int) and (again := _again(data, uri, status, fields, payload)):
        return Outlinks([Link(uri, REDIRECT, NAME, payload=again)])
    return Outlinks()


def _again(data: bytes, uri: str, status: int, fields: HeaderFields, payload: str) -> str:
    """The payload by which a wheel is asked for once more; '' if it is not, whether or not this answer suffices."""
    asked, wanted = _asked(payload), exchange.read(payload).range
    alone = bool(asked.get("modules"))
    times, listed, part = int(asked["wheel"]), asked.get("size"), _part_of(fields.first("content-range"))
    size = int(part[3]) if part and part[3] else listed if isinstance(listed, int) else None
    if status == 206 and part and part[1] and (int(part[2]) + 1 == size if size is not None else int(part[1])):
        begin, name = int(part[1]), filenames.parse(unquote(uri.partition("?")[0].rpartition("/")[2]))
        whole = begin + len(data)
        first = distribution.needed_from(io.BytesIO(data), name, whole, begin, modules=alone) if name else None
        is_wanted = first is not None and first < begin and begin + len(data) - first <= MOST_TAIL
        return (
            _part(first, times + 1, size, modules=alone)
            if first is not None and is_wanted and times < MOST_TIMES
            else ""
        )
    if wanted is None or (status != 206 and status not in _REFUSED):
        return ""
    if wanted[0] < 0 and size is None:
        return _part(0, times, last=0, modules=alone)  # its answer has the size
    if (wanted[0] < 0 or wanted == (0, 0)) and size is not None and size > TAIL:
        return _part(max(0, size + (wanted[0] or -TAIL)), times, size, modules=alone)
    return _WHOLE if size is None or size <= MOST_WHOLE else ""


def _files(data: bytes, uri: str, asked: Mapping[str, Any], most: int) -> Outlinks:
    """The files of a page that are wanted, `most` at most; `cut` if one of its entries cannot be read, or its URL."""
    files, serial, damaged = _listed(data)
    listed = asked.get("files")
    named = frozenset(map(str, listed)) if isinstance(listed, list) else None
    wanted = [file for file in files if (named is None or file.filename in named) and _form(file.filename)]
    if asked.get("newest") or ("older" in asked and asked["older"] == serial):
        newest = _of_newest(asked["page"], {file.filename: bool(file.yanked) for file in files})
        wanted = [file for file in wanted if (file.filename in newest) is not ("older" in asked)]
    if asked.get("needed"):
        built = _built(asked["page"], files)
        wanted = [file for file in wanted if file.filename not in built]
    found, shared = Outlinks(), set[tuple[str | None, str]]()
    found.cut_by = DAMAGED if damaged else ""
    for file in wanted:
        try:
            place = join_url(uri, file.url).partition("#")[0] if len(file.url) <= LONGEST else ""
        except ValueError:
            place = ""
        if not place.startswith(("http://", "https://")) or len(found) == most:
            found.cut_by = LINKS if len(found) == most else found.cut_by or DAMAGED
            continue
        is_part = _form(file.filename) is FileForm.WHEEL and not asked.get("whole")
        if not is_part or file.core is None:
            found.append(Link(place, EMBED, NAME, payload=_tail(file.size) if is_part else ""))
            continue
        beside = {NAME: {"metadata": file.core, **({} if file.size is None else {"size": file.size})}}
        found.append(Link(place + METADATA, EMBED, NAME, payload=json.dumps(beside, sort_keys=True)))
        kin = filenames.kin(file.filename, asked["page"])
        if kin not in shared and len(found) < most:
            found.append(Link(place, EMBED, NAME, payload=_tail(file.size, modules=True)))
        shared.add(kin)
    return found


def _instead(data: bytes, uri: str, status: int, asked: Mapping[str, Any]) -> Outlinks:
    """The wheel whose METADATA was asked for beside it, if that is not the one that its page lists."""
    digest, size = asked["metadata"], asked.get("size")
    if status == 200 and digest in ("", hashlib.sha256(data).hexdigest()):
        return Outlinks()
    known = size if isinstance(size, int) else None
    # as the same part may have been asked for its modules alone, and would be the same URI, it is one byte more
    return Outlinks([Link(uri.removesuffix(METADATA), EMBED, NAME, payload=_tail(known, TAIL + 1))])


def _tail(size: int | None, length: int = TAIL, *, modules: bool = False) -> str:
    """The payload of a wheel whose end is asked for; a short one is asked for whole."""
    return "" if size is not None and size <= TAIL else _part(-length, 1, size, modules=modules)


def _in_json(data: bytes, uri: str) -> bytes:
    """A page in HTML as PEP 691 has it; nothing for what is not a page of an index."""
    found = simple_page.page_in(data, uri)  # the step that reads the stored page names what is not one
    return json.dumps(found).encode() if found else b""


class PageFile(Struct, frozen=True):
    """A file of a project's page."""

    filename: str
    url: str
    size: int | None = None
    yanked: bool | str = False
    core_metadata: Any = field(default=None, name=simple_page.CORE[0])
    of_some_indexes: Any = field(default=None, name=simple_page.CORE[1])
    of_before: Any = field(default=None, name=simple_page.CORE[2])

    @property
    def core(self) -> str | None:
        """The digest of its METADATA, as the page has it; '' without one; None: the index does not have that."""
        return simple_page.core_of(self.core_metadata, self.of_some_indexes, self.of_before)


def _listed(data: bytes) -> tuple[list[PageFile], object, bool]:
    """The files of a page, its serial, and if some entries were not files; none of a page that cannot be read."""
    try:
        whole = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        entries = msgspec.json.decode(whole.get("files", msgspec.Raw(b"[]")), type=list[msgspec.Raw])
        meta = msgspec.json.decode(whole.get("meta", msgspec.Raw(b"{}")))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [], None, True
    found, decoder = list[PageFile](), msgspec.json.Decoder(PageFile)
    for entry in entries:
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found.append(decoder.decode(entry))
    serial = meta.get("_last-serial") if isinstance(meta, dict) else None
    return found, serial, len(found) < len(entries)


def _part(first: int, times: int, size: int | None = None, last: int | None = None, *, modules: bool = False) -> str:
    """The payload of a wheel that is asked for from its byte `first` on; `size`: that of the whole, if it is known;
    `modules`: for these alone."""
    known: dict[str, int] = {} if size is None else {"size": size}
    known |= {"modules": True} if modules else {}
    payload = {"fetch": {"range": [first, last]}, NAME: {"wheel": times, **known}}
    return json.dumps(payload, sort_keys=True, separators=(",", ":"))


def _form(name: str) -> FileForm | None:
    """The form of a file that is fetched; None for one that is not."""
    found = filenames.parse(name)
    return found.form if found and found.form is not FileForm.NAME_ONLY else None


def _of_newest(project: str, files: Mapping[str, bool]) -> set[str]:
    """The names of the files of the newest release, as installers choose it: none that is yanked (True), no
    pre-release, unless there are no others. All files where no name has a version (PEP 440)."""
    known = _versions(project, files)
    if not known:
        return set(files)
    newest = max(known, key=lambda name: (not files[name], known[name]))
    return {name for name, version in known.items() if version == known[newest]}


def _built(project: str, files: Iterable[PageFile]) -> set[str]:
    """The names of the sdists whose release has a wheel, too."""
    parsed = [named for file in files if (named := filenames.parse(file.filename, project))]
    built = {named.version for named in parsed if named.form is FileForm.WHEEL}
    sources = [named for named in parsed if named.dist_type is DistType.SDIST]
    found = {named.filename for named in sources if named.version in built}
    if built and len(found) < len(sources):  # 1.0-beta and 1.0b0 are one version
        known = _versions(project, [named.filename for named in parsed])
        of_wheels = {known.get(named.filename) for named in parsed if named.form is FileForm.WHEEL} - {None}
        found |= {named.filename for named in sources if known.get(named.filename) in of_wheels}
    return found


def _versions(project: str, names: Iterable[str]) -> dict[str, Order]:
    """The versions that names have, as far as these are by PEP 440, each by its place among others."""
    from warcmill.formats.pypi.releases import order  # noqa: PLC0415 not all jobs need it

    parsed = {name: filenames.parse(name, project) for name in names}
    known = {name: order(named.version) for name, named in parsed.items() if named}
    return {name: place for name, place in known.items() if place[0]}


def _asked(payload: str) -> dict[str, Any]:
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    asked = found.get(NAME) if isinstance(found, dict) else None
    return asked if isinstance(asked, dict) else {}
