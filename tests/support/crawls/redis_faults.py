"""Bad days of a Redis under a crawl, by chance: killed, emptied, set back, full, read-only, slow, its scripts lost;
a key of another type; the crawler killed, alone or with it. No page may be lost, and the books must be right.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from crawls.redis_crawls import DEADLINE, HOSTS, JOB, Crawl, site
from redis import Redis
from redis.exceptions import RedisError

from servers.redis import RedisServer
from warcmill.crawl.launch.folders import held
from warcmill.crawl.launch.repair import put_in_order
from warcmill.errors import NotReady

PAGES, BETWEEN = 40, 8  # of each host; lines of crawl.log between two faults, unless it takes longer than a moment
MOMENT = 0.4  # seconds


class BadDays:
    """The faults of one seed, over crawls one after the other; `way`: another URL by which they reach Redis. `met`
    counts the faults by kind."""

    def __init__(self, server: RedisServer, folder: Path, seed: int, way: str = "") -> None:
        self.met = Counter[str]()
        self._way = way or server.url
        self._server, self._folder, self._chance = server, folder, random.Random(seed)
        self._kinds: dict[str, Callable[[], None]] = {
            "killed": self._kill, "emptied": self._empty, "set back": self._set_back, "full": self._full,
            "read-only": self._read_only, "slow": self._slow, "scripts forgotten": self._forget_scripts,
            "another type": self._another_type, "crawler killed": self._kill_crawler, "both killed": self._kill_both,
        }  # fmt: skip

    def run(self, number: int) -> list[str]:
        """Meet so many faults; return what is wrong with the crawls."""
        wrong: list[str] = []
        while self.met.total() < number and not wrong:
            wrong = self._crawl(number)
        return wrong

    def _crawl(self, number: int) -> list[str]:
        name = f"bad-days-{self.met.total()}"
        folder = self._folder / name
        folder.mkdir()
        with site(PAGES) as port:
            self._of = Crawl(folder, port, self._server, name)
            self._of.url = f"{self._way}?prefix={name}"
            self._process = self._of.begin()
            try:
                self._copy: Path | None = None
                while self.met.total() < number and self._goes_on():
                    kind = self._chance.choices(list(self._kinds), [4] * 7 + [1] * 3)[0]
                    self.met[kind] += 1
                    self._kinds[kind]()
                    self._client().close()
                return self._end()
            finally:
                self._process.kill()
                self._process.wait()

    def _goes_on(self) -> bool:
        """Wait until some lines more are there, or a moment is over; False when the crawl is about to end."""
        before, deadline = self._of.lines(), time.monotonic() + MOMENT
        while time.monotonic() < deadline and self._of.lines() < before + BETWEEN:
            time.sleep(0.02)
        if self._process.poll() is not None and not (self._of.last and self._of.last.empty and self._of.last.ended):
            self._again()
        return self._of.lines() < len(HOSTS) * PAGES

    def _again(self) -> None:
        """Start the crawl again; as an operator does, who rebuilds a Redis that has lost a launch."""
        places = self._of.places
        with held(places.state(JOB)):
            try:
                asyncio.run(put_in_order(places, JOB))
            except NotReady as error:
                if "rebuild" not in str(error):
                    raise
        if self._of.last and not self._of.last.ended:
            assert self._of.rebuild() == []
        self._process = self._of.begin()

    def _end(self) -> list[str]:
        while self._process.wait(DEADLINE) != 0:
            before = self._of.lines()
            self._again()
            if self._process.wait(DEADLINE) != 0 and self._of.lines() == before:
                return [f"it ends with an error: {self._of.told()[-600:]}"]
        found = self._of.books()
        books = [f"{name}: {one}" for name in ("differences", "miscounted", "unread") for one in getattr(found, name)]
        return [*books, *self._of.lost_or_open(PAGES)]

    def _client(self) -> Redis:
        return Redis(port=self._server.port)

    def _kill(self) -> None:
        self._server.kill()
        time.sleep(self._chance.random() / 5)
        self._server.start()

    def _empty(self) -> None:
        self._client().flushall()

    def _set_back(self) -> None:
        """Bring back the copy that was made before; and make one."""
        self._server.stop()
        there = self._server.folder / "appendonlydir"
        if self._copy:
            shutil.rmtree(there)
            shutil.copytree(self._copy, there)
        else:
            self._copy = self._of.folder / "older"
            shutil.copytree(there, self._copy)
        self._server.start()

    def _full(self) -> None:
        self._for_a_moment(("maxmemory", "1"), ("maxmemory", "0"))

    def _for_a_moment(self, on: tuple[str, str], off: tuple[str, str]) -> None:
        client = self._client()
        client.config_set(*on)
        time.sleep(self._chance.random() / 4)
        client.config_set(*off)

    def _read_only(self) -> None:
        client = self._client()
        client.replicaof("127.0.0.1", "1")
        time.sleep(self._chance.random() / 4)
        client.replicaof("NO", "ONE")

    def _slow(self) -> None:
        self._client().client_pause(round(self._chance.random() * 400))

    def _forget_scripts(self) -> None:
        self._client().script_flush()

    def _another_type(self) -> None:
        """A key that somebody else has written: the crawl ends, with a message; the key is removed."""
        client, keys = self._client(), f"{self._of.name}:{JOB}:about"
        with suppress(RedisError):
            client.set(keys, "not ours")  # at once: a key that is gone is another fault
        self._process.wait(DEADLINE)
        ends = self._of.told()
        assert "is not ours" in ends or "rebuild" in ends, ends  # the latter of a fault before, which it saw just now
        client.delete(*client.keys(f"{self._of.name}:*"))
        self._again()

    def _kill_crawler(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._again()

    def _kill_both(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._server.kill()
        self._process.wait()
        self._server.start()
        self._again()
