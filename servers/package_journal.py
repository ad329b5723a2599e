"""The journal of the local package index: what happened to it, a line each, and the state that the lines add up to.

The journal is all there is: a server that was killed begins where it was, and whoever controls it appends a line.
Reads and appends to one file.
"""

from __future__ import annotations

import copy
import fcntl
import json
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

NAME = "journal.jsonl"
CREATOR = "someone"
Row = tuple[str, str | None, int, str, int]  # as changelog_since_serial has it: name, version, time, action, serial


class HostedFile(Struct, frozen=True):
    """A file of a project: its digests and size are those that pages list, `source` is what is sent for it."""

    filename: str
    version: str
    source: str
    place: str
    size: int
    sha256: str
    md5: str
    blake2b: str
    requires_python: str
    metadata_sha256: str
    time: str


class HostedProject(Struct):
    """A project as its page shows it; `serial` is that of its newest event, `yanked` has the reason by version. The
    page of a quarantined one has no files. `status`, `reason`: those of PEP 792, but for a quarantine."""

    name: str
    serial: int = 0
    files: dict[str, HostedFile] = field(default_factory=dict)
    yanked: dict[str, str] = field(default_factory=dict)
    is_quarantined: bool = False
    status: str = "active"
    reason: str = ""

    @property
    def listed(self) -> list[HostedFile]:
        """The files on its page."""
        return [] if self.is_quarantined else [*self.files.values()]


class IndexFault(Struct):
    """An answer for requests whose path begins with `path`, the next `times` of them: 0 is all.

    Without a `status` the real answer comes, after `seconds`, and ends after `cut` bytes if that is not negative.
    """

    path: str
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    times: int = 0
    seconds: float = 0
    cut: int = -1
    fault: str = ""


class RangeFault(Struct, frozen=True):
    """A server's answer to a range `-N` of a project's files: a status, or 206 for `0-N` in its place. `others`: the
    status is the answer to every range."""

    status: int
    others: bool = False


class IndexJournal:
    """The state of an index after the lines that are there; `refresh` reads those that were added."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._read = 0
        self._forget()

    def _forget(self) -> None:
        self.serial = 0
        self.rows: list[Row] = []
        self.projects: dict[str, HostedProject] = {}
        self.stale: dict[str, HostedProject | None] = {}
        self.lagging: dict[str, int] = {}
        self.faults: list[IndexFault] = []
        self.reported_serial: int | None = None
        self.ranges: dict[str, RangeFault] = {}

    def refresh(self) -> None:
        """Take in the lines that were added since."""
        if not self._path.exists() or self._path.stat().st_size <= self._read:
            return
        with self._path.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._apply(json.loads(line))
                self._read += len(line)

    def append(self, do: str, **what: Any) -> int:
        """Append a line; return the last serial then."""
        line = json.dumps({"do": do, "time": datetime.now(UTC).isoformat(timespec="microseconds"), **what})
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.refresh()
        return self.serial

    def page(self, name: str) -> HostedProject | None:
        """The project as its page shows it, which may be older than it is; None where there is none."""
        name = normalized(name)
        found = self.stale[name] if name in self.stale else self.projects.get(name)
        return replace(found, serial=self.lagging[name]) if found and name in self.lagging else found

    def said(self) -> dict[int, dict[str, dict[str, str | None]]]:
        """The files on each project's page after each event, with the reasons of those that are yanked, by serial."""
        found, replayed = dict[int, dict[str, dict[str, str | None]]](), IndexJournal(self._path.parent)
        for line in self._path.read_bytes().splitlines():
            before = replayed.serial
            replayed._apply(json.loads(line))
            pages = {
                name: {one.filename: project.yanked.get(one.version) for one in project.listed}
                for name, project in replayed.projects.items()
            }
            last = found.get(before, {})
            found |= dict.fromkeys(range(before + 1, replayed.serial), last)
            found[replayed.serial] = pages
        return found

    def take_fault(self, path: str) -> IndexFault | None:
        """The fault that a request of this path meets; one that is used up is gone."""
        for fault in self.faults:
            if path.startswith(fault.path):
                fault.times -= 1
                if fault.times == 0:
                    self.faults.remove(fault)
                return fault
        return None

    def _apply(self, line: dict[str, Any]) -> None:
        do, time = line.pop("do"), line.pop("time")
        getattr(self, f"_do_{do}")(time, **line)

    def _event(self, time: str, project: HostedProject, version: str | None, action: str) -> None:
        self.serial += 1
        project.serial = self.serial
        stamp = int(datetime.fromisoformat(time).timestamp())
        self.rows.append((project.name, version, stamp, action, self.serial))

    def _do_upload(self, time: str, project: str, tag: str, upload: dict[str, Any]) -> None:
        """The events of an upload, in the order in which the real index writes them."""
        found = self.projects.get(normalized(project))
        if found is None:
            found = self.projects[normalized(project)] = HostedProject(project)
            self._event(time, found, None, "create")
            self._event(time, found, None, f"add Owner {CREATOR}")
        new = HostedFile(**upload, time=time)
        if new.version not in {one.version for one in found.files.values()}:
            self._event(time, found, new.version, "new release")
        found.files[new.filename] = new
        self._event(time, found, new.version, f"add {tag} file {new.filename}")

    def _do_yank(self, time: str, project: str, version: str, reason: str) -> None:
        found = self.projects[normalized(project)]
        found.yanked[version] = reason
        self._event(time, found, version, "yank release")

    def _do_unyank(self, time: str, project: str, version: str) -> None:
        found = self.projects[normalized(project)]
        del found.yanked[version]
        self._event(time, found, version, "unyank release")

    def _do_remove_file(self, time: str, project: str, filename: str) -> None:
        found = self.projects[normalized(project)]
        gone = found.files.pop(filename)
        self._event(time, found, gone.version, f"remove file {filename}")

    def _do_remove_release(self, time: str, project: str, version: str) -> None:
        found = self.projects[normalized(project)]
        found.files = {name: one for name, one in found.files.items() if one.version != version}
        found.yanked.pop(version, None)
        self._event(time, found, version, "remove release")

    def _do_remove_project(self, time: str, project: str) -> None:
        self._event(time, self.projects.pop(normalized(project)), None, "remove project")

    def _do_quarantine(self, time: str, project: str, *, on: bool) -> None:
        found = self.projects[normalized(project)]
        found.is_quarantined = on
        self._event(time, found, None, "project quarantined" if on else "project quarantine cleared")

    def _do_status(self, _: str, project: str, status: str, reason: str) -> None:
        """Change a status, of which the changelog has no event."""
        found = self.projects[normalized(project)]
        found.status, found.reason = status, reason

    def _do_event(self, time: str, project: str, version: str | None, action: str) -> None:
        found = self.projects.get(normalized(project))
        self._event(time, HostedProject(project) if found is None else found, version, action)

    def _do_burst(self, time: str, count: int) -> None:
        """Add `count` events at once, over all projects in turn: each a change of who maintains it."""
        projects = list(self.projects.values())
        for number in range(count):
            self._event(time, projects[number % len(projects)], None, f"add Maintainer person{number}")

    def _do_stale(self, _: str, project: str) -> None:
        self.stale[normalized(project)] = copy.deepcopy(self.projects.get(normalized(project)))

    def _do_fresh(self, _: str, project: str) -> None:
        del self.stale[normalized(project)]

    def _do_lag(self, _: str, project: str, serial: int) -> None:
        self.lagging[normalized(project)] = serial

    def _do_fault(self, _: str, **fault: Any) -> None:
        self.faults.append(IndexFault(**fault))

    def _do_report_serial(self, _: str, serial: int | None) -> None:
        self.reported_serial = serial

    def _do_ranges(self, _: str, project: str, **fault: Any) -> None:
        self.ranges[normalized(project)] = RangeFault(**fault)

    def _do_recover(self, _: str) -> None:
        """End all that is wrong with the index; its projects stay."""
        self.stale, self.lagging, self.faults, self.reported_serial, self.ranges = {}, {}, [], None, {}


def normalized(name: str) -> str:
    """The name of a project in URLs (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
