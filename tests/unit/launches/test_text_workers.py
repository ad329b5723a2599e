"""Worker processes: each document under its limits; a worker that dies or hangs costs that one document."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import faulty_text_worker
import pytest
from pdfs import pdf

from warcmill.errors import Unavailable
from warcmill.formats.text import document as documents
from warcmill.formats.text.document import Document, Kind
from warcmill.launches.text_worker import OUT_OF_MEMORY, Limits
from warcmill.launches.text_workers import Workers

FAULTY = (sys.executable, str(Path(faulty_text_worker.__file__)))
SMALL = Limits(cpu=20, wall=60, memory=64 << 20)


@pytest.fixture
def one() -> Iterator[Workers]:
    """A single faulty worker."""
    with Workers(1, SMALL, FAULTY) as workers:
        yield workers


def ask(workers: Workers, *words: str) -> list[Document]:
    """What is found of documents, in turn."""
    futures = [workers.submit(Kind.PLAIN, word.encode(), "") for word in words]
    return [future.result(300) for future in futures]


def why(workers: Workers, word: str) -> str:
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
def test_a_fault_costs_one_document(word: str, expected: str, one: Workers) -> None:
    assert why(one, word) == expected


@pytest.mark.parametrize(
    ("word", "limits", "expected"),
    [
        ("loop", Limits(cpu=1, wall=60), "timeout: over 1 s of CPU time"),
        ("hang", Limits(wall=2), "timeout: over 2 s"),
    ],
)
def test_one_that_loops_or_hangs_costs_itself(word: str, limits: Limits, expected: str) -> None:
    with Workers(1, limits, FAULTY) as workers:
        found, after = ask(workers, word, "after")
    assert (found.why, after.text) == (expected, "words of after")


def test_a_worker_writes_no_file(one: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "File too large" in why(one, "write")


def test_memory_that_earlier_documents_hold_costs_no_later_one(one: Workers) -> None:
    found = ask(one, *["eat 30000000"] * 5)
    assert [document.why for document in found] == [""] * 5


def test_a_worker_knows_no_secret_of_the_environment(one: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMTP_PASSWORD", "secret")
    (found,) = ask(one, "environment")
    assert "SMTP_PASSWORD" not in found.text.split()


def test_an_answer_over_the_limit_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warcmill.launches.text_workers._MOST_ANSWER", 1_000)
    with Workers(1, SMALL, FAULTY) as workers:
        assert why(workers, "long 2000") == "its text is over the limit"


def test_workers_that_are_ended_from_outside_are_no_fault_of_a_document(one: Workers) -> None:
    with pytest.raises(Unavailable, match="ended from outside"):
        ask(one, f"signal {signal.SIGTERM.value}")
    assert ask(one, "after")[0].text == "words of after"


def test_a_worker_that_does_not_begin_is_no_fault_of_a_document() -> None:
    with Workers(1, SMALL, ("/bin/false",)) as workers, pytest.raises(Unavailable, match="did not begin"):
        ask(workers, "x")


def test_leaving_ends_workers_that_hang() -> None:
    with Workers(2, Limits(wall=1_000), FAULTY) as workers:
        ask(workers, "warm", "warm")
        hanging = [workers.submit(Kind.PLAIN, b"hang", "") for _ in range(3)]
    assert all(future.done() for future in hanging)


def test_real_documents_by_several_workers() -> None:
    with Workers(2) as workers:
        page, paper = (
            workers.submit(Kind.HTML, b"<title>T</title><p>\xe4", "latin1"),
            workers.submit(Kind.PDF, pdf("Zymurgy"), ""),
        )
        many = [workers.submit(Kind.PLAIN, b"%d words" % number, "") for number in range(50)]
        assert page.result() == Document("ä", "T", "cp1252")
        assert paper.result().text == "Zymurgy"
        assert [future.result().text for future in many] == [f"{number} words" for number in range(50)]


def test_a_page_nested_deep_and_one_of_a_million_tags() -> None:
    with Workers(1) as workers:
        deep = workers.submit(Kind.HTML, b"<div>" * 100_000 + b"deep", "")
        many = workers.submit(Kind.HTML, b"<p><a>x" * 300_000, "")
        assert deep.result().text == "deep"
        assert many.result().text.startswith("x")


def test_text_over_the_limit_is_cut_by_the_worker() -> None:
    with Workers(1) as workers:
        found = workers.submit(Kind.PLAIN, b"x" * (documents.MOST + 5), "").result()
    assert (len(found.text), found.is_cut) == (documents.MOST, True)
