"""A folder of WARCs that wget made: imported, found by a search, and replayed by pywb byte for byte."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import preloaded
import pytest

from servers import serving
from servers.serving import SECONDS, RunningServe

WGET = Path(__file__).parents[1] / "data" / "wget"


@dataclass(frozen=True)
class World:
    """A served line with one imported launch."""

    base: Path
    launch: str
    server: RunningServe

    def found(self, words: str) -> list[dict[str, Any]]:
        """What a search finds, as programs get it."""
        address = f"{self.server.address}search?q={words}&format=json"
        with urlopen(Request(address, headers={"Authorization": f"Bearer {self.server.token}"})) as answer:
            return list(json.load(answer)["found"])

    def captures(self) -> list[dict[str, str]]:
        """Every capture that the current CDX has."""
        (path,) = self.base.glob("index/versions/cdx/current/*.cdx.gz")
        lines = (line.split(" ", 2) for line in gzip.decompress(path.read_bytes()).decode().splitlines())
        return [json.loads(text) | {"time": time} for _, time, text in lines]

    def record(self, capture: dict[str, str]) -> bytes:
        """The WARC record of a capture."""
        stored = (self.base / "store/warcs" / capture["filename"]).read_bytes()[int(capture["offset"]) :]
        part = stored[: int(capture["length"])]
        return gzip.decompress(part) if capture["filename"].endswith(".gz") else part


def got(address: str) -> bytes:
    """The body of an answer, of whatever status: wget has kept pages that were not found."""
    try:
        with urlopen(address, timeout=SECONDS) as answer:
            return bytes(answer.read())
    except HTTPError as error:
        return error.read()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The folder that wget left, after the import and the scans that an operator types."""
    base = tmp_path_factory.mktemp("imported") / "line"
    environment = {**os.environ, "LUIGI_CONFIG_PATH": str(base / "luigi.cfg")}

    def warcmill(*words: str) -> str:
        done = preloaded.run("commands.main", *words, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    warcmill("init", str(base))
    config = base / "luigi.cfg"
    launch = json.loads(warcmill("import", str(WGET), "--job", "wget", "--json"))["launch"]
    for _ in range(2):  # the second publishes what the first has indexed
        warcmill("scan", launch.partition("/")[2][:4])
    serving.configure(config)
    with serving.serving(config, base / "serve.log") as server:
        server.wait()
        yield World(base, launch, server)


def test_every_capture_of_wget_is_replayed_byte_for_byte(world: World) -> None:
    captures = [one for one in world.captures() if one["url"].startswith("http")]
    assert {Path(one["filename"]).suffix for one in captures} == {".gz", ".warc"}, "of both WARCs"
    for capture in captures:
        body = world.record(capture).split(b"\r\n\r\n", 2)[2].removesuffix(b"\r\n\r\n")
        address = world.server.replay_of(capture["url"], capture["time"])
        assert got(address.replace(f"/{capture['time']}/", f"/{capture['time']}id_/")) == body, capture


def test_a_search_finds_its_pages_and_leads_to_their_replay(world: World) -> None:
    found = world.found("hello")
    assert found
    assert all(one["warc"].startswith(world.launch) for one in found)
    for one in found:
        with urlopen(world.server.replay_of(one["url"], one["time"]), timeout=SECONDS) as answer:
            assert answer.status == 200
