"""The journals of several writers of a cluster, in a real PostgreSQL: read late, from roots that come and go."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from msgspec.structs import replace

from servers.postgresql import PostgresqlServer
from warcmill.clients.postgresql import read_place
from warcmill.clusters import books, group, news, recovery, tables
from warcmill.clusters.centre import Centre
from warcmill.clusters.following import ClusterJournals, Committed, JobJournals
from warcmill.clusters.group import Group
from warcmill.crawl.books.files import CRAWL_LOG
from warcmill.crawl.control.calls import RunningJob
from warcmill.crawl.frontier import Defer, Intake, Offered, journal
from warcmill.crawl.launch.folders import Places
from warcmill.crawl.uri import FOREVER, Renew, Status, make
from warcmill.errors import BadConfig, Busy, NotReady, Unavailable
from warcmill.formats.logs import retired
from warcmill.layout import SENTINEL
from warcmill.model import Launch, WriterRoot
from warcmill.stores.sentinel import sentinel

JOB = "web-east"
WRITERS = ("", "writer.w1", "writer.w2")
NEW = [Offered(Intake.NEW)]


class Written:
    """The journals of a job with two workers, written by a test: events by writer, with their times."""

    def __init__(self, folder: Path) -> None:
        self.own = Places(folder / "output", folder / "jobs")
        self.roots = {"": self.own, **{name: replace(self.own, output=folder / name) for name in WRITERS[1:]}}
        self.launch = Launch(JOB, "20261129000000")
        self.groups = dict.fromkeys(WRITERS, 0)
        self.own.folders(self.launch).own.mkdir(parents=True)
        for name, places in self.roots.items():
            places.output.mkdir(exist_ok=True)
            if name:
                (places.output / SENTINEL).write_bytes(sentinel([WriterRoot(name)]))

    def path(self, writer: str) -> Path:
        return self.roots[writer].folders(self.launch).logs / journal.NAME

    def write(self, writer: str, at: float, *lines: str) -> None:
        self.groups[writer] += 1
        number = {"group": self.groups[writer], "writer": f"of {writer}", "at": at}
        self.path(writer).parent.mkdir(parents=True, exist_ok=True)
        with self.path(writer).open("ab") as file:
            file.write(journal.group(lines, {CRAWL_LOG: 0}, number))

    def close_stage(self, number: int, *writers: str) -> None:
        for one in writers:
            if self.path(one).exists():
                self.path(one).rename(f"{self.path(one)}.cp{number:05}-2026112900{number:02}00")

    @contextmanager
    def without(self, *writers: str) -> Iterator[None]:
        """The roots of these writers are not mounted while the block runs."""
        roots = [self.roots[one].output for one in writers]
        for one in roots:
            one.rename(f"{one}.away")
            one.mkdir()
        yield
        for one in roots:
            one.rmdir()
            Path(f"{one}.away").rename(one)

    def followed(self) -> ClusterJournals:
        committed = Committed(RunningJob(JOB, self.own.state(JOB) / "none"))
        workers = [JobJournals(self.own, JOB, committed, one, self.roots[one]) for one in WRITERS[1:]]
        return ClusterJournals(JobJournals(self.own, JOB, committed), workers, committed)


class History:
    """What a frontier that several processes share lets happen to URIs: each event by any of them, and its time."""

    def __init__(self, chance: random.Random, written: Written) -> None:
        self._chance, self._written, self._now = chance, written, 1.8e9
        self.status: dict[str, Status] = {}

    def step(self) -> None:
        """Have something happen, and some process journal it; or more than one, where they are at the same time."""
        self._now += 1
        chance, url = self._chance, f"http://h{self._chance.randrange(2)}.example/{self._chance.randrange(8)}"
        known = self.status.get(url)
        if known is None:
            lines, self.status[url] = [self._taken(url)], Status.SCHEDULED
            if chance.random() < 0.2:  # two find it at once: both journal it, and the frontier has it once
                self._put(self._now, self._taken(url))
        elif known is Status.SCHEDULED:
            lines = [*self._ended(url)]
        elif known is Status.SUSPENDED:
            lines, self.status[url] = [journal.deferred(Defer("", url, 0.0))], Status.SCHEDULED
        elif chance.random() < 0.5:
            lines, self.status[url] = [self._taken(url, renew=True)], Status.SCHEDULED
        else:  # one that lost its lease gives it back late: the frontier refuses that
            lines = [journal.deferred(Defer("", url, FOREVER))]
        self._put(self._now, *lines)

    def _ended(self, url: str) -> Iterator[str]:
        word = self._chance.choice(["visit", "visit", "visit", "again", "suspend", "remove"])
        uri = make(url)
        uri.status, uri.http_status, uri.download_finished = Status.PARSED, 200, self._now
        if word == "suspend":
            self.status[url] = Status.SUSPENDED
            yield journal.deferred(Defer("", url, FOREVER))
        elif word == "remove":
            self.status[url] = Status.REMOVED
            yield journal.removed("", url, self._now)
        elif word == "again":
            yield journal.visited(uri, b"", 1.9e9)
        else:
            self.status[url] = Status.PARSED
            yield journal.visited(uri, b"")

    def _taken(self, url: str, *, renew: bool = False) -> str:
        uri = make(url, hops="L", via="http://h0.example/", source="http://h0.example/")
        uri.renew = Renew(force=True) if renew else None
        return next(iter(journal.offered([uri], NEW, 0.0)))

    def _put(self, at: float, *lines: str) -> None:
        self._written.write(self._chance.choice(WRITERS), at, *lines)


@pytest.fixture
def kept(postgresql: PostgresqlServer, tmp_path: Path) -> Group:
    """A group whose centre has its tables, and nothing else."""
    return asyncio.run(_made(postgresql, f"w{abs(hash(tmp_path))}"))


async def _made(server: PostgresqlServer, database: str) -> Group:
    connection = await asyncpg.connect(server.url())
    await connection.execute(f"CREATE DATABASE {database}")
    await connection.close()
    made = Group("web", read_place("centre", server.url(database)), (JOB,))
    await group.make(made)
    return made


async def read(kept: Group, journals: ClusterJournals, most: int) -> dict[str, str]:
    """Keep all that these journals have; return the faults."""
    centre, faults = await Centre.open(kept.centre, kept.name, JOB, WRITERS), dict[str, str]()
    try:
        while batch := news.batch_of(journals.after(before := await centre.places(), faults), most):
            assert await centre.keep(batch, before) == []
        await centre.note(journals.waiting(await centre.places(), faults), faults, "")
        return faults
    finally:
        await centre.close()


async def query(kept: Group, text: str) -> list[Any]:
    async with group.asked(kept) as db:
        return await db.rows(text)


async def differences(kept: Group, journals: ClusterJournals) -> list[object]:
    async with group.asked(kept) as db:
        found = await books.compare(db, journals)
        return [*found.differences, *await books.miscounted(db), *([found.behind] if found.behind else [])]


@pytest.mark.parametrize("seed", range(8))
def test_a_centre_has_what_happened_in_whatever_order_the_writers_are_read(
    kept: Group, tmp_path: Path, seed: int
) -> None:
    chance, written = random.Random(seed), Written(tmp_path)
    history = History(chance, written)
    written.write("", 1.8e9, journal.fresh())
    for stage in range(1, 10):
        for _ in range(chance.randrange(60)):
            history.step()
        if stage % 3 == 0:
            written.close_stage(stage, *chance.sample(WRITERS, 2))
        gone = [one for one in WRITERS[1:] if chance.random() < 0.5]  # their roots are not mounted
        with written.without(*gone):
            faults = asyncio.run(read(kept, written.followed(), chance.choice([1, 7, 500])))
        assert sorted(faults) == gone
        assert all("mount the disk" in one for one in faults.values())
    assert asyncio.run(read(kept, written.followed(), 7)) == {}
    found = {row["uri"]: row["status"] for row in asyncio.run(query(kept, "SELECT uri, status FROM uris"))}
    assert found == {url: str(status) for url, status in history.status.items()}
    assert asyncio.run(differences(kept, written.followed())) == []


def taken(url: str) -> str:
    return next(iter(journal.offered([make(url)], NEW, 0.0)))


def test_a_worker_that_was_declared_dead_may_leave_a_part_of_a_group_and_no_other_may(
    kept: Group, tmp_path: Path
) -> None:
    written = Written(tmp_path)
    written.write("", 1.8e9, journal.fresh())
    written.write("writer.w1", 1.8e9 + 1, taken("http://h0.example/1"))
    with written.path("writer.w1").open("ab") as file:
        file.write(journal.group([taken("http://h0.example/2")], {CRAWL_LOG: 0}, {"group": 2})[:40])
    fault = asyncio.run(read(kept, written.followed(), 10))["writer.w1"]
    assert "a group of the journal cannot be read" in fault
    assert len(asyncio.run(query(kept, "SELECT 1 FROM uris"))) == 1, "all before it is kept"
    status = asyncio.run(group.status(kept))[0]
    assert status["writers"] == [
        {"writer": "writer.w1", "launch": written.launch.id, "behind": 40, "fault": fault},
        {"writer": "writer.w2", "launch": "", "behind": 0, "fault": ""},
    ]
    reports = written.own.folders(written.launch).reports
    reports.mkdir(parents=True)
    (reports / retired.RETIRED).write_bytes(retired.write([(3, "w1", "node", "2026-11-29T00:00:00Z", "burnt")]))
    assert asyncio.run(read(kept, written.followed(), 10)) == {}
    assert asyncio.run(differences(kept, written.followed())) == []


def test_journals_of_a_writer_whose_section_was_removed_are_named(kept: Group, tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.write("", 1.8e9, journal.fresh())
    written.write("writer.w1", 1.8e9 + 1, taken("http://h0.example/1"))

    async def looked() -> Any:
        centre = await Centre.open(kept.centre, kept.name, JOB, WRITERS)
        await centre.note({"writer.w1": 40, "": 0}, {}, "")
        await centre.close()
        await (await Centre.open(kept.centre, kept.name, JOB, ["", "writer.w2"])).close()
        return await group.status(kept)

    faults = {one["writer"]: one["fault"] for one in asyncio.run(looked())[0]["writers"]}
    assert "put the section back" in faults["writer.w1"]
    assert faults["writer.w2"] == ""


def test_rows_are_made_anew_from_the_journals_of_all_writers_or_not_at_all(kept: Group, tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.write("", 1.8e9, journal.fresh(), taken("http://h0.example/1"))
    for number, one in enumerate(WRITERS):
        written.write(one, 1.8e9 + 1, taken(f"http://h{number}.example/2"))
    assert asyncio.run(read(kept, written.followed(), 1)) == {}
    asyncio.run(query(kept, "UPDATE uris SET status = 'Failed' WHERE uri LIKE '%/2'"))

    async def forget() -> Any:
        async with group.asked(kept) as db:
            return await recovery.forget_rows(db, [written.followed()])

    with written.without("writer.w2"), pytest.raises(Unavailable, match="mount the disk"):
        asyncio.run(forget())
    assert len(asyncio.run(query(kept, "SELECT 1 FROM uris"))) == 4
    assert [(one.cluster, one.uris) for one in asyncio.run(forget())] == [(JOB, 4)]
    assert asyncio.run(read(kept, written.followed(), 1)) == {}
    assert asyncio.run(differences(kept, written.followed())) == []


@pytest.mark.parametrize("version", [1, 2, 3])
def test_tables_of_an_older_version_are_refused_by_name_and_init_makes_the_rest(
    postgresql: PostgresqlServer, tmp_path: Path, version: int
) -> None:
    kept = asyncio.run(_made(postgresql, f"u{version}_{abs(hash(tmp_path))}"))

    async def older() -> None:
        connection = await asyncpg.connect(kept.centre.url)
        await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        await connection.execute(tables._TABLES)
        for step in range(2, version + 1):
            await connection.execute(tables._LATER[step])
        await connection.execute(f"INSERT INTO about VALUES ('version', '{version}'), ('group', 'web')")
        await connection.execute(
            "INSERT INTO clusters (cluster, launch, journal, read, tail, groups, behind) VALUES"
            " ('web-east', '20261129000000', 2, 77, 'tail', 5, 9);"
            "INSERT INTO hosts (host, surt, cluster, parsed) VALUES ('h.example', 'example,h,', 'web-east', 1);"
            "INSERT INTO uris (host, digest, cluster, crawl, uri, status, last_update, launch, journal)"
            " VALUES ('h.example', 'd', 'web-east', '', 'http://h.example/', 'Parsed', now(), '20261129000000', 1);"
            "INSERT INTO visits VALUES ('h.example', 'd', now(), 'Parsed', 200, '', '', 'w', 1, 'web-east',"
            " '20261129000000', 1);"
            "INSERT INTO journals VALUES ('web-east', '20261129000000', 1, 'cp00001-20261129000100')"
        )
        lock = "SELECT pg_advisory_lock(hashtext('warcmill-updater'), hashtext('web-east'))"
        await connection.execute(lock)
        with pytest.raises(
            NotReady, match=f"of version {version}, and this Warcmill's are of 4: warcmill group web init"
        ):
            await Centre.open(kept.centre, kept.name, JOB)
        with pytest.raises(Busy, match="as the tables change"):
            await group.make(kept)
        await connection.close()
        assert await group.make(kept)
        assert not await group.make(kept)
        centre = await Centre.open(kept.centre, kept.name, JOB)
        place = (await centre.places())[""]
        await centre.close()
        assert (place.launch, place.journal, place.read, place.tail) == ("20261129000000", 2, 77, b"tail")

    asyncio.run(older())
    status = asyncio.run(group.status(kept))[0]
    assert (status["behind"], status["groups"], status["uris"]["Parsed"]) == (9, 5, 1)  # type: ignore[index, call-overload]
    rows = asyncio.run(query(kept, "SELECT stage FROM visits JOIN journals USING (cluster, launch, writer, journal)"))
    assert [row["stage"] for row in rows] == ["cp00001-20261129000100"]
    asyncio.run(query(kept, "UPDATE about SET value = '5' WHERE name = 'version'"))
    with pytest.raises(BadConfig, match="install a newer one"):
        asyncio.run(group.status(kept))
