"""Seeds that are not got, made on purpose on a real site: named wherever an operator looks, and accepted until they are
got again."""

from __future__ import annotations

import csv
import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import preloaded
import pytest
from line import Line, line_at
from sample import JOB, LAUNCH_ID
from sites.name_server import names
from sites.receivers import web_server
from sites.several_hosts import Page, page, serve

from warcmill.base import clock
from warcmill.crawl.launch import folders, job_log

HOSTS = ("a.example", "closes.example", "moved.example", "one.example", "two.example")
HERE = ["--allow-private", "127.0.0.0/8", "--no-delay"]
HERE += [word for host in HOSTS for word in ("--resolve", f"{host}=127.0.0.1")]
ONCE = "[retries]\ntimes=1\nwait=0.1\n"
NOWHERE = "http://nowhere.example/"


class Site:
    """Pages by host and path, their port, and that of a name server which knows no name."""

    def __init__(self, pages: dict[tuple[str, str], Page], port: int, names: int) -> None:
        self.pages, self.port = pages, port
        self.settings = f'name_servers = ["127.0.0.1:{names}"]\n{ONCE}'

    def url(self, host: str, path: str = "/") -> str:
        return f"http://{host}:{self.port}{path}"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    pages = {
        ("a.example", "/"): page(["/1"]),
        ("a.example", "/1"): page([]),
        ("a.example", "/robots.txt"): Page(b"User-agent: *\nDisallow: /private\n", "text/plain"),
        ("closes.example", "/"): Page(b"", status=0),
        ("closes.example", "/inside"): page([]),
        ("one.example", "/"): page([]),
        ("two.example", "/"): page([]),
    }
    with serve(pages) as port, names({}) as server:
        found = Site(pages, port, server)
        place, inside = found.url("closes.example", "/sitemap.xml"), found.url("closes.example", "/inside")
        pages["closes.example", "/robots.txt"] = Page(f"Sitemap: {place}\n".encode(), "text/plain")
        name = "http://www.sitemaps.org/schemas/sitemap/0.9"
        urls = f'<?xml version="1.0"?><urlset xmlns="{name}"><url><loc>{inside}</loc></url></urlset>'
        pages["closes.example", "/sitemap.xml"] = Page(urls.encode(), "application/xml")
        pages["moved.example", "/"] = Page(found.url("a.example", "/no").encode(), status=301)
        yield found


def warcmill(folder: Path, *words: str) -> tuple[int, str, str]:
    env = {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"}
    done = preloaded.run("commands.main", *words, env=env, folder=folder)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def crawl(folder: Path, site: Site, *words: str) -> tuple[int, str]:
    (folder / "once.toml").write_text(site.settings)
    code, out, err = warcmill(folder, "crawl", *words, *HERE, "--config", "once.toml")
    assert code in (0, 1), err
    return code, out


def launch_of(folder: Path, job: str) -> str:
    last = job_log.last(folder / "archive/jobs" / job)
    assert last
    return last.launch


def day_of(launch: str) -> str:
    """The day whose scan has a launch: another one than today's, if midnight came meanwhile."""
    return clock.stamp_text(launch)[:10]


def test_each_kind_of_dead_seed_is_named_wherever_an_operator_looks(tmp_path: Path, site: Site) -> None:
    alive, private, missing = (site.url("a.example", path) for path in ("/", "/private", "/missing"))
    closes, moved = site.url("closes.example"), site.url("moved.example")
    whys = {
        private: "robots.txt forbids it",
        missing: "its server answered 404 Not Found",
        closes: "its host closed the connection",
        moved: f"it redirects to {site.url('a.example', '/no')}, code 404: its server answered 404 Not Found",
        NOWHERE: "its host has no address",
    }
    down = (closes, NOWHERE)
    assert warcmill(tmp_path, "init", "archive")[0] == 0
    with web_server() as posts:
        with (tmp_path / "archive/luigi.cfg").open("a") as config:
            config.write(f"[notice]\nwebhook=http://127.0.0.1:{posts.port}/\n")
        code, out = crawl(tmp_path, site, alive, *whys, "--job", "web")
        ((_, _, notice),) = posts.posts
    launch = launch_of(tmp_path, "web")

    lines = out.splitlines()
    begin = lines.index("Not got:")
    assert code == 1
    assert lines[begin + 1 : begin + 7] == [
        *(f"  {seed}: {why}" for seed, why in whys.items()),
        f"  all seeds: warcmill report web {launch} --seeds",
    ]
    assert ", 5 seeds not got, 5 gaps; next: warcmill why web " in out
    assert f"web: launch {launch}: 5 documents (4 x 200, 1 x 301), 2 errors (2 x 404)\n" in out
    assert "  5 documents, 2 errors, 1 WARC, " in out
    assert site.url("closes.example", "/inside") in "".join(
        path.read_text() for path in (tmp_path / "archive/output/logs").rglob("crawl.log")
    ), "the sitemap of a home page that closes the connection is followed"

    assert notice["counts"] == {"dead seed": 5}
    assert {one["name"]: one["why"] for one in notice["troubles"]} == whys
    assert {(one["kind"], one["launch"]) for one in notice["troubles"]} == {("dead seed", f"web/{launch}")}

    for words in (("why",), ("reconcile",), ("why", "web", launch), ("reconcile", day_of(launch))):
        code, out, _ = warcmill(tmp_path, *words)
        assert code == 1
        for seed, why in whys.items():
            named = f"  dead seed: {why}\n      web/{launch}  {seed}\n"
            again = "once its site answers: warcmill pulse start web --again; else: " if seed in down else ""
            assert f"{named}      -> {again}warcmill accept --seeds --launch web {launch} --reason TEXT\n" in out
    assert (
        f"web/{launch}: 5 seeds not got: {private}, {missing}, {closes} and 2 more\n" in warcmill(tmp_path, "status")[1]
    )

    code, out, _ = warcmill(tmp_path, "report")
    assert code == 0
    assert f"6 seeds: 1 alive, 5 dead\n  dead       -9998  {private}: robots.txt forbids it\n" in out
    rows = list(csv.reader(warcmill(tmp_path, "report", "web", "--seeds", "--csv")[1].splitlines()))
    assert rows[0] == ["seed", "state", "code", "why", "redirect", "target"]
    assert [(row[0], row[1], row[3]) for row in rows[1:]] == [
        (alive, "alive", ""),
        *((seed, "dead", why) for seed, why in whys.items()),
    ]
    assert [row[2] for row in rows[1:]] == ["200", "-9998", "404", "-3", "301", "-6"]
    document = json.loads(warcmill(tmp_path, "report", "--json")[1])
    assert {one["seed"]: one["why"] for one in document["seeds"]["seeds"] if one["why"]} == whys
    assert document["seeds"]["counts"] == {"seeds": 6, "alive": 1, "redirected": 0, "dead": 5, "untried": 0}
    assert (document["crawl"]["by_status"]["404"], document["crawl"]["refused"]) == (3, {"robots.txt": 1})
    tables = list(csv.reader(warcmill(tmp_path, "report", "--csv")[1].splitlines()))
    assert ["refused", "robots.txt", "1"] in tables

    words = ("accept", "--seeds", "--launch", "web", launch, "--reason", "looked at")
    assert warcmill(tmp_path, *words)[0] == 0
    for verb in ("why", "reconcile"):
        assert warcmill(tmp_path, verb)[0] == 0
    assert "not got" not in warcmill(tmp_path, "status")[1]


def test_an_accepted_seed_is_named_again_once_it_was_got_and_is_lost_anew(tmp_path: Path, site: Site) -> None:
    seed, host = site.url("one.example"), ("one.example", "/")
    words = (site.url("a.example"), seed, "--job", "web", "--hops", "0", "--no-line")
    launches = []

    def crawl_while(*are_there: bool) -> None:
        for is_there in are_there:
            site.pages.pop(host, None)
            if is_there:
                site.pages[host] = page([])
            code, out = crawl(tmp_path, site, *words)
            assert (code, f"Not got:\n  {seed}: code 404\n" in out) == ((0, False) if is_there else (1, True))
            launches.append(launch_of(tmp_path, "web"))
        assert warcmill(tmp_path, "scan")[0] == 1

    crawl_while(False, False)

    def open_ones() -> list[str]:
        reconciled = json.loads(warcmill(tmp_path, "reconcile", "--json")[1])
        return [one["launch_id"] for one in reconciled["launches"] if one["gaps"]]

    assert open_ones() == launches
    code, out, _ = warcmill(tmp_path, "accept", seed, "--reason", "its server is being moved")
    assert code == 0
    assert f"accepted: web/{launches[0]} and later launches of the job: {seed}" in out
    assert open_ones() == []
    crawl_while(True, False, False)
    first, second, got, lost, again = launches
    assert open_ones() == [lost, again], "it was got in between"
    assert (
        f"  dead seed: its server answered 404 Not Found\n      web/{lost}  {seed}\n"
        in warcmill(tmp_path, "why", "web", lost)[1]
    )
    for launch in (first, second, got):
        assert warcmill(tmp_path, "why", "web", launch)[0] == 0
    assert warcmill(tmp_path, "accept", seed, "--reason", "its server is gone")[0] == 0
    assert open_ones() == []
    assert warcmill(tmp_path, "reconcile")[1].count(f"dead seed: {seed}\n") == 4

    decision = tmp_path / "archive/state/decisions/accepted/000001.json"
    whole = decision.read_bytes()
    decision.write_bytes(whole[:-20])  # cut short: what it accepts is named again, the other decision counts
    code, out, _ = warcmill(tmp_path, "reconcile")
    assert code == 1
    assert "then bring it back from the store: 'warcmill restore'\n" in out
    assert "      state:decisions/accepted/000001.json\n      -> warcmill restore\n" in out
    assert open_ones() == [], "a later launch has got it, accepted or not"
    decision.write_bytes(whole)
    assert open_ones() == []


def test_what_a_limit_or_a_quota_came_before_is_untried(tmp_path: Path, site: Site) -> None:
    first, second = site.url("one.example"), site.url("two.example")
    site.pages["one.example", "/"] = page([])
    words = (first, second, "--hops", "0", "--job", "web", "--limit", "1")
    (tmp_path / "narrow.toml").write_text('workers = 1\nquotas = [{ by = "host", documents = 1 }]\n')
    code, out = crawl(tmp_path, site, *words)
    assert code == 1
    assert f"Not got:\n  {second}: no crawl log has a line of it\n" in out or (
        f"Not got:\n  {first}: no crawl log has a line of it\n" in out
    )
    launch = launch_of(tmp_path, "web")
    assert "  untried seed: no crawl log has a line of it\n" in warcmill(tmp_path, "why", "web", launch)[1]
    assert json.loads(warcmill(tmp_path, "report", "web", "--json")[1])["seeds"]["end"].endswith("documents limit hit")
    code, out = crawl(tmp_path, site, *words)  # continues, and gets the other one: neither launch has a gap then
    assert (code, "continues from cp0000" in out, "Not got" in out, "no gap" in out) == (0, True, False, True), out
    assert warcmill(tmp_path, "why", "web", launch)[0] == 0
    last = launch_of(tmp_path, "web")
    found = json.loads(warcmill(tmp_path, "report", "web", last, "--json")[1])
    assert [one["state"] for one in found["seeds"]["seeds"]] == ["alive", "alive"]

    both = [site.url("a.example", path) for path in ("/", "/1")]
    code, out, _ = warcmill(tmp_path, "crawl", *both, "--hops", "0", "--job", "quota", *HERE, "--config", "narrow.toml")
    assert code == 1
    assert f"Not got:\n  {both[1]}: a quota came first (quotas:1_documents_of_host_a.example" in out, out
    row = json.loads(warcmill(tmp_path, "report", "quota", "--json")[1])["seeds"]["seeds"][1]
    assert (row["state"], row["code"]) == ("untried", -5003)


def test_a_crawl_without_its_own_report_does_not_read_as_nothing_lost(tmp_path: Path, site: Site) -> None:
    code, _ = crawl(tmp_path, site, site.url("a.example"), "--hops", "0", "--job", "web", "--no-line")
    assert code == 0
    launch = launch_of(tmp_path, "web")
    reports = tmp_path / "archive/output/reports/web" / launch
    (reports / "seeds-report.txt").unlink()
    program = (
        "import sys; from pathlib import Path; from commands.console import crawl; from warcmill.model import Launch;"
        "sys.exit(crawl.report_missed(Launch('web', sys.argv[1]), Path(sys.argv[2])))"
    )
    env = {**os.environ, "LUIGI_CONFIG_PATH": str(tmp_path / "archive/luigi.cfg")}
    done = preloaded.run("-c", program, launch, str(reports), env=env)
    assert (done.returncode, done.stdout) == (
        1, f"Not known: what became of the seeds, as {reports}/seeds-report.txt is not there: warcmill why web\n",
    )  # fmt: skip


FEED = """
[engine.own]
kind=warcmill
jobs=fed

[job.fed]
frequency=daily
start={start}

[feed]
jobs=fed
source={base}/feed.jsonl
settings={base}/settings.toml
contact=http://archive.example/
"""


@pytest.fixture
def fed(tmp_path: Path, site: Site) -> Line:
    """A line that has crawled four targets of a feed, and reported on it; of a fifth, weekly one it has no job."""
    line, start = line_at(tmp_path), datetime.now(UTC) - timedelta(hours=1)
    line.config.write_text(line.config.read_text() + FEED.format(start=start.isoformat(), base=tmp_path))
    schedules = [{"startDate": "2026-01-01", "frequency": "DAILY"}]
    wanted = {
        1: [site.url("a.example")],
        2: [site.url("a.example", "/missing"), site.url("moved.example")],
        3: [site.url("closes.example")],  # of its sitemap a page is got
        4: [site.url("one.example"), NOWHERE],
    }
    site.pages["one.example", "/"] = page([])
    rows = [{"id": target, "seeds": seeds, "schedules": schedules} for target, seeds in wanted.items()]
    weekly = [{"startDate": "2026-01-01", "frequency": "WEEKLY"}]
    rows.append({"id": 5, "seeds": [site.url("one.example")], "schedules": weekly})
    (tmp_path / "feed.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    resolve = json.dumps([f"{host}=127.0.0.1" for host in HOSTS])
    settings = f'allow_private = ["127.0.0.0/8"]\nno_delay = true\nresolve = {resolve}\n{site.settings}'
    (tmp_path / "settings.toml").write_text(settings)
    days = f"{start.date()}-{start.date() + timedelta(days=2)}"
    done = line.luigi("--module", "tasks.pulse", "pulse.ScanForLaunches", "--date-interval", days)
    assert done.returncode == 0, done.stderr
    deadline = time.monotonic() + 300
    while (found := job_log.last(line.folders["jobs"] / "fed")) is None or folders.holder(
        line.folders["jobs"] / "fed" / "state"
    ):
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    assert line.scan(day_of(found.launch)) == [0, 0]
    return line


def test_a_target_of_a_feed_none_of_whose_seeds_gave_a_page_is_named(fed: Line, site: Site) -> None:
    last = job_log.last(fed.folders["jobs"] / "fed")
    assert last
    no_page = "  target without a page: the feed asks for it, and no page was got from any seed of it\n"
    for words in (("why", "fed", last.launch), ("reconcile", day_of(last.launch))):
        told = fed.warcmill(*words)
        assert told.returncode == 1
        assert f"{no_page}      fed/{last.launch}  target:2\n      -> warcmill accept target:2 --launch" in told.stdout
        assert told.stdout.count("target:") == 2, "of the others a page was got"
        assert told.stdout.count(f"      fed/{last.launch}  http://") == 4
    told = fed.warcmill("report", "fed", last.launch)
    assert f"  dead         404  {site.url('a.example', '/missing')}, target 2: its server answered 404" in told.stdout
    assert (
        f"  dead          -3  {site.url('closes.example')}, target 3: its host closed the connection\n" in told.stdout
    )
    assert "  no page of target 2\n" in told.stdout
    document: dict[str, Any] = json.loads(fed.warcmill("report", "fed", "--json").stdout)
    assert document["seeds"]["without_page"] == ["2"]
    words = ("--launch", "fed", last.launch, "--reason", "the museum has closed")
    assert fed.warcmill("accept", site.url("a.example", "/missing"), *words).returncode == 0
    assert "target:2" in fed.warcmill("why", "fed", last.launch).stdout, "one of its two seeds is open"
    assert fed.warcmill("accept", "--seeds", *words).returncode == 0
    told = fed.warcmill("why", "fed", last.launch)
    assert (told.returncode, "  accepted: target without a page target:2" in told.stdout) == (0, True), told.stdout


def test_a_target_of_a_feed_that_no_job_ever_crawls_is_named(fed: Line) -> None:
    told = fed.warcmill("doctor").stdout
    assert "no job crawls WEEKLY, as is asked for 1 target of the feed: 5\n" in told, told
    assert "add a job to [feed] jobs whose [job.NAME] has frequency=WEEKLY" in told


def test_the_newest_launch_is_looked_for_also_where_a_root_is_away_which_is_said(
    finished: Line, tmp_path: Path
) -> None:
    config = tmp_path / "luigi.cfg"
    config.write_text(f"{finished.config.read_text()}\n[engine.second]\noutput={tmp_path}/away\njobs=events\n")
    done = preloaded.run("commands.main", "why", env={**os.environ, "LUIGI_CONFIG_PATH": str(config)})
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, f"{JOB}/{LAUNCH_ID}: finished, stages final")
    assert f"{tmp_path}/away" in done.stderr
    assert "; a launch that is only there may be newer\n" in done.stderr
