"""What a person asks of a crawl that runs: a visit that is under way is kept, and what is asked for passes policies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest
from crawls import crawled
from msgspec.structs import replace
from sites.raw_server import serving

from warcmill.crawl.books.files import Folders
from warcmill.crawl.control.frontier import FrontierControl
from warcmill.crawl.control.messages import Subject
from warcmill.crawl.frontier.dump import line_of
from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.crawl.job.job import Bounds, End, Retries
from warcmill.crawl.launch import database
from warcmill.crawl.launch.launch import Running, open_launch
from warcmill.crawl.policies.scope import CrawlScope, SurtPrefixes
from warcmill.crawl.uri import Status, make
from warcmill.model import Json

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
LATER = b"HTTP/1.1 503 Later\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nno"
Act = Callable[[FrontierControl, Subject], Awaitable[object]]


def steered(tmp_path: Path, act: Act, answer: bytes) -> tuple[End, list[str]]:
    """Crawl one page, and act on it while it is fetched the first time. Return the paths that were asked for."""
    asked, control = list[str](), list[FrontierControl]()

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            asked.append(head.split()[1].decode())
            if asked[-1] == "/" and asked.count("/") == 1:
                host = head.partition(b"Host: ")[2].partition(b"\r\n")[0].decode()
                await act(control[0], Subject(key=f"http://{host}/"))
            writer.write(OK if asked[-1] != "/" or asked.count("/") > 1 else answer)

    def opened(running: Running) -> None:
        control.append(FrontierControl(running.books.frontier))

    async def scenario() -> End:
        async with serving(answered) as server:
            job = crawled.job(server.port, "a.example", robots=False, retries=Retries(3, 0.01))
            return (await crawled.whole(tmp_path, job, opened))[0]

    return asyncio.run(scenario()), asked


def states_of(tmp_path: Path) -> list[Status]:
    """The status of the page in the database, and in one that is rebuilt from the journal."""

    async def look(path: Path) -> Status:
        frontier = SqliteFrontier(path)
        uri = crawled.lines(tmp_path)[-1].uri
        found = (await frontier.list(keys=[uri])).uris
        await frontier.close()
        return found[0].status

    async def both() -> list[Status]:
        path, folders = crawled.places(tmp_path).database("news"), crawled.places(tmp_path).folders(crawled.LAUNCH)
        before = await look(path)
        await database.rebuild(path, crawled.LAUNCH.id, Folders(folders.warcs, folders.logs))
        return [before, await look(path)]

    return asyncio.run(both())


VERBS = {"suspend": FrontierControl.suspend, "resume": FrontierControl.release, "remove": FrontierControl.remove}


@pytest.mark.parametrize("verb", VERBS)
def test_an_answer_is_kept_whatever_is_asked_for_while_it_comes(tmp_path: Path, verb: str) -> None:
    end, asked = steered(tmp_path, VERBS[verb], OK)
    assert (end, asked) == (End.EMPTY, ["/"])
    assert [line.status for line in crawled.lines(tmp_path)][-1:] == [200]
    assert crawled.unbalanced(tmp_path) == []
    assert states_of(tmp_path) == [Status.PARSED] * 2


@pytest.mark.parametrize(
    ("verb", "times", "status"),
    [("suspend", 1, Status.SUSPENDED), ("resume", 2, Status.PARSED), ("remove", 1, Status.REMOVED)],
)
def test_what_is_asked_for_while_a_page_is_fetched_in_vain_takes_effect_after_it(
    tmp_path: Path, verb: str, times: int, status: Status
) -> None:
    end, asked = steered(tmp_path, VERBS[verb], LATER)
    assert (end, asked) == (End.EMPTY, ["/"] * times)
    assert [line.status for line in crawled.lines(tmp_path) if line.status != 1001] == [503, 200][:times]
    assert crawled.unbalanced(tmp_path) == []
    assert states_of(tmp_path) == [status] * 2


def answered(tmp_path: Path, act: Callable[[FrontierControl, Running], Awaitable[object]], **more: object) -> object:
    """What a person is answered by a launch that is open, and fetches nothing."""

    async def scenario() -> object:
        job = crawled.job(80, "a.example", scope=CrawlScope(sites=SurtPrefixes(["http://(example,a,"]), hops=5), **more)
        running = await open_launch(crawled.places(tmp_path), job, crawled.LAUNCH)
        found = await act(FrontierControl(running.books.frontier, running.kit.offers), running)
        await running.abandon()
        return found

    return asyncio.run(scenario())


def found_at(path: str, **more: Json) -> Json:
    return {"uri": f"http://a.example/{path}", "hops": "L", **more}


def test_what_is_added_passes_the_policies_of_links_and_keeps_its_hops(tmp_path: Path) -> None:
    uris: list[Json] = [
        "http://far.example/", {"uri": "http://far.example/1", "hops": "L"}, found_at("x/x/x/x/x/x"),
        found_at("no.pdf"), found_at("p?n=1"), found_at("p?n=2"), found_at("ok;jsessionid=0123456789abcdef"),
        found_at("ok"), found_at("deep", hops="LLLL"),
    ]  # fmt: skip

    async def act(control: FrontierControl, _: Running) -> Json:
        answers: Any = [await control.add([one], "") for one in uris]
        hops: Any = await control.get(Subject(key="http://far.example/"))
        deep: Any = await control.get(Subject(key="http://a.example/deep"))
        return [*(one["answers"][0] for one in answers), "hops" in hops, deep["hops"]]

    *found, is_linked, hops = cast(
        "list[Any]",
        answered(tmp_path, act, extensions=("pdf",), traps=Bounds(queries=1), robots=False),
    )
    assert [(one["answer"], one.get("why", "").partition(":")[0]) for one in found] == [
        ("new", ""), ("refused", "scope"), ("refused", "traps"), ("refused", "extensions"), ("new", ""),
        ("refused", "traps"), ("new", ""), ("seen", ""), ("new", ""),
    ]  # fmt: skip
    assert (is_linked, hops) == (False, "LLLL")


def test_what_is_loaded_passes_the_policies_and_is_named_where_it_is_refused(tmp_path: Path) -> None:
    async def act(control: FrontierControl, _: Running) -> Json:
        uris = [make(f"http://{one}.example/x", hops="L", via="http://a.example/") for one in ("a", "far")]
        return await control.load([line_of(uri) for uri in uris], [])

    assert answered(tmp_path, act) == {
        "new": 1, "visited": 0, "refused": ["http://far.example/x: scope: of no site of the crawl"],
    }  # fmt: skip


def test_what_is_resumed_passes_the_policies_as_they_are_now(tmp_path: Path) -> None:
    async def act(control: FrontierControl, running: Running) -> Json:
        keys = [f"http://a.example/p?n={number}" for number in range(3)]
        await control.add([{"uri": key, "hops": "L"} for key in keys], "")
        for key in keys:
            await control.suspend(Subject(key=key))
        live = running.kit.live
        live.job = replace(live.job, patterns=(".*n=1",))
        answers: list[Json] = [await control.release(Subject(key=key)) for key in keys[:2]]
        await control.suspend(Subject(site="a.example"))
        shown: Any = await control.list("", 0, 10)
        answers.append([(one["status"], one.get("suspended", "")) for one in shown["uris"] if "?" in one["uri"]])
        answers.append(await control.release(Subject(site="a.example")))
        live.job = replace(live.job, patterns=(".*",))
        await control.suspend(Subject(site="a.example"))
        answers.append(await control.release(Subject(site="a.example")))
        shown = await control.list("", 0, 10)
        return [*answers, [(one["status"], one.get("suspended", "")) for one in shown["uris"] if "?" in one["uri"]]]

    refused = "http://a.example/p?n=1: patterns: matches .*n=1"
    found = cast("list[Any]", answered(tmp_path, act, traps=Bounds(queries=3)))
    first, second, listed, site, all_refused, after = found
    assert (first, second) == ({"changed": 1}, {"changed": 0, "refused": [refused]})
    assert listed == [("Suspended", "site"), ("Suspended", ""), ("Suspended", "")]
    assert site == {"changed": 1, "refused": [refused]}
    assert len(all_refused["refused"]) == 4
    assert after == [("Suspended", "")] * 3
