"""The assignment of hosts by a real PostgreSQL and name servers that are silent, that lie, or answer too much."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import asyncpg
import pytest
from sites.name_server import SILENT, names

from servers.postgresql import PostgresqlServer
from warcmill.clients.postgresql import PostgresqlPlace, read_place
from warcmill.clusters import group, owning
from warcmill.clusters.group import Group
from warcmill.clusters.owning import HostAssigner, KeptRules, RulesPlace
from warcmill.crawl.fetch.addresses import Resolver

RULES = """
default = "east"
[[rule]]
domain = "west.example"
cluster = "west"
[[rule]]
network = "127.0.1.0/24"
cluster = "west"
"""
JOBS = ("east", "west")


@pytest.fixture
def place(postgresql: PostgresqlServer, tmp_path: Path) -> PostgresqlPlace:
    name = f"a{os.getpid()}_{abs(hash(tmp_path))}"

    async def make_database() -> None:
        connection = await asyncpg.connect(postgresql.url())
        await connection.execute(f"CREATE DATABASE {name}")
        await connection.close()

    asyncio.run(make_database())
    return read_place("centre", postgresql.url(name))


@pytest.fixture
def kept(place: PostgresqlPlace, tmp_path: Path) -> Group:
    path = tmp_path / "rules.toml"
    path.write_text(RULES)
    found = Group("web", place, JOBS, RulesPlace(path))
    assert asyncio.run(group.make(found))
    return found


def assigner(kept: Group, resolver: Resolver, cluster: str = "east") -> HostAssigner:
    assert kept.owned
    return HostAssigner(KeptRules(kept.owned, kept.jobs), resolver, cluster)


async def rows(kept: Group) -> dict[str, asyncpg.Record]:
    async with group.asked(kept) as db:
        return {row["host"]: row for row in await db.rows("SELECT *, due - now() AS left FROM hosts")}


async def assigned(kept: Group, resolver: Resolver, *hosts: str) -> dict[str, asyncpg.Record]:
    async with group.asked(kept) as db:
        await assigner(kept, resolver).assign(db, hosts)
    return await rows(kept)


def test_hosts_whose_name_server_is_silent_or_knows_none_go_by_what_needs_no_address(
    kept: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owning, "RESOLVE_SECONDS", 1.0)
    silent = {f"h{n}.example": [SILENT] for n in range(200)} | {"west.example": [SILENT]}
    with names({**silent, "good.example": ["0 A 127.0.1.7"]}) as port:
        resolver = Resolver(servers=[("127.0.0.1", port)])
        began = time.monotonic()
        found = asyncio.run(assigned(kept, resolver, "good.example", "nowhere.example", *silent))
        assert time.monotonic() - began < 10
    assert {row["cluster"] for host, row in found.items() if host.startswith("h")} == {"east"}
    assert (found["west.example"]["cluster"], found["nowhere.example"]["cluster"]) == ("west", "east")
    assert (found["good.example"]["cluster"], found["good.example"]["addresses"]) == ("west", ["127.0.1.7"])
    assert found["good.example"]["left"].total_seconds() > 250, "a TTL of 0 is bounded below"
    assert found["nowhere.example"]["left"].total_seconds() < 61


def test_of_ten_thousand_addresses_some_are_kept(kept: Group) -> None:
    many = tuple(f"10.{n // 250}.0.{n % 250}" for n in range(10_000))
    found = asyncio.run(assigned(kept, Resolver({"many.example": many}), "many.example"))["many.example"]
    assert len(found["addresses"]) == owning.ADDRESSES
    assert found["left"].total_seconds() <= owning.TTL_MOST


def test_a_host_that_two_meet_at_once_has_one_owner_and_so_have_two_hosts_of_one_address(kept: Group) -> None:
    """East knows the host by an address of the west, and west by another one: whoever is first counts for both."""

    async def both(number: int) -> None:
        hosts = [f"{name}{number}.example" for name in ("a", "b")]
        one = Resolver(dict.fromkeys(hosts, (f"127.0.9.{number}",)))
        async with group.asked(kept) as east, group.asked(kept) as west:
            await asyncio.gather(
                assigner(kept, one).assign(east, hosts), assigner(kept, one, "west").assign(west, reversed(hosts))
            )

    async def many() -> dict[str, asyncpg.Record]:
        await asyncio.gather(*[both(number) for number in range(10)])
        return await rows(kept)

    found = asyncio.run(many())
    assert len(found) == 20
    assert all(found[f"a{number}.example"]["cluster"] == found[f"b{number}.example"]["cluster"] for number in range(10))
    assert len({row["edition"] for row in found.values()}) == 20


def test_addresses_are_fresh_while_something_waits_and_a_dead_host_is_asked_ever_more_seldom(kept: Group) -> None:
    async def act() -> list[tuple[list[str], int, float]]:
        seen = []
        zone = {"h.example": ["600 A 127.0.0.7"]}
        with names(zone) as port:
            async with group.asked(kept) as db:

                async def again() -> None:
                    await db.rows("UPDATE hosts SET due = now() - interval '1 s'")
                    one = assigner(kept, Resolver(servers=[("127.0.0.1", port)]))
                    await one.refresh(db)
                    await asyncio.sleep(0.3)
                    await one.refresh(db)
                    row = (await rows(kept))["h.example"]
                    seen.append((row["addresses"], row["misses"], row["left"].total_seconds()))

                await assigner(kept, Resolver(servers=[("127.0.0.1", port)])).assign(db, ["h.example"])
                zone["h.example"] = ["600 A 127.0.0.8"]
                await again()
                await db.rows("UPDATE hosts SET scheduled = 1")
                await again()
                del zone["h.example"]
                for _ in range(3):
                    await again()
                await db.rows("UPDATE hosts SET misses = 60")
                await again()
        return seen

    unasked, fresh, *dead, last = asyncio.run(act())
    assert (unasked[0], unasked[2] < 0) == (["127.0.0.7"], True), "nothing of it waits"
    assert fresh[:2] == (["127.0.0.8"], 0)
    assert 500 < fresh[2] < 541, "a little before its TTL"
    assert [one[:2] for one in dead] == [(["127.0.0.8"], 1), (["127.0.0.8"], 2), (["127.0.0.8"], 3)]
    assert [round(one[2] / 60) for one in dead] == [1, 2, 4]
    assert last[2] <= owning.MISS_MOST
