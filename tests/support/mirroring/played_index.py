"""An index of one project whose events happen by chance, and a record of what its page said at each serial."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime

from mirroring.package_dumps import row
from msgspec.structs import replace

from warcmill.formats.pypi.dump import DistributionRow, ListedFile, ProjectState
from warcmill.formats.pypi.lives import LifeEvent

DAY = 86_400  # seconds between two events
Said = dict[str, tuple[str | None, bool]]
VERSIONS = ("1.0", "1.1", "2.0")
ACTIONS = (
    "remove file", "remove release", "remove project", "yank release", "unyank release", "project quarantined",
    "project quarantine cleared", "add Owner someone",
)  # fmt: skip


def uploaded(serial: int) -> str:
    """The time of an event as a page has it."""
    return datetime.fromtimestamp(serial * DAY, UTC).isoformat().replace("+00:00", "Z")


@dataclass
class PlayedIndex:
    """The project `name`. `said` and `pages` have an entry for each serial, also of the events of other projects.

    A file has other bytes each time it is uploaded; `rows` are the facts of all, by their SHA-256.
    """

    chance: random.Random
    name: str = "six"
    serial: int = 0
    files: dict[str, ListedFile] = field(default_factory=dict)
    is_quarantined: bool = False
    is_there: bool = False
    events: list[LifeEvent] = field(default_factory=list)
    rows: dict[str, DistributionRow] = field(default_factory=dict)
    said: list[Said] = field(default_factory=lambda: [{}])
    pages: list[ProjectState] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pages = self.pages or [self._page()]

    def filename(self, version: str) -> str:
        return f"{self.name}-{version}-py3-none-any.whl"

    def play(self) -> None:
        """Let one event happen."""
        version = self.chance.choice(VERSIONS)
        adds = not self.is_quarantined and self.filename(version) not in self.files and self.chance.random() < 0.6
        action = "add py3 file" if adds else self.chance.choice(ACTIONS)
        self.serial += 1
        whole = f"{action} {self.filename(version)}" if action.endswith("file") else action
        of = "" if "project" in action else version
        self.events.append(LifeEvent(self.serial, self.serial * DAY, of, whole))
        self._do(action, version)
        page = self._page()
        self.said.append({one.filename: (one.sha256, one.yanked is not None) for one in page.files})
        self.pages.append(page)

    def rest(self) -> None:
        """Let an event of another project happen: the page keeps its serial."""
        self.serial += 1
        self.said.append(self.said[-1])
        self.pages.append(self.pages[-1])

    def _page(self) -> ProjectState:
        """The page as it is now; one of a project that is not there, 404, has no serial."""
        shown = () if self.is_quarantined else tuple(self.files.values())
        return ProjectState(self.name, self.serial if self.is_there else None, not self.is_there, shown)

    def _do(self, action: str, version: str) -> None:
        name = self.filename(version)
        file = self.files.get(name)
        self.is_there = action != "remove project" and (self.is_there or action == "add py3 file")
        if action == "add py3 file":
            one = row(self.name, version, self.name, content=f"{self.name} {self.serial}")
            self.rows[one.sha256] = one
            url = f"https://files.example/{self.serial}/{name}"
            self.files[name] = ListedFile(name, url, one.sha256, 10, ">=3.9", None, uploaded(self.serial))
        elif action in ("remove file", "remove release"):
            self.files.pop(name, None)
        elif action == "remove project":
            self.files, self.is_quarantined = {}, False
        elif action in ("yank release", "unyank release") and file:
            self.files[name] = replace(file, yanked="why" if action == "yank release" else None)
        elif action == "project quarantined":
            self.is_quarantined = bool(self.files)
        elif action == "project quarantine cleared":
            self.is_quarantined = False
