"""A payload whose text is known is not read again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from indexing import faulty_text_worker

from warcmill.errors import Unavailable
from warcmill.extracts.text_workers import DocumentCache, TextWorkers, key_of
from warcmill.formats.text.document import Document, Kind, refused

FAULTY = (sys.executable, str(Path(faulty_text_worker.__file__)))
NONE = ("/bin/false",)  # no worker begins


def test_the_same_payload_needs_no_worker() -> None:
    known = DocumentCache()
    with TextWorkers(1, command=FAULTY, known=known) as workers:
        first = workers.submit(Kind.PLAIN, b"page", "").result(300)
    with TextWorkers(1, command=NONE, known=known) as workers:
        assert workers.submit(Kind.PLAIN, b"page", "").result(300) == first


@pytest.mark.parametrize(
    ("kind", "data", "charset"),
    [(Kind.HTML, b"page", ""), (Kind.PLAIN, b"pages", ""), (Kind.PLAIN, b"page", "utf-8"), (Kind.PLAIN, b"", "")],
)
def test_another_document_needs_one_and_so_does_one_without_text(kind: Kind, data: bytes, charset: str) -> None:
    known = DocumentCache()
    with TextWorkers(1, command=FAULTY, known=known) as workers:
        for before in (b"page", b""):
            workers.submit(Kind.PLAIN, before, "").result(300)
    with TextWorkers(1, command=NONE, known=known) as workers, pytest.raises(Unavailable):
        workers.submit(kind, data, charset).result(300)


def test_what_was_asked_for_longest_ago_is_forgotten_first() -> None:
    known = DocumentCache(3 * sys.getsizeof("x" * 1_000))
    keys = [key_of(Kind.PLAIN, b"%d" % number, "") for number in range(4)]
    for key in keys[:3]:
        known.keep(key, Document("x" * 1_000))
    assert known.get(keys[0])
    known.keep(keys[3], Document("y" * 1_000))
    assert [known.get(key) is not None for key in keys] == [True, False, True, True]


def test_why_there_is_no_text_is_not_kept() -> None:
    known, key = DocumentCache(), key_of(Kind.PDF, b"%PDF-", "")
    known.keep(key, refused("timeout: over 120 s"))
    assert known.get(key) is None
