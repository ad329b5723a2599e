"""The layouts of folders that no engine of the line wrote: which of their files are WARCs. Reads only.

A new layout is one row of LAYOUTS, and one function. `ImportOrder` is an operator's order of an import, `ImportResult`
its result.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from hashlib import sha256

from msgspec import Struct, field

from warcmill import layout
from warcmill.errors import NotReady, Unavailable
from warcmill.markers.claim import Claim
from warcmill.model import Launch
from warcmill.stores import Stat, Store

OPEN = ".open"

_PACKED = re.compile(r".+\.(w?arc(\.gz)?\.(zst|bz2|xz|lz4|zip)|wacz)", re.DOTALL | re.IGNORECASE)
_SUFFIX = re.compile(r"\.w?arc(\.gz)?(\.open)?\Z", re.IGNORECASE)


class FolderContent(Struct):
    """The content of a foreign folder: its WARCs, in order of their paths, and all else, each as `path: why`.

    `missing`: files that may be WARCs, and cannot be taken. `left_out`: files that are not WARCs.
    """

    warcs: list[Stat] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


class FolderLayout(Struct, frozen=True):
    """A layout: its name, what it is, and the function that reads it."""

    name: str
    what: str
    find: Callable[[Store], FolderContent]


def bare(source: Store) -> FolderContent:
    """Find every WARC in a folder and in the folders below it, by its name. Neither launches nor logs are known."""
    found, folders = FolderContent(), deque([""])
    while folders:
        for entry in source.list(folders.popleft()):
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
    elif _PACKED.fullmatch(entry.name):
        found.missing.append(f"{layout.shown(entry.path)}: WARCs in a form that is not read; unpack it")
    else:
        found.left_out.append(f"{layout.shown(entry.path)}: not named as a WARC")


LAYOUTS: Mapping[str, FolderLayout] = {
    row.name: row for row in (FolderLayout("bare", "WARCs in a folder and the folders below it, without a log", bare),)
}


def packed(source: Store, warcs: Iterable[Stat]) -> set[str]:
    """The paths of the WARCs that are gzip files, and are not named so."""
    return {entry.path for entry in warcs if _bare_suffix(entry.name) and _begins_as_gzip(source, entry.path)}


def _bare_suffix(name: str) -> bool:
    suffix = _SUFFIX.search(name)
    return suffix is not None and suffix[1] is None


def _begins_as_gzip(source: Store, path: str) -> bool:
    try:
        with source.open(path) as stream:
            return stream.read(2) == b"\x1f\x8b"
    except (Unavailable, NotReady):  # it is read again when it is taken, which names the error
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
    layout: FolderLayout = LAYOUTS["bare"]


class ImportResult(Struct):
    """The result of an import: `claim` is None when there was nothing new, `known` has the WARCs that were imported
    before, by path, and `completed` the launches whose earlier import was cut short, and is complete now."""

    claim: Claim | None = None
    known: dict[str, str] = field(default_factory=dict)
    completed: tuple[Launch, ...] = ()
    linked: int = 0
