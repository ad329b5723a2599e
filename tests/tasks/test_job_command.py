"""`warcmill job`: what a person types, on a real socket with a real frontier behind it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from line import Line, line_at
from luigi.configuration import LuigiConfigParser

from commands.main import main
from warcmill.crawl.control.control import Control
from warcmill.crawl.control.frontier import FrontierControl
from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.crawl.launch import folders
from warcmill.model import Json


class Crawl(FrontierControl):
    """A crawl that fetches nothing."""

    def __init__(self, frontier: SqliteFrontier, stopped: asyncio.Event) -> None:
        super().__init__(frontier)
        self._stopped, self._paused = stopped, False

    async def state(self) -> Mapping[str, Json]:
        return {"state": "PAUSED" if self._paused else "RUNNING", "done": 5000, "statuses": {"200": 9, "404": 1},
                "continues": "", "refused": {}}  # fmt: skip

    async def pause(self) -> None:
        self._paused = True

    async def proceed(self) -> None:
        self._paused = False

    async def checkpoint(self) -> str:
        return "cp00001-20261121081902"

    async def stop(self) -> None:
        self._stopped.set()


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Line:
    made = line_at(tmp_path)
    monkeypatch.setattr(LuigiConfigParser, "_instance", LuigiConfigParser())
    LuigiConfigParser.instance().read([str(made.config)])
    return made


@pytest.fixture
def crawl(line: Line) -> Iterator[None]:
    """A crawl of the job `daily` that is running."""
    state = folders.state_of(line.folders["jobs"], "daily")
    state.mkdir(parents=True)
    listens = threading.Event()

    async def run() -> None:
        stopped = asyncio.Event()
        frontier = SqliteFrontier(state / "books.sqlite")
        control = Control(state / folders.CONTROL, Crawl(frontier, stopped))
        await control.open()
        listens.set()
        await stopped.wait()
        await asyncio.sleep(0.05)  # for the answer to be sent
        await control.close()
        await frontier.close()

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    assert listens.wait(300)
    yield
    main(["job", "daily", "stop"])
    thread.join(300)
    assert not thread.is_alive()


def typed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["job", "daily", *words])
    return code, capsys.readouterr().out.rstrip("\n")


@pytest.mark.usefixtures("crawl")
def test_a_crawl_is_looked_at_paused_and_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(capsys, "state") == (0, "done: 5000\nstate: RUNNING\nstatuses: 200 9, 404 1")
    assert typed(capsys, "pause") == (0, "daily is paused; next: warcmill job daily resume")
    assert json.loads(typed(capsys, "state", "--json")[1]) == {
        "done": 5000, "state": "PAUSED", "statuses": {"200": 9, "404": 1}, "continues": "", "refused": {},
    }  # fmt: skip
    assert typed(capsys, "resume") == (0, "daily continues")
    assert typed(capsys, "checkpoint") == (0, "daily has taken cp00001-20261121081902")


@pytest.mark.usefixtures("crawl")
def test_uris_and_sites_are_steered(capsys: pytest.CaptureFixture[str]) -> None:
    one, two = "https://a.example/1", "https://a.example/2"
    assert typed(capsys, "add", one, two, "ftp://a.example/") == (
        1, (f"new     {one}\nnew     {two}\n"
        "refused ftp://a.example/: ftp: is not fetched, only data, dns, http, https"),
    )  # fmt: skip
    assert typed(capsys, "list", "--limit", "1") == (
        0, f"Scheduled   {one}\nmore: warcmill job daily list --after 1"
    )  # fmt: skip
    assert typed(capsys, "suspend", one) == (0, f"{one} is suspended")
    assert typed(capsys, "suspend", "https://never.example/") == (1, "https://never.example/: nothing of it waits")
    assert typed(capsys, "resume", "--site", "a.example") == (0, "a.example is resumed")
    assert typed(capsys, "rate", "--site", "a.example", "--hits", "10", "--window", "60") == (0, "the rate is set")
    assert typed(capsys, "rate", "--site", "a.example", "--none") == (0, "the rate is set")
    assert typed(capsys, "get", one)[1].splitlines()[-2:] == ["status: Suspended", f"uri: {one}"]
    assert typed(capsys, "get", "https://b.example/") == (1, "https://b.example/: the crawl has never taken it")
    assert typed(capsys, "remove", "--site", "a.example") == (0, "a.example: 2 removed")
    assert json.loads(typed(capsys, "list", "--json")[1]) == {"next": 0, "uris": []}


@pytest.mark.usefixtures("line")
def test_without_a_crawl_the_answer_is_no(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", "daily", "state"]) == 1
    assert (
        "warcmill: job daily is not ready: no crawl of it runs on this machine; nothing listens on"
        in capsys.readouterr().err
    )


@pytest.mark.usefixtures("line")
@pytest.mark.parametrize("words", [
    [], ["reboot"], ["suspend"], ["suspend", "https://a.example/", "--site", "a"], ["add"], ["list", "--limit", "x"],
])  # fmt: skip
def test_wrong_usage(words: list[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(["job", "daily", *words])
    assert error.value.code == 2


def test_a_job_whose_files_are_elsewhere_is_steered_there(line: Line, capsys: pytest.CaptureFixture[str]) -> None:
    LuigiConfigParser.instance().set("warcmill", "jobs", "sftp://crawler01/jobs")
    assert main(["job", "daily", "state"]) == 3
    assert "is on another machine; a crawl is steered where it runs" in capsys.readouterr().err
