"""What attempts settle stays settled; what failed is tried again; a torn line costs one item."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks import logs
from warcmill import layout
from warcmill.audit import gaps
from warcmill.errors import BadInput, Unsettled
from warcmill.markers import attempts as attempt_files
from warcmill.markers.attempts import Attempts, run_items
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, FileRef, Item, Launch, Outcome
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

KEY = layout.key("files.Checksum", Launch("daily", "20161019234428"), stage=FINAL)
FILES = [FileRef("output", f"warcs/{name}.warc.gz", 1) for name in ("a", "b", "c")]


@pytest.fixture
def state(tmp_path: Path) -> MarkerStore:
    sentinel.adopt({"state": tmp_path})
    return MarkerStore(FileStore("state", tmp_path))


def version(file: FileRef) -> str:
    return "1"


class Work:
    """Notes which files it was asked for; fails those it is asked to."""

    def __init__(self, **faults: Exception) -> None:
        self.asked: list[str] = []
        self.faults = faults

    def __call__(self, file: FileRef) -> tuple[Item, ...]:
        name = file.name.split(".")[0]
        self.asked.append(name)
        if name in self.faults:
            raise self.faults[name]
        return (Item(file, Outcome.OK, facts={"n": name}),)


def attempt(state: MarkerStore, work: Work, version: Callable[[FileRef], str] = version) -> tuple[Item, ...]:
    return run_items(Attempts(state, KEY), FILES, version, work)


@pytest.mark.parametrize("at_once", [1, 4])
def test_what_is_logged_in_threads_names_the_step(
    state: MarkerStore, at_once: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)

    def work(file: FileRef) -> tuple[Item, ...]:
        logging.getLogger("warcmill").warning("%s is slow", file.name)
        return (Item(file, Outcome.OK),)

    logs.configure()
    with logs.of_step(KEY):
        run_items(Attempts(state, KEY), FILES, version, work, at_once)
    told = sorted(line.partition(" WARNING ")[2] for line in capsys.readouterr().err.splitlines())
    assert told == [f"files.Checksum daily 20161019234428 final: {file.name} is slow" for file in FILES]


def test_a_failure_does_not_hold_up_the_others_and_alone_is_tried_again(state: MarkerStore) -> None:
    first = Work(b=OSError(errno.EIO, "Input/output error"))
    with pytest.raises(Unsettled, match=r"1 item.*: warcs/b.warc.gz: .*Input/output error"):
        attempt(state, first)
    assert first.asked == ["a", "b", "c"]
    again = Work()
    items = attempt(state, again)
    assert again.asked == ["b"]
    assert [item.facts["n"] for item in items] == ["a", "b", "c"]


def test_bad_bytes_are_refused_for_good_with_their_offset(state: MarkerStore) -> None:
    items = attempt(state, Work(b=BadInput("b.warc.gz", "cut", 7)))
    assert [(item.outcome, item.why, item.offset) for item in items][1] == (Outcome.REFUSED, "cut", 7)
    again = Work()
    assert attempt(state, again) == items
    assert again.asked == []


def test_a_file_that_has_changed_since_is_done_again(state: MarkerStore) -> None:
    attempt(state, Work())
    again = Work()
    attempt(state, again, lambda file: "2" if file.name.startswith("c") else "1")
    assert again.asked == ["c"]


def test_a_torn_line_costs_its_item_and_no_other(state: MarkerStore) -> None:
    with pytest.raises(Unsettled):
        attempt(state, Work(c=OSError(errno.ENOSPC, "No space left on device")))
    (path,) = (state.store.base / layout.state_folder(layout.launch_of(KEY)) / "attempts").iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][: len(lines[1]) // 2])
    again = Work()
    attempt(state, again)
    assert again.asked == ["b", "c"]


def test_the_last_error_is_kept_for_why(state: MarkerStore) -> None:
    attempts = Attempts(state, KEY)
    with pytest.raises(BadInput), attempts.attempt():
        raise BadInput("a.warc.gz", "cut", 7)
    assert [one.error for one in attempts.earlier()] == ["a.warc.gz at offset 7: cut"]
    assert attempts.earlier()[0].failures == {}


def test_the_attempts_of_one_step_are_not_another_s(state: MarkerStore) -> None:
    attempt(state, Work())
    other = layout.key("files.Checksum", Launch("daily", "20161019234428"), stage="cp00001-20161020000000")
    assert Attempts(state, other).settled() == {}


class Crowd(Work):
    """Work that takes a while, and that counts how many are at it at once."""

    def __init__(self, **faults: Exception) -> None:
        super().__init__(**faults)
        self.now = self.most = 0
        self.lock, self.two = threading.Lock(), threading.Event()

    def __call__(self, file: FileRef) -> tuple[Item, ...]:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.now > 1:
                self.two.set()
        self.two.wait(300)  # the first is not done before there is a second, however busy the machine
        time.sleep(0.01 + 0.02 * (file.name < "f05"))  # the first take longest
        try:
            return super().__call__(file)
        finally:
            with self.lock:
                self.now -= 1


def test_several_at_once_settle_as_one_after_the_other_would(state: MarkerStore) -> None:
    files = [FileRef("output", f"warcs/f{number:02}.warc.gz", 1) for number in range(30)]
    crowd = Crowd(f07=OSError(errno.EIO, "Input/output error"), f03=BadInput("f03", "cut", 5))
    with pytest.raises(Unsettled, match="1 item"):
        run_items(Attempts(state, KEY), files, version, crowd, at_once=4)
    assert 2 <= crowd.most <= 4
    assert sorted(crowd.asked) == [f"f{number:02}" for number in range(30)]
    again = Work()
    items = run_items(Attempts(state, KEY), files, version, again, at_once=4)
    assert again.asked == ["f07"]
    assert [item.file for item in items] == files
    assert [item.file.name for item in items if item.outcome is Outcome.REFUSED] == ["f03.warc.gz"]
    assert sum(len(attempt.lines) for attempt in Attempts(state, KEY).earlier()) == 31


ERRORS = [
    KeyError("size"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    MemoryError(),
    SystemExit(3),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_that_is_not_ours_is_noted_with_its_place_and_raised_again(
    state: MarkerStore, error: BaseException
) -> None:
    attempts = Attempts(state, KEY)
    with pytest.raises(type(error)), attempts.attempt():
        raise error
    (noted,) = attempts.earlier()
    assert noted.error.startswith(f"unexpected {type(error).__name__}: {error}, at test_attempts.py line ")
    assert noted.lines[-1]["kind"] == type(error).__name__


def test_an_operator_s_interrupt_is_noted_and_is_no_error_of_the_step(state: MarkerStore) -> None:
    attempts = Attempts(state, KEY)
    with pytest.raises(KeyboardInterrupt), attempts.attempt():
        raise KeyboardInterrupt
    assert [one.error for one in attempts.earlier()] == [""]
    assert "cut short" in gaps.why_lacking(tuple(attempts.earlier()))


def test_where_nothing_can_be_noted_the_error_is_still_the_step_s_own(
    state: MarkerStore, caplog: pytest.LogCaptureFixture
) -> None:
    (state.store.base / layout.SENTINEL).unlink()
    with pytest.raises(KeyError, match="size"), Attempts(state, KEY).attempt():
        raise KeyError("size")
    assert "could not be noted" in caplog.text


@pytest.mark.parametrize("at_once", [1, 4])
def test_a_fault_at_one_file_does_not_hold_up_the_others_and_is_raised_at_the_end(
    state: MarkerStore, at_once: int
) -> None:
    attempts = Attempts(state, KEY)
    with pytest.raises(KeyError, match="size"), attempts.attempt():
        run_items(
            attempts, FILES, version, Work(a=KeyError("size"), b=OSError(errno.EIO, "Input/output error")), at_once
        )
    (noted,) = attempts.earlier()
    assert noted.error.startswith("unexpected KeyError: 'size', at test_attempts.py line ")
    assert "while warcs/a.warc.gz was worked on" in noted.error
    assert sorted(noted.failures) == ["warcs/a.warc.gz", "warcs/b.warc.gz"]
    again = Work()
    run_items(Attempts(state, KEY), FILES, version, again, at_once)
    assert sorted(again.asked) == ["a", "b"]


FILE = '{"root": "output", "path": "warcs/b.warc.gz", "size": 1}'
ITEM = f'{{"file": {FILE}, "outcome": "ok"}}'
BAD_LINES = {
    "no version": f'{{"file": {FILE}, "items": [{ITEM}]}}',
    "no file": f'{{"version": "1", "items": [{ITEM}]}}',
    "items no list": f'{{"file": {FILE}, "version": "1", "items": 7}}',
    "an item no object": f'{{"file": {FILE}, "version": "1", "items": [7]}}',
    "unknown outcome": f'{{"file": {FILE}, "version": "1", "items": [{{"file": {FILE}, "outcome": "fine"}}]}}',
    "facts no object": f'{{"file": {FILE}, "version": "1", "items": [{ITEM[:-1]}, "facts": []}}]}}',
    "a list for a path": '{"file": {"root": "output", "path": [], "size": 1}, "version": "1", "items": []}',
    "failed without why": '{"failed": "warcs/b.warc.gz"}',
    "failed no text": '{"failed": ["warcs/b.warc.gz"], "why": "x"}',
    "error no text": '{"error": null}',
    "two words": '{"error": "x", "failed": []}',
    "launching alone": '{"launching": "20161019234428"}',
    "retiring no text": '{"retiring": {}}',
    "unknown": '{"surprise": 1}',
    "no object": "[1, 2]",
    "no JSON": "warcs/b.warc.gz",
    "deep": "[" * 100_000,
    "a long number": f'{{"error": {"9" * 10_000}}}',
}


@pytest.mark.parametrize("bad", BAD_LINES.values(), ids=BAD_LINES)
def test_a_line_that_no_step_writes_is_named_and_blocks_nothing(
    state: MarkerStore, bad: str, caplog: pytest.LogCaptureFixture
) -> None:
    attempt(state, Work())
    (path,) = (state.store.base / layout.state_folder(layout.launch_of(KEY)) / "attempts").iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], bad.encode() + b"\n", b"\xff\xfe\x00\n", *lines[2:]]))
    again = Work()
    assert len(attempt(state, again)) == 3
    assert again.asked == ["b"]
    assert "line 2 is nothing that a step writes" in caplog.text
    assert [(one.error, one.failures) for one in Attempts(state, KEY).earlier()][:1] == [("", {})]


def test_a_line_without_end_is_skipped_and_read_in_pieces(state: MarkerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt_files, "_LONGEST", 1 << 10)
    attempt(state, Work())
    (path,) = (state.store.base / layout.state_folder(layout.launch_of(KEY)) / "attempts").iterdir()
    forged = b'{"error": "forged by the end of a long line"}'
    path.write_bytes(b" " * (1 << 10) + forged + b"\n" + path.read_bytes())
    (found,) = Attempts(state, KEY).earlier()
    assert found.error == ""
    assert len(found.lines) == 3


def test_what_is_no_file_among_the_attempts_blocks_nothing(state: MarkerStore) -> None:
    attempt(state, Work())
    (path,) = (state.store.base / layout.state_folder(layout.launch_of(KEY)) / "attempts").iterdir()
    path.with_name(path.name.replace(".jsonl", "0.jsonl")).mkdir()
    path.with_name(path.name.replace(".jsonl", "1.jsonl")).symlink_to("/dev/zero")
    again = Work()
    attempt(state, again)
    assert again.asked == []


@pytest.mark.parametrize("pids", [(9981, 10012), (32767, 301)], ids=["one digit more", "numbers begin again"])
def test_of_one_second_the_attempt_that_began_last_is_the_last(
    state: MarkerStore, pids: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: pids[0])
    attempt(state, Work())
    monkeypatch.setattr(os, "getpid", lambda: pids[1])
    Attempts(state, KEY).forget(FILES[0])
    assert "done again" in gaps.why_lacking(tuple(Attempts(state, KEY).earlier()))


def late_attempt(state: MarkerStore, work: Work) -> None:
    """Settle the items in a run of the step that began a little earlier: a name made now would be another one."""
    with Attempts(state, KEY).attempt():
        time.sleep(0.001)
        attempt(state, work)


def test_a_run_of_a_step_has_one_file_however_long_it_takes(state: MarkerStore) -> None:
    with pytest.raises(Unsettled):
        late_attempt(state, Work(b=OSError("gone")))
    (found,) = Attempts(state, KEY).earlier()
    assert [sorted(line) for line in found.lines][-1] == ["error", "kind"]
    assert len(found.lines) == 4
    attempt(state, Work())
    assert len(Attempts(state, KEY).earlier()) == 2
