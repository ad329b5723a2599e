"""`warcmill run results` of a job of scripts: each result reaches the class, whatever is killed."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import preloaded
from line import Line
from requesting.script_runs import HERE, RUN, environment, line_for, results, script
from sites import several_hosts
from sites.several_hosts import Page
from waiting import wait_for

JOB, WORKER = "shop", "taken:Mine"
NUMBER = 60
SCRIPT = """\
from pyspider.libs.base_handler import *


class Handler(BaseHandler):
    def on_start(self):
        self.crawl("http://127.0.0.1:PORT/", callback=self.index_page)

    def index_page(self, response):
        for each in response.doc('a[href^="http"]').items():
            self.crawl(each.attr.href, callback=self.detail_page)

    def detail_page(self, response):
        return {"title": response.doc("title").text()}
"""
TAKEN = """\
import json, os, time

from pyspider.result import ResultWorker


class Mine(ResultWorker):
    def on_result(self, task, result):
        assert task["taskid"] and task["project"] and task["url"]
        time.sleep(PAUSE)
        if os.path.exists("fails"):
            os.rename("fails", "failed")
            raise OSError("the database is away")
        with open("taken", "a") as file:
            file.write(json.dumps([task, result]) + "\\n")
"""


def site() -> dict[tuple[str, str], Page]:
    found = {"/": several_hosts.page([f"/p/{number}" for number in range(NUMBER)])}
    found |= {f"/p/{number}": Page(f"<title>Page {number}</title>".encode()) for number in range(NUMBER)}
    return {(HERE, path): one for path, one in found.items()}


def prepared(folder: Path, port: int, pause: float = 0.0) -> str:
    folder.mkdir()
    (folder / "taken.py").write_text(TAKEN.replace("PAUSE", str(pause)))
    (folder / "shop.py").write_text(SCRIPT.replace("PORT", str(port)))
    return str(folder / "shop.py")


def start(line: Line, folder: Path, log: Path, *words: str) -> preloaded.Process:
    with log.open("ab") as file:
        return preloaded.start(
            "commands.main", *words, env=environment(line), folder=folder, out=file.fileno(), err=file.fileno()
        )


@contextmanager
def working(line: Line, folder: Path) -> Iterator[preloaded.Process]:
    """Have the worker work while the block runs; then a signal ends it in order."""
    log = folder / "worker.log"
    process = start(line, folder, log, "run", "results", JOB, "--worker", WORKER)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
    assert code in (0, -signal.SIGKILL), log.read_text()


def taken(folder: Path) -> list[tuple[dict[str, Any], Any]]:
    file = folder / "taken"
    return [(task, result) for task, result in map(json.loads, file.read_text().splitlines())] if file.exists() else []


def titles(folder: Path) -> Counter[str]:
    return Counter(result["title"] for _, result in taken(folder))


WANTED = {f"Page {number}" for number in range(NUMBER)}


def test_each_result_reaches_the_class_while_both_run_and_after_a_kill(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    with several_hosts.serve(site()) as port:
        file = prepared(here, port, pause=0.02)
        assert script(line, here, "run", file, *RUN).returncode == 0
        with working(line, here) as process:
            wait_for(lambda: len(taken(here)) > 5)
            busy = preloaded.run(
                "commands.main", "run", "results", JOB, "--worker", WORKER, env=environment(line), folder=here
            )
            assert (busy.returncode, f"pid {process.pid}," in busy.stderr) == (5, True), busy.stderr
            process.send_signal(signal.SIGKILL)
            process.wait(60)
        before = titles(here)
        assert len(before) < NUMBER
        (here / "fails").touch()
        with working(line, here):
            wait_for(lambda: titles(here).keys() >= WANTED)
        assert titles(here).keys() == WANTED
        assert all(number <= 2 and title in before for title, number in titles(here).items() if number > 1)
        assert "OSError: the database is away" in (here / "worker.log").read_text()
        assert (here / "failed").exists()
        where = {(one["taskid"], one["script"]) for one in results(line, JOB)}
        assert {(task["taskid"], task["project"]) for task, _ in taken(here)} == where
        task = taken(here)[0][0]
        assert task["warc"].endswith(".warc.gz")
        assert task["offset"] > 0
        count = len(taken(here))
        with working(line, here):
            assert script(line, here, "run", file, *RUN).returncode == 0
        assert len(taken(here)) == count, "a visit that asks for nothing hands nothing on"


def test_a_crawl_that_is_killed_withholds_no_result(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    with several_hosts.serve(site()) as port:
        words = ("script", "run", prepared(here, port), "--allow-private", "127.0.0.0/8", "--config", "crawl.toml")
        (here / "crawl.toml").write_text("[politeness]\nleast = 0.03\nfactor = 0.0\n")
        for least in (5, 25):
            crawl = start(line, here, here / f"crawl{least}", *words)
            printed = here / f"crawl{least}"
            wait_for(lambda out=printed: out.read_bytes().count(b'"Page ') > 5)  # type: ignore[misc]
            crawl.send_signal(signal.SIGKILL)
            crawl.wait(60)
        with working(line, here):
            wait_for(lambda: len(taken(here)) > 0)
            crawl = start(line, here, here / "crawl", *words)
            assert crawl.wait(300) == 0, (here / "crawl").read_text()
            wait_for(lambda: titles(here).keys() == WANTED)
    assert {one["result"]["title"] for one in results(line, JOB)} == WANTED


def test_a_book_made_anew_hands_all_on_once_more_and_a_deleted_script_nothing(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    book = line.folders["jobs"] / JOB / "state" / "tasks.sqlite"
    with several_hosts.serve(site()) as port:
        file = prepared(here, port)
        assert script(line, here, "run", file, *RUN).returncode == 0
        with working(line, here):
            wait_for(lambda: len(taken(here)) == NUMBER)
            book.write_bytes(b"garbage" * 1000)
            assert script(line, here, "run", file, *RUN).returncode == 0
            wait_for(lambda: len(taken(here)) == 2 * NUMBER)
        assert (here / "worker.log").read_text().count("was made anew") == 1
        assert set(titles(here).values()) == {2}
        (line.folders["jobs"] / JOB / "scripts" / "shop.py").unlink()
        book.unlink()
        (here / "other.py").write_text(
            SCRIPT.replace("PORT/", f"{port}/p/1").replace("callback=self.index", "callback=self.detail")
        )
        assert script(line, here, "run", str(here / "other.py"), "--job", JOB, *RUN).returncode == 0
        with working(line, here):
            wait_for(lambda: len(taken(here)) > 2 * NUMBER)
    assert [task["project"] for task, _ in taken(here)[2 * NUMBER :]] == ["other"]


def test_what_cannot_be_worked_on_is_named(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    here.mkdir()
    with several_hosts.serve(site()) as port:
        crawl = ("crawl", f"http://{HERE}:{port}/p/1", "--job", "plain", *RUN)
        done = preloaded.run("commands.main", *crawl, env=environment(line), folder=here)
        assert done.returncode in (0, 1), done.stderr
    for job, code, why in (("plain", 3, "it has no scripts"), ("none", 3, "no engine lists job 'none'")):
        done = preloaded.run(
            "commands.main", "run", "results", job, "--worker", WORKER, env=environment(line), folder=here
        )
        assert (done.returncode, why in done.stderr) == (code, True), done.stderr
    assert script(line, here, "new", "shop/shop", "--start", "a.example").returncode == 0
    done = preloaded.run("commands.main", "run", "results", JOB, "--worker", WORKER, env=environment(line), folder=here)
    assert (done.returncode, "No module named 'taken'" in done.stderr) == (3, True), done.stderr
