"""The hosts for which most waits: counted exactly, some rows at a time, however queues and priorities are."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from warcmill.crawl.control import hosts
from warcmill.crawl.control.hosts import HostCount, host_of
from warcmill.crawl.frontier import FIRST_PLACE, Defer
from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.crawl.uri import FOREVER, make

LENGTHS = {"a.example": 1, "big.example": 25, "c.example": 3, "d.example:8080": 2, "e.example": 7}


async def filled(path: Path) -> SqliteFrontier:
    frontier = SqliteFrontier(path)
    await frontier.offer(
        [make(f"http://{name}/{n}", priority=n % 3 - 1) for name, length in LENGTHS.items() for n in range(length)]
    )
    return frontier


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 9, 25, 38, 1000])
def test_slices_of_any_length_count_each_row_once(tmp_path: Path, limit: int) -> None:
    async def scenario() -> tuple[Counter[str], int]:
        frontier, found, most = await filled(tmp_path / "f.sqlite"), Counter[str](), 0
        place, rounds = FIRST_PLACE, 0
        while place:
            part = await frontier.queues_after(place, limit)
            most, rounds = max(most, sum(number for _, number in part.counts)), rounds + 1
            for name, number in part.counts:
                found[name] += number
            place = part.next  # type: ignore[assignment] # None ends it
            assert rounds < 200
        await frontier.close()
        return found, most

    found, most = asyncio.run(scenario())
    assert found == LENGTHS
    assert most <= limit


def test_looks_go_on_until_a_round_is_whole_and_begin_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "ROWS", 10)

    async def scenario() -> None:
        frontier = await filled(tmp_path / "f.sqlite")
        count = HostCount(frontier)
        first = await count.look()
        assert (first.is_whole, first.rows) == (False, 1)
        while not (found := await count.look()).is_whole:
            pass
        assert found.by_host[:2] == (("big.example", 25), ("e.example", 7))
        assert (found.rows, dict(found.by_host)["d.example"]) == (38, 2)
        await frontier.defer([Defer("", "http://e.example/0", FOREVER)])
        while (after := await count.look()).rows == 38:
            pass
        assert dict(after.by_host)["e.example"] == 6  # what is suspended may not be leased
        await frontier.close()

    asyncio.run(scenario())


def test_the_host_of_a_queue() -> None:
    assert [*map(host_of, ("a.example", "a.example:8080", "[::1]", "[::1]:81"))] == ["a.example"] * 2 + ["[::1]"] * 2
