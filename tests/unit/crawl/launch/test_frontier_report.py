"""What the reports of a launch say of its frontier."""

from __future__ import annotations

import asyncio
from pathlib import Path

from warcmill.crawl.frontier import Gate, Waiting
from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.crawl.launch import reports
from warcmill.crawl.uri import FOREVER, make


def test_what_waits_is_counted_by_queue_and_by_why_it_waits(tmp_path: Path) -> None:
    async def run() -> tuple[Waiting, Waiting]:
        frontier = SqliteFrontier(tmp_path / "f.sqlite", now=lambda: 1000.0)
        empty = await frontier.waiting(reports.MOST_QUEUES)
        for host, number in (("a", 3), ("b", 2), ("c", 1), ("d", 1)):
            await frontier.offer([make(f"http://{host}.example/{n}") for n in range(number)])
        await frontier.offer([make("http://a.example/0"), make("http://a.example/later", not_before=2000.0)])
        await frontier.block(Gate("b.example"), FOREVER)
        await frontier.block(Gate("c.example"), 1100.0)
        await frontier.remove("", ["http://d.example/0"])
        await frontier.lease("h", 1)
        found = await frontier.waiting(reports.MOST_QUEUES)
        await frontier.close()
        return empty, found

    empty, found = asyncio.run(run())
    assert empty == Waiting()
    assert found == Waiting(
        discovered=8, queued=7, by_queue={"a.example": 4, "b.example": 2, "c.example": 1},
        ready=1, snoozed=1, retired=1, exhausted=1, in_process=1,
    )  # fmt: skip
    assert list(found.by_queue) == ["a.example", "b.example", "c.example"]
