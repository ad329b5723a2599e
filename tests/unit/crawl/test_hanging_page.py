"""A crawl ends and continues while a worker process hangs at a page: by signals, limits and kills. No worker is left,
and the page is named in the end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crawls import crawled, hanging_reader
from sites.several_hosts import Page, page, serve

from warcmill.crawl.engine import OUTPUT, WarcmillEngine
from warcmill.crawl.launch import folders, job_log
from warcmill.crawl.launch.job_log import Last
from warcmill.model import Launch

LOST = "linksLost:timeout:_over_1_s"
TOML = """\
allow_private = ["127.0.0.0/8"]
no_delay = true
robots = "ignore"
resolve = ["a.example=127.0.0.1"]
"""


@pytest.fixture
def port() -> Iterator[int]:
    large = b"<p>words</p>" * 12_000 + hanging_reader.HANGS + b"<a href=/end>x</a>"
    site = {("a.example", "/"): page(["/hangs", "/small"]), ("a.example", "/hangs"): Page(large)}
    with serve({**site, ("a.example", "/small"): page([])}) as port:
        yield port


class Hanging:
    """A job whose crawl reaches the page at which its worker hangs."""

    def __init__(self, folder: Path, port: int, patch: pytest.MonkeyPatch) -> None:
        self.folder, self._port, self._patch = folder, port, patch
        self.engine = WarcmillEngine(crawled.places(folder))
        usual = WarcmillEngine._words
        script = [str(Path(hanging_reader.__file__))]
        patch.setattr(WarcmillEngine, "_words", lambda *words: [usual(*words)[0], *script, *usual(*words)[4:]])

    def start(self, wall: int, patience: float, limits: str = "", checkpoint: str = "") -> int:
        """Crawl until it hangs; return the process that does."""
        self._patch.setenv("HANGING_WALL", str(wall))
        self._patch.setenv("HANGING_PATIENCE", str(patience))
        uri = f"http://a.example:{self._port}/"
        files = {
            "crawl.toml": TOML + limits,
            "seeds.txt": f"{uri}\n",
            "surts.txt": f"http://(example,a,:{self._port})/\n",
        }
        self.engine.configure("news", {name: text.encode() for name, text in files.items()})
        self.engine.start("news", checkpoint)
        found: list[int] = []
        until(lambda: bool(found.extend(workers_of(self.crawler)) or found))
        return found[0]

    def limit(self, limits: str) -> None:
        """Edit the job while it is crawled."""
        with (self.engine.places.job("news") / "crawl.toml").open("a") as file:
            file.write(limits)

    @property
    def crawler(self) -> int:
        """The crawler's process; 0 when it has ended."""
        holder = folders.holder(self.engine.places.state("news"))
        return holder.pid if holder else 0

    def ended(self) -> Last:
        """Wait until it has ended."""
        until(lambda: not self.engine.look("news").running)
        last = job_log.last(self.folder / "jobs/news")
        assert last
        assert (self.engine.places.state("news") / OUTPUT).read_text() == "", "no fault on the way"
        return last

    def notes(self) -> dict[str, tuple[str, ...]]:
        """What the logs of all launches note of each page."""
        launches = sorted(path.name for path in (self.folder / "output/logs/news").iterdir())
        lines = [line for name in launches for line in crawled.lines(self.folder, Launch("news", name))]
        return {crawled.plain(line.uri).removeprefix("http://a.example"): line.annotations for line in lines}

    def continues(self) -> None:
        """Continue from the newest checkpoint, and see the page named."""
        last = job_log.last(self.folder / "jobs/news")
        assert last
        worker = self.start(1, 20, checkpoint=last.checkpoint)
        assert self.ended().empty
        assert self.notes()["/hangs"][0] == LOST
        assert is_gone(worker)


@pytest.fixture
def hanging(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hanging]:
    made = Hanging(tmp_path, port, monkeypatch)
    yield made
    if pid := made.crawler:
        os.kill(pid, signal.SIGKILL)


def workers_of(crawler: int) -> list[int]:
    """The processes below one that hang."""
    found = [path for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [int(path.name) for path in found if (state := _state(path)) and state == (hanging_reader.NAME, crawler)]


def _state(path: Path) -> tuple[str, int] | None:
    """The name of a process, and its parent; None when it has ended."""
    try:
        name, _, rest = (path / "stat").read_text("utf-8", "replace").partition(" (")[2].rpartition(") ")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if rest[0] in "ZX" else (name, int(rest.split()[1]))


def is_gone(pid: int) -> bool:
    """Whether a process ends: the kernel may be about to end it."""
    until(lambda: _state(Path(f"/proc/{pid}")) is None)
    return True


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_crawl_when_the_page_has_had_its_time(hanging: Hanging, number: signal.Signals) -> None:
    worker = hanging.start(wall=1, patience=20)
    os.kill(hanging.crawler, number)
    last = hanging.ended()
    assert (last.word, last.empty, bool(last.checkpoint)) == ("FINISHED", False, True)
    assert hanging.notes()["/hangs"] == (LOST,)
    assert is_gone(worker)


def test_a_second_signal_ends_it_at_once_and_the_page_is_fetched_when_it_continues(hanging: Hanging) -> None:
    worker = hanging.start(wall=600, patience=600)
    crawler = hanging.crawler
    for _ in range(2):
        os.kill(crawler, signal.SIGTERM)
        until(lambda: not hanging.crawler or hanging.engine.look("news").words in ("STOPPING", "FINISHED"))
    assert hanging.ended().word == "FINISHED"
    assert "/hangs" not in hanging.notes()
    assert is_gone(worker)
    hanging.continues()


def test_a_limit_of_time_ends_it_and_the_page_is_fetched_when_it_continues(hanging: Hanging) -> None:
    worker = hanging.start(wall=600, patience=0.1)
    hanging.limit("[limits]\nseconds = 1\n")  # only now: before, a slow machine might not get as far as the page
    assert hanging.ended().word == "FINISHED"
    assert "/hangs" not in hanging.notes()
    assert is_gone(worker)
    hanging.continues()


def test_a_limit_of_documents_ends_it_when_the_page_has_had_its_time(hanging: Hanging) -> None:
    worker = hanging.start(wall=1, patience=20, limits="[limits]\ndocuments = 2\n")
    assert hanging.ended().word == "FINISHED"
    assert hanging.notes()["/hangs"] == (LOST,)
    assert "/small" not in hanging.notes()
    assert is_gone(worker)


def test_a_crawl_that_is_killed_leaves_no_worker_and_continues_from_its_books(hanging: Hanging) -> None:
    worker = hanging.start(wall=600, patience=600)
    os.kill(hanging.crawler, signal.SIGKILL)
    assert is_gone(worker)
    until(lambda: not hanging.engine.look("news").running)
    hanging.engine.stop("news")
    assert "/hangs" not in hanging.notes()
    hanging.continues()
