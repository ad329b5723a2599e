"""What a feed says is what a real engine then crawls: every scope, depth and policy, read from its crawl log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import sample
from sites.fed_web import BIG_PAGES, CRAWLED, DEPTHS, FILLER, ROWS, SCOPES, big_site, moved_site, site_of
from sites.several_hosts import Page, page, serve, swift_profile

from servers.heritrix import HeritrixServer as Server
from warcmill.base.schedule import WEEKLY
from warcmill.clients.heritrix.http import EngineHttp
from warcmill.clients.heritrix.rest import CONFIGURATION, Heritrix
from warcmill.clients.heritrix.xml import JobState
from warcmill.formats.logs.crawllog import CrawlRecord, lines
from warcmill.formats.targets import Caps
from warcmill.layout import OutputLayout
from warcmill.markers.state import MarkerStore
from warcmill.pulse.feed import Due, HeritrixRecipe, Source, crawl, prepare
from warcmill.stores.file import FileStore
from warcmill.stores.sentinel import adopt

JOB, DUE = "fed", "20260301060000"
CAPS = Caps(capped=60 * 1024, capped_large=150 * 1024)
ENGINE_S = ("/robots.txt", "/favicon.ico")  # asked of every host that has a page
ENDED = frozenset({JobState.FINISHED})
PAUSED = frozenset({JobState.PAUSED})


def whole_web(port: int) -> dict[tuple[str, str], Page]:
    web: dict[tuple[str, str], Page] = {}
    for scope in CRAWLED:
        web |= site_of(f"{scope}.example", port)
    for host in ("capped.example", "large.example", "deep.example"):
        web |= big_site(host)
    for host in ("obeyed.example", "ignored.example"):
        web[host, "/robots.txt"] = Page(b"User-agent: *\nDisallow: /private/\n", "text/plain")
        web[host, "/"] = page(["/private/x", "/public"])
        web[host, "/private/x"] = web[host, "/public"] = page([])
    web["excluded.example", "/"] = page(
        ["/logout?now", f"http://www.excluded.example:{port}/logout", "/never/x", "/fine"]
    )
    web["excluded.example", "/fine"] = web["www.excluded.example", "/logout"] = page([])
    web |= moved_site(port)
    web["virus.example", "/"] = page(["/eicar.com.txt", "/clean"])
    web["virus.example", "/eicar.com.txt"] = Page(sample.EICAR, "text/plain")
    web["virus.example", "/clean"] = page([])
    web["xn--bcher-kva.example", "/"] = page(["/b"])
    web["xn--bcher-kva.example", "/b"] = page([])
    # A page target leads into a site of other ways: there the site's own say counts.
    web["page.example", "/"] = page([f"http://ignored.example:{port}/private/y"])
    web["ignored.example", "/private/y"] = page(["/private/z"])
    web["ignored.example", "/private/z"] = page([])
    return web


def targets(port: int) -> list[dict[str, Any]]:
    """The feed."""

    def target(name: str, seed: str, **more: Any) -> dict[str, Any]:
        schedules = [{"startDate": "2026-01-01T00:00:00Z", "frequency": "WEEKLY"}]
        title = f'"{name}" <b>&amp; ]]> -- #{{T(java.lang.Runtime)}} ${{launchId}}'
        return {"id": name, "title": title, "seeds": [seed], "schedules": schedules, **more}

    scoped = [target(scope, f"http://{scope}.example:{port}/news/", scope=scope, depth="DEEP") for scope in SCOPES]
    capped = [target(name, f"http://{name}.example:{port}/", depth=depth) for name, depth in DEPTHS.items()]
    another = target("another-day", f"http://another.example:{port}/")
    another["schedules"][0]["frequency"] = "DAILY"
    refresh = target("refresh", f"http://refresh.example:{port}/news/", depth="DEEP")
    refresh["schedules"][0]["refresh"] = True
    over = target("over", f"http://over.example:{port}/")
    over["schedules"][0]["endDate"] = "2026-02-01T00:00:00Z"
    return [
        *scoped,
        *capped,
        refresh,
        another,
        over,
        target("obeyed", f"http://obeyed.example:{port}/"),
        target("ignored", f"http://ignored.example:{port}/", ignoreRobotsTxt=True),
        target("excluded", f"http://excluded.example:{port}/", logoutUrl=f"http://excluded.example:{port}/logout"),
        target("moved", f"http://moved.example:{port}/"),
        target("virus", f"http://virus.example:{port}/"),
        target("idn", f"http://b\u00fccher.example:{port}/"),
        target("page", f"http://page.example:{port}/", scope="plus1"),
    ]


@dataclass
class Crawled:
    """What the engine left of its launches."""

    server: Server
    engine: Heritrix
    base: Path
    web: dict[tuple[str, str], Page]
    port: int
    checkpoints: list[str] = field(default_factory=list)
    first: str = ""
    second: str = ""

    def log(self, launch: str) -> list[CrawlRecord]:
        folder = self.base / "output" / "logs" / JOB / launch
        found: list[CrawlRecord] = []
        for path in sorted(folder.glob("crawl.log*")):
            if not path.name.endswith(".lck"):
                with path.open("rb") as file:
                    found += [line for line in lines(file) if isinstance(line, CrawlRecord)]
        return found

    def urls(self, *hosts: str) -> dict[str, int]:
        """URLs of the first launch as `host/path` with their status, but for names and what the engine itself asks."""
        found = {}
        for line in self.log(self.first):
            parts = urlsplit(line.uri)
            if parts.scheme == "http" and parts.path not in ENGINE_S and (not hosts or parts.hostname in hosts):
                found[f"{parts.hostname}{parts.path}{'?' if parts.query else ''}{parts.query}"] = line.status or 0
        return found

    def until_more(self, documents: int) -> None:
        done = self.engine.job(JOB).downloaded + documents  # type: ignore[union-attr]
        self.engine._until(JOB, "crawl", lambda seen: seen if seen.downloaded >= done else None)


def fed(base: Path, port: int) -> dict[str, bytes]:
    """The feed taken, judged and kept, and the job's files made of it, as the tasks do."""
    folders = {"state": base / "state"}
    adopt(folders)  # type: ignore[arg-type]
    state = MarkerStore(FileStore("state", base / "state"))
    due = Due(JOB, DUE, WEEKLY)
    data = b"\n".join(json.dumps(one).encode() for one in targets(port))
    state.publish(due.key, crawl(state, due, Source(lambda: data, "a feed")))
    excluded = ("# never", "", f"http://excluded.example:{port}/never/")
    recipe = HeritrixRecipe(
        swift_profile(), "http://archive.example/", str(base / "output"), OutputLayout.KIND_FIRST, excluded, CAPS
    )
    files, facts = prepare(state, due, recipe)
    assert facts["targets"] == len(targets(port)) - 2, "one is crawled daily, one is over"
    return files


@pytest.fixture(scope="module")
def crawled(heritrix: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """Two launches of one job; the second is checkpointed twice."""
    base = tmp_path_factory.mktemp("fed")
    web: dict[tuple[str, str], Page] = {}
    with serve(web) as port:
        web.update(whole_web(port))
        heritrix.resolve(*sorted({host for host, _ in web}))
        engine = Heritrix(
            EngineHttp(heritrix.url, heritrix.user, heritrix.password, heritrix.certificate), patience=120
        )
        found = Crawled(heritrix, engine, base, web, port)
        engine.create(JOB)
        files = fed(base, port)
        write(engine, files)
        found.first = run(engine)
        write(engine, {**files, CONFIGURATION: files[CONFIGURATION].replace(b"DelayMs=40", b"DelayMs=700")})
        found.second = run_with_checkpoints(found)
        yield found
        engine.teardown(JOB)
        engine.close()


def write(engine: Heritrix, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        engine.put(JOB, name, data)


def run(engine: Heritrix) -> str:
    launch = engine.launch(JOB)
    engine.wait(JOB, PAUSED)
    engine.unpause(JOB)
    assert engine.wait(JOB, ENDED).exit_status == "FINISHED"
    engine.teardown(JOB)
    return launch


def run_with_checkpoints(found: Crawled) -> str:
    engine = found.engine
    launch = engine.launch(JOB)
    engine.wait(JOB, PAUSED)
    for _ in range(2):
        engine.unpause(JOB)
        found.until_more(10)  # without progress there is no checkpoint
        engine.pause(JOB)
        found.checkpoints.append(engine.checkpoint(JOB))
    engine.unpause(JOB)
    assert engine.wait(JOB, ENDED).exit_status == "FINISHED"
    return launch


@pytest.mark.parametrize("scope", ROWS)
def test_each_scope_is_crawled_so_far_and_no_further(crawled: Crawled, scope: str) -> None:
    host = f"{scope}.example"
    hosts = (host, f"www.{host}", f"sub.{host}", f"far-{host}", "img.example")
    wanted = {url.replace("far.H", f"far-{host}").replace("H", host) for url in CRAWLED[scope]}
    urls = {url: status for url, status in crawled.urls(*hosts).items() if host in url}
    assert set(urls) == wanted
    assert set(urls.values()) == {200}


def test_a_resource_is_that_page_and_nothing_else_of_its_host(crawled: Crawled) -> None:
    asked = [line.uri for line in crawled.log(crawled.first) if "//resource.example" in line.uri]
    site = f"http://resource.example:{crawled.port}"
    assert sorted(asked) == [f"{site}/favicon.ico", f"{site}/news/", f"{site}/robots.txt"]


@pytest.mark.parametrize(
    ("host", "cap"), [("capped.example", CAPS.capped), ("large.example", CAPS.capped_large), ("deep.example", None)]
)
def test_each_depth_ends_at_its_cap(crawled: Crawled, host: str, cap: int | None) -> None:
    urls = crawled.urls(host)
    assert len(urls) == BIG_PAGES
    fetched = sum(status == 200 for status in urls.values())
    if cap is None:
        assert fetched == BIG_PAGES
        return
    assert cap <= fetched * (FILLER + 1_000)
    assert (fetched - 1) * FILLER < cap
    assert {status for status in urls.values() if status != 200} == {-5003}


def test_robots_txt_is_obeyed_or_ignored_as_the_target_says(crawled: Crawled) -> None:
    assert crawled.urls("obeyed.example") == {
        "obeyed.example/": 200,
        "obeyed.example/public": 200,
        "obeyed.example/private/x": -9998,
    }
    assert crawled.urls("ignored.example") == {
        "ignored.example/": 200,
        "ignored.example/public": 200,
        "ignored.example/private/x": 200,
        "ignored.example/private/y": 200,  # reached from a page of a target that obeys: here the site decides
        "ignored.example/private/z": 200,
    }


def test_what_is_excluded_is_not_crawled_and_a_logged_in_crawl_stays_so(crawled: Crawled) -> None:
    urls = crawled.urls("excluded.example", "www.excluded.example")
    assert set(urls) == {"excluded.example/", "excluded.example/fine"}


def test_a_site_that_moved_to_its_www_is_crawled_there(crawled: Crawled) -> None:
    assert crawled.urls("moved.example", "www.moved.example") == {
        "moved.example/": 301,
        "www.moved.example/": 200,
        "www.moved.example/inside": 200,
    }


def test_a_seed_with_an_umlaut_is_crawled(crawled: Crawled) -> None:
    assert set(crawled.urls("xn--bcher-kva.example")) == {"xn--bcher-kva.example/", "xn--bcher-kva.example/b"}


def test_targets_of_another_job_and_of_the_past_are_not_crawled(crawled: Crawled) -> None:
    assert crawled.urls("another.example", "over.example") == {}


def test_each_line_of_the_crawl_log_has_address_seed_and_warc(crawled: Crawled) -> None:
    fetched = [line for line in crawled.log(crawled.first) if line.status == 200]
    assert len(fetched) > 50
    for line in fetched:
        assert "ip:127.0.0.1" in line.annotations, line
        assert line.source
        assert line.warc_filename


def test_the_viral_sheet_puts_an_infected_page_apart(crawled: Crawled) -> None:
    by_url = {urlsplit(line.uri).path: line for line in crawled.log(crawled.first) if "virus.example" in line.uri}
    viral = by_url["/eicar.com.txt"].warc_filename or ""
    clean = by_url["/clean"].warc_filename or ""
    output = crawled.base / "output"
    assert viral.startswith(f"{JOB}-VIRAL-")
    assert (output / "viral" / JOB / crawled.first / viral).exists()
    assert (output / "warcs" / JOB / crawled.first / clean).exists()


def test_a_second_launch_writes_revisits_of_what_the_first_has_got(crawled: Crawled) -> None:
    again = [line for line in crawled.log(crawled.second) if line.status == 200 and line.uri.startswith("http")]
    duplicate = [line for line in again if any(one.startswith("duplicate:") for one in line.annotations)]
    assert len(again) > 50
    assert len(duplicate) == len(again)


def test_no_line_of_the_second_launch_failed_for_its_history(crawled: Crawled) -> None:
    """As it would if a rule, in place of a sheet, switched the viral writer."""
    assert {line.status for line in crawled.log(crawled.second)} <= {200, 301, 404, 1, 1001, -9998, -5003}


def test_all_checkpoints_are_kept(crawled: Crawled) -> None:
    folder = crawled.server.jobs / JOB / "checkpoints"
    assert len(crawled.checkpoints) == 2
    for name in crawled.checkpoints:
        assert (folder / name / "valid").exists()


def test_a_checkpoint_is_taken_every_six_hours(crawled: Crawled) -> None:
    asked = "rawOut.print(appCtx.getBean('checkpointService').checkpointIntervalMinutes)"
    assert crawled.engine.script(JOB, asked) == "360"


def test_the_launch_keeps_what_it_was_crawled_by(crawled: Crawled) -> None:
    folder = crawled.server.jobs / JOB / crawled.first
    kept = {path.name for path in folder.iterdir()}
    assert {"crawler-beans.cxml", "seeds.txt", "surts.txt", "exclude.txt"} <= kept
    assert (crawled.base / "output" / "reports" / JOB / crawled.first / "crawl-report.txt").exists()
