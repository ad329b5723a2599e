"""The page on crawling with many machines is followed as printed, with a Redis and a site on loopback and a worker."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from operating.documented import PAGES, PRINTED, Printed, is_as_shown, shell
from sites.several_hosts import page, serve

from servers.redis import RedisServer

PAGE, SITE, NUMBER = "start/crawl-with-many-machines.md", "https://www.example.org/", 80
HERE = "--allow-private 127.0.0.0/8 --resolve www.example.org=127.0.0.1 --config"
SETTINGS = "hops = 200\n[politeness]\nfactor = 0\nleast = 0.1\nmost = 0.1\n"  # so that both take part
TYPED = ("mkdir ", "warcmill init", "warcmill crawl", "warcmill reconcile")
SECONDS = 300


class Followed:
    """The page's `/srv/archive` and `/srv/w2` below a folder of the test's own, its Redis and its site."""

    def __init__(self, base: Path, redis: RedisServer, port: int) -> None:
        self.base, self.port, self._url = base, port, f"{redis.url}?prefix=page"
        self.archive, self.config = base / "archive", base / "archive" / "luigi.cfg"
        (base / "settings.toml").write_text(SETTINGS)

    def here(self, text: str) -> str:
        """The page's words, with its folders, Redis and site put where this test has them."""
        text = text.replace("/srv/", f"{self.base}/").replace("redis://redis.example:6379/0", self._url)
        more = f" {HERE} {self.base}/settings.toml"
        return text.replace(SITE, f"http://www.example.org:{self.port}/{more}")

    def run(self, command: Printed) -> None:
        """Run a command of the page, and compare what it prints."""
        done = shell(self.here(command.command), self.archive if self.archive.exists() else self.base, self.config)
        assert done.returncode == 0, f"{command.text}\n{done.stdout}"
        printed = done.stdout.replace(f"{self.base}/", "/srv/")
        assert is_as_shown(printed, command.shown), f"{command.text}\n{printed}\nThe page:\n{command.shown}"

    def begin(self, command: Printed) -> subprocess.Popen[bytes]:
        """Begin a worker by a command of the page."""
        words = [sys.executable, "-m", "commands.main", *shlex.split(self.here(command.command))[1:]]
        with (self.base / "worker.log").open("ab") as log:
            return subprocess.Popen(words, stdout=log, stderr=log)


@pytest.fixture
def followed(redis: RedisServer, tmp_path: Path) -> Iterator[Followed]:
    paths = [f"/{n or ''}" for n in range(NUMBER)]
    web = {("www.example.org", path): page(paths[2 * n + 1 : 2 * n + 3]) for n, path in enumerate(paths)}
    with serve(web) as port:
        yield Followed(tmp_path, redis, port)


def test_the_page_is_followed_from_an_empty_folder(followed: Followed) -> None:
    commands = [one for one in PRINTED if one.page == PAGE]
    # The others are of requests: tests/services/test_requests_redis.py and test_requests_elsewhere.py have their keys.
    added, of_requests, _ = re.findall(r"^```ini\n(.*?)^```$", PAGES[PAGE], re.DOTALL | re.MULTILINE)
    assert of_requests.startswith("[warcmill]\nstate=")
    assert "[requests]\njob=ondemand\nbus=kafka://" in of_requests
    worker = None
    try:
        for command in commands:
            if command.bare.startswith("warcmill run worker"):
                worker = followed.begin(command)
            elif command.bare.startswith(TYPED):
                followed.run(command)
            if command.bare.startswith("warcmill init /srv/archive"):
                with followed.config.open("a") as config:
                    config.write(f"\n{followed.here(added)}")
        assert worker
        worker.terminate()
        assert worker.wait(SECONDS) == 0, (followed.base / "worker.log").read_text()
    finally:
        if worker:
            worker.kill()
    logs = [*followed.base.rglob("logs/news/*/crawl.log")]
    logged = [[line.split()[3] for line in path.read_text().splitlines()] for path in logs]
    pages = [[uri for uri in uris if f":{followed.port}/" in uri and "robots" not in uri] for uris in logged]
    assert len(pages) == 2
    assert all(pages), "both have crawled"
    assert max(Counter(chain.from_iterable(pages)).values()) == 1, logged
    assert sum(map(len, pages)) == NUMBER, logged
    assert len(list((followed.archive / "store/warcs/news").rglob("*.warc.gz"))) == 2
