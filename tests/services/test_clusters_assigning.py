"""The assignment of hosts by a real PostgreSQL and name servers that are silent, that lie, or answer too much."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import asyncpg
import pytest
from records.countries import mmdb
from sites.name_server import SILENT, names

from servers.postgresql import PostgresqlServer
from warcmill.clients.postgresql import PostgresqlPlace, read_place
from warcmill.clusters import group, owning
from warcmill.clusters.group import Group
from warcmill.clusters.owning import HostAssigner, KeptRules, RulesPlace
from warcmill.crawl.fetch.addresses import Resolver
from warcmill.errors import BadConfig

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


def test_names_of_every_sort_are_assigned_and_end_no_updater(kept: Group) -> None:
    long = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])
    odd = [
        long, f"{'e' * 64}.example", "a..b.example", "-.example", ".example", "xn--a.example", "xn--.example",
        "[::1]", "127.0.1.9", "a_b.example", "ü.example", "%00.example", "a\u202eb.example", "x" * 255, "1.2.3.4.5",
        "[fe80::1%25eth0]", "0x7f.1", "a b.example", "'; drop table hosts; --",
    ]  # fmt: skip
    assert len(long) == 253
    with names({long: ["0 A 127.0.1.7"]}) as port:
        found = asyncio.run(assigned(kept, Resolver(servers=[("127.0.0.1", port)]), *odd))
    assert found.keys() == {*odd}
    assert (found[long]["cluster"], found["127.0.1.9"]["cluster"]) == ("west", "west")


def test_an_answer_that_is_another_each_time_and_not_of_this_world_moves_no_host(kept: Group) -> None:
    async def act() -> list[asyncpg.Record]:
        zone, seen = {"h.example": ["0 A 127.0.0.7"]}, []
        with names(zone) as port:
            async with group.asked(kept) as db:
                one = assigner(kept, Resolver(servers=[("127.0.0.1", port)]))
                await one.assign(db, ["h.example"])
                for answer in ("0 A 127.0.1.8", "0 AAAA ::ffff:127.0.1.8", "0 A 0.0.0.0", "0 A 255.255.255.255"):
                    zone["h.example"] = [answer]
                    await db.rows("UPDATE hosts SET due = now() - interval '1 s', scheduled = 1")
                    one = assigner(kept, Resolver(servers=[("127.0.0.1", port)]))
                    await one.refresh(db)
                    await asyncio.sleep(0.3)
                    await one.refresh(db)
                    await one.assign(db, ["h.example"])
                    seen.append((await rows(kept))["h.example"])
        return seen

    found = asyncio.run(act())
    assert [row["addresses"][0].rpartition(".")[2] for row in found] == ["8", "8", "0", "255"]
    assert {(row["cluster"], row["edition"]) for row in found} == {("east", found[0]["edition"])}


def test_without_its_file_of_countries_no_host_is_assigned_by_rules_that_cannot_see_them(
    place: PostgresqlPlace, tmp_path: Path
) -> None:
    rules, path = tmp_path / "rules.toml", tmp_path / "countries.mmdb"
    rules.write_text('default = "east"\n[[rule]]\ncountry = "ET"\ncluster = "west"\n')
    named = RulesPlace(rules, path)
    found = Group("web", place, JOBS, named)
    assert asyncio.run(group.make(found))
    resolver = Resolver({f"h{n}.example": (f"196.188.0.{n}",) for n in range(5)})

    async def act(kept: KeptRules, *hosts: str) -> dict[str, asyncpg.Record]:
        async with group.asked(found) as db:
            await HostAssigner(kept, resolver, "east").assign(db, hosts)
        return await rows(found)

    path.write_bytes(mmdb({"196.188.0.0/16": "ET"}))
    kept = KeptRules(named, JOBS)
    assert asyncio.run(act(kept, "h0.example"))["h0.example"]["cluster"] == "west"
    path.unlink()
    assert asyncio.run(act(kept, "h1.example"))["h1.example"]["cluster"] == "west", "the last good ones stay"
    assert "countries.mmdb cannot be read" in kept.fault
    begun = KeptRules(named, JOBS)
    for _ in range(2):
        with pytest.raises(BadConfig, match=r"countries\.mmdb cannot be read"):
            asyncio.run(act(begun, "h2.example"))
    assert "h2.example" not in asyncio.run(rows(found))
    path.write_bytes(mmdb({"196.188.0.0/16": "NL"}))
    assert asyncio.run(act(kept, "h3.example"))["h3.example"]["cluster"] == "east", "it is read when it is back"
    assert not kept.fault
    rules.unlink()
    assert asyncio.run(act(kept, "h4.example"))["h4.example"]["cluster"] == "east"
    assert "rules.toml" in kept.fault


def test_a_session_whose_machine_is_gone_is_ended_by_the_server_within_minutes(kept: Group) -> None:
    """Its lock is the updater's: nobody else updates the cluster until then."""

    async def act() -> list[str]:
        async with group.asked(kept) as db:
            shown = [await db.rows(f"SHOW tcp_keepalives_{one}") for one in ("idle", "interval", "count")]
        return [one[0][0] for one in shown]

    assert asyncio.run(act()) == ["60", "10", "3"]
