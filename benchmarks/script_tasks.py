"""Look at very many tasks of 200 scripts in one job: the time of each look that its loop, its pages and commands take.

    python -m benchmarks.script_tasks [--tasks 3000000]

The frontier and the book of tasks are made first: four minutes for three million, and 6 GB. A tenth is due. Ends with 1
if a look takes 0.1 s of the loop, or 1 s of a command.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.crawl.uri import Uri
from warcmill.scripts import task as tasks
from warcmill.scripts.api.handler import md5string
from warcmill.scripts.taskbook import ResultNote, TaskBook, TaskNote, TaskReader

SCRIPTS, AT_ONCE, DAY = 200, 2_000, 86_400
OF_LOOP, OF_COMMAND = 0.1, 1.0  # seconds


def main(argv: Sequence[str] | None = None) -> int:
    """Make the tasks, look at them, and print what each look took."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.script_tasks", description="Very many tasks.")
    parser.add_argument("--tasks", type=int, default=3_000_000)
    number = parser.parse_args(argv).tasks
    names, slow = [f"site{one:03}" for one in range(SCRIPTS)], list[str]()
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder)
        asyncio.run(_make(state, names, number))

        def took(what: str, bound: float, act: Callable[[], object]) -> None:
            begun = time.process_time()
            act()
            seconds = time.process_time() - begun
            print(f"{what:40} {seconds * 1000:9.1f} ms of CPU")
            slow.extend([what] if seconds > bound else [])

        took("open the book", OF_COMMAND, lambda: TaskBook(state).close())
        book, reader, now = TaskBook(state), TaskReader(state), time.time()
        notes = [_note(_uri(name, number)) for name in names]
        took("what is late, each 10 s", OF_LOOP, lambda: book.late(now))
        took("note 200 tasks", OF_LOOP, lambda: book.note(notes, []))
        frontier = SqliteFrontier(state / "books.sqlite")
        took("lease for 200 scripts", OF_LOOP, lambda: asyncio.run(_lease(frontier, names)))
        took("lease for them again", OF_LOOP, lambda: asyncio.run(_lease(frontier, names)))
        took("script list: counts", OF_COMMAND, lambda: reader.counts(now))
        took("script tasks JOB", OF_COMMAND, lambda: reader.tasks(limit=100))
        took("script tasks JOB/NAME --status failed", OF_COMMAND, lambda: reader.tasks(names[-1], status="failed"))
        took("the first results of the last script", OF_COMMAND, lambda: next(reader.results(names[-1])))
        book.close()
        asyncio.run(frontier.close())
    print(f"memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")
    return int(bool(slow))


async def _make(state: Path, names: list[str], number: int) -> None:
    frontier, book = SqliteFrontier(state / "books.sqlite"), TaskBook(state)
    for name in names:
        for uris in _some(name, number // SCRIPTS):
            await frontier.offer(uris)
            results = [ResultNote(name, one.key, one.uri, {"title": "x" * 100}, 1, "a.warc.gz", 9) for one in uris]
            book.note([_note(one) for one in uris], results)
    book.close()
    await frontier.close()


def _some(name: str, number: int) -> Iterator[list[Uri]]:
    for begin in range(0, number, AT_ONCE):
        yield [_uri(name, one) for one in range(begin, min(begin + AT_ONCE, number))]


def _uri(name: str, number: int) -> Uri:
    url, later = f"http://{name}.example/2026/11/{number}/a-title-of-some-words.html", number % 10 * DAY
    return tasks.made(
        name,
        {
            "taskid": md5string(url), "url": url, "process": {"callback": "detail_page"},
            "schedule": {"age": 10 * DAY, "auto_recrawl": True, "exetime": time.time() + later if later else 0},
        },
        None,
    )  # fmt: skip


def _note(uri: Uri) -> TaskNote:
    task = tasks.read(uri)
    status = "active" if uri.not_before else "success"
    return TaskNote(uri.spider, uri.key, uri.uri, task.callback, status, task.for_script(uri.spider), uri.not_before,
                    "success", 200, 9, warc="a.warc.gz", place=9)  # fmt: skip


async def _lease(frontier: SqliteFrontier, names: list[str]) -> None:
    await frontier.lease_each("bench", 50, 600, dict.fromkeys(names, 3))


if __name__ == "__main__":
    sys.exit(main())
