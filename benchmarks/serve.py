"""A page of results of `warcmill serve` over 100,000 documents: CPU of the whole answer, from request to HTML.

The documents are made: 200 words each, of a vocabulary in which the n-th word is n times rarer than the first, in three
segments; some hosts are hidden. There is no peer: the bound is a reader's patience.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from tests.support.operating.web_client import WebAnswer, ask
from warcmill.audit.answers.line import AuditedLine
from warcmill.launches.roots import EngineSection, RootMap
from warcmill.layout import OutputLayout
from warcmill.markers.state import MarkerStore
from warcmill.model import Root
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore
from warcmill.stores.opening import open_folder
from warcmill.versions import hidden_list, text
from warcmill.versions.inputs import ListedWarc, Lists, VersionList, digest
from warcmill.versions.publication import Payloads, Published
from warcmill.versions.segments import Segment, SegmentSources
from warcmill.web.access import WebAccess
from warcmill.web.app import application
from warcmill.web.archive import Archive
from warcmill.web.served import Served

Row = tuple[str, str, str, str, str]
PARTS = (80_000, 16_000, 4_000)  # documents of each segment
VOCABULARY, WORDS = 20_000, 200
ASKED = (
    {"q": "w15000"}, {"q": "w500"}, {"q": "w30"}, {"q": "w0"}, {"q": "w1 w2"}, {"q": "w0", "from": "2016"},
    {"q": "w0", "site": "site1.example"},
)  # fmt: skip
RUNS = 5
HIDDEN = 10  # decisions, so that no key is shown unseen
TARGET = "under 100 ms"
TOKEN = "benchmark-token"
FOLDER = "versions/text/000001-benchmark"
ROOTS: tuple[Root, ...] = ("state", "index", "store")


class NoReplay:
    """Stands for replay, which a search does not ask."""

    address = "http://localhost:8091/name/"
    missing = ""

    def state(self) -> str:
        """Always ready."""
        return "ready"


def rows() -> Iterator[Row]:
    """What, ours, peer, ratio, target."""
    with tempfile.TemporaryDirectory() as folder:
        app = application(published(Path(folder)))
        for fields in ASKED:
            seconds, captures = measured(app, fields)
            asked = " ".join(f"{name}={value}" for name, value in fields.items())
            what = f"search page of '{asked}', in {captures:,} of {sum(PARTS):,} documents"
            yield what, f"{seconds * 1000:.0f} ms CPU", "-", "-", TARGET


def measured(app: Starlette, fields: dict[str, str]) -> tuple[float, int]:
    """The least CPU seconds of a page, and how many captures it counts."""
    least = min(_seconds(app, fields) for _ in range(RUNS))
    return least, _asked(app, {**fields, "format": "json"}).document["captures"]


def _seconds(app: Starlette, fields: dict[str, str]) -> float:
    begin = time.process_time()
    answer = _asked(app, fields)
    assert answer.status == 200, answer.body
    return time.process_time() - begin


def _asked(app: Starlette, fields: dict[str, str]) -> WebAnswer:
    return ask(app, "/search", fields, headers={"authorization": f"Bearer {TOKEN}"})


def published(base: Path) -> Served:
    """A version of the text index, as the fold publishes it."""
    sentinel.adopt({root: base / root for root in ROOTS})
    state, index, store = (FileStore(root, base / root) for root in ROOTS)
    segments = tuple(_segment(index, number, count) for number, count in enumerate(PARTS))
    listed = VersionList("text", 1, 1, hidden_list.read(state).hiding, (), "2016-10-21T03:00:07Z")
    Lists(state, "text").commit(listed)
    version, payloads = Published(1, FOLDER, digest(listed), ("file:///benchmark",), segments), Payloads(index, "text")
    payloads.finish(version)
    payloads.point(version)
    for number in range(HIDDEN):
        hidden_list.decide(state, lambda: store, f"example,site{number},private", "benchmark", hides=True)
    access = WebAccess(state, "warcmill-benchmark", TOKEN)
    markers, engine = MarkerStore(state), EngineSection("[warcmill]", "", "", OutputLayout.KIND_FIRST)
    line = AuditedLine(markers, RootMap(engine, {}, (), open_folder), {}, lambda: store)
    return Served(markers, Archive(state, lambda: index, lambda: store), NoReplay(), access, lambda: line)


def _segment(index: FileStore, number: int, count: int) -> Segment:
    one = ListedWarc(f"daily/20161019234428/{number}.warc.gz", "0" * 128, 1, "0" * 128)
    written = text.write(index, [(one, _documents(number, count))])
    return text.commit_segment(index, FOLDER, written, SegmentSources((one,), frozenset()))


def _documents(part: int, count: int) -> Iterator[dict[str, Any]]:
    chosen = random.Random(part)
    words = [f"w{number}" for number in range(VOCABULARY)]
    weights = [1 / (number + 1) for number in range(VOCABULARY)]
    for number in range(count):
        yield {
            "url": f"http://site{number % 500}.example/{part}/{number}",
            "wayback_date": 20161019234428,
            "source_file_offset": number,
            "title": f"Page {number}",
            "content": " ".join(chosen.choices(words, weights, k=WORDS)),
        }
