"""Random histories of an index of several projects, mirrored by dumps of windows and published: each serial is answered
as the index said then, by `show`, by the pages and by the list of projects."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from indexing.searchable import Searchable
from mirroring.as_of_pages import get, served
from mirroring.package_dumps import DumpedIndex
from mirroring.played_index import PlayedIndex, Said

from warcmill.formats.pypi.dump import DistributionRow, ProjectState
from warcmill.formats.pypi.lives import ProjectLives
from warcmill.pypi.answers import PublishedData, show
from warcmill.pypi.data_sets import DISTRIBUTIONS, PublishedHistory, open_history
from warcmill.pypi.lives import shows

EVENTS, MOST = 36, 5  # of all projects; after the last window
NAMES = ("ash", "birch", "cedar")


class Mirror:
    """The dumps of an index whose projects are played, of pages that lag, are younger, or were not got."""

    def __init__(self, base: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.projects = {name: PlayedIndex(self.chance, name) for name in NAMES}
        self.begin = self.at = 0  # of the full dump: no page hides a quarantine then, which nobody could know
        first = self.chance.randint(3, 12)
        for serial in range(1, EVENTS + 1):
            played = self.chance.choice(NAMES)
            for name, project in self.projects.items():
                if name == played:
                    project.play()
                else:
                    project.rest()
            if not self.begin and serial >= first and not any(one.is_quarantined for one in self.projects.values()):
                self.begin = self.at = serial
        self.dumped = DumpedIndex(base)
        self.rows = set[str]()
        self.lacked = dict.fromkeys(
            NAMES, self.begin
        )  # serials after which the events of a project were not seen on a page

    def mirror(self) -> None:
        """Dump all, and window by window what changed; now and then begin a generation that has the lives."""
        self._dump(0, {name: project.pages[self.at] for name, project in self.projects.items()}, None)
        self.dumped.update()
        while self.at < EVENTS - MOST:
            after, self.at = self.at, min(self.at + self.chance.randint(1, 9), EVENTS - MOST)
            self._dump(after, dict(self._got(after)), [*self._past(after)])
            if self.chance.random() < 0.7:
                self.dumped.update()
            if self.chance.random() < 0.15:
                self._begin_generation()
        self.dumped.update()

    def _got(self, after: int) -> Iterator[tuple[str, ProjectState]]:
        for name, project in self.projects.items():
            events = [one for one in project.events if after < one.serial <= self.at]
            unseen = [one for one in project.events if self.lacked[name] < one.serial <= self.at]
            if not unseen:
                self.lacked[name] = self.at
                continue
            serial = self.chance.choice([self.at, self.at, self.at - 1, self.at - 3, self.at + 1, self.at + 2, 0])
            later = project.events[len([one for one in project.events if one.serial <= self.at]) :]
            if any(one.serial <= serial and one.action.startswith("add py3") for one in later):
                serial = self.at  # bytes that were replaced within the minute are those of after
            page = project.pages[serial]
            if serial and (page.serial is None or page.serial >= unseen[-1].serial or shows(name, page, events)):
                self.lacked[name] = self.at
                yield name, page

    def _past(self, after: int) -> Iterator[ProjectLives]:
        for name, project in sorted(self.projects.items()):
            if events := tuple(one for one in project.events if after < one.serial <= self.at):
                yield ProjectLives(name, events)

    def _dump(self, after: int, pages: dict[str, ProjectState], past: list[ProjectLives] | None) -> None:
        rows = sorted(self._read(pages), key=lambda row: (row.project, row.filename))
        self.dumped.dump(after, self.at, rows, [page for _, page in sorted(pages.items())], past)

    def _read(self, pages: dict[str, ProjectState]) -> Iterator[DistributionRow]:
        for name, page in pages.items():
            for file in page.files:
                if file.sha256 and file.sha256 not in self.rows:
                    self.rows.add(file.sha256)
                    yield self.projects[name].rows[file.sha256]

    def _begin_generation(self) -> None:
        self.dumped.update()
        with closing(self.history()) as history:
            lives = {name: tuple(history.lives(name)) for name in NAMES}
        if not any(lives.values()):
            return
        self.dumped.generation, self.rows = self.dumped.generation + 1, set()
        carried = [ProjectLives(name, (), self.begin, some) for name, some in lives.items() if some]
        pages = {name: project.pages[self.at] for name, project in self.projects.items()}
        self._dump(0, pages, carried)
        self.lacked = dict.fromkeys(NAMES, self.at)

    def history(self) -> PublishedHistory:
        data = PublishedData(self.dumped.state.store, self.dumped.index)
        return open_history(data.state, data.index, data.current(DISTRIBUTIONS))


def compare(mirror: Mirror, archive: Searchable) -> None:
    """Compare each serial with the record."""
    data = PublishedData(mirror.dumped.state.store, mirror.dumped.index)
    with closing(mirror.history()) as history:
        server = served(archive, _StaysOpen(history))
        for serial in range(mirror.begin, mirror.at + 1):
            said = {name: project.said[serial] for name, project in mirror.projects.items()}
            assert [*history.projects(serial)] == [name for name in NAMES if said[name]], serial
            for name in NAMES:
                answer = get(server, f"/as-of/{serial}/simple/{name}/")
                assert answer.status == (200 if said[name] else 404), (serial, name)
                listed = answer.document["files"] if answer.status == 200 else []
                page = {one["filename"]: (one["hashes"].get("sha256"), one["yanked"] is not False) for one in listed}
                assert _same(page, said[name]), (serial, name, page, said[name])
                rows: Any = show(data, name, serial)["files"]
                shown = {one["filename"]: (one["sha256"], one["yanked"] is not None) for one in rows}
                assert shown == page, (serial, name)
                facts = {one["filename"]: one["modules"] for one in rows}
                assert facts == {file: [name] if sha256 else None for file, (sha256, _) in page.items()}, (serial, name)


class _StaysOpen:
    """A history for many requests: each would close it."""

    def __init__(self, history: PublishedHistory) -> None:
        self.newest, self.projects, self.files = history.newest, history.projects, history.files
        self.status = history.status

    def close(self) -> None:
        pass


def _same(found: Said, said: Said) -> bool:
    """True if an answer is what the index said. Bytes are known if a page showed them."""
    are_known = all(sha256 in (None, said[name][0]) for name, (sha256, _) in found.items() if name in said)
    return are_known and {name: one[1] for name, one in found.items()} == {name: one[1] for name, one in said.items()}


@pytest.mark.parametrize("seed", range(6))
def test_each_serial_is_answered_as_the_index_said(tmp_path: Path, seed: int) -> None:
    mirror = Mirror(tmp_path / "index", seed)
    mirror.mirror()
    (tmp_path / "archive").mkdir()
    compare(mirror, Searchable(tmp_path / "archive"))
