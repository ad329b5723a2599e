"""Folders that are symbolic links: which are followed, which are named, and that none leads elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest
from launches.engine import LAUNCH, Engine

from warcmill.errors import NotFollowed, Unavailable
from warcmill.launches import discovery
from warcmill.launches.discovery import Discovery
from warcmill.launches.listing import list_files
from warcmill.launches.roots import EngineSection, JobRoots, RootMap
from warcmill.layout import OutputLayout
from warcmill.model import Root
from warcmill.stores import Store
from warcmill.stores.engine_folder import EngineFolder, LinkRules
from warcmill.stores.opening import Access, open_store

KIND, JOB = OutputLayout.KIND_FIRST, OutputLayout.JOB_FIRST


@dataclass
class Linked:
    """An engine's folders beside a disk, to which links are followed."""

    engine: Engine

    @property
    def disk(self) -> Path:
        return self.engine.base / "disk"

    @property
    def output(self) -> Path:
        return self.engine.folders["output"]

    def open(self, root: Root, place: str) -> Store:
        levels = {str(self.output): 3, str(self.engine.folders["state"]): 0, str(self.engine.folders["store"]): 0}
        levels.setdefault(str(self.engine.folders["jobs"]), 2)
        return open_store(root, place, Access(links=LinkRules([str(self.disk)], levels)))

    @property
    def rootmap(self) -> RootMap:
        site = EngineSection("[warcmill]", str(self.output), str(self.engine.folders["jobs"]), self.engine.layout)
        return RootMap(site, {}, (), self.open)

    @property
    def roots(self) -> JobRoots:
        return self.rootmap.of("daily")

    @property
    def store(self) -> EngineFolder:
        found = self.open("output", str(self.output))
        assert isinstance(found, EngineFolder)
        return found

    def find(self) -> Discovery:
        return discovery.find(self.rootmap, date(2016, 10, 1), date(2016, 11, 1))

    def move(self, folder: Path, name: str) -> Path:
        """Move a folder to the disk, and leave a link in its place."""
        target = self.disk / name
        target.parent.mkdir(parents=True, exist_ok=True)
        folder.rename(target)
        folder.symlink_to(target)
        return target


@pytest.fixture(params=[KIND, JOB])
def linked(tmp_path: Path, request: pytest.FixtureRequest) -> Linked:
    made = Linked(Engine(tmp_path, request.param))
    made.engine.logs()
    made.engine.warc("a.warc.gz", b"whole")
    made.disk.mkdir()
    return made


def warcs_folder(linked: Linked) -> Path:
    return linked.output / linked.engine.layout.folder("warcs", LAUNCH)


def levels_of(linked: Linked) -> list[Path]:
    """The folders above a launch's WARCs, from below the root on."""
    folder = warcs_folder(linked)
    return [folder.parent.parent, folder.parent, folder]


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_link_at_each_level_to_what_is_below_a_named_folder_is_followed(linked: Linked, level: int) -> None:
    linked.move(levels_of(linked)[level], "moved")
    found = linked.find()
    assert (found.launches, found.unexpected) == ((LAUNCH,), ())
    (warc,) = list_files(linked.roots, LAUNCH).warcs
    assert warc.name == "a.warc.gz"
    with linked.store.open(warc.path) as file:
        assert file.read() == b"whole"


def test_links_in_links_are_followed_one_by_one(linked: Linked) -> None:
    top, middle, folder = levels_of(linked)
    for depth, one in enumerate((folder, middle, top)):
        linked.move(one, f"moved{depth}")
    assert [file.name for file in list_files(linked.roots, LAUNCH).warcs] == ["a.warc.gz"]
    assert linked.find().launches == (LAUNCH,)


def to_the_disk_itself(linked: Linked, _: Path) -> Path:
    return linked.disk


def to_nothing_named(linked: Linked, folder: Path) -> Path:
    elsewhere = linked.engine.base / "disk-of-another"
    folder.rename(elsewhere)
    return elsewhere


def to_the_root(_: Linked, __: Path) -> Path:
    return Path("/")


def to_its_own_root(linked: Linked, _: Path) -> Path:
    return linked.output


def to_the_store(linked: Linked, _: Path) -> Path:
    return linked.engine.folders["store"]


def to_nowhere(linked: Linked, _: Path) -> Path:
    return linked.disk / "gone"


def to_itself(_: Linked, folder: Path) -> Path:
    return folder


def to_a_file(linked: Linked, _: Path) -> Path:
    file = linked.disk / "file"
    file.write_bytes(b"")
    return file


def through_dots(linked: Linked, folder: Path) -> Path:
    elsewhere = linked.engine.base / "elsewhere"
    folder.rename(elsewhere)
    return linked.disk / ".." / "elsewhere"


def through_a_link_on_the_disk(linked: Linked, folder: Path) -> Path:
    elsewhere = linked.engine.base / "elsewhere"
    folder.rename(elsewhere)
    (linked.disk / "out").symlink_to(elsewhere)
    return linked.disk / "out"


ESCAPES: list[tuple[Callable[[Linked, Path], Path], str]] = [
    (to_the_disk_itself, "below no folder"),
    (to_nothing_named, "below no folder"),
    (to_the_root, "below no folder"),
    (to_its_own_root, "below no folder"),
    (to_the_store, "below no folder"),
    (to_nowhere, "leads nowhere"),
    (to_itself, "leads nowhere"),
    (to_a_file, "no folder"),
    (through_dots, "below no folder"),
    (through_a_link_on_the_disk, "below no folder"),
]


@pytest.mark.parametrize(("target", "why"), ESCAPES, ids=[escape.__name__ for escape, _ in ESCAPES])
def test_a_link_that_leads_elsewhere_is_named_and_nothing_behind_it_is_read(
    linked: Linked, target: Callable[[Linked, Path], Path], why: str
) -> None:
    launch = levels_of(linked)[1 if linked.engine.layout is JOB else 2]
    path = target(linked, launch)
    if launch.exists():
        launch.rename(linked.engine.base / "out-of-the-way")
    launch.symlink_to(path)
    (odd,) = [text for text in linked.find().unexpected if str(launch) in text]
    assert why in odd
    with pytest.raises(NotFollowed, match=why):
        list_files(linked.roots, LAUNCH)
    with pytest.raises(NotFollowed, match=why):
        linked.store.open(f"{linked.engine.layout.folder('warcs', LAUNCH)}/a.warc.gz")
    relative = str(launch.relative_to(linked.output))
    found = linked.store.stat(relative)
    assert found
    assert (found.kind, why in found.why) == ("other", True)


@pytest.mark.parametrize("root", ["output", "store", "state"])
def test_a_link_into_a_root_or_to_what_holds_one_is_refused_though_its_folder_is_named(
    tmp_path: Path, root: Root
) -> None:
    """The disk is a folder that has roots in it."""
    linked = Linked(Engine(tmp_path / "disk" / "below", KIND))
    linked.engine.base = tmp_path  # the disk is beside, and holds the line itself
    linked.engine.logs()
    link = linked.output / "warcs" / "daily"
    link.parent.mkdir()
    for target in (linked.engine.folders[root], linked.engine.folders[root].parent):
        link.symlink_to(target)
        (odd,) = linked.find().unexpected
        assert "which lies in the root" in odd
        link.unlink()


def test_two_ways_to_one_folder_are_both_named_and_neither_is_read(linked: Linked) -> None:
    job = levels_of(linked)[1 if linked.engine.layout is KIND else 0]
    target = linked.move(job, "daily")
    job.with_name("other").symlink_to(target)
    found = linked.find()
    assert sorted(text.partition(": ")[0] for text in found.unexpected) == [str(job), str(job.with_name("other"))]
    assert all("two ways lead to" in text for text in found.unexpected)
    with pytest.raises(NotFollowed, match="two ways"):
        list_files(linked.roots, LAUNCH)


def test_a_way_into_a_folder_that_another_link_leads_to_is_a_second_way(linked: Linked) -> None:
    job = levels_of(linked)[1 if linked.engine.layout is KIND else 0]
    target = linked.move(job, "daily")
    inner = target / "20161020234428"
    inner.symlink_to(target / LAUNCH.id)
    (odd,) = linked.find().unexpected
    assert "two ways" in odd
    assert str(job) in odd
    assert inner.name in odd


def test_links_deeper_down_and_links_to_files_are_never_followed(linked: Linked) -> None:
    folder = warcs_folder(linked)
    linked.move(folder, "warcs")
    (linked.disk / "more").mkdir()
    (linked.disk / "more" / "b.warc.gz").write_bytes(b"")
    (folder / "more").symlink_to(linked.disk / "more")
    (folder / "c.warc.gz").symlink_to(linked.disk / "more" / "b.warc.gz")
    listing = list_files(linked.roots, LAUNCH)
    assert [file.name for file in listing.warcs] == ["a.warc.gz"]
    assert len(listing.unexpected) == 2
    assert all("a link" in text for text in listing.unexpected)
    with pytest.raises(Unavailable):
        linked.store.open(f"{linked.engine.layout.folder('warcs', LAUNCH)}/c.warc.gz")


def test_latest_is_neither_followed_nor_named(linked: Linked) -> None:
    launch = levels_of(linked)[1 if linked.engine.layout is JOB else 2]
    launch.with_name("latest").symlink_to(launch.name)
    assert linked.find().unexpected == ()


def test_a_link_that_is_swapped_between_the_look_and_the_reading_leads_nowhere_else(
    linked: Linked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attacker who can write on the disk turns a folder on the way into a link at the worst moment."""
    secret = linked.engine.base / "secret"
    secret.mkdir()
    (secret / "a.warc.gz").write_bytes(b"secret")
    folder = warcs_folder(linked)
    target = linked.move(folder, "deep/warcs")
    path = f"{linked.engine.layout.folder('warcs', LAUNCH)}/a.warc.gz"
    judged = LinkRules._judge

    def swap(self: LinkRules, link: str) -> object:
        found = judged(self, link)
        if target.is_dir() and not target.is_symlink():
            target.rename(target.with_name("away"))
            target.symlink_to(secret)
        return found

    monkeypatch.setattr(LinkRules, "_judge", swap)
    with pytest.raises(NotFollowed):
        linked.store.open(path)


def test_a_folder_that_becomes_a_link_while_a_step_reads_is_not_walked_into(linked: Linked) -> None:
    secret = linked.engine.base / "secret"
    secret.mkdir()
    (secret / "a.warc.gz").write_bytes(b"secret")
    store, folder = linked.store, warcs_folder(linked)
    (entry,) = store.list(linked.engine.layout.folder("warcs", LAUNCH))
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(secret)
    with pytest.raises(NotFollowed, match="below no folder"):
        store.open(entry.path)


def test_nothing_is_removed_through_a_link(linked: Linked) -> None:
    folder = warcs_folder(linked)
    target = linked.move(folder, "warcs")
    (entry,) = linked.store.list(linked.engine.layout.folder("warcs", LAUNCH))
    with pytest.raises(NotFollowed, match="nothing is removed through one"):
        linked.store.remove(entry.path, entry)
    assert (target / "a.warc.gz").exists()
    assert linked.roots.is_linked(LAUNCH)


def test_what_is_behind_no_link_is_removed(linked: Linked) -> None:
    (entry,) = linked.store.list(linked.engine.layout.folder("warcs", LAUNCH))
    linked.store.remove(entry.path, entry)
    assert not os.listdir(warcs_folder(linked))
    assert not linked.roots.is_linked(LAUNCH)


def test_every_link_is_reported_by_doctor_with_why(linked: Linked) -> None:
    folder = warcs_folder(linked)
    linked.move(folder, "warcs")
    folder.with_name("viral").symlink_to("/etc")
    links = LinkRules([str(linked.disk)], {str(linked.output): 3})
    assert sorted((Path(link.path).name, bool(link.why)) for link in links.all()) == sorted(
        [(folder.name, False), ("viral", True)]
    )
