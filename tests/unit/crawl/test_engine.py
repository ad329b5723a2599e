"""The built-in crawler as an engine: a detached process that starts, checkpoints, stops, dies and goes on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crawls import crawled
from sites.several_hosts import page, serve

from warcmill.crawl.engine import WarcmillEngine
from warcmill.crawl.launch import job_log
from warcmill.errors import BadConfig, Conflict, NotReady, Unavailable
from warcmill.layout import SENTINEL
from warcmill.model import Launch

PAGES = 400


@pytest.fixture
def port() -> Iterator[int]:
    site = {("a.example", f"/{n or ''}"): page([f"/{2 * n + 1}", f"/{2 * n + 2}"]) for n in range(PAGES)}
    with serve(site) as port:
        yield port


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[WarcmillEngine]:
    made = WarcmillEngine(crawled.places(tmp_path))
    yield made
    if made.look("news").running:
        made.stop("news")


def files(port: int, more: str = "") -> dict[str, bytes]:
    toml = f"""
        allow_private = ["127.0.0.0/8"]
        no_delay = true
        resolve = ["a.example=127.0.0.1"]
        {more}
    """
    return {
        "crawl.toml": toml.encode(),
        "seeds.txt": f"http://a.example:{port}/\n".encode(),
        "surts.txt": f"http://(example,a,:{port})/\n".encode(),
    }


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def done(engine: WarcmillEngine) -> int:
    found = engine.progress("news")
    return found.done if found else 0


def end(engine: WarcmillEngine, folder: Path, number: signal.Signals) -> None:
    """Send its process a signal, and wait until it has ended."""
    os.kill(json.loads((folder / "jobs/news/state/lock").read_text())["pid"], number)
    until(lambda: not engine.look("news").running)


def killed(engine: WarcmillEngine, port: int, folder: Path) -> str:
    """Kill a launch that has crawled something; return its id."""
    engine.configure("news", files(port))
    launch = engine.start("news")
    until(lambda: done(engine) > 20)
    end(engine, folder, signal.SIGKILL)
    return launch


def newest(folder: Path) -> job_log.Last:
    last = job_log.last(folder / "jobs/news")
    assert last
    return last


def damage_the_database(folder: Path) -> None:
    database = folder / "jobs/news/state/books.sqlite"
    Path(f"{database}-wal").unlink(missing_ok=True)
    database.write_bytes(b"\xff" * 4096)


def lose_the_database(tmp_path: Path) -> None:
    for path in (tmp_path / "jobs/news/state").glob("books.sqlite*"):
        path.unlink()


def empty_the_database(tmp_path: Path) -> None:
    lose_the_database(tmp_path)
    (tmp_path / "jobs/news/state/books.sqlite").touch()


def all_lines(folder: Path) -> list[str]:
    launches = sorted(path.name for path in (folder / "output/logs/news").iterdir())
    return [crawled.plain(line.uri) for launch in launches for line in crawled.lines(folder, Launch("news", launch))]


def test_a_job_is_started_and_stopped_and_resumed_from_its_checkpoint(
    engine: WarcmillEngine, port: int, tmp_path: Path
) -> None:
    assert engine.look("news").launch_id == ""
    assert engine.progress("news") is None
    engine.configure("news", files(port))
    first = engine.start("news")
    seen = engine.look("news")
    assert (seen.running, seen.launch_id, seen.words) == (True, first, "RUNNING")
    until(lambda: done(engine) > 20)
    with pytest.raises(Conflict, match=first):
        engine.start("news")
    stage = engine.checkpoint("news")
    assert stage.startswith("cp00001-")
    engine.stop("news")
    last = newest(tmp_path)
    assert (last.launch, last.word, last.empty) == (first, "FINISHED", False)
    assert last.checkpoint.startswith("cp00002-")
    engine.configure("news", files(port, "[limits]\n documents = 30"))
    second = engine.start("news", last.checkpoint)
    assert second > first
    until(lambda: not engine.look("news").running)
    found = all_lines(tmp_path)
    assert len(found) == len(set(found)), "nothing was fetched twice"
    third = job_log.last(tmp_path / "jobs/news")
    assert third
    assert third.checkpoint.startswith("cp00003-"), "it counts on"


def test_a_launch_whose_process_is_killed_is_put_in_order_by_stop_and_goes_on(
    engine: WarcmillEngine, port: int, tmp_path: Path
) -> None:
    launch = killed(engine, port, tmp_path)
    seen = engine.look("news")
    assert (seen.died, seen.launch_id) == (True, launch)
    engine.stop("news")
    last = newest(tmp_path)
    assert (last.word, last.launch) == ("FINISHED", launch)
    engine.configure("news", files(port, "[limits]\n documents = 20"))
    engine.start("news", last.checkpoint)
    until(lambda: not engine.look("news").running)
    found = all_lines(tmp_path)
    assert len(found) == len(set(found)) > 40
    assert not list((tmp_path / "output/warcs/news").rglob("*.open"))


def test_a_start_puts_a_dead_launch_in_order_too(engine: WarcmillEngine, port: int, tmp_path: Path) -> None:
    engine.configure("news", files(port))
    first = engine.start("news")
    until(lambda: done(engine) > 5)
    end(engine, tmp_path, signal.SIGKILL)
    second = engine.start("news")
    assert second > first
    assert f"FINISHED {first}" in (tmp_path / "jobs/news/job.log").read_text()


@pytest.mark.parametrize("removed", [True, False])
def test_a_dead_launch_whose_papers_were_removed_or_damaged_is_put_in_order(
    engine: WarcmillEngine, port: int, tmp_path: Path, removed: bool
) -> None:
    launch = killed(engine, port, tmp_path)
    own = tmp_path / "jobs/news" / launch
    shutil.rmtree(own) if removed else (own / "continues").write_bytes(b"\xff\xfe")
    engine.stop("news")
    last = newest(tmp_path)
    assert (last.word, last.launch, last.checkpoint[:7]) == ("FINISHED", launch, "cp00001")
    assert not list((tmp_path / "output/warcs/news").rglob("*.open"))


@pytest.mark.parametrize("damage", [damage_the_database, lose_the_database, empty_the_database])
def test_a_database_that_is_damaged_or_lost_is_made_again_from_the_journal(
    engine: WarcmillEngine, port: int, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    launch = killed(engine, port, tmp_path)
    damage(tmp_path)
    engine.stop("news")
    last = newest(tmp_path)
    assert (last.word, last.launch) == ("FINISHED", launch)
    assert "it was made again from the journal" in "".join(
        path.read_text() for path in (tmp_path / "output/logs/news" / launch).glob("alerts.log*")
    )
    engine.configure("news", files(port, "[limits]\n documents = 20"))
    engine.start("news", last.checkpoint)
    until(lambda: not engine.look("news").running)
    found = all_lines(tmp_path)
    assert len(found) == len(set(found)) > 40


@pytest.mark.parametrize("with_its_folder", [False, True])
def test_a_lost_warc_is_named_and_what_it_held_is_fetched_again(
    engine: WarcmillEngine, port: int, tmp_path: Path, with_its_folder: bool
) -> None:
    launch = killed(engine, port, tmp_path)
    (warc,) = (tmp_path / "output/warcs/news" / launch).iterdir()
    shutil.rmtree(warc.parent) if with_its_folder else warc.unlink()
    with pytest.raises(
        NotReady, match=r"found no file\. Put the file back; or, if it is lost, move .*books\.sqlite away"
    ):
        engine.stop("news")
    lose_the_database(tmp_path)
    engine.stop("news")
    last = newest(tmp_path)
    assert (last.word, last.launch) == ("FINISHED", launch)
    engine.configure("news", files(port, "[limits]\n documents = 30"))
    engine.start("news", last.checkpoint)
    until(lambda: not engine.look("news").running)
    assert "http://a.example/1" in all_lines(tmp_path)


def test_sigterm_ends_with_a_checkpoint(engine: WarcmillEngine, port: int, tmp_path: Path) -> None:
    engine.configure("news", files(port))
    engine.start("news")
    until(lambda: done(engine) > 5)
    end(engine, tmp_path, signal.SIGTERM)
    last = newest(tmp_path)
    assert last.word == "FINISHED"
    assert last.checkpoint


def test_a_launch_of_a_job_that_visits_again_follows_the_one_before_and_nothing_is_visited_early(
    engine: WarcmillEngine, port: int, tmp_path: Path
) -> None:
    again = files(port, "[recrawl]\n age = 86400")
    engine.configure("news", files(port))
    assert engine.follows("news") == ""
    engine.configure("news", again)
    assert engine.follows("news") == "", "it was never launched"
    first = engine.start("news")
    until(lambda: done(engine) > 20)
    end(engine, tmp_path, signal.SIGKILL)
    assert engine.follows("news") == first
    with pytest.raises(Conflict, match="cannot be followed"):
        engine.start("news", follows="20260101000000")
    second = engine.start("news", follows=first)
    until(lambda: done(engine) > 20)
    assert engine.checkpoint("news").startswith("cp00001-"), "a launch that follows counts from 1"
    engine.stop("news")
    assert (tmp_path / "jobs/news" / second / "follows").read_text() == f"{first}\n"
    found = [uri for uri in all_lines(tmp_path) if not uri.endswith("/robots.txt") and not uri.startswith("dns:")]
    assert len(found) == len(set(found)) > 40, "what was visited waits for its time"
    engine.configure("news", files(port, "[limits]\n documents = 5"))
    assert engine.follows("news") == ""


@pytest.mark.parametrize("settings", ["[recrawl]\n age = 86400", "endless = true"])
def test_a_launch_that_follows_and_has_lost_its_database_keeps_the_times_of_the_one_before(
    engine: WarcmillEngine, port: int, tmp_path: Path, settings: str
) -> None:
    engine.configure("news", files(port, settings))
    first = engine.start("news")
    until(lambda: done(engine) > 20)
    engine.stop("news")
    engine.start("news", follows=first)
    until(lambda: done(engine) > 20)
    end(engine, tmp_path, signal.SIGKILL)
    damage_the_database(tmp_path)
    engine.start("news", follows=engine.follows("news"))
    until(lambda: done(engine) > 20)
    engine.stop("news")
    found = [uri for uri in all_lines(tmp_path) if not uri.endswith("/robots.txt") and not uri.startswith("dns:")]
    assert len(found) == len(set(found)) > 60


def test_a_damaged_checkpoint_is_passed_over_and_named_where_an_operator_looks(
    engine: WarcmillEngine, port: int, tmp_path: Path
) -> None:
    engine.configure("news", files(port))
    engine.start("news")
    until(lambda: done(engine) > 5)
    first = engine.checkpoint("news")
    engine.stop("news")
    last = newest(tmp_path)
    assert engine.resumable("news", [last.checkpoint, first]) == last.checkpoint
    number, size = engine.checkpoints("news")
    damaged = tmp_path / "jobs/news/checkpoints" / last.checkpoint / "books.sqlite"
    assert (number, size > damaged.stat().st_size) == (2, True)
    os.truncate(damaged, 4096)
    assert engine.resumable("news", [last.checkpoint, first]) == first
    assert engine.resumable("news", [last.checkpoint]) == ""
    engine.configure("news", files(port, "[limits]\n documents = 5"))
    second = engine.start("news", first)
    until(lambda: not engine.look("news").running)
    said = f"checkpoint {last.checkpoint}: books.sqlite should have"
    assert f"WARNING {said}" in (tmp_path / "jobs/news/job.log").read_text()
    alerts = list((tmp_path / "output/logs/news" / second).glob("alerts.log*"))
    assert said in "".join(path.read_text() for path in alerts)


def test_faults_are_reported_before_anything_is_begun(engine: WarcmillEngine, port: int, tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"crawl\.toml wrkers.*did you mean workers"):
        engine.configure("news", files(port, "wrkers = 3"))
    with pytest.raises(BadConfig, match="has none"):
        engine.start("news")
    engine.configure("news", files(port))
    with pytest.raises(NotReady, match="no such checkpoint"):
        engine.start("news", "cp00001-20261121081902")
    with pytest.raises(NotReady):
        engine.checkpoint("news")
    (tmp_path / "output" / SENTINEL).unlink()
    with pytest.raises(Unavailable, match="output"):
        engine.start("news")
    assert engine.look("news").launch_id == ""


def test_it_says_how_many_jobs_it_has(engine: WarcmillEngine, port: int) -> None:
    assert "0 jobs" in engine.about()
    engine.configure("news", files(port))
    assert "1 jobs" in engine.about()
