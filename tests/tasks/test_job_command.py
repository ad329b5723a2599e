"""`warcmill job`: what a person types, on a real socket with a real frontier behind it."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from configured import configured
from line import Line, line_at

from commands.main import main
from tasks.config.source import configuration
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
    configured(monkeypatch, made.config)
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

    def crawl() -> None:
        with folders.held(state):
            asyncio.run(run())

    thread = threading.Thread(target=crawl)
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
    configuration().set("warcmill", "jobs", "sftp://crawler01/jobs")
    assert main(["job", "daily", "state"]) == 3
    assert "is on another machine; a crawl is steered where it runs" in capsys.readouterr().err


RECOVER = b"""\
F+ http://a.example/1
Fe http://a.example/1
F+ dns:a.example P http://a.example/1
Fs dns:a.example P http://a.example/1
F+ http://a.example/robots.txt P http://a.example/1
F+ http://a.example/2 LL http://a.example/1
F+ http://b.example/3 L http://a.example/1
Fs http://a.example/1
Fx2 what
F+ ftp://a.example/
"""


@pytest.fixture
def engine(line: Line) -> None:
    line.config.write_text(f"{line.config.read_text()}\n[engine.own]\nkind=warcmill\njobs=daily\n")
    configuration().read([str(line.config)])


def documented(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, object]]:
    code, text = typed(capsys, *words, "--json")
    return code, json.loads(text)


@pytest.mark.usefixtures("engine", "crawl")
def test_a_frontier_goes_into_a_file_and_is_seen_when_it_comes_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(capsys, "add", "http://a.example/1", "http://a.example/2")[0] == 0
    for name in ("whole.jsonl", "whole.jsonl.gz"):
        path = tmp_path / name
        assert documented(capsys, "dump", str(path)) == (0, {"file": str(path), "waiting": 2, "visited": 0})
        assert path.read_bytes()[:2] == (b"\x1f\x8b" if name.endswith(".gz") else b'{"')
        code, found = documented(capsys, "load", str(path))
        assert (code, found["answers"]) == (0, {"seen": 2})
        assert main(["job", "daily", "dump", str(path)]) == 1
        assert "a snapshot needs a new name" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".whole")] == []


@pytest.mark.usefixtures("engine", "crawl")
def test_a_recovery_log_is_loaded_and_its_bad_lines_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "frontier.recover.gz"
    path.write_bytes(gzip.compress(RECOVER))
    code, found = documented(capsys, "load", str(path), "--dry-run")
    assert (code, found["waiting"], found["visited"], found["answers"]) == (1, 3, 1, {})
    assert documented(capsys, "list") == (0, {"next": 0, "uris": []})
    code, text = typed(capsys, "load", str(path))
    assert code == 1
    assert f"{path}, line 10: ftp: is not fetched, only data, dns, http, https" in text
    assert f"{path}, line 9: " in text
    assert "3 lines are left out: names and robots.txt, which the crawl asks for itself" in text
    assert text.endswith("2 new, 0 seen, 0 refused, 1 visited, 2 bad lines")
    assert typed(capsys, "get", "http://a.example/1")[1].splitlines()[-2:] == [
        "status: Parsed", "uri: http://a.example/1"
    ]  # fmt: skip
    assert [(one["uri"], one.get("hops")) for one in documented(capsys, "list")[1]["uris"]] == [
        ("http://a.example/2", "LL"), ("http://b.example/3", "L")
    ]  # fmt: skip


@pytest.mark.usefixtures("engine", "crawl")
@pytest.mark.parametrize(("name", "data", "bad", "code"), [
    ("urls.txt", b"# seeds\n\nhttps://a.example/\nhttps://a.example/#part\nnot a url\n\xff\xfe\xfa\n", [5, 6], 1),
    ("urls.txt", b"\xef\xbb\xbfhttps://a.example/\n", [], 0),
    ("dump.jsonl", b'{"dump": 2}\n{"uri": "http://a.example/", "queue": "a"}\n{"uri": 1}\n{"no": 1}\n', [1, 3, 4], 1),
    ("dump.jsonl", b'{"dump": 1}\n{"uri": "http://a.example/", "queue": "a.example", "crawl": ["x"]}\n', [2], 1),
    ("long.txt", b"http://a.example/" + b"x" * (1 << 20) + b"\nhttp://a.example/\n", [1], 1),
])  # fmt: skip
def test_bad_lines_are_left_out_by_number(
    name: str, data: bytes, bad: list[int], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(data)
    found = documented(capsys, "load", str(tmp_path / name))
    assert (found[0], [one["line"] for one in found[1]["bad"]]) == (code, bad)
    assert found[1]["answers"].get("new", 0) == min(1, found[1]["waiting"])


@pytest.mark.usefixtures("engine", "crawl")
@pytest.mark.parametrize(("name", "data", "why"), [
    ("cut.gz", gzip.compress(RECOVER * 1000)[:-20], "cannot be read after line"),
    ("urls.txt", gzip.compress(RECOVER), "it is packed by gzip; let its name end with .gz"),
    ("urls.gz", RECOVER, "it is not packed by gzip"),
    ("gone", None, "there is no such file"),
])  # fmt: skip
def test_a_file_that_cannot_be_read_whole_loads_nothing(
    name: str, data: bytes | None, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    assert main(["job", "daily", "load", str(tmp_path / name)]) == 1
    assert why in capsys.readouterr().err
    assert documented(capsys, "list") == (0, {"next": 0, "uris": []})


@pytest.mark.usefixtures("engine")
def test_without_a_crawl_nothing_takes_a_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "urls.txt").write_text("http://a.example/\n")
    assert main(["job", "daily", "load", str(tmp_path / "urls.txt")]) == 1
    assert "no crawl of it runs on this machine" in capsys.readouterr().err
    assert main(["job", "daily", "dump", str(tmp_path / "new")]) == 1
    assert "it has no frontier yet" in capsys.readouterr().err


@pytest.mark.usefixtures("engine")
def test_a_job_without_a_past_has_no_books(capsys: pytest.CaptureFixture[str]) -> None:
    for action, why in (("books", "no launch of it has left a journal"), ("rebuild", "which the next start puts in")):
        assert main(["job", "daily", action]) == 1
        assert why in capsys.readouterr().err


def test_another_engine_has_no_such_frontier(line: Line, capsys: pytest.CaptureFixture[str]) -> None:
    line.config.write_text(f"{line.config.read_text()}\n[engine.h3]\nurl=https://h3:8443\njobs=daily\nuser=a\n")
    configuration().read([str(line.config)])
    assert main(["job", "daily", "dump", "new"]) == 3
