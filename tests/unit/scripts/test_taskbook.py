"""The book of tasks: what became of each, the newest results, counts; begun anew where it is lost or damaged."""

from __future__ import annotations

import csv
import io
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from warcmill.errors import Unavailable
from warcmill.scripts import answers, taskbook
from warcmill.scripts.taskbook import NAME, ResultNote, ResultPlace, TaskBook, TaskNote, TaskReader


def note(taskid: str, **more: Any) -> TaskNote:
    fields = {"url": f"http://a.example/{taskid}", "callback": "page", "status": "success", "task": {}, **more}
    return TaskNote(script="shop", taskid=taskid, **fields)


def result(taskid: str, value: Any, script: str = "shop") -> ResultNote:
    return ResultNote(script, taskid, f"http://a.example/{taskid}", value, 5, "w.warc.gz", 7)


def test_the_last_of_a_task_counts(tmp_path: Path) -> None:
    book, reader = TaskBook(tmp_path), TaskReader(tmp_path)
    book.note([note("1", status="active", kind="pending", due=9.0)], [])
    done = note("1", kind="success", warc="w.warc.gz", place=7, http=200, uri="http://a.example/1")
    book.note([done, note("2", kind="failed", status="failed", why="no")], [])
    book.note([], [result("1", {"a": 1}), result("2", {"b": 2})])
    book.note([], [result("1", {"a": 3})])
    first, second = sorted(reader.tasks("shop"), key=lambda one: str(one["taskid"]))
    assert (first["status"], first["warc"], first["offset"], first["due"]) == ("success", "w.warc.gz", 7, None)
    assert (second["status"], second["why"]) == ("failed", "no")
    assert reader.task("shop", "2") == second
    assert [(one.taskid, one.result) for _, one in reader.results("shop")] == [("2", {"b": 2}), ("1", {"a": 3})]
    assert [one["taskid"] for one in reader.last("shop", "page", 20)] == ["1"]
    assert (reader.result("shop", "1"), reader.result("shop", "9")) == ({"a": 3}, None)
    assert reader.counts(1e10)["shop"]["all"] == {"pending": 1, "success": 1, "retry": 0, "failed": 1}
    assert TaskReader(tmp_path / "elsewhere").tasks() == []
    book.forget("shop", 9.0)
    assert (reader.tasks(), [*reader.results()], reader.counts(1e10)) == ([], [], {})


def test_a_task_that_waits_anew_keeps_the_record_of_its_last_visit(tmp_path: Path) -> None:
    book, reader = TaskBook(tmp_path), TaskReader(tmp_path)
    book.note([note("1", kind="success", warc="w.warc.gz", place=7, http=200, log="x", uri="http://a.example/1")], [])
    book.note([note("1", status="active", kind="pending", due=9.0, callback="other", task={"fetch": {}})], [])
    (found,) = reader.last("shop", "other", 20)
    assert (found["status"], found["warc"], found["log"], found["due"]) == ("active", "w.warc.gz", "x", 9)
    assert found["task"] == {"fetch": {}}


def test_the_number_of_a_result_is_given_once(tmp_path: Path) -> None:
    book, reader = TaskBook(tmp_path), TaskReader(tmp_path)
    book.note([], [result("1", 1), result("2", 2, "news")])
    book.forget("news", 9.0)
    book.note([], [result("3", 3)])
    assert [number for number, _ in reader.results(after=2)] == [3]


def test_a_book_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    book = TaskBook(tmp_path)
    book.close()
    for act in (
        lambda: book.late(1.0),
        lambda: book.watch,
        lambda: book.keep_watch(b"", {}),
        lambda: book.forget("a", 9.0),
    ):
        with pytest.raises(Unavailable, match="the crawl continues without it"):
            act()


def test_one_that_is_due_is_late(tmp_path: Path) -> None:
    book = TaskBook(tmp_path)
    book.note([note("1", status="active", due=9.0), note("2", status="active", due=1e10)], [])
    late = TaskReader(tmp_path).late(2e9)
    assert [*late] == ["shop"]
    assert late == book.late(2e9)


@pytest.mark.parametrize("damage", [b"", b"garbage" * 1000])
def test_a_book_that_is_lost_or_damaged_has_the_results_of_the_logs(damage: bytes, tmp_path: Path) -> None:
    value = {"script": "shop", "taskid": "1", "url": "u", "result": {"a": 1}, "updatetime": 5}
    log = tmp_path / "results.jsonl"
    log.write_text(json.dumps({"kind": "result", "value": value, "warc": "w", "offset": 3}) + '\n{"value": 3}\n{"val')
    (tmp_path / NAME).write_bytes(damage)
    begun(tmp_path, log).close()
    ((_, found),) = TaskReader(tmp_path).results()
    assert (found.result, found.warc, found.place) == ({"a": 1}, "w", 3)
    begun(tmp_path, log).close()
    assert len([*TaskReader(tmp_path).results()]) == 1


def begun(state: Path, *logs: Path, launch: str = "20261121081844") -> TaskBook:
    book = TaskBook(state)
    book.begin(launch, lambda first: [log for log in logs if log.parent.name >= first], {"shop"})
    return book


def lines(*found: ResultNote) -> str:
    value = [{"script": one.script, "taskid": one.taskid, "url": one.url, "result": one.result} for one in found]
    return "".join(
        json.dumps(
            {"kind": "result", "value": {**own, "updatetime": one.updated}, "warc": one.warc, "offset": one.place}
        )
        + "\n"
        for own, one in zip(value, found, strict=True)
    )


def test_a_launch_takes_what_a_killed_one_has_not_noted_and_gives_no_number_again(tmp_path: Path) -> None:
    folder = tmp_path / "20261121081844"
    folder.mkdir()
    log = folder / "results.jsonl"
    old, new = result("1", {"a": 1}), replace(result("1", {"a": 2}), updated=6)
    log.write_text(lines(old, result("2", 0), result("2", 2), new, result("3", 3), result("4", 4, "gone")))
    book, reader = begun(tmp_path, log), TaskReader(tmp_path)
    taken = [(one.taskid, one.result) for _, one in reader.results()]
    assert taken == [("2", 2), ("1", {"a": 2}), ("3", 3)], "of a visit the last; none of a script that is not there"
    book.close()  # as if killed
    (seen, _) = reader.next_results(ResultPlace(), 9)[-1]
    log.write_text(log.read_text() + lines(replace(result("3", 33), place=8), replace(result("5", 5), place=9)))
    book = begun(tmp_path, log)
    assert [(one.taskid, one.result) for _, one in reader.next_results(seen, 9)] == [("3", 33), ("5", 5)]
    assert reader.next_results(seen, 9)[0][0].number > seen.number + 1000
    book.forget("shop", 7.0)
    book.close()
    book = begun(tmp_path, log, launch="20261122081844")
    assert [*reader.results()] == [], "what was forgotten does not come back"
    log.write_text(log.read_text() + lines(replace(result("6", 6), updated=8)))
    book.end()
    book.close()
    begun(tmp_path, log).close()
    assert [*reader.results()] == [], "the launch has ended in order: nothing is read again"


def test_results_are_lines_a_list_or_a_table(tmp_path: Path) -> None:
    job = tmp_path / "job"
    (job / "state").mkdir(parents=True)
    found = [result("1", {"title": "=1+1", "url": "x"}), result("2", ["a"]), result("3", {}, "news")]
    TaskBook(job / "state").note([], found)
    lines = [json.loads(line) for line in "".join(answers.results(job, "shop", "jsonl")).splitlines()]
    assert [(one["number"], one["result"]) for one in lines] == [(1, {"title": "=1+1", "url": "x"}), (2, ["a"])]
    assert [one["number"] for one in json.loads("".join(answers.results(job, "", "json", 1)))] == [2, 3]
    table = [*csv.reader(io.StringIO("".join(answers.results(job, "shop", "csv"))))]
    assert table[0] == ["number", "_url", "updatetime", "warc", "offset", "title", "url", "result"]
    assert table[1][5:] == ["'=1+1", "x", ""], "no cell is a formula"
    assert table[2][5:] == ["", "", '["a"]']


def test_a_book_is_checked_after_its_machine_was_down_or_damage_was_met(tmp_path: Path) -> None:
    def damaged(boot: str) -> int:
        """Damage a page of the tasks, and open the book again; return 1 if it has its tables."""
        book = TaskBook(tmp_path)
        book.note([note(str(number), http=200, log="x" * 300) for number in range(200)], [])
        book._db.execute("UPDATE about SET value = ? WHERE name = 'boot'", (boot or taskbook._boot(),))
        book.close()
        place = (tmp_path / NAME).read_bytes().rfind(b"x" * 300) // 4096 * 4096
        with (tmp_path / NAME).open("r+b") as file:
            file.seek(place)
            file.write(b"\xff" * 4096)
        book = TaskBook(tmp_path)
        (found,) = book._db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'tasks'").fetchone()
        with suppress(Unavailable):
            book.note([note(str(number), http=200) for number in range(200)], [])
        book.close()
        return found

    assert damaged("of another day") == 1
    assert len(TaskReader(tmp_path).tasks()) == 200, "it was begun anew"
    damaged("")
    TaskBook(tmp_path).close()
    assert TaskReader(tmp_path).tasks() == [], "the damage was met: it was begun anew"
