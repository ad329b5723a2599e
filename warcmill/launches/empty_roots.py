"""Describe a root without launches: they may have the other layout, or be deeper, or be loose WARCs. Reads only.

A scan of such a root finds nothing to do, which must not look as if everything was done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from warcmill import layout
from warcmill.errors import BadInput
from warcmill.layout import KINDS, OutputLayout
from warcmill.model import parse_job, parse_stamp
from warcmill.stores import Stat, Store

DEEPEST = 6  # levels below the root
MOST = 500  # folders that are listed
SHOWN = 3  # names that are shown of the other content


class Bare(Struct, frozen=True):
    """A root without a launch: its content, and what to do. `misplaced`: it has launches in another place or layout."""

    what: str
    todo: str = ""
    misplaced: bool = False
    is_empty: bool = False

    @property
    def text(self) -> str:
        """The content and what to do, as one line."""
        return f"{self.what}. {self.todo}" if self.todo else self.what


class ExpectedLayout(Struct, frozen=True):
    """The layout of launches in a root, and the keys of luigi.cfg that set it. `layout` None: {job}/{launch}/."""

    key: str
    layout_key: str
    layout: OutputLayout | None


class _Seen(Struct, frozen=True):
    """A launch in an unexpected place: the folder that it is below, its layout, and an example path."""

    below: str
    layout: OutputLayout | None
    example: str


def look(store: Store, place: str, expected: ExpectedLayout) -> Bare:
    """Describe a root in which no launch was found as expected. It lists at most MOST folders, DEEPEST levels deep."""
    head = f"root '{store.root}' ({place}) holds no launch at all"
    if expected.layout:
        head += f" as {expected.layout} has it"
    entries = list(_walk(store))
    if seen := next(filter(None, (_launch(entry.path, expected) for entry in entries)), None):
        how = f" {seen.layout}" if seen.layout else ""
        what = f"{head}; launches lie there{how}, such as {seen.example}"
        return Bare(what, f"If these are meant: {_keys(place, seen, expected)}", misplaced=True)
    warcs = [entry.path for entry in entries if entry.kind == "file" and layout.is_warc_name(entry.name)]
    if warcs:
        return Bare(f"{head}; WARCs lie there in no launch's folder: {_some(warcs)}")
    top = [entry.name for entry in entries if "/" not in entry.path]
    return Bare(f"{head}; what lies there: {_some(top)}") if top else Bare(f"{head}: it is empty", is_empty=True)


def _walk(store: Store) -> Iterator[Stat]:
    """Yield the entries of a root, the upper levels first; links are not followed."""
    folders = deque([""])
    for _ in range(MOST):
        if not folders:
            return
        for entry in store.list(folders.popleft()):
            if entry.name.startswith("."):
                continue
            yield entry
            if entry.kind == "folder" and entry.path.count("/") + 1 < DEEPEST:
                folders.append(entry.path)


def _launch(path: str, expected: ExpectedLayout) -> _Seen | None:
    """Find the launch that a path belongs to, by its job, its 14 digits, and the kind before or after them."""
    parts = path.split("/")
    for place in range(1, len(parts)):
        if not _is_launch(parts[place - 1], parts[place]):
            continue
        if expected.layout is None:
            return _Seen("/".join(parts[: place - 1]), None, path)
        if place > 1 and parts[place - 2] in KINDS:
            return _Seen("/".join(parts[: place - 2]), OutputLayout.KIND_FIRST, path)
        if place + 1 < len(parts) and parts[place + 1] in KINDS:
            return _Seen("/".join(parts[: place - 1]), OutputLayout.JOB_FIRST, path)
    return None


def _is_launch(job: str, name: str) -> bool:
    try:
        parse_job(job)
        parse_stamp(name)
    except BadInput:
        return False
    return True


def _keys(place: str, seen: _Seen, expected: ExpectedLayout) -> str:
    """Return the settings of luigi.cfg with which these launches would be found."""
    keys = [f"{expected.key}={place}/{seen.below}"] if seen.below else []
    if seen.layout and seen.layout is not expected.layout:
        keys.append(f"{expected.layout_key}={seen.layout}")
    return " and ".join(keys)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(islice(names, SHOWN))}{more}"
