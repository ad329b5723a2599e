"""What lies in a root that holds no launch: launches of the other layout, or deeper, or loose WARCs. Reads only.

A scan of such a root finds nothing to do, which must not pass for everything being done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from warcmill import layout
from warcmill.errors import BadInput
from warcmill.layout import KINDS, OutputLayout
from warcmill.model import parse_job, parse_stamp
from warcmill.stores import Stat, Store

DEEPEST = 6  # levels below the root
MOST = 500  # folders that are looked into
SHOWN = 3  # names that are shown of what else lies there


@dataclass(frozen=True, slots=True)
class Bare:
    """A root without a launch: what is there, what to do. `misplaced`: launches are there, and not looked for so."""

    what: str
    todo: str = ""
    misplaced: bool = False

    @property
    def text(self) -> str:
        """Both, as one line."""
        return f"{self.what}. {self.todo}" if self.todo else self.what


@dataclass(frozen=True, slots=True)
class Expected:
    """How launches should lie in a root, and the key of luigi.cfg that says where. `layout` None: {job}/{launch}/."""

    key: str
    layout_key: str
    layout: OutputLayout | None


@dataclass(frozen=True, slots=True)
class _Seen:
    """A launch that lies elsewhere than expected: below which folder, in which layout, and an example."""

    below: str
    layout: OutputLayout | None
    example: str


def look(store: Store, place: str, expected: Expected) -> Bare:
    """What lies in a root in which no launch was found as expected. It looks no further than is soon done."""
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
    return Bare(f"{head}; what lies there: {_some(top)}" if top else f"{head}: it is empty")


def _walk(store: Store) -> Iterator[Stat]:
    """The entries of a root, the upper ones first; links are not followed."""
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


def _launch(path: str, expected: Expected) -> _Seen | None:
    """The launch that a path belongs to: its job, its 14 digits, and before or after them its kind."""
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


def _keys(place: str, seen: _Seen, expected: Expected) -> str:
    """Which keys of luigi.cfg would have the launches looked for where they lie."""
    keys = [f"{expected.key}={place}/{seen.below}"] if seen.below else []
    if seen.layout and seen.layout is not expected.layout:
        keys.append(f"{expected.layout_key}={seen.layout}")
    return " and ".join(keys)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(islice(names, SHOWN))}{more}"
