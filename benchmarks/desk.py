"""The desk of documents with a million made-up entries: a page of each filter; and a decision among 50,000.

Each row is the least of RUNS, in ms of the clock: the desk is opened for each, as a page does.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from warcmill.documents import desk, looking
from warcmill.documents.decided import DocumentDecision
from warcmill.documents.desk import DeskSources, PublishedEntries
from warcmill.formats.feed import Target
from warcmill.markers.decisions import DOCUMENTS, RecordedDecision, path_of
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore
from warcmill.versions.documents.entries import Candidate, DocumentCapture, Entry
from warcmill.versions.documents.watching import WatchedTargets

Row = tuple[str, str, str, str, str]
MANY, DECISIONS, SITES, RUNS = 1_000_000, 50_000, 500, 5
TYPES = (
    ["application/pdf"] * 80
    + ["application/epub+zip"] * 5
    + ["application/msword"] * 14
    + ["application/vnd.ms-office"]
)
QUESTIONS: tuple[Mapping[str, str], ...] = (
    {},
    {"status": "NEW", "target": "watched", "days": "7"},
    {"status": "NEW", "target": "watched"},
    {"target": "7"},
    {"status": "SAVED"},
    {"type": "other", "status": "NEW"},
    {"type": "epub", "target": "7"},
    {"prefix": "example,site7"},
    {"words": "report"},
    {"words": "report word7"},
    {"words": "report", "publisher": "17", "status": "NEW"},
    {"words": "report", "target": "watched", "type": "epub"},
)


def rows() -> Iterator[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        roots = {"state": base / "state", "index": base / "index", "store": base / "store"}
        sentinel.adopt(roots)
        state, index, store = FileStore("state", roots["state"]), FileStore("index", roots["index"]), roots["store"]
        version = PublishedEntries("v1", entries, lambda _: iter(()))
        watched = WatchedTargets(
            Target(str(site), f"Site {site}", (f"http://www.site{site}.example/",), watched=True)
            for site in range(SITES // 2)
        )
        sources = DeskSources(state, index, lambda: version, "t", lambda: watched)
        begin = time.perf_counter()
        with desk.opened(sources):
            yield f"desk, {MANY:,} entries made, s", f"{time.perf_counter() - begin:.0f}", "-", "-", "-"
        for question in QUESTIONS:
            words = " ".join(f"{name}={value}" for name, value in question.items()) or "all"
            yield f"desk, page of {words}, ms", f"{page(sources, question) * 1000:.1f}", "-", "-", "100"
        for root, folder_ in ((roots["state"], ""), (store, "state/_archive/")):
            leave_decisions(root, folder_)
        with desk.opened(sources):
            pass
        spent = [decision(sources, number) for number in range(RUNS)]
        yield f"desk, a decision among {DECISIONS:,}, ms", f"{min(spent) * 1000:.0f}", "-", "-", "300"


def entries() -> Iterator[Entry]:
    """Entries with made-up words, publishers and dates."""
    dice = random.Random(1)
    for number in range(MANY):
        day = f"{2000 + int(26 * dice.random() ** 0.5)}-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}"
        seen = f"2026{dice.randint(1, 12):02}{dice.randint(1, 28):02}{dice.randint(0, 235959):06}"
        page = f"http://www.site{dice.randrange(SITES)}.example/pub/{number}/"
        url = f"{page}report.pdf"
        words = [*(["report"] if dice.random() < 0.3 else []), *(f"word{dice.randrange(20_000)}" for _ in range(6))]
        values = {
            "title": " ".join(words), "publication_date": day, "publisher": f"Publisher {dice.randrange(300)}",
            "landing_page_url": page,
        }  # fmt: skip
        fields = {name: (Candidate(value, "link", page, seen),) for name, value in values.items()}
        capture = DocumentCapture(url, seen, "daily", "20261101000000", "a.warc.gz", number)
        yield Entry(id_of(number), dice.choice(TYPES), 12_345, seen, (url,), (capture,), "report.pdf", fields=fields)


def id_of(number: int) -> str:
    """The id of an entry."""
    return sha256(str(number).encode()).hexdigest()


def page(sources: DeskSources, question: Mapping[str, str]) -> float:
    """The least seconds of a page."""
    least = 60.0
    for _ in range(RUNS):
        begin = time.perf_counter()
        with desk.opened(sources) as found:
            looking.ask(found, looking.query_of(question))
        least = min(least, time.perf_counter() - begin)
    return least


def leave_decisions(root: Path, folder: str) -> None:
    """Write decisions as they were made one by one."""
    for number in range(1, DECISIONS + 1):
        said = {"id": id_of(number % MANY), "status": "IGNORED"}
        one = RecordedDecision(DOCUMENTS, number, "2026-11-20T00:00:00Z", {"documents": [said], "over": 0, "who": "a"})
        path = root / folder / path_of(DOCUMENTS, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(one.encode())


def decision(sources: DeskSources, number: int) -> float:
    """The seconds of a decision, with the opening of the desk."""
    begin = time.perf_counter()
    with desk.opened(sources) as found:
        said = DocumentDecision(id_of(MANY - 1 - number), "SAVED")
        found.decide(lambda: FileStore("store", sources.state.real("").parent / "store"), "anna", [said])
    return time.perf_counter() - begin
