"""`warcmill serve` with a real pywb, in a real browser: a search, a result, the page with its styles and images."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from children import children
from indexing.searchable import Searchable
from playwright.sync_api import Browser, Page, expect
from records.captures import response
from records.warcs import WEEKLY, warc_gz, warcinfo

from commands.init import configuration
from servers import browsing, page_judges, serving
from servers.serving import SECONDS, RunningServe
from warcmill.extracts.text_workers import TextWorkers
from warcmill.layout import OutputLayout
from warcmill.model import Root
from warcmill.versions import hidden_list
from warcmill.web.access import Role, add_token

HTML = b"Content-Type: text/html"
GREY = "rgb(238, 238, 238)"  # the body's colour in debian.css
# An archived page that wants the token: by its cookies, and by asking search with the reader's.
THIEF = """<title>thief</title><body>heron<script>
async function read(url) {
  try { return await (await fetch(url, {credentials: "include"})).text(); } catch (error) { return "refused"; }
}
(async () => {
  const got = {cookie: document.cookie, search: await read("SEARCH/search?q=welcome"), home: await read("SEARCH/")};
  document.body.dataset.got = JSON.stringify(got);
})();
</script>"""


@dataclass(frozen=True)
class World:
    """A served archive."""

    archive: Searchable
    server: RunningServe


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The bundled crawl, and a page that attacks, both indexed and served."""
    made = Searchable(tmp_path_factory.mktemp("an archive"))
    config = configured(made)
    (port,) = re.findall(r"^port=(\d+)$", config.read_text(), re.MULTILINE)
    thief = response("http://thief.example/", HTML, body=THIEF.replace("SEARCH", f"http://127.0.0.1:{port}").encode())
    with TextWorkers(1) as made.workers:
        made.add("20261121081735", {WEEKLY.name: WEEKLY.read_bytes()}, job="weekly")
        made.add("20261122081735", {"thief.warc.gz": warc_gz(warcinfo(), thief)})
        made.fold()
        token = add_token(made.state.store, "operator", Role.OPERATOR, None)
        with serving.serving(config, made.base / "log", token) as server:
            server.wait()
            yield World(made, server)


def configured(archive: Searchable, name: str = "luigi.cfg") -> Path:
    """A luigi.cfg of an archive, to be served."""
    line = archive.base / "line"
    folders: dict[Root, Path] = {
        "output": line / "output", "jobs": line / "jobs", "state": line / "state", "store": line / "store",
        "index": archive.base / "index",
    }  # fmt: skip
    config = archive.base / name
    config.write_text(configuration(folders, OutputLayout.KIND_FIRST))
    serving.configure(config)
    return config


@pytest.fixture(scope="module")
def reader(world: World, browser: Browser) -> Iterator[Page]:
    """A window that has opened the printed address."""
    with browsing.window(browser) as page:
        page.goto(world.server.entrance)
        assert page.url == world.server.address, "the token is out of the address"
        yield page


def search(page: Page, world: World, words: str) -> None:
    """Search as a reader does."""
    page.goto(world.server.address)
    page.locator("main [name=q]").fill(words)
    page.keyboard.press("Enter")
    page.wait_for_url("**?q=*")


def raw(world: World, url: str, time: str) -> str:
    """The address under which pywb gives a capture as it was crawled."""
    return world.server.replay_of(url, time).replace(f"/{time}/", f"/{time}id_/")


def status_of(address: str) -> int:
    try:
        with urlopen(address, timeout=SECONDS) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def test_a_reader_searches_follows_a_result_and_sees_the_page(reader: Page, world: World) -> None:
    search(reader, world, "welcome")
    expect(reader.locator("main")).to_contain_text("3 captures found.")
    archived = serving.follow(reader, "Government of Example")
    expect(archived.locator("h1")).to_have_text("Welcome")
    expect(archived.locator("img").first).not_to_have_js_property("naturalWidth", 0)
    search(reader, world, '"getting started" site')
    archived = serving.follow(reader, "Chapter 1. Getting started The Right Way")
    expect(archived.locator("body")).to_have_css("background-color", GREY)
    archived.locator("a[accesskey=n]").first.click()
    expect(archived.locator("h1")).to_contain_text("Chapter 2")


def test_above_a_page_are_its_time_and_the_way_to_its_other_captures(reader: Page, world: World) -> None:
    search(reader, world, "welcome")
    archived = serving.follow(reader, "Government of Example")
    expect(reader.locator("header")).to_contain_text("Archived 2026-11-21 08:17:37 UTC")
    archived.get_by_role("link", name="Publications").click()
    expect(reader.locator("header")).to_contain_text("http://gov.example/publications")
    reader.get_by_role("link", name="Other captures").click()
    expect(reader.locator("main")).to_contain_text("1 capture of this URL")
    reader.goto(raw(world, "http://gov.example/", "20261121081737").replace("gov.example", "never.example"))
    expect(reader.locator("h1")).to_have_text("This page is not in the archive")
    reader.get_by_role("link", name="Search the archive").click()
    expect(reader.locator("h1")).to_have_text("Search the archive")


def test_our_frame_and_pages_of_replay_pass_the_judges(reader: Page, world: World, tmp_path: Path) -> None:
    shown = world.server.replay_of("http://gov.example/", "20261121081737")
    found, saved = list[str](), list[Path]()
    for number, address in enumerate((shown, shown.replace("gov.example", "never.example"), f"{shown[:25]}no")):
        reader.goto(address)
        found += page_judges.faults(reader)
        saved.append(tmp_path / f"{number}.html")
        try:
            saved[-1].write_bytes(urlopen(address, timeout=SECONDS).read())
        except HTTPError as error:
            saved[-1].write_bytes(error.read())
    assert found + page_judges.nu(*saved) == []


def test_an_archived_page_reads_nothing_of_search(reader: Page, world: World) -> None:
    address = raw(world, "http://thief.example/", "20161019234428")
    reader.goto(address)
    body = reader.locator("body")
    expect(body).to_have_attribute("data-got", re.compile("."))
    assert json.loads(str(body.get_attribute("data-got"))) == {"cookie": "", "search": "refused", "home": "refused"}
    assert reader.context.cookies(address) == [], "none reaches pywb, not even one that scripts cannot read"
    names = [one["name"].partition("-")[0] for one in reader.context.cookies(world.server.address)]
    assert names == ["warcmill"], "the reader still has it"


def test_a_page_is_replayed_byte_for_byte(world: World) -> None:
    lines = (json.loads(line.split(" ", 2)[2]) | {"time": line.split(" ")[1]} for line in world.archive.lines())
    page = next(one for one in lines if one.get("mime") == "text/html" and one["status"] == "200")
    path = world.archive.base / "line/store/warcs" / page["filename"]
    record = gzip.decompress(path.read_bytes()[int(page["offset"]) :][: int(page["length"])])
    body = record.split(b"\r\n\r\n", 2)[2].removesuffix(b"\r\n\r\n")
    with urlopen(raw(world, page["url"], page["time"]), timeout=SECONDS) as answer:
        assert answer.read() == body


def test_a_version_that_moves_is_seen_and_what_it_hides_is_gone(world: World) -> None:
    url, second = "http://late.example/", "20161019234428"
    assert world.server.replay_of(url, second) == ""
    page = warc_gz(warcinfo(), response(url, HTML, body=b"<title>Late</title>osprey"))
    world.archive.add("20261123081735", {"late.warc.gz": page})
    world.archive.fold()
    address = raw(world, url, second)
    assert status_of(address) == 200
    hidden_list.decide(
        world.archive.state.store, lambda: world.archive.store, "example,late", "order of a court", hides=True
    )
    assert world.server.replay_of(url, second) == ""
    world.archive.fold()
    assert status_of(address) == 404


def test_an_address_of_a_megabyte_is_refused_and_the_server_goes_on(world: World) -> None:
    with suppress(OSError):  # the connection may be closed before all of it is sent
        assert status_of(f"{world.server.address}search?q={'a' * (1 << 20)}") == 431
    assert world.server.health()["replay"] == "ready"


def test_a_killed_pywb_is_started_again(world: World) -> None:
    (first,) = children(world.server.process.pid)
    os.kill(first, signal.SIGKILL)
    until = time.monotonic() + SECONDS
    while children(world.server.process.pid) in ([], [first]):
        assert time.monotonic() < until
        time.sleep(0.05)
    world.server.wait()
    assert "pywb has ended: exit code -9" in (world.archive.base / "log").read_text()


def test_a_killed_serve_leaves_no_pywb_behind(world: World, tmp_path: Path) -> None:
    config = configured(world.archive, "second.cfg")
    with serving.serving(config, tmp_path / "log") as server:
        until = time.monotonic() + SECONDS
        while not (started := children(server.process.pid)):
            assert time.monotonic() < until
            time.sleep(0.05)
        (pywb,) = started
        server.process.kill()
        while Path(f"/proc/{pywb}").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
