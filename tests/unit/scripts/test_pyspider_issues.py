"""What pyspider's users asked for in its issues, and the test of each."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from warcmill.scripts import answers, taskbook
from warcmill.scripts.taskbook import ResultNote, TaskBook, TaskNote, TaskReader

TESTS = Path(__file__).parents[2]
WISHES, WATCH = "pipeline/test_pyspider_wishes.py", "unit/scripts/test_watch.py"
HERE, HOSTILE = "unit/scripts/test_pyspider_issues.py", "unit/scripts/test_hostile_scripts.py"
ASKED_FOR = {
    # number: (what, file of tests, its test)
    80: ("cookies from a login to the next request", WISHES, "the_cookies_of_a_login"),
    293: ("a retry takes the newest proxy", WISHES, "a_retry_has_the_newest_arguments"),
    380: ("delete now", WISHES, "a_script_runs_again_from_scratch"),
    382: ("a new age counts", WISHES, "a_new_age_counts"),
    386: ("three million tasks", HERE, "no_answer_walks_all_tasks"),
    473: ("memory is free after STOP", HOSTILE, "scripts_that_are_stopped_hold_no_memory"),
    613: ("no task is stuck", WISHES, "no_task_is_stuck"),
    628: ("run again from scratch", WISHES, "a_script_runs_again_from_scratch"),
    653: ("no tick is missed", WISHES, "no_tick_is_missed"),
    683: ("a gigabyte of CSV", HERE, "a_large_table_takes_little_memory"),
    791: ("an edited script reads a page again", "pipeline/test_script_edits.py", "asks_for_the_whole_page_once"),
    872: ("a pause ends", WATCH, "probes_that_end_nothing"),
    873: ("alerts", WISHES, "a_site_that_is_offline_is_an_alert"),
    964: ("login by default", "unit/web/test_app.py", "without_the_token_nothing_is_read"),
}  # fmt: skip


@pytest.mark.parametrize("number", ASKED_FOR)
def test_each_has_a_test(number: int) -> None:
    _, file, name = ASKED_FOR[number]
    assert re.search(rf"^def test_\w*{name}\w*\(", (TESTS / file).read_text(), re.MULTILINE)


def test_no_answer_walks_all_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = TaskBook(tmp_path)
    names = [(f"s{number % 20}", str(number)) for number in range(4000)]
    tasks = [TaskNote(*name, "u", "page", "active", {}, 1.0, "success") for name in names]
    book.note(tasks, [ResultNote(one.script, one.taskid, "u", {"a": 1}, 5) for one in tasks])
    book.close()
    steps = 0

    connect = sqlite3.connect

    def counting(*arguments: Any, **more: Any) -> sqlite3.Connection:
        db = connect(*arguments, **more)

        def step() -> int:
            nonlocal steps
            steps += 1
            return 0

        db.set_progress_handler(step, 10)
        return db

    monkeypatch.setattr(sqlite3, "connect", counting)
    reader = TaskReader(tmp_path)
    acts = {
        "late": lambda: reader.late(9e9), "tasks": lambda: reader.tasks(limit=2),
        "tasks of one": lambda: reader.tasks("s7", limit=2), "failed": lambda: reader.tasks(status="failed"),
        "counts": lambda: reader.counts(9e9), "results": lambda: next(reader.results("s7", 3900)),
        "task": lambda: reader.task("s7", "7"), "result": lambda: reader.result("s7", "7"),
    }  # fmt: skip
    for name, act in acts.items():
        steps = 0
        act()
        assert steps < 400, f"{name}: {steps}0 steps"


def test_counts_of_long_ago_are_few_and_none_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_700_000_000.0
    for minute in range(0, 3 * 24 * 60, 3):
        monkeypatch.setattr(taskbook.time, "time", lambda minute=minute: now + 60 * minute)
        if not minute:
            book = TaskBook(tmp_path)
        book.note([TaskNote("shop", "1", "u", "page", "success", {}, kind="success")], [])
    (rows,) = book._db.execute("SELECT count(*) FROM counts").fetchone()
    assert rows < 250, "of 1,440"
    last = now + 60 * (3 * 24 * 60 - 3)
    found = {span: kinds["success"] for span, kinds in TaskReader(tmp_path).counts(last)["shop"].items()}
    assert (found["5m"], found["1h"], found["all"]) == (2, 21, 1440)
    assert 475 <= found["1d"] <= 481


MEMORY = """
import sys, resource
from pathlib import Path
from warcmill.scripts import answers
from warcmill.scripts.taskbook import ResultNote, TaskBook

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
letters = sum(map(len, answers.results(Path(sys.argv[1]), "", sys.argv[2])))
print(letters, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("form", answers.FORMATS)
def test_a_large_table_takes_little_memory(form: str, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    book, text = TaskBook(tmp_path / "state"), "x" * 60_000
    for begin in range(0, 2000, 100):
        numbers = range(begin, begin + 100)
        book.note([], [ResultNote("shop", str(number), "u", {"text": text, "n": number}, 5) for number in numbers])
    book.close()
    words = [sys.executable, "-c", MEMORY, str(tmp_path), form]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    letters, megabytes = map(int, done.stdout.split())
    assert letters > 120_000_000
    assert megabytes < 40
