"""The lives of a project's files: what an index said at each serial, whatever its pages show meanwhile."""

from __future__ import annotations

import random

import pytest
from mirroring.package_dumps import listed, row
from mirroring.played_index import DAY, PlayedIndex, Said, uploaded
from msgspec.structs import replace

from warcmill.formats.pypi.dump import ListedFile, ProjectState
from warcmill.formats.pypi.lives import DistributionLife, LifeEvent
from warcmill.model import Window
from warcmill.pypi.lives import BY_EVENTS, BY_PAGE, BY_TWO_PAGES, carried_on, left, shows

ONE, TWO = listed(row("six", "1.0")), listed(row("six", "2.0"))
NEW = replace(ONE, sha256="b" * 64)


def name(version: str) -> str:
    return f"six-{version}-py3-none-any.whl"


def page(serial: int | None, *files: ListedFile) -> ProjectState:
    return ProjectState("six", serial, not files, files)


def event(serial: int, action: str, version: str = "") -> LifeEvent:
    return LifeEvent(serial, 0, version, action)


def carried(
    known: dict[str, DistributionLife],
    window: tuple[int, int],
    shown: ProjectState | None,
    *events: LifeEvent,
    pages: int = BY_EVENTS,
) -> dict[str, DistributionLife]:
    return carried_on("six", known, Window(*window), shown, None if pages else events, pages)


def begun(*files: ListedFile, at: int = 10) -> dict[str, DistributionLife]:
    return carried({}, (0, at), page(at, *files), pages=BY_PAGE)


def spans(life: DistributionLife) -> list[tuple[int, int | None, str, str | None]]:
    return [(one.first, one.last, str(one.state), one.file.yanked) for one in life.intervals]


def test_quarantined_and_cleared_yanked_and_unyanked() -> None:
    shown = page(25, ONE)
    events = (
        event(12, "project quarantined"),
        event(15, "yank release", "1.0"),
        event(20, "project quarantine cleared"),
        event(25, "unyank release", "1.0"),
    )
    (life,) = carried(begun(ONE), (10, 30), shown, *events).values()
    assert spans(life) == [
        (10, 11, "there", None),
        (12, 14, "quarantined", None),
        (15, 19, "quarantined", ""),
        (20, 24, "yanked", ""),
        (25, None, "there", None),
    ]
    assert [life.was_there(serial) for serial in (9, 10, 12, 19, 20, 99)] == [False, True, False, False, True, True]
    assert life.presence(22) == (20, None)
    assert life.presence(10) == (10, 11)
    assert DistributionLife.parse(life.encode()) == life


def test_a_file_that_is_removed_and_uploaded_anew_has_the_bytes_of_its_time() -> None:
    events = (event(12, f"remove file {ONE.filename}", "1.0"), event(15, f"add py3 file {ONE.filename}", "1.0"))
    (life,) = carried(begun(ONE), (10, 20), page(15, NEW), *events).values()
    assert [(one.first, one.last, one.file.sha256) for one in life.intervals] == [
        (10, 11, ONE.sha256),
        (15, None, NEW.sha256),
    ]
    assert DistributionLife.parse(life.encode()) == life
    assert life.at(13) is None
    (away,) = begun(ONE).values()
    assert spans(away.ended(19).turned(30, ONE)) == [(10, 19, "there", None), (30, None, "there", None)]


def test_the_reason_of_a_yank_is_that_of_the_page() -> None:
    yanked = carried(begun(ONE), (10, 20), page(14, replace(ONE, yanked="oops")), event(14, "yank release", "1.0"))
    assert spans(yanked[ONE.filename]) == [(10, 13, "there", None), (14, None, "yanked", "oops")]
    cleared = carried(yanked, (20, 30), page(24, ONE), event(24, "unyank release", "1.0"))
    assert spans(cleared[ONE.filename])[1:] == [(14, 23, "yanked", "oops"), (24, None, "there", None)]


def test_one_empty_page_of_a_sick_index_takes_nothing() -> None:
    for shown in (page(12), page(12, TWO)):
        lives = carried(begun(ONE, TWO), (10, 20), shown, event(12, "add Owner someone"))
        assert all(life.was_there(99) for life in lives.values())
    missed = carried(begun(ONE), (10, 20), page(12), pages=BY_TWO_PAGES)
    assert missed[ONE.filename].was_there(99)
    assert carried(missed, (20, 30), page(22, ONE), pages=BY_TWO_PAGES) == begun(ONE)
    (gone,) = carried(missed, (20, 30), page(22), pages=BY_TWO_PAGES).values()
    assert spans(gone) == [(10, 11, "there", None)]
    (gone,) = carried(begun(ONE), (10, 20), page(12), pages=BY_PAGE).values()
    assert spans(gone) == [(10, 11, "there", None)]


def test_a_name_that_another_owner_took_is_another_file() -> None:
    events = (event(12, "remove project"), event(13, "create"), event(14, f"add py3 file {ONE.filename}", "1.0"))
    (life,) = carried(begun(ONE), (10, 20), page(14, NEW), *events).values()
    assert [(one.first, one.last, one.file.sha256) for one in life.intervals] == [
        (10, 11, ONE.sha256),
        (14, None, NEW.sha256),
    ]


def test_a_project_that_was_in_quarantine_when_all_was_crawled() -> None:
    """Its page had no files then, so none is known of it: what a clearing shows begins there, and was not before."""
    cleared = event(15, "project quarantine cleared")
    (life,) = carried_on("six", {}, Window(10, 20), page(17, ONE), [cleared], BY_EVENTS, seen=10).values()
    assert (spans(life), life.found) == ([(15, None, "there", None)], False)
    old = carried_on("six", {}, Window(10, 20), page(5, ONE), [cleared], BY_EVENTS, seen=8)
    assert old == {}, "a page of before the one that was read shows what has left since"
    (unread,) = carried_on("six", {}, Window(10, 20), page(17, ONE), [], BY_EVENTS).values()
    assert (spans(unread), unread.found) == ([(10, None, "there", None)], True)


def test_without_a_page_events_alone_count() -> None:
    added = event(15, f"add py3 file {TWO.filename}", "2.0")
    lives = carried(begun(ONE), (10, 20), None, added)
    assert spans(lives[ONE.filename]) == [(10, None, "there", None)]
    assert (spans(lives[TWO.filename]), lives[TWO.filename].file.url) == ([(15, None, "there", None)], "")
    for serial in (15, 14):
        later = carried(lives, (20, 30), page(serial, ONE, TWO))
        assert later[TWO.filename] == DistributionLife(TWO, 15, None, None)
    removed = carried(begun(ONE, TWO), (10, 20), None, event(15, "remove release", "2.0"))
    assert spans(removed[TWO.filename]) == [(10, 14, "there", None)]


def test_a_page_younger_than_its_window_is_not_back_dated() -> None:
    lives = carried(begun(ONE), (10, 20), page(23, replace(ONE, yanked="x"), TWO), event(12, "add Owner someone"))
    assert {key: spans(life) for key, life in lives.items()} == {ONE.filename: [(10, None, "there", None)]}
    first = carried({}, (0, 20), page(23, replace(ONE, yanked="x"), TWO), pages=BY_PAGE)
    assert {life.first for life in first.values()} == {23}
    events = (event(21, f"add py3 file {TWO.filename}", "2.0"), event(23, "yank release", "1.0"))
    after = carried(first, (20, 30), page(23, replace(ONE, yanked="x"), TWO), *events)
    assert spans(after[ONE.filename]) == [(20, 22, "there", None), (23, None, "yanked", "x")]
    assert spans(after[TWO.filename]) == [(21, None, "there", None)]


def test_a_page_that_lags_in_its_serial_alone_has_all_that_the_events_name() -> None:
    added, removed = event(15, f"add py3 file {TWO.filename}", "2.0"), event(16, f"remove file {ONE.filename}")
    yanked, owner = event(17, "yank release", "2.0"), event(18, "add Owner someone")
    assert shows("six", page(14, replace(TWO, yanked="")), [added, removed, yanked, owner])
    assert not shows("six", page(14, TWO), [added, removed, yanked])
    assert not shows("six", page(14, ONE, TWO), [added, removed])
    assert not shows("six", page(14), [added])
    assert shows("six", page(14), [event(15, "remove project")])
    assert shows("six", page(16, ONE, TWO), [added, removed])


def test_a_page_of_before_the_window_has_the_bytes_of_before_an_upload_by_its_times() -> None:
    """No event of the window says that the file was removed before it."""
    again = LifeEvent(15, 15 * DAY, "1.0", f"add py3 file {ONE.filename}")
    assert not shows("six", page(9, replace(ONE, uploaded=uploaded(9))), [again])
    for when in (uploaded(15), uploaded(16), None, "yesterday", "2026-11-29T08:00:00"):
        assert shows("six", page(9, replace(ONE, uploaded=when)), [again])
    assert shows("six", page(9, replace(ONE, uploaded=uploaded(9))), [replace(again, time=0)])


def test_a_file_has_left_if_the_last_event_and_no_later_page_says_so() -> None:
    removed, back = event(15, "remove release", "1.0"), event(17, f"add py3 file {ONE.filename}", "1.0")
    names = [ONE.filename, TWO.filename]
    assert left("six", names, [removed], page(14, ONE, TWO)) == {ONE.filename}
    assert left("six", names, [removed], None) == {ONE.filename}
    assert left("six", names, [removed, back], None) == left("six", names, [], page(20)) == set()
    assert left("six", names, [event(15, "remove project")], page(15)) == set(names)
    assert left("six", names, [event(15, "project quarantined")], page(15)) == set()


def answered(lives: dict[str, DistributionLife], serial: int) -> Said:
    found = {key: life.at(serial) for key, life in lives.items()}
    return {
        key: (one.file.sha256, one.file.yanked is not None)
        for key, one in found.items()
        if one is not None and not one.is_quarantined
    }


@pytest.mark.parametrize("seed", [*range(40), 2139])
def test_each_serial_is_answered_as_the_index_said(seed: int) -> None:
    """In windows of any size, whose pages lag, are younger, or were not got. Bytes are known if a page showed them."""
    index = PlayedIndex(random.Random(seed))
    for _ in range(60):
        index.play()
    lives, began = dict[str, DistributionLife](), index.chance.randint(3, 10)
    begin = at = seen = next(serial for serial, said in enumerate(index.said) if serial >= began and said)
    lives = carried(lives, (0, at), index.pages[at], pages=BY_PAGE)
    while at < index.serial - 5:
        up_to = min(at + index.chance.randint(1, 12), index.serial - 5)
        serial = index.chance.choice([up_to, up_to, up_to - 1, up_to - 2, up_to + 1, up_to + 2, 0])
        unseen = [one for one in index.events if seen < one.serial <= up_to]
        adds = any(one.action.startswith("add py3") for one in index.events[up_to:serial])
        serial = up_to if adds else serial  # bytes that were replaced within the minute are those of after
        is_got = serial >= up_to or (serial > 0 and shows("six", index.pages[serial], unseen))
        lives = carried(lives, (at, up_to), index.pages[serial] if is_got else None, *unseen)
        at, seen = up_to, up_to if is_got else seen
    said = index.said[begin : at + 1]
    found = {key: DistributionLife.parse(life.encode()) for key, life in lives.items()}
    assert [yanked(answered(found, serial)) for serial in range(begin, at + 1)] == [*map(yanked, said)]
    for serial in range(begin, at + 1):
        for key, (sha256, _) in answered(found, serial).items():
            assert sha256 in (None, index.said[serial][key][0])


def yanked(said: Said) -> dict[str, bool]:
    return {key: is_yanked for key, (_, is_yanked) in said.items()}
