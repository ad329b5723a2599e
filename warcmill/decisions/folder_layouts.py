"""The layouts of folders that no engine of the line wrote: which of their files are WARCs. Reads only.

A layout is a `WarcSource`: `BareFolder`, or that of `wacz_source`. `ImportOrder` is an operator's order of an import,
`ImportResult` its result.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, ClassVar, Protocol

from msgspec import Struct, field

from warcmill import layout
from warcmill.errors import BadInput, NotReady, Unavailable
from warcmill.layout import Kind
from warcmill.markers.claim import Claim
from warcmill.model import Launch
from warcmill.stores import Stat
from warcmill.stores.engine_folder import SourceFolder

OPEN = ".open"

_packed_name = re.compile(r".+\.(?:w?arc(?:\.gz)?\.(?:zst|bz2|xz|lz4|zip)|(wacz))", re.DOTALL | re.IGNORECASE).fullmatch
_SUFFIX = re.compile(r"\.w?arc(\.gz)?(\.open)?\Z", re.IGNORECASE)


class FolderContent(Struct):
    """The content of a foreign folder: its WARCs, in order of their paths, and all else, each as `path: why`.

    `missing`: files that may be WARCs, and cannot be taken. `left_out`: files that are not WARCs. `papers`: lists of
    pages and logs that go with the WARCs. `remarks` are of files that were taken; `compare` yields more of them: it
    gets the new WARCs by their paths, and a folder with room.
    """

    warcs: list[Stat] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    papers: list[tuple[Kind, Stat]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    compare: Callable[[Mapping[str, Path], Path], Iterable[str]] = lambda _, __: ()


class WarcSource(Protocol):
    """The files of an import. `layout`: its word in claims; `is_packed`: none of them is a file of its own."""

    layout: ClassVar[str]
    is_packed: ClassVar[bool]
    base: Path

    def find(self) -> FolderContent:
        """Return what is in it."""

    def where(self, path: str) -> str:
        """Return a path as messages show it."""

    def stat(self, path: str) -> Stat | None:
        """Return the entry at this path; None for a path without one."""

    def open(self, path: str) -> BinaryIO:
        """Return a reader; NotReady without a file. Reading raises BadInput if a file is not as its source declares."""


class BareFolder(SourceFolder):
    """WARCs in a folder and the folders below it, without launches and logs."""

    layout: ClassVar[str] = "bare"
    is_packed: ClassVar[bool] = False

    def find(self) -> FolderContent:
        """Find every WARC by its name."""
        found, folders = FolderContent(), deque([""])
        while folders:
            for entry in self.list(folders.popleft()):
                if entry.kind == "folder" and not entry.name.startswith("."):
                    folders.append(entry.path)
                else:
                    _sort_in(found, entry)
        found.warcs.sort(key=lambda entry: entry.path)
        return found


def _sort_in(found: FolderContent, entry: Stat) -> None:
    if entry.name.startswith("."):
        found.left_out.append(f"{layout.shown(entry.path)}: its name begins with a dot")
    elif entry.kind == "other":
        found.missing.append(f"{layout.shown(entry.path)}: a link or a special file; not followed")
    elif layout.is_warc_name(entry.name):
        found.warcs.append(entry)
    elif why := why_not_read(entry.name):
        found.missing.append(f"{layout.shown(entry.path)}: {why}")
    else:
        found.left_out.append(f"{layout.shown(entry.path)}: not named as a WARC")


def why_not_read(name: str) -> str:
    """Why a file that may have WARCs in it is not read; '' for any other."""
    if found := _packed_name(name):
        return "a WACZ; import it by its own name" if found[1] else "WARCs in a form that is not read; unpack it"
    return ""


def packed(source: WarcSource, warcs: Iterable[Stat]) -> set[str]:
    """The paths of the WARCs that are gzip files, and are not named so."""
    return {entry.path for entry in warcs if _bare_suffix(entry.name) and _begins_as_gzip(source, entry.path)}


def _bare_suffix(name: str) -> bool:
    suffix = _SUFFIX.search(name)
    return suffix is not None and suffix[1] is None


def _begins_as_gzip(source: WarcSource, path: str) -> bool:
    try:
        with source.open(path) as stream:
            return stream.read(2) == b"\x1f\x8b"
    except (Unavailable, NotReady, BadInput):  # it is read again when it is taken, which names the error
        return False


def names(paths: Iterable[str], taken: Collection[str] = (), packed: Collection[str] = ()) -> dict[str, str]:
    """Return the name in the launch of each WARC, by its path: its own, where the store can have it and no other has.

    Else 16 hex digits that follow from its path stand before it, or, where it cannot be stored, in its place. One that
    is `packed` has `.gz` in its name.
    """
    named, final = dict[str, str](), set(taken)
    for path in paths:
        name = path.rpartition("/")[2]
        if path in packed:
            name = f"{name.removesuffix(OPEN)}.gz{OPEN if name.endswith(OPEN) else ''}"
        digits = sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        suffix = _SUFFIX.search(name)
        candidates = (name, f"{digits}-{name}", f"{digits}{suffix[0] if suffix else ''}")
        named[path] = next(
            one for one in candidates if not layout.why_unpublishable(one) and layout.final_name(one) not in final
        )
        final.add(layout.final_name(named[path]))
    return named


def paper_names(papers: Iterable[tuple[Kind, Stat]]) -> dict[str, str]:
    """Return the name in the launch of each log and list of pages, by its path, as `names` does.

    A name that would make a log one of a checkpoint, or a leftover, gets `.log` behind it.
    """
    named, taken = dict[str, str](), set[str]()
    for kind, entry in papers:
        name = entry.name
        if kind == "logs" and (layout.is_leftover(name) or layout.split_log_name(name)[0] != name):
            name = f"{name}.log"
        digits = sha256(entry.path.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        candidates = (name, f"{digits}-{name}", f"{digits}.jsonl" if name.endswith(".jsonl") else digits)
        named[entry.path] = next(
            one for one in candidates if not layout.why_unpublishable(one) and f"{kind}/{one}" not in taken
        )
        taken.add(f"{kind}/{named[entry.path]}")
    return named


TASK = "operator.Import"
YEARS = range(1000, 9999)  # an interval of Luigi has no year before or after these: it writes 0999 as 999


def why_never_found(launch_id: str) -> str:
    """Why no scan could find a launch of this id, so that its WARCs would never be stored; '' when one can."""
    if int(launch_id[:4]) in YEARS:
        return ""
    return f"no scan takes days of the year {launch_id[:4]}: a launch is of {YEARS[0]} to {YEARS[-1]}"


class ImportOrder(Struct, frozen=True):
    """An operator's order, and who gave it. `launch_id` '': the date of the earliest record."""

    job: str
    by: str
    launch_id: str = ""


class ImportResult(Struct):
    """The result of an import: `claim` is None when there was nothing new, `known` has the WARCs that were imported
    before, by path, `bad` those that are not what their source says, each with the reason, and `completed` the launches
    whose earlier import was cut short, and is complete now."""

    claim: Claim | None = None
    known: dict[str, str] = field(default_factory=dict)
    bad: list[str] = field(default_factory=list)
    completed: tuple[Launch, ...] = ()
    linked: int = 0
