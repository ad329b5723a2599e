"""The feed of a package index: which projects a window asks for, kept by digest, and the files of a job made of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from servers import distributions, pins
from servers import package_index as local
from warcmill import layout
from warcmill.clients.package_index import IndexClient
from warcmill.crawl.job import file
from warcmill.errors import BadConfig, BadInput, Mismatch, NotReady, Unavailable
from warcmill.formats import seeds
from warcmill.formats.seeds import SEED_LIST, SeedLine
from warcmill.markers.facts.pulse import Fed
from warcmill.markers.state import MarkerStore
from warcmill.model import Window
from warcmill.pypi import feed, journal
from warcmill.pypi.feed import EarlierDump, IndexRecipe, IndexSource, LackedProject, ProjectTarget
from warcmill.pypi.journal import WaitingList
from warcmill.stores.file import FileStore
from warcmill.stores.sentinel import adopt

FIRST, SECOND = layout.feed_key("pypi", "20261126160000"), layout.feed_key("pypi", "20261127160000")
CONTACT = "http://archive.example/"


@pytest.fixture
def state(tmp_path: Path) -> MarkerStore:
    adopt({"state": tmp_path / "state"})
    return MarkerStore(FileStore("state", tmp_path / "state"))


@pytest.fixture
def index(tmp_path: Path) -> Iterator[local.PackageIndex]:
    found = local.PackageIndex(tmp_path / "index", pins.free(pins.PACKAGE_INDEX))
    with found.running():
        yield found


def source(index: local.PackageIndex, *projects: str) -> IndexSource:
    return IndexSource(IndexClient(index.url, CONTACT), frozenset(projects) or None)


def upload(index: local.PackageIndex, folder: Path, project: str, version: str) -> int:
    return index.upload(distributions.wheel(folder, project, version))


def asked(state: MarkerStore) -> dict[str, tuple[str, ...] | None]:
    """The projects of the second feed, with their new files."""
    return {one.project: one.files for one in feed.targets(state, SECOND)}


def test_a_full_crawl_asks_for_every_project_up_to_the_last_serial(
    state: MarkerStore, index: local.PackageIndex, tmp_path: Path
) -> None:
    for name in ("Zope.Interface", "demo", "alpha"):
        upload(index, tmp_path, name, "1.0")
    claim = feed.full(state, FIRST, source(index))
    state.publish(FIRST, claim)
    assert feed.window_of(state, FIRST) == Window(0, index.serial)
    assert claim.facts == {"source": index.url, "serial_from": 0, "serial_to": index.serial}
    assert claim.counts == {"targets": 3, "of_job": 3}
    found = list(feed.targets(state, FIRST))
    assert [one.project for one in found] == ["alpha", "demo", "zope-interface"]
    assert found[1] == ProjectTarget("demo", f"{index.url}/simple/demo/", found[1].serial, None)
    assert found[2].serial
    assert found[2].serial <= index.serial
    assert feed.projects_of(state, FIRST) is None
    assert feed.full(state, FIRST, source(index)) == claim


def test_an_index_without_projects_is_refused(state: MarkerStore, index: local.PackageIndex) -> None:
    with pytest.raises(BadInput, match="lists no project"):
        feed.full(state, FIRST, source(index))


def test_an_increment_asks_for_what_changed_with_the_names_of_new_files(
    state: MarkerStore, index: local.PackageIndex, tmp_path: Path
) -> None:
    for name in ("same", "grows", "odd", "yanked", "gone"):
        upload(index, tmp_path, name, "1.0")
    before = index.serial
    upload(index, tmp_path, "Grows", "2.0")
    upload(index, tmp_path, "grows", "2.1")
    index.event("odd", "rename to even")
    index.yank("yanked", "1.0", "broken")
    index.remove_project("gone")
    upload(index, tmp_path, "new", "0.1")
    claim = feed.increment(state, SECOND, source(index), EarlierDump(before))
    state.publish(SECOND, claim)
    assert feed.window_of(state, SECOND) == Window(before, index.serial)
    assert asked(state) == {
        "gone": (), "grows": ("grows-2.0-py3-none-any.whl", "grows-2.1-py3-none-any.whl"),
        "new": ("new-0.1-py3-none-any.whl",), "odd": (), "yanked": (),
    }  # fmt: skip


def test_the_events_that_name_something_are_kept_with_their_times(
    state: MarkerStore, index: local.PackageIndex, tmp_path: Path
) -> None:
    first = upload(index, tmp_path, "a", "1.0")
    state.publish(FIRST, feed.full(state, FIRST, source(index)))
    assert journal.events(state, FIRST) is None
    index.event("a", "add Owner someone")
    index.yank("a", "1.0", "broken")
    index.quarantine("a")
    upload(index, tmp_path, "b", "1.0")
    state.publish(SECOND, feed.increment(state, SECOND, source(index), EarlierDump(first, feed=FIRST)))
    kept = list(journal.events(state, SECOND) or ())
    assert [(name, event.action, event.version) for name, event in kept] == [
        ("a", "yank release", "1.0"),
        ("a", "project quarantined", ""),
        ("b", "add py3 file b-1.0-py3-none-any.whl", "1.0"),
    ]
    events = Fed.from_claim(state.require(SECOND).claim).events
    assert events
    assert journal.times(state, events) == (kept[0][1].time, kept[-1][1].time)
    assert all(event.serial > first and event.time > 0 for _, event in kept)
    again = feed.full(state, FIRST, source(index), EarlierDump(first))
    assert [*journal.events_of(state, again.outputs[-1])] == kept


def test_of_a_page_that_lags_only_what_is_named_is_asked_for_again(
    state: MarkerStore, index: local.PackageIndex, tmp_path: Path
) -> None:
    first = upload(index, tmp_path, "a", "1.0")
    second = upload(index, tmp_path, "a", "2.0")
    state.publish(FIRST, feed.increment(state, FIRST, source(index), EarlierDump(first)))
    upload(index, tmp_path, "a", "3.0")
    lacked = LackedProject(second, ("a-2.0-py3-none-any.whl",), 1)
    dump = EarlierDump(second, {"a": lacked}, feed=FIRST)
    state.publish(SECOND, feed.increment(state, SECOND, source(index), dump))
    (found,) = feed.targets(state, SECOND)
    assert (found.files, found.tries) == (("a-3.0-py3-none-any.whl", "a-2.0-py3-none-any.whl"), 1)
    named = [event.version for _, event in journal.events(state, SECOND) or ()]
    assert named == ["2.0", "3.0"], "that of the window before too: no page has shown it"


def test_what_the_dump_lacked_and_a_project_that_is_wanted_now_is_asked_for_whole(
    state: MarkerStore, index: local.PackageIndex, tmp_path: Path
) -> None:
    for name in ("a", "b", "c", "d"):
        upload(index, tmp_path, name, "1.0")
    before = index.serial
    for name in ("a", "b", "c", "d"):
        upload(index, tmp_path, name, "2.0")
    dump = EarlierDump(before, {"a": LackedProject(), "d": LackedProject()}, frozenset(["a", "b"]))
    state.publish(SECOND, feed.increment(state, SECOND, source(index, "a", "b", "c"), dump))
    assert asked(state) == {"a": None, "b": ("b-2.0-py3-none-any.whl",), "c": None}
    assert feed.projects_of(state, SECOND) == frozenset(["a", "b", "c"])


def test_where_all_are_wanted_now_those_of_before_are_not_asked_for_again(
    state: MarkerStore, index: local.PackageIndex, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        upload(index, tmp_path, name, "1.0")
    dump = EarlierDump(index.serial, {}, frozenset(["a"]))
    state.publish(SECOND, feed.increment(state, SECOND, source(index), dump))
    assert asked(state) == {"b": None}


def test_a_page_that_was_older_than_its_event_is_asked_for_as_new_as_that(
    state: MarkerStore, index: local.PackageIndex, tmp_path: Path
) -> None:
    lacked, whole = upload(index, tmp_path, "a", "1.0"), upload(index, tmp_path, "b", "1.0")
    state.publish(
        SECOND, feed.increment(state, SECOND, source(index), EarlierDump(whole, {"a": LackedProject(lacked)}))
    )
    assert [(one.project, one.serial, one.files) for one in feed.targets(state, SECOND)] == [("a", lacked, None)]


def test_projects_that_are_named_have_the_serial_of_their_last_event(
    state: MarkerStore, index: local.PackageIndex, tmp_path: Path
) -> None:
    first, _, last = (upload(index, tmp_path, name, "1.0") for name in ("a", "b", "c"))
    state.publish(FIRST, feed.full(state, FIRST, source(index, "a", "x")))
    assert [(one.project, one.serial) for one in feed.targets(state, FIRST)] == [("a", first), ("x", None)]
    state.publish(SECOND, feed.increment(state, SECOND, source(index, "a", "c"), dumped_of_a(last)))
    assert [(one.project, one.serial) for one in feed.targets(state, SECOND)] == [("c", last)]


def dumped_of_a(up_to: int) -> EarlierDump:
    return EarlierDump(up_to, {}, frozenset(["a"]))


def test_a_list_or_a_changelog_that_lags_ends_no_window(
    state: MarkerStore, index: local.PackageIndex, tmp_path: Path
) -> None:
    serial = upload(index, tmp_path, "a", "1.0")
    index.report_serial(serial + 5)
    assert Fed.from_claim(feed.full(state, FIRST, source(index))).window == Window(0, serial)
    with pytest.raises(Unavailable, match=f"its changelog ends at serial {serial}"):
        feed.increment(state, SECOND, source(index), EarlierDump(serial))
    with pytest.raises(Unavailable, match=f"its list of projects is of serial {serial}"):
        feed.increment(state, SECOND, source(index), dumped_of_a(serial + 5))


def test_nothing_new_is_a_feed_of_no_project(state: MarkerStore, index: local.PackageIndex, tmp_path: Path) -> None:
    upload(index, tmp_path, "a", "1.0")
    claim = feed.increment(state, SECOND, source(index), EarlierDump(index.serial))
    assert Fed.from_claim(claim).counts == {"targets": 0, "of_job": 0}
    assert Fed.from_claim(claim).window == Window(index.serial, index.serial)


def test_an_index_whose_serial_went_backwards_is_refused(
    state: MarkerStore, index: local.PackageIndex, tmp_path: Path
) -> None:
    upload(index, tmp_path, "a", "1.0")
    index.report_serial(1)
    with pytest.raises(BadInput, match="another index, or a copy that lags"):
        feed.increment(state, SECOND, source(index), EarlierDump(index.serial))


def test_an_outage_of_many_events_is_one_window(state: MarkerStore, index: local.PackageIndex, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        upload(index, tmp_path, name, "1.0")
    before = index.serial
    index.burst(60_000)
    state.publish(SECOND, feed.increment(state, SECOND, source(index), EarlierDump(before)))
    assert set(asked(state)) == {"a", "b", "c"}
    assert feed.window_of(state, SECOND).up_to == index.serial


def test_a_launch_that_continues_keeps_the_window_and_the_projects(
    state: MarkerStore, index: local.PackageIndex, tmp_path: Path
) -> None:
    upload(index, tmp_path, "a", "1.0")
    state.publish(FIRST, feed.full(state, FIRST, source(index)))
    upload(index, tmp_path, "b", "1.0")
    state.publish(SECOND, feed.again(state, SECOND, FIRST))
    assert asked(state) == {"a": None}
    assert feed.window_of(state, SECOND) == feed.window_of(state, FIRST)
    assert Fed.from_claim(state.require(SECOND).claim).again == FIRST["due"]


def test_a_feed_that_was_changed_or_is_not_there_is_not_read(
    state: MarkerStore, index: local.PackageIndex, tmp_path: Path
) -> None:
    upload(index, tmp_path, "a", "1.0")
    state.publish(SECOND, feed.full(state, SECOND, source(index)))
    kept = state.store.base / Fed.from_claim(state.require(SECOND).claim).kept.path
    data = kept.read_bytes()
    kept.chmod(0o644)
    kept.write_bytes(data.replace(b'"a"', b'"b"'))
    with pytest.raises(Mismatch):
        list(feed.targets(state, SECOND))
    kept.unlink()
    with pytest.raises(NotReady, match="warcmill restore"):
        list(feed.targets(state, SECOND))


def test_the_job_s_files_ask_for_each_page_in_json_and_for_its_new_files(
    state: MarkerStore, index: local.PackageIndex, tmp_path: Path
) -> None:
    upload(index, tmp_path, "a", "1.0")
    before = index.serial
    upload(index, tmp_path, "a", "2.0")
    state.publish(SECOND, feed.increment(state, SECOND, source(index), EarlierDump(before)))
    written = dict[str, bytes]()

    def configure(files: dict[str, bytes], path: Path) -> None:
        written.update({**files, SEED_LIST: path.read_bytes()})

    recipe = IndexRecipe(CONTACT, {"politeness": {"at_once": 9}, "workers": 5}, newest=True, whole=True)
    facts = feed.prepare(state, SECOND, recipe, configure)  # type: ignore[arg-type]
    assert (facts["targets"], facts["serial_from"], facts["serial_to"]) == (1, before, index.serial)
    job = file.parse(written, "pypi")
    assert (job.robots, job.revisits, job.politeness.at_once, job.politeness.least, job.workers) == (
        False, False, 9, 0.5, 5,
    )  # fmt: skip
    with (tmp_path / "list").open("w+b") as stream:
        stream.write(written[SEED_LIST])
        stream.seek(0)
        (line,) = seeds.lines(stream)
    assert isinstance(line, SeedLine)
    assert (line.url, line.may_be_absent) == (f"{index.url}/simple/a/", True)
    assert json.loads(line.payload) == {
        "fetch": {"headers": {"Accept": "application/vnd.pypi.simple.v1+json"}},
        "package_index": {"page": "a", "files": ["a-2.0-py3-none-any.whl"], "newest": True, "whole": True},
    }


def test_keys_that_the_feed_decides_are_refused() -> None:
    with pytest.raises(BadConfig, match=r"\[pypi\] settings, robots: the feed decides it"):
        IndexRecipe(CONTACT, {"robots": "obey"}).files()


def test_names_of_projects_are_read_in_any_list() -> None:
    assert feed.parse_projects("Foo.Bar, a_b\n# none\n c  # d\n", "x") == {"foo-bar", "a-b", "c"}
    for text in ("", "# none", "a/b", "-a", "a b/", "\0"):
        with pytest.raises(BadConfig):
            feed.parse_projects(text, "x")


def test_the_first_crawl_asks_for_newest_releases_and_later_ones_for_some_history(
    state: MarkerStore, index: local.PackageIndex, tmp_path: Path
) -> None:
    for name in ("alpha", "beta", "gamma"):
        upload(index, tmp_path, name, "1.0")
    by = replace(source(index), newest_first=True, history=2)
    state.publish(FIRST, feed.full(state, FIRST, by))
    assert all(one.newest and one.files is None for one in feed.targets(state, FIRST))
    (line, *_) = IndexRecipe(CONTACT, needed=True).seeds(feed.targets(state, FIRST))
    assert json.loads(line)["payload"]["package_index"] == {
        "page": "alpha", "newest": "first", "needed": True
    }  # fmt: skip
    before = index.serial
    upload(index, tmp_path, "beta", "2.0")
    with closing(WaitingList(tmp_path)) as found:
        for number, name in enumerate(("alpha", "beta", "gamma")):
            found.found(name, number, 3)
        found.found("delta", None, 0)
        waiting = found.keep(state)
    assert waiting
    assert (waiting.projects, waiting.files) == (3, 9)
    lacking = {"gamma": LackedProject(before, None, 1, newest=True)}
    claim = feed.increment(state, SECOND, by, EarlierDump(before, lacking, waiting=waiting))
    state.publish(SECOND, claim)
    found_now = {one.project: (one.files, one.newest, one.older) for one in feed.targets(state, SECOND)}
    assert found_now == {"alpha": (None, False, 0), "beta": (None, False, 1), "gamma": (None, True, None)}
    assert feed.full(state, SECOND, by, EarlierDump(before)).outputs != feed.full(state, FIRST, by).outputs, (
        "a second full crawl asks for all at once: else what is known would be away meanwhile"
    )


def test_a_list_of_nothing_that_waits_is_not_kept(state: MarkerStore, tmp_path: Path) -> None:
    with closing(WaitingList(tmp_path)) as found:
        found.found("delta", None, 0)
        before = sorted(tmp_path.rglob("*"))
        assert found.keep(state) is None
    assert sorted(tmp_path.rglob("*")) == before
