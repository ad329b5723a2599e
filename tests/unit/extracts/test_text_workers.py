"""Worker processes: each document under its limits; a worker that dies or hangs costs that one document."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from indexing import faulty_text_worker
from records.pdfs import laughing, pdf

from warcmill.base.worker import OUT_OF_MEMORY, WorkerLimits
from warcmill.errors import Unavailable
from warcmill.extracts.text_workers import DocumentCache, TextWorkers, kept
from warcmill.formats.text import document as documents
from warcmill.formats.text.document import Document, Kind

FAULTY = (sys.executable, str(Path(faulty_text_worker.__file__)))
SMALL = WorkerLimits(cpu=20, wall=60, memory=64 << 20)


@pytest.fixture
def one() -> Iterator[TextWorkers]:
    """A single faulty worker."""
    with TextWorkers(1, SMALL, FAULTY) as workers:
        yield workers


def ask(workers: TextWorkers, *words: str) -> list[Document]:
    """What is found of documents, in turn."""
    futures = [workers.submit(Kind.PLAIN, word.encode(), "") for word in words]
    return [future.result(300) for future in futures]


def why(workers: TextWorkers, word: str) -> str:
    """Why a document between two others has no text; those have theirs."""
    before, found, after = ask(workers, "before", word, "after")
    assert (before.text, found.text, after.text) == ("words of before", "", "words of after")
    return found.why


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (f"signal {signal.SIGSEGV.value}", "its parser died: killed by SIGSEGV"),
        (f"signal {signal.SIGABRT.value}", "its parser died: killed by SIGABRT"),
        (f"signal {signal.SIGKILL.value}", "its parser died: killed by SIGKILL"),
        ("exit 7", "its parser died: exit code 7"),
        ("raise", "its parser failed: ValueError: a parser's own error"),
        ("eat 100000000", OUT_OF_MEMORY),
        ("long 90000000", OUT_OF_MEMORY),
        ("", "empty"),
    ],
)
def test_a_fault_costs_one_document(word: str, expected: str, one: TextWorkers) -> None:
    assert why(one, word) == expected


@pytest.mark.parametrize(
    ("word", "limits", "expected"),
    [
        ("loop", WorkerLimits(cpu=1, wall=60), "timeout: over 1 s of CPU time"),
        ("hang", WorkerLimits(wall=2), "timeout: over 2 s"),
    ],
)
def test_one_that_loops_or_hangs_costs_itself(word: str, limits: WorkerLimits, expected: str) -> None:
    with TextWorkers(1, limits, FAULTY) as workers:
        found, after = ask(workers, word, "after")
    assert (found.why, after.text) == (expected, "words of after")


def test_a_worker_writes_no_file(one: TextWorkers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "File too large" in why(one, "write")


def test_memory_that_earlier_documents_hold_costs_no_later_one(one: TextWorkers) -> None:
    found = ask(one, *["eat 30000000"] * 5)
    assert [document.why for document in found] == [""] * 5


def test_a_worker_knows_no_secret_of_the_environment(one: TextWorkers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMTP_PASSWORD", "secret")
    (found,) = ask(one, "environment")
    assert "SMTP_PASSWORD" not in found.text.split()


def test_an_answer_over_the_limit_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warcmill.extracts.text_workers._MOST_ANSWER", 1_000)
    with TextWorkers(1, SMALL, FAULTY) as workers:
        assert why(workers, "long 2000") == "its text is over the limit"


def test_workers_that_are_ended_from_outside_are_no_fault_of_a_document(one: TextWorkers) -> None:
    with pytest.raises(Unavailable, match="ended from outside"):
        ask(one, f"signal {signal.SIGTERM.value}")
    assert ask(one, "after")[0].text == "words of after"


def test_a_worker_that_does_not_begin_is_no_fault_of_a_document() -> None:
    with TextWorkers(1, SMALL, ("/bin/false",)) as workers, pytest.raises(Unavailable, match="did not begin"):
        ask(workers, "x")


def test_leaving_ends_workers_that_hang() -> None:
    with TextWorkers(2, WorkerLimits(wall=1_000), FAULTY) as workers:
        ask(workers, "warm", "warm")
        hanging = [workers.submit(Kind.PLAIN, b"hang", "") for _ in range(3)]
    assert all(future.done() for future in hanging)


def test_real_documents_by_several_workers() -> None:
    with TextWorkers(2) as workers:
        page, paper = (
            workers.submit(Kind.HTML, b"<title>T</title><p>\xe4", "latin1"),
            workers.submit(Kind.PDF, pdf("Zymurgy"), ""),
        )
        many = [workers.submit(Kind.PLAIN, b"%d words" % number, "") for number in range(50)]
        assert page.result() == Document("ä", "T", "cp1252")
        assert paper.result().text == "Zymurgy"
        assert [future.result().text for future in many] == [f"{number} words" for number in range(50)]


def test_a_page_nested_deep_and_one_of_a_million_tags() -> None:
    with TextWorkers(1) as workers:
        deep = workers.submit(Kind.HTML, b"<div>" * 100_000 + b"deep", "")
        many = workers.submit(Kind.HTML, b"<p><a>x" * 300_000, "")
        assert deep.result().text == "deep"
        assert many.result().text.startswith("x")


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (WorkerLimits(cpu=1, memory=8 << 30), r"timeout: over 1 s of CPU time"),
        (WorkerLimits(memory=1 << 28), r"its parser died: killed by SIG\w+|out of memory"),
    ],
)
def test_a_pdf_that_takes_all_time_or_all_memory_costs_itself(limits: WorkerLimits, expected: str) -> None:
    with TextWorkers(1, limits) as workers:
        bad = workers.submit(Kind.PDF, laughing(9), "")
        good = workers.submit(Kind.PDF, pdf("Zymurgy"), "")
        assert re.fullmatch(expected, bad.result().why), bad.result()
        assert good.result().text == "Zymurgy"


def test_text_over_the_limit_is_cut_by_the_worker() -> None:
    with TextWorkers(1) as workers:
        found = workers.submit(Kind.PLAIN, b"x" * (documents.MOST + 5), "").result()
    assert (len(found.text), found.is_cut) == (documents.MOST, True)


def words(workers: TextWorkers) -> str:
    return workers.submit(Kind.PLAIN, b"some words", "").result(300).text


def children() -> set[int]:
    """The processes that this one has started."""
    return set(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))


def started(since: set[int]) -> set[int]:
    """The processes that were started since, by any thread of this one."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(pid) for path in tasks for pid in path.read_text().split()} - since


def wait_until_ended(pid: int) -> None:
    until = time.monotonic() + 300
    while Path(f"/proc/{pid}").exists() and "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < until, f"process {pid} is still there"
        time.sleep(0.02)


def test_kept_workers_serve_the_next_block_and_end_when_one_raises() -> None:
    before = children()
    with kept(1, DocumentCache()) as first:
        assert words(first) == "some words"
    (pid,) = started(before)
    with kept(1, DocumentCache()) as second:
        assert words(second) == "some words"
    assert second is first
    assert started(before) == {pid}
    with pytest.raises(ValueError, match="of a WARC"), kept(1, DocumentCache()):
        raise ValueError("of a WARC")
    assert not started(before)
    with kept(1, DocumentCache()) as third:
        assert words(third) == "some words"


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL])
def test_a_kept_worker_that_ends_while_it_is_idle_costs_nothing(by: signal.Signals) -> None:
    before = children()
    with kept(1, DocumentCache()) as workers:
        assert words(workers) == "some words"
    (pid,) = started(before)
    os.kill(pid, by)
    wait_until_ended(pid)
    with kept(1, DocumentCache()) as workers:
        assert workers.submit(Kind.PLAIN, b"others", "").result(300).text == "others"


KEEPS = """
import os, sys
from warcmill.formats.text.document import Kind
from warcmill.extracts.text_workers import DocumentCache
from warcmill.extracts.text_workers import kept
with kept(1, DocumentCache()) as workers:
    workers.submit(Kind.PLAIN, b"words", "").result()
    (worker,) = workers._processes.all
print(worker.pid, flush=True)
if not os.fork():
    with kept(1, DocumentCache()) as others:
        assert others is not workers
        print(others.submit(Kind.PLAIN, b"of a fork", "").result().text, flush=True)
    os._exit(0)
os.wait()
with kept(1, DocumentCache()) as again:
    assert again is workers
    print(again.submit(Kind.PLAIN, b"of its parent", "").result().text, flush=True)
sys.stdin.read(1)
"""


@pytest.mark.parametrize("how", ["exit", "kill"])
def test_kept_workers_end_with_their_process_and_a_fork_has_its_own(how: str) -> None:
    command = (sys.executable, "-c", KEEPS)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        pid, of_a_fork, of_its_parent = (process.stdout.readline().strip() for _ in range(3))
        assert (of_a_fork, of_its_parent) == ("of a fork", "of its parent")
        if how == "kill":
            process.kill()
        else:
            process.stdin.close()
        process.wait(300)
    wait_until_ended(int(pid))
