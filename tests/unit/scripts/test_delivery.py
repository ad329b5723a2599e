"""Results go to a class of the operator's own: each at least once, in order, and none is passed over."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from warcmill.errors import BadConfig, BadInput, Busy, Unsettled
from warcmill.scripts.delivery import ResultDelivery, handler
from warcmill.scripts.taskbook import NAME, ResultNote, TaskBook

WORKER = "shop:Worker"
PLACE = "results-shop.Worker.json"


def result(taskid: str, value: Any, script: str = "shop") -> ResultNote:
    return ResultNote(script, taskid, f"http://a.example/{taskid}", value, 5, "w.warc.gz", 7)


class Taken:
    """What it was handed; it fails for a value of `fails`, so many times, and ends all after `most`."""

    def __init__(self, most: int, fails: dict[str, int] | None = None) -> None:
        self.most, self.fails, self.ended = most, fails or {}, Event()
        self.tasks: list[dict[str, Any]] = []
        self.values: list[Any] = []

    def on_result(self, task: dict[str, Any], result: Any) -> None:
        if self.fails.get(str(result), 0):
            self.fails[str(result)] -= 1
            raise KeyError(result)
        self.tasks.append(task)
        self.values.append(result)
        if len(self.values) == self.most:
            self.ended.set()


def handed(state: Path, most: int, fails: dict[str, int] | None = None) -> Taken:
    taken = Taken(most, fails)
    ResultDelivery(state, WORKER, taken, waits=(0, 0)).run(taken.ended)
    return taken


def test_each_result_is_handed_on_from_where_it_was_left(tmp_path: Path) -> None:
    book = TaskBook(tmp_path)
    book.note([], [result("1", {"a": 1}), result("2", [2], "news"), result("3", 3)])
    taken = handed(tmp_path, 2)
    assert taken.tasks[0] == {
        "offset": 7, "project": "shop", "script": "shop", "taskid": "1", "updatetime": 5,
        "url": "http://a.example/1", "warc": "w.warc.gz",
    }  # fmt: skip
    assert taken.values == [{"a": 1}, [2]]
    book.note([], [result("1", {"a": 9}), result("4", 4, "gone")])
    book.forget("gone", 9.0)
    book.note([], [result("5", 5)])
    assert handed(tmp_path, 3).values == [3, {"a": 9}, 5], "the last of a task counts; none of a deleted script"


def test_a_result_for_which_it_fails_is_tried_again_and_never_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    TaskBook(tmp_path).note([], [result("1", 1), result("2", 2), result("3", 3)])
    assert handed(tmp_path, 2, {"2": 2}).values == [1, 2]
    with pytest.raises(Unsettled, match=r"result 3 of script shop, http://a.example/3: KeyError: 3"):
        handed(tmp_path, 9, {"3": 3})
    assert caplog.text.count("KeyError: 3") == 3, "each time with its traceback"
    assert handed(tmp_path, 1).values == [3]


def test_a_signal_ends_the_wait_for_a_new_try(tmp_path: Path) -> None:
    TaskBook(tmp_path).note([], [result("1", 1)])
    taken = Taken(1, {"1": 9})
    taken.ended.set()
    ResultDelivery(tmp_path, WORKER, taken, waits=(999,)).run(taken.ended)

    class Ends(Taken):
        def on_result(self, task: dict[str, Any], result: Any) -> None:
            self.ended.set()
            super().on_result(task, result)

    taken = Ends(1, {"1": 9})
    ResultDelivery(tmp_path, WORKER, taken, waits=(999,)).run(taken.ended)
    assert (taken.values, (tmp_path / PLACE).exists()) == ([], False)


def test_a_book_that_was_made_anew_is_handed_on_from_its_beginning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    TaskBook(tmp_path).note([], [result("1", 1), result("2", 2), result("3", 3)])
    handed(tmp_path, 3)
    (tmp_path / NAME).unlink()
    (tmp_path / f"{NAME}-wal").unlink(missing_ok=True)
    TaskBook(tmp_path).note([], [result("1", 1), result("2", 2)])
    assert handed(tmp_path, 2).values == [1, 2]
    TaskBook(tmp_path).note([], [result("3", 3)])
    assert handed(tmp_path, 1).values == [3]
    assert caplog.text.count("was made anew") == 1


def test_a_book_that_is_missing_or_damaged_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    taken = Taken(1)

    class Once(Event):
        def wait(self, timeout: float | None = None) -> bool:
            if not (tmp_path / NAME).exists():
                (tmp_path / NAME).write_bytes(b"garbage" * 1000)
            else:
                TaskBook(tmp_path).note([], [result("1", 1)])
            return self.is_set()

    taken.ended = Once()
    ResultDelivery(tmp_path, WORKER, taken).run(taken.ended)
    assert (taken.values, caplog.text.count("results wait until then")) == ([1], 1)


def test_two_of_one_job_and_class_are_not_at_work(tmp_path: Path) -> None:
    TaskBook(tmp_path).note([], [result("1", 1)])
    seen = []

    class Second(Taken):
        def on_result(self, task: dict[str, Any], result: Any) -> None:
            super().on_result(task, result)
            with pytest.raises(Busy, match=r"shop:Worker, pid [0-9]+,") as caught:
                handed(tmp_path, 1)
            seen.append(caught)

    taken = Second(1)
    ResultDelivery(tmp_path, WORKER, taken).run(taken.ended)
    assert len(seen) == 1


@pytest.mark.parametrize("text", ["", "[]", '{"book": "a"}', '{"book": "a", "number": "x"}'])
def test_a_damaged_place_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / PLACE).write_text(text)
    with pytest.raises(BadInput, match="move it away"):
        handed(tmp_path, 1)
    assert (tmp_path / PLACE).read_text() == text


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Writes a module of the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(text: str) -> None:
        sys.modules.pop("taken_by", None)
        (tmp_path / "taken_by.py").write_text(text)

    return write


def test_a_class_as_pyspider_has_it(module: Callable[[str], None]) -> None:
    module(
        "from pyspider.result import ResultWorker\n\n\nclass Mine(ResultWorker):\n"
        "    def on_result(self, task, result):\n        super().on_result(task, result)\n        return result\n"
    )
    assert handler("taken_by:Mine").on_result({}, json.loads("7")) == 7


@pytest.mark.parametrize(
    ("worker", "text", "why"),
    [
        ("taken_by", "", "is not MODULE:CLASS"),
        ("../x:Y", "", "is not MODULE:CLASS"),
        ("no_such_module:Y", "", "No module named 'no_such_module'"),
        ("taken_by:Y", "x =", "SyntaxError"),
        ("taken_by:Y", "", "has no attribute 'Y'"),
        ("taken_by:Y", "class Y:\n    pass\n", "has no attribute 'on_result'"),
        ("taken_by:Y", "class Y:\n    def __init__(self, db):\n        pass\n", "missing 1 required positional"),
    ],
)
def test_what_is_no_class_for_results(worker: str, text: str, why: str, module: Callable[[str], None]) -> None:
    module(text)
    with pytest.raises(BadConfig, match=why):
        handler(worker)
