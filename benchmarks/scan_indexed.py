"""Measure what a scan of the index costs over many launches of which every stage is indexed, published and verified.

10,000 launches of two WARCs each; LAUNCHES is another number. The first scan publishes a version; measured is one that
finds nothing to do.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from benchmarks.scan import scan_cpu
from benchmarks.status import whole_launches
from commands.init import configuration
from warcmill import layout
from warcmill.extracts.cdx import CDXJ
from warcmill.extracts.extracts import Extracts
from warcmill.launches.discovery import with_markers
from warcmill.layout import OutputLayout
from warcmill.markers.claim import Claim
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FINAL, Item, Json, Launch, Outcome, Root
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

RUNS = 3
ROOTS: tuple[Root, ...] = ("output", "jobs", "state", "store", "index")
LINE = b'example,gov)/ 20161019234428 {"url": "http://gov.example/", "length": "1", "offset": "0", "filename": ""}\n'
EXTRACT = (b' {"captures": {"response": 1}, "left_out": {}}\n', LINE)
SCAN = "tasks.index", "index.ScanForIndexing"


def rows() -> Iterator[tuple[str, str, str, str, str]]:
    """The CPU time of the scan's process, minus that of the same scan on a line without a launch."""
    launches = int(os.environ.get("LAUNCHES", "10000"))
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as bare:
        config = _indexed_launches(Path(folder), launches)
        first = scan_cpu(config, "2016-10-01-2017-01-01", *SCAN)
        scan = min(scan_cpu(config, "2016-10-01-2017-01-01", *SCAN) for _ in range(RUNS))
        empty = min(scan_cpu(_empty_line(Path(bare)), "1999-01-01", *SCAN) for _ in range(RUNS))
        each = f"{(scan - empty) / launches * 1e6:.0f} us each"
        what = f"scan {launches:,} indexed launches, CPU s"
        yield what, f"{scan - empty:.2f}", f"{empty:.2f} (an empty line)", each, "under 1 s"
        yield "the scan that publishes them, CPU s", f"{first - empty:.2f}", "-", "-", "-"


def _indexed_launches(base: Path, count: int) -> Path:
    whole_launches(base, count)
    sentinel.adopt({"index": base / "index"})
    config = _configured(base)
    state, index = MarkerStore(FileStore("state", base / "state")), FileStore("index", base / "index")
    Extracts(index).leave(CDXJ, "0" * 128, EXTRACT)
    extract = index.real(CDXJ.path("0" * 128)).read_bytes()
    for launch in with_markers(state, date.min, date.max):
        _index(state, index, launch, extract)
    return config


def _empty_line(base: Path) -> Path:
    sentinel.adopt({root: base / root for root in ROOTS})
    return _configured(base)


def _configured(base: Path) -> Path:
    text = configuration({root: base / root for root in ROOTS}, OutputLayout.KIND_FIRST)
    config = base / "luigi.cfg"
    config.write_text(f"{text}\n[index]\nsince=2016-01-01\n")
    return config


def _index(state: MarkerStore, index: FileStore, launch: Launch, extract: bytes) -> None:
    """Leave the two markers of the index, and the extracts."""
    verified = state.require(layout.step("verify", launch, FINAL))
    files = [(item.file, item.made) for item in verified.claim.items if item.made]
    facts: dict[str, Json] = {"captures": {"response": 1}, "unfit": {}, "hits": 0}
    indexed = Claim(
        layout.step("cdx", launch, FINAL),
        rests_on(verified),
        items=tuple(Item(file, Outcome.OK, copy, facts=facts) for file, copy in files),
        counts={"warcs": len(files), "captures": len(files), "unfit": 0, "hits": 0},
    )
    _leave(state, indexed)
    found = Claim(
        layout.step("verify-cdx", launch, FINAL),
        rests_on(state.require(indexed.key)),
        items=tuple(Item(file, Outcome.OK, copy, facts={"captures": 1}) for file, copy in files),
        counts={"warcs": len(files), "captures": len(files), "elsewhere": 0},
    )
    _leave(state, found)
    for _, copy in files:
        path = index.real(CDXJ.path(str(copy.sha512)))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(extract)


def _leave(state: MarkerStore, claim: Claim) -> None:
    state.store.real(layout.marker_path(claim.key)).write_bytes(state.document(claim))
