"""Journals of all kinds of lines, at random, in a real PostgreSQL: it has what they say, however they are cut."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from servers.postgresql import PostgresqlServer
from warcmill.clients.postgresql import Postgresql, PostgresqlPlace, read_place
from warcmill.clusters import books, group, looking, news, orders
from warcmill.clusters.centre import Centre
from warcmill.clusters.following import ClusterJournals, Committed, JobJournals
from warcmill.clusters.group import Group
from warcmill.crawl.books.files import CRAWL_LOG
from warcmill.crawl.control.calls import RunningJob
from warcmill.crawl.frontier import Defer, Intake, Offered, journal
from warcmill.crawl.launch.folders import Places
from warcmill.crawl.uri import FOREVER, Renew, Status, Uri, make
from warcmill.errors import BadInput, Busy, Mismatch, Unavailable
from warcmill.model import Json, Launch

JOB, OTHER, NAME = "east", "west", "web"
URLS = [f"http://{'' if n % 3 else 'www.'}h{n % 5}.example/{n}" for n in range(40)]
NEW = [Offered(Intake.NEW)]


@pytest.fixture
def place(postgresql: PostgresqlServer, tmp_path: Path) -> PostgresqlPlace:
    name = f"j{os.getpid()}_{abs(hash(tmp_path))}"

    async def make_database() -> None:
        connection = await asyncpg.connect(postgresql.url())
        await connection.execute(f"CREATE DATABASE {name}")
        await connection.close()

    asyncio.run(make_database())
    return read_place("centre", postgresql.url(name))


@pytest.fixture
def kept(place: PostgresqlPlace) -> Group:
    found = Group(NAME, place, (JOB, OTHER))
    assert asyncio.run(group.make(found))
    assert not asyncio.run(group.make(found))
    return found


class Journals:
    """The journals of a job, written by hand."""

    def __init__(self, folder: Path, name: str = JOB) -> None:
        self.places, self.name = Places(folder / "output", folder / "jobs"), name
        self.launch = Launch(name, "20261129000000")
        self._begin()

    def _begin(self) -> None:
        folders = self.places.folders(self.launch)
        folders.logs.mkdir(parents=True)
        folders.own.mkdir(parents=True)

    @property
    def path(self) -> Path:
        return self.places.folders(self.launch).logs / journal.NAME

    def write(self, lines: list[str]) -> None:
        with self.path.open("ab") as file:
            file.write(journal.group(lines, {CRAWL_LOG: 0}))

    def close_stage(self, number: int) -> None:
        self.path.rename(f"{self.path}.cp{number:05}-2026112900{number:02}00")

    def next_launch(self) -> None:
        self.launch = Launch(self.name, str(int(self.launch.id) + 1000000))
        self._begin()

    @property
    def followed(self) -> ClusterJournals:
        committed = Committed(RunningJob(self.name, self.places.state(self.name) / "none"))
        return ClusterJournals(JobJournals(self.places, self.name, committed), [], committed)


def handed_at_random(chance: random.Random, number: int) -> Iterator[str]:
    """Lines of URIs that are handed over, or leave, or come back."""
    for _ in range(number):
        uri = make(
            f"http://g{chance.randrange(3)}.example/{chance.randrange(9)}", hops="L", source="http://h0.example/"
        )
        word = chance.choice(["take", "hand", "hand", "left", "visit"])
        if word == "take":
            yield from journal.offered([uri], NEW, 0.0)
        elif word == "visit":
            uri.status, uri.http_status, uri.download_finished = Status.PARSED, 200, 1.8e9 + chance.randrange(1000)
            yield journal.visited(uri, b"")
        else:
            yield journal.handed(uri, left=word == "left")


def lines_at_random(chance: random.Random, number: int) -> Iterator[str]:
    for _ in range(number):
        uri = make(chance.choice(URLS), crawl=chance.choice(["", "", "spider"]))
        word = chance.choice(["take", "take", "renew", "visit", "visit", "again", "defer", "defer", "remove", "purge"])
        until = chance.choice([0.0, 1.8e9, FOREVER])
        if word in ("take", "renew"):
            uri.not_before, uri.hops, uri.via = until, "L", "http://h0.example/"
            uri.renew = Renew(force=True) if word == "renew" else None
            yield from journal.offered([uri], NEW, 0.0)
        elif word in ("visit", "again"):
            uri.status, uri.http_status = chance.choice([Status.PARSED, Status.FAILED]), chance.choice([200, 404, -2])
            uri.download_finished = 1.8e9 + chance.randrange(1000)
            yield journal.visited(uri, b"", until if word == "again" else 0.0)
        elif word == "defer":
            yield journal.deferred(Defer(uri.crawl, uri.key, until))
        elif word == "remove":
            yield journal.removed(uri.crawl, uri.key, 1.8e9)
        elif chance.random() < 0.1:
            yield journal.purged("spider")


async def read_all(kept: Group, journals: Journals, most: int, name: str = JOB) -> int:
    """Keep all that the journals have in the centre; return how many moves were refused."""
    centre, number = await Centre.open(kept.centre, kept.name, name), 0
    try:
        while True:
            before = await centre.places()
            batch = news.batch_of(journals.followed.after(before, {}), most)
            if batch is None:
                return number
            number += len(await centre.keep(batch, before))
    finally:
        await centre.close()


async def differences(kept: Group, journals: Journals) -> list[object]:
    async with group.asked(kept) as db:
        found = await books.compare(db, journals.followed)
        return [*found.differences, *await books.miscounted(db), *([found.behind] if found.behind else [])]


@pytest.mark.parametrize("seed", range(8))
def test_a_centre_has_what_the_journals_say_however_they_are_cut(kept: Group, tmp_path: Path, seed: int) -> None:
    chance, journals = random.Random(seed), Journals(tmp_path)
    journals.write([journal.fresh()])
    for stage in range(1, 7):
        for _ in range(chance.randrange(12)):
            journals.write([*lines_at_random(chance, chance.randrange(1, 30))])
            journals.write([*handed_at_random(chance, chance.randrange(9))])
        assert asyncio.run(read_all(kept, journals, chance.choice([1, 20, 500]))) >= 0
        assert asyncio.run(differences(kept, journals)) == []
        if stage % 2:
            journals.close_stage(stage)
        else:
            journals.next_launch()
            journals.write([chance.choice([journal.carried(seen=True), journal.carried(), journal.fresh()])])
    assert asyncio.run(read_all(kept, journals, 500)) >= 0
    assert asyncio.run(differences(kept, journals)) == []

    async def again() -> None:
        centre = await Centre.open(kept.centre, kept.name, JOB)
        await centre.begin_again()
        await centre.close()
        await read_all(kept, journals, 30)

    asyncio.run(again())
    assert asyncio.run(differences(kept, journals)) == [], "all is read once more"


def test_a_uri_that_does_not_wait_is_let_wait_by_no_line(kept: Group, tmp_path: Path) -> None:
    journals, uri = Journals(tmp_path), make(URLS[0])
    wait = journal.deferred(Defer("", uri.key, 0.0))
    visit = journal.visited(Uri(uri.key, uri.uri, "", status=Status.PARSED, download_finished=1.8e9), b"")
    journals.write([wait])
    assert asyncio.run(read_all(kept, journals, 10)) == 1, "it was never taken"
    journals.write([*journal.offered([uri], NEW, 0.0), wait, visit, wait])
    assert asyncio.run(read_all(kept, journals, 10)) == 1
    journals.write([wait, journal.removed("", uri.key, 1.8e9)])
    journals.write([wait, wait])
    assert asyncio.run(read_all(kept, journals, 1)) == 2, "each URI is named once in a transaction"
    assert asyncio.run(differences(kept, journals)) == []


def test_the_last_group_of_a_journal_that_may_be_cut_is_read_once_the_launch_is_in_order(
    kept: Group, tmp_path: Path
) -> None:
    journals = Journals(tmp_path)
    job_log = journals.places.job(JOB) / "job.log"
    job_log.write_text(f"2026-11-29T00:00:00.000Z INFO PREPARING {journals.launch.id}\n")
    for url in URLS[:3]:
        journals.write([*journal.offered([make(url)], NEW, 0.0)])
    assert [len(group.entries) for group in journals.followed.after({}, {})] == [2, 2], "no crawl runs"
    with job_log.open("a") as file:
        file.write(f"2026-11-29T00:00:01.000Z INFO FINISHED {journals.launch.id}\n")
    assert len([*journals.followed.after({}, {})]) == 3


def test_damage_in_a_journal_is_named_and_all_before_it_is_kept(kept: Group, tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    for url in URLS[:3]:
        journals.write([*journal.offered([make(url)], NEW, 0.0)])
    sound = journals.path.read_bytes()
    journals.path.write_bytes(sound[:-20] + bytes(20))
    with pytest.raises(BadInput, match="a group of the journal cannot be read"):
        asyncio.run(read_all(kept, journals, 1))
    journals.path.write_bytes(sound)
    assert asyncio.run(read_all(kept, journals, 1)) == 0
    assert asyncio.run(differences(kept, journals)) == []
    journals.path.write_bytes(sound[:-1])
    with pytest.raises(Mismatch, match="the journal that the centre has read"):
        asyncio.run(read_all(kept, journals, 1))
    journals.path.unlink()
    with pytest.raises(Mismatch, match="expected a file, found none"):
        asyncio.run(read_all(kept, journals, 1))


def test_texts_of_strangers_and_hosts_without_end_are_kept(kept: Group, tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    odd = [Uri("\0key", f"http://h.example/{'x' * 60_000}", "h.example", via="a\0b", source="\ud800"),
           Uri("data:,x", "data:,x", ""), make(f"http://{'.'.join(['a' * 60] * 4)}/"),
           Uri(f"http://{'b' * 5000}/", f"http://{'b' * 5000}/", "b")]  # fmt: skip
    journals.write([journal.taken(uri) for uri in odd])
    assert asyncio.run(read_all(kept, journals, 10)) == 0
    assert asyncio.run(differences(kept, journals)) == []


def test_of_two_clusters_that_have_a_uri_the_first_with_its_host_counts(kept: Group, tmp_path: Path) -> None:
    east, west = Journals(tmp_path, JOB), Journals(tmp_path, OTHER)
    chance = random.Random(3)
    for _ in range(10):
        for one in (east, west):
            one.write([line for line in lines_at_random(chance, 20) if not line.startswith(journal.PURGED)])

    async def both() -> None:
        await asyncio.gather(read_all(kept, east, 10), read_all(kept, west, 10, OTHER))

    asyncio.run(both())
    assert asyncio.run(differences(kept, east)) == asyncio.run(differences(kept, west)) == []


def test_orders_go_to_the_cluster_of_their_host_and_lists_are_read_in_pages(kept: Group, tmp_path: Path) -> None:
    east, west = Journals(tmp_path, JOB), Journals(tmp_path, OTHER)
    east.write([journal.taken(make(f"http://east.example/{n}")) for n in range(5)])
    west.write([journal.taken(make(f"http://west.example/{n}", crawl="x" if n else "")) for n in range(3)])
    asyncio.run(read_all(kept, east, 10))
    asyncio.run(read_all(kept, west, 10, OTHER))

    async def ordered() -> None:
        async with group.asked(kept) as db:
            uris: list[Json] = ["http://west.example/new", "http://east.example/new", "http://new.example/"]
            numbers = await orders.put(db, "add", {"uris": uris}, JOB)
            found = [await orders.order(db, number) for number in numbers]
            assert [(one["cluster"], one["subject"]["uris"]) for one in found if one] == [  # type: ignore[index, call-overload]
                (JOB, ["http://east.example/new", "http://new.example/"]), (OTHER, ["http://west.example/new"]),
            ]  # fmt: skip
            (number,) = await orders.put(db, "suspend", {"site": "west.example"}, JOB)
            one = await orders.order(db, number)
            assert one
            assert (one["cluster"], one["state"], one["uris"]) == (OTHER, "waiting", 1)
            assert len(await orders.put(db, "remove", {"prefix": "http://(example,"}, JOB)) == 2
            pages, after = list[list[str]](), ""
            while True:
                some, after = await looking.listed(db, status="Scheduled", after=after, limit=3)
                pages.append([str(one["uri"]) for one in some])
                if not after:
                    break
            assert [len(one) for one in pages] == [3, 3, 2]
            assert len({uri for some in pages for uri in some}) == 8
            for wanted, number in ({"cluster": OTHER}, 3), ({"host": "east.example"}, 5), ({"status": "Failed"}, 0):
                assert len((await looking.listed(db, **wanted))[0]) == number
            under = {
                "http://(example,": 8, "http://(example,west": 3, "http://(example,west,)/": 3,
                "http://(example,west,)/2": 1, "http://(example,_est,": 0, "http://(org,": 0,
            }  # fmt: skip
            for prefix, number in under.items():
                assert len((await looking.listed(db, prefix=prefix))[0]) == number, prefix
            for odd in ("example.org", "ftp://(example,", "http://("):
                with pytest.raises(BadInput, match="not a SURT prefix"):
                    await looking.listed(db, prefix=odd)

    asyncio.run(ordered())


def test_transactions_in_each_others_way_are_done_again_and_a_moved_place_is_busy(kept: Group, tmp_path: Path) -> None:
    async def in_the_way() -> list[int]:
        async with group.asked(kept) as one, group.asked(kept) as two:
            await one.rows("INSERT INTO hosts (host, surt, cluster) VALUES ('a', '', $1), ('b', '', $1)", JOB)
            met = asyncio.Barrier(2)
            tries = {"a": 0, "b": 0}

            async def lock(db: Postgresql, first: str, second: str) -> None:
                async def act(connection: asyncpg.Connection) -> None:
                    tries[first] += 1
                    await connection.execute("UPDATE hosts SET parsed = parsed + 1 WHERE host = $1", first)
                    if tries[first] == 1:
                        await met.wait()
                    await connection.execute("UPDATE hosts SET parsed = parsed + 1 WHERE host = $1", second)

                await db.whole(act)

            await asyncio.gather(lock(one, "a", "b"), lock(two, "b", "a"))
            assert sorted(tries.values()) == [1, 2]
            return [row["parsed"] for row in await one.rows("DELETE FROM hosts RETURNING parsed")]

    assert asyncio.run(in_the_way()) == [2, 2]
    journals = Journals(tmp_path)
    journals.write([*journal.offered([make(URLS[0])], NEW, 0.0)])

    async def moved() -> None:
        centre = await Centre.open(kept.centre, kept.name, JOB)
        before = await centre.places()
        batch = news.batch_of(journals.followed.after(before, {}), 10)
        assert batch
        await centre.keep(batch, before)
        with pytest.raises(Busy):
            await centre.keep(batch, before)
        with pytest.raises(Busy):
            await Centre.open(kept.centre, kept.name, JOB)
        await centre.db.rows("SELECT pg_sleep(0)")
        centre.db._connection.terminate()
        with pytest.raises(Unavailable):
            await centre.places()

    asyncio.run(moved())
    assert asyncio.run(differences(kept, journals)) == []
