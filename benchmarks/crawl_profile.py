"""Where a crawl's CPU goes: microseconds a page, by part. The site is that of `benchmarks.crawl`.

    python -m benchmarks.crawl_profile [PAGES]

The crawl runs in this process, with a clock of its thread around each part: 5 % more than without.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.crawl import ready, site
from warcmill.crawl import extract, process
from warcmill.crawl.durable import Appended
from warcmill.crawl.fetch.answer import AnswerReader
from warcmill.crawl.fetch.conversation import Conversation
from warcmill.crawl.fetch.wire import Connection
from warcmill.crawl.frontier import journal
from warcmill.crawl.frontier.ledger import Ledger
from warcmill.crawl.launch.folders import Places
from warcmill.crawl.launch.reports import Reporter
from warcmill.crawl.logs import lines
from warcmill.crawl.visit import history
from warcmill.crawl.visit.offers import Offers
from warcmill.formats.logs import crawllog
from warcmill.formats.warc.writer import WarcFiles
from warcmill.layout import OutputLayout

PARTS: dict[str, tuple[tuple[Any, str], ...]] = {
    "links of the page": ((extract, "find"),),
    "records and history: digests, headers": ((history, "records"), (history, "compare"), (lines, "metadata")),
    "line of crawl.log, figures": ((lines, "of_answer"), (Reporter, "kept")),
    "judging and making of links": ((Offers, "of"),),
    "HTTP: framing, digests, what came": (
        (AnswerReader, "feed"), (Connection, "data_received"), (Conversation, "_result"), (Conversation, "__init__"),
    ),
    "gzip, and writing of WARCs": ((WarcFiles, "append"),),
    "fdatasync": ((WarcFiles, "sync"), (Appended, "sync")),
    "journal: lines and gzip": ((journal, "taken"), (journal, "finished"), (journal, "group")),
    "SQLite: visits, offers, leases": ((Ledger, "finish"), (Ledger, "offer"), (Ledger, "lease")),
    "crawl.log: its lines": ((crawllog, "render"),),
}  # fmt: skip


def main(pages: int) -> None:
    """Crawl, and print a row a part."""
    spent: defaultdict[str, float] = defaultdict(float)
    for part, functions in PARTS.items():
        for owner, name in functions:
            setattr(owner, name, _clocked(getattr(owner, name), part, spent))
    with site(pages) as url, tempfile.TemporaryDirectory() as folder:
        ready(Path(folder), url)
        started = time.process_time()
        places = Places(Path(folder, "output"), Path(folder, "jobs"), OutputLayout.KIND_FIRST)
        asyncio.run(process.crawl(places, "bench"))
        whole = time.process_time() - started
    spent["all else: tasks, loop, sockets, transitions, cookies"] = whole - sum(spent.values())
    for part, seconds in sorted(spent.items(), key=lambda one: -one[1]):
        print(f"| {part} | {seconds / pages * 1e6:.0f} |")
    print(f"| in all, without the start of Python ({started:.2f} s) | {whole / pages * 1e6:.0f} |")


def _clocked(call: Callable[..., Any], part: str, spent: defaultdict[str, float]) -> Callable[..., Any]:
    """Count the CPU of the calls to a part. No part calls another."""

    def clocked(*args: Any, **more: Any) -> Any:
        begun = time.thread_time()
        try:
            return call(*args, **more)
        finally:
            spent[part] += time.thread_time() - begun

    return clocked


if __name__ == "__main__":
    main(int((sys.argv[1:] or ["2000"])[0]))
