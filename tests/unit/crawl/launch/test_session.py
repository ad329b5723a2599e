"""A launch as it is reached from outside: a disk that goes away, a pause, a stop, by the socket."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from crawls import crawled
from msgspec.structs import replace
from sites.several_hosts import page, serve

from warcmill.crawl.control import control
from warcmill.crawl.job.job import Ceilings, End
from warcmill.crawl.launch import folders, session
from warcmill.crawl.launch.folders import CONTROL
from warcmill.crawl.launch.launch import Running, open_launch
from warcmill.crawl.launch.session import Session
from warcmill.errors import BadInput, Conflict, Unavailable, WarcmillError
from warcmill.formats import surt
from warcmill.layout import SENTINEL
from warcmill.model import Json, Launch, Stage

PAGES = 60
Act = Callable[[Session, Path], Awaitable[None]]


def run(tmp_path: Path, act: Act, pages: int = PAGES) -> End:
    """Crawl a site in a session, while `act` acts on it."""
    site = {("a.example", f"/{n or ''}"): page([f"/{m}" for m in (2 * n + 1, 2 * n + 2) if m < pages])
            for n in range(pages)}  # fmt: skip

    async def whole(port: int) -> End:
        launched = await open_launch(crawled.places(tmp_path), crawled.job(port, "a.example"), crawled.LAUNCH)
        crawl = Session(launched)
        ending = asyncio.create_task(crawl.run())
        await act(crawl, tmp_path)
        return await ending

    with serve(site) as port:
        return asyncio.run(whole(port))


async def done(crawl: Session, number: int) -> None:
    while (state := await crawl.state())["done"] < number:  # type: ignore[operator]
        assert state["state"] != "STOPPING"
        await asyncio.sleep(0.01)


def test_a_crawl_waits_while_a_disk_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "ROOT_SECONDS", 0.01)

    async def act(crawl: Session, folder: Path) -> None:
        await done(crawl, 5)
        sentinel = folder / "output" / SENTINEL
        text = sentinel.read_text()
        sentinel.unlink()
        while not crawled.told(folder, "alerts.log"):
            await asyncio.sleep(0.01)
        await crawl._running.spider.settled()
        before = (await crawl.state())["done"]
        await asyncio.sleep(0.1)
        assert (await crawl.state())["done"] == before
        sentinel.write_text(text)

    assert run(tmp_path, act) is End.EMPTY
    assert "SEVERE the crawl waits: root 'output'" in crawled.told(tmp_path, "alerts.log")
    assert len(crawled.lines(tmp_path)) == PAGES + 2


def renamed(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def replaced(path: Path) -> None:
    renamed(path)
    path.write_text("")


LAUNCH = crawled.LAUNCH.id
LOST = {
    "the WARC folder deleted": (f"output/warcs/news/{LAUNCH}", shutil.rmtree, "it was deleted while the crawl"),
    "the WARC folder renamed": (f"output/warcs/news/{LAUNCH}", renamed, "it was renamed or deleted while"),
    "its parent renamed": ("output/warcs/news", renamed, "it was renamed or deleted while the crawl used it"),
    "the logs deleted": (f"output/logs/news/{LAUNCH}", shutil.rmtree, "it was deleted while the crawl used it"),
    "the job deleted": ("jobs/news", shutil.rmtree, "it was deleted while the crawl used it"),
    "the job's scratch deleted": ("jobs/news/scratch", shutil.rmtree, "it was deleted while the crawl used it"),
    "all deleted": (".", lambda path: [shutil.rmtree(path / one) for one in ("jobs", "output")], "it was deleted"),
    "the lock deleted": ("jobs/news/state/lock", Path.unlink, "it was deleted while the crawl used it"),
    "the lock replaced": ("jobs/news/state/lock", replaced, "another one is there since the crawl began"),
    "the database renamed": ("jobs/news/state/books.sqlite", renamed, "it was renamed or deleted while the crawl"),
    "the open WARC deleted": (f"output/warcs/news/{LAUNCH}/*.open", Path.unlink, "it was deleted while it was written"),
    "crawl.log deleted": (f"output/logs/news/{LAUNCH}/crawl.log", Path.unlink, "it was deleted while the crawl wrote"),
}


@pytest.mark.parametrize("case", LOST)
def test_what_is_gone_or_another_s_ends_the_crawl_at_once_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.setattr(session, "ROOT_SECONDS", 0.01)
    pattern, lose, why = LOST[case]

    async def act(crawl: Session, folder: Path) -> None:
        await done(crawl, 5)
        (path,) = folder.glob(pattern) if "*" in pattern else [folder / pattern]
        lose(path)

    with folders.held(crawled.places(tmp_path).state("news")), pytest.raises(WarcmillError, match=why) as raised:
        run(tmp_path, act, pages=5_000)
    named = tmp_path / pattern.partition("/*")[0]
    assert isinstance(raised.value, Conflict if "replaced" in case else Unavailable)
    assert str(raised.value).startswith(str(named)) or "all" in case or "parent" in case


def test_a_crawl_that_is_paused_or_waits_for_a_disk_ends_when_all_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "ROOT_SECONDS", 0.01)

    async def act(crawl: Session, folder: Path) -> None:
        await done(crawl, 5)
        (folder / "output" / SENTINEL).unlink()
        while not crawled.told(folder, "alerts.log"):
            await asyncio.sleep(0.01)
        await crawl.pause()
        shutil.rmtree(folder / "output")

    with pytest.raises(Unavailable, match=r"output/.* is unavailable: it was deleted while the crawl used it"):
        run(tmp_path, act)


def test_a_bug_of_a_task_beside_the_crawl_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "ROOT_SECONDS", 0.01)

    async def act(crawl: Session, folder: Path) -> None:
        await done(crawl, 5)
        monkeypatch.setattr(crawl._edits, "take", lambda: 1 / 0)

    with pytest.raises(Unavailable, match="launch 20261121081844 is unavailable: unexpected ZeroDivisionError"):
        run(tmp_path, act, pages=5_000)


def test_it_pauses_goes_on_takes_a_checkpoint_and_stops_by_its_socket(tmp_path: Path) -> None:
    async def act(crawl: Session, folder: Path) -> None:
        async def ask(verb: str) -> object:
            socket = folder / "jobs/news/state" / CONTROL
            return await asyncio.to_thread(control.ask, socket, verb)

        await done(crawl, 5)
        await ask("pause")
        assert (await crawl.state())["state"] == "PAUSED"
        before = (await crawl.state())["done"]
        found = await ask("checkpoint")
        assert str(found).startswith("{'checkpoint': 'cp00001-")
        assert (await crawl.state())["done"] == before
        await ask("resume")
        await done(crawl, 12)
        await ask("stop")

    assert run(tmp_path, act) is End.STOPPED
    own = tmp_path / "jobs/news" / crawled.LAUNCH.id
    words = [line.split()[2] for line in (own / "job.log").read_text().splitlines()]
    assert words == ["PREPARING", "PAUSED", "RUNNING", "PAUSING", "PAUSED", "CHECKPOINTED", "RUNNING", "CHECKPOINTED",
                     "STOPPING", "FINISHED"]  # fmt: skip
    summary = crawled.json_of(own / "summary.json")
    assert summary["end"] == "Finished - Ended by operator"
    assert summary["statuses"] == {"200": summary["documents"]}, "robots.txt, a 404, is not a document"


def test_an_edit_of_its_files_counts_from_the_next_uri_on_and_one_with_a_fault_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "ROOT_SECONDS", 0.01)

    async def alerted(folder: Path, text: str) -> None:
        async with asyncio.timeout(300):
            while text not in crawled.told(folder, "alerts.log"):
                await asyncio.sleep(0.01)

    async def act(crawl: Session, folder: Path) -> None:
        job, usual = folder / "jobs/news", crawl._running.kit.job
        await done(crawl, 3)
        await crawl.pause()
        (job / "seeds.txt").write_text(usual.seeds[0])
        (job / "crawl.toml").write_text("no_delay = true\nquota = 1\n")
        await alerted(folder, "an edit does not count, and what was there before does: configuration, crawl.toml quota")
        assert crawl._running.kit.job is usual
        surts = surt.surt(surt.canonical(usual.seeds[0]))
        (job / "surts.txt").write_text(surts)
        (job / "crawl.toml").write_text("no_delay = true\nquotas = [{ by = 'host', documents = 7 }]\n")
        await alerted(folder, "crawl.toml, seeds.txt, surts.txt edited: counts from now on")
        await crawl.proceed()

    assert run(tmp_path, act) is End.EMPTY
    found = list(crawled.statuses(tmp_path).values())
    assert found.count(200) <= 7
    assert -5003 in found


def test_a_rule_holds_at_the_lease_and_limits_are_set_for_a_launch_until_they_are_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "ROOT_SECONDS", 0.01)

    async def edited(crawl: Session, papers: dict[str, str]) -> None:
        before = crawl._running.kit.job
        for name, text in papers.items():
            (tmp_path / "jobs/news" / name).write_text(text)
        async with asyncio.timeout(300):
            while crawl._running.kit.job is before:
                await asyncio.sleep(0.01)

    async def act(crawl: Session, folder: Path) -> None:
        await done(crawl, 3)
        await crawl.pause()
        usual = crawl._running.kit.job
        surts = surt.surt(surt.canonical(usual.seeds[0]))
        toml = "no_delay = true\n[limits]\nbytes = 5000000\n"
        await edited(crawl, {"seeds.txt": usual.seeds[0], "surts.txt": surts, "crawl.toml": toml})

        async def ask(**fields: Json) -> Json:
            return await asyncio.to_thread(control.ask, folder / "jobs/news/state" / CONTROL, "set", **fields)

        with pytest.raises(BadInput, match="documents: is -1; it takes a whole number"):
            await ask(documents=-1)
        with pytest.raises(BadInput, match="name some of documents"):
            await ask()
        assert await ask(documents=4000, least=0.5) == {"bytes": 5000000, "documents": 4000, "least_ms": 500}
        assert await ask(documents=5000, bytes=0) == {"documents": 5000, "least_ms": 500}
        await edited(crawl, {"crawl.toml": f'patterns = [".*/[0-9]+"]\n{toml}'})
        job = crawl._running.kit.job
        assert (job.ceilings, job.politeness.least) == (Ceilings(documents=5000), 0.5), "another key was edited"
        assert (await crawl.state())["ceilings"] == {"documents": 5000}
        await edited(crawl, {"crawl.toml": 'patterns = [".*/[0-9]+"]\n[limits]\nbytes = 6000000\n'})
        assert crawl._running.kit.job.ceilings == Ceilings(documents=5000, bytes=6000000)
        assert await ask(least=0) == {"bytes": 6000000, "documents": 5000, "least_ms": 0}
        await crawl.proceed()

    assert run(tmp_path, act, pages=5_000) is End.EMPTY
    found = crawled.statuses(tmp_path)
    refused = {uri for uri, status in found.items() if status == -5000}
    assert refused
    assert all(re.fullmatch(r".*/[0-9]+", uri) for uri in refused)
    assert "set for this launch alone: bytes 0, documents 5000" in crawled.told(tmp_path, "alerts.log")


def test_a_checkpoint_that_fails_is_named_and_the_next_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failing = Running.checkpoint, [OSError(5, "Input/output error")]

    async def checkpoint(running: Running) -> Stage:
        if failing:
            raise failing.pop()
        return await real(running)

    monkeypatch.setattr(Running, "checkpoint", checkpoint)
    taken = tmp_path / "jobs/news/checkpoints"

    async def whole(port: int) -> None:
        job = replace(crawled.job(port, "a.example"), checkpoint_hours=0.05 / 3600)
        crawl = Session(await open_launch(crawled.places(tmp_path), job, crawled.LAUNCH))
        ending = asyncio.create_task(crawl.run())
        await crawl.pause()
        while not list(taken.iterdir()):
            await asyncio.sleep(0.01)
        await crawl.proceed()
        await ending

    with serve({("a.example", "/"): page([])}) as port:
        asyncio.run(asyncio.wait_for(whole(port), 300))
    (alerts,) = (tmp_path / "output/logs").rglob("alerts.log.cp00001-*")
    assert "SEVERE no checkpoint: [Errno 5] Input/output error" in alerts.read_text()


def test_a_launch_whose_id_is_to_come_has_run_since_its_process_began(tmp_path: Path) -> None:
    """The clock was set back since the launch before."""
    launch = Launch("news", "20990101000000")

    async def whole(port: int) -> None:
        running = await open_launch(crawled.places(tmp_path), crawled.job(port, "a.example"), launch)
        assert 0 <= (await running.moment()).seconds < 600
        await Session(running).run()
        assert "duration: -" not in (running.folders.reports / "crawl-report.txt").read_text()

    with serve({("a.example", "/"): page([])}) as port:
        asyncio.run(whole(port))
