"""Crawls that are cut short, and sites that come back, on a real site: each place names it, and later launches heal."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import preloaded
import pytest
from sites.several_hosts import Page, page, serve
from waiting import wait_for

from warcmill.crawl.launch import folders

PAGES = 12
HERE = ["--allow-private", "127.0.0.0/8", "--no-delay", "--resolve", "a.example=127.0.0.1"]
JOB = "a-example"
ONCE = "[retries]\ntimes = 1\nwait = 0.1\n"


class Site:
    """A site of some pages, each linked from the first."""

    def __init__(self) -> None:
        self.pages = {("a.example", f"/{n}"): page([]) for n in range(1, PAGES)}
        self.pages["a.example", "/robots.txt"] = Page(b"", "text/plain")
        self.port = 0
        self.is_up(True)

    def is_up(self, up: bool) -> None:
        links = [f"/{n}" for n in range(1, PAGES)]
        self.pages["a.example", "/"] = page(links) if up else Page(b"later", "text/plain", status=503)

    @property
    def url(self) -> str:
        return f"http://a.example:{self.port}/"


@pytest.fixture
def site() -> Iterator[Site]:
    found = Site()
    with serve(found.pages) as found.port:
        yield found


def warcmill(folder: Path, *words: str) -> tuple[int, str]:
    env = {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"}
    done = preloaded.run("commands.main", *words, env=env, folder=folder)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


def crawl(folder: Path, site: Site, *words: str) -> tuple[int, str]:
    return warcmill(folder, "crawl", site.url, *HERE, *words)


def launches(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "archive/output/warcs" / JOB).iterdir())


def of_json(folder: Path, *words: str) -> Any:
    return json.loads(warcmill(folder, *words, "--json")[1])


def test_a_limit_is_named_everywhere_until_a_launch_continues(tmp_path: Path, site: Site) -> None:
    code, out = crawl(tmp_path, site, "--limit", "4")
    cut = f"ended by --limit: 4 of {PAGES} known, {PAGES - 4} wait"
    assert (code, out.splitlines()[-1]) == (0, f"{JOB}: {cut}; the same command continues")
    assert "1 cut short" in out
    code, why = warcmill(tmp_path, "why")
    assert (code, f"  cut short: {cut}\n" in why, "nothing is missing\n" in why) == (0, True, False)
    (command,) = (line.partition("-> warcmill ")[2] for line in why.splitlines() if "-> " in line)
    assert of_json(tmp_path, "why")["cut"] == cut
    assert f"cut short: {cut}\n" in warcmill(tmp_path, "report")[1]
    assert of_json(tmp_path, "report")["cut"] == cut
    assert f"{JOB}/{launches(tmp_path)[0]}: {cut}\n" in warcmill(tmp_path, "status")[1]
    status = of_json(tmp_path, "status")
    assert (status["launches"][0]["cut"], status["totals"]["cut_short"], status["totals"]["done"]) == (cut, 1, 0)
    assert of_json(tmp_path, "reconcile")["launches"][0]["cut"] == cut
    assert warcmill(tmp_path, *command.split())[0] == 0, "the printed command continues"
    second = launches(tmp_path)[1]
    assert warcmill(tmp_path, "pulse", "stop", JOB)[0] == 0
    warcmill(tmp_path, "scan")
    assert "cut" not in of_json(tmp_path, "why", JOB, launches(tmp_path)[0])
    assert f"launch {second} took on the rest" in warcmill(tmp_path, "why", JOB, launches(tmp_path)[0])[1]


def test_a_quota_of_a_host_is_named_as_one(tmp_path: Path, site: Site) -> None:
    (tmp_path / "few.toml").write_text('[[quotas]]\nby = "host"\ndocuments = 3\n')
    code, out = crawl(tmp_path, site, "--config", "few.toml")
    last = out.splitlines()[-1]
    assert code == 0
    assert f"{JOB}: cut by a quota: " in last, out
    assert "left out by a quota; a larger quota in its crawl.toml brings the rest" in last
    assert "cut by a quota" in of_json(tmp_path, "why")["cut"]


def test_what_a_default_bound_cut_is_named_everywhere_and_the_code_is_1(tmp_path: Path, site: Site) -> None:
    (tmp_path / "few.toml").write_text('defaults = ["quotas"]\n[[quotas]]\nby = "host"\ndocuments = 3\n')
    code, out = crawl(tmp_path, site, "--config", "few.toml")
    text = f"[[quotas]] documents = 3, the default, left out {PAGES - 3} URIs, first {site.url}"
    assert (code, f"\n  {text}" in out, "1 gap" in out) == (1, True, True), out
    assert f"\n{text}" in warcmill(tmp_path, "report")[1]
    (cut,) = of_json(tmp_path, "report")["bounds"]
    assert (cut["finding"], cut["key"], cut["number"], cut["value"]) == (True, "[[quotas]] documents", PAGES - 3, 3)
    code, why = warcmill(tmp_path, "why")
    assert (code, f"cut by a default: {text}" in why) == (1, True)
    assert warcmill(tmp_path, "accept", "bound:quota-documents", "--reason", "enough")[0] == 0
    assert warcmill(tmp_path, "why")[0] == 0
    code, out = crawl(tmp_path, site, "--no-line", "--config", "few.toml")
    assert (code, f"\n  {text}" in out) == (1, True), out


def test_a_seed_that_was_down_is_healed_by_the_next_launch(tmp_path: Path, site: Site) -> None:
    (tmp_path / "once.toml").write_text(ONCE)
    crawl(tmp_path, site)
    site.is_up(False)
    code, _ = crawl(tmp_path, site, "--config", "once.toml")
    down = launches(tmp_path)[1]
    assert code == 1
    why = of_json(tmp_path, "why", JOB, down)
    assert {gap["kind"] for gap in why["gaps"]} == {"dead seed"}
    assert (
        f"once its site answers: warcmill pulse start {JOB} --again; else: warcmill accept " in why["gaps"][0]["todo"]
    )
    site.is_up(True)
    code, _ = crawl(tmp_path, site, "--config", "once.toml")
    later = launches(tmp_path)[2]
    assert code == 0
    code, text = warcmill(tmp_path, "why", JOB, down)
    assert (code, f"missed then, got later: dead seed {site.url} (launch {later})" in text) == (0, True), text
    healed = of_json(tmp_path, "why", JOB, down)
    assert (healed["gaps"], healed["got_later"][0]["launch_id"]) == ([], later)
    assert f"; missed then, got later by launch {later}\n" in warcmill(tmp_path, "report", JOB, down)[1]
    assert warcmill(tmp_path, "reconcile")[0] == 0
    assert of_json(tmp_path, "status")["totals"]["in_trouble"] == 0


def test_a_page_is_gone_by_its_server_and_else_not_visited(tmp_path: Path, site: Site) -> None:
    (tmp_path / "once.toml").write_text(ONCE)
    words = ("--config", "once.toml")
    crawl(tmp_path, site, *words)
    first = launches(tmp_path)[0]
    site.is_up(False)
    crawl(tmp_path, site, *words)
    assert of_json(tmp_path, "report")["before"] is None, "it got nothing"
    site.is_up(True)
    site.pages["a.example", "/1"] = Page(b"", status=410)
    del site.pages["a.example", "/2"]
    site.pages["a.example", "/3"] = Page(b"", status=500)
    site.pages["a.example", "/"] = page([f"/{n}" for n in range(1, PAGES - 1)])
    crawl(tmp_path, site, *words)
    found = of_json(tmp_path, "report")["before"]
    assert found["before"] == first
    assert found["counts"] == {"new": 0, "changed": 1, "same": PAGES - 5, "gone": 2, "not visited": 2}
    assert found["first"]["gone"] == [f"{site.url}1", f"{site.url}2"]
    assert found["why"] == {
        f"{site.url}{PAGES - 1}": "no crawl log has a line of it",
        f"{site.url}3": "its server answered 500 Internal Server Error",
    }
    shown = warcmill(tmp_path, "report")[1]
    assert f"  not visited {site.url}3: its server answered 500 Internal Server Error\n" in shown
    assert warcmill(tmp_path, "report")[1] == shown, "as it was kept"


def test_each_missed_url_is_listed_with_its_status_reason_and_referrer(tmp_path: Path, site: Site) -> None:
    (tmp_path / "once.toml").write_text(ONCE)
    site.pages["a.example", "/robots.txt"] = Page(b"User-agent: *\nDisallow: /4\n", "text/plain")
    del site.pages["a.example", "/2"]
    site.pages["a.example", "/3"] = Page(b"", status=500)
    crawl(tmp_path, site, "--config", "once.toml")
    first = launches(tmp_path)[0]
    found = of_json(tmp_path, "report", "--missed")["missed"]
    assert [(one["url"], one["status"], one["why"], one["referrer"]) for one in found] == [
        (f"{site.url}2", 404, "its server answered 404 Not Found", site.url),
        (f"{site.url}3", 500, "its server answered 500 Internal Server Error", site.url),
        (f"{site.url}4", -9998, "robots.txt forbids it", site.url),
    ]
    assert warcmill(tmp_path, "report", "--missed", "--csv")[1].splitlines()[:2] == [
        "url,status,why,referrer",
        f"{site.url}2,404,its server answered 404 Not Found,{site.url}",
    ]
    code, text = warcmill(tmp_path, "report", JOB, first, "--missed")
    assert (code, text.splitlines()[1]) == (
        0, f"   500  {site.url}3: its server answered 500 Internal Server Error; from {site.url}"
    )  # fmt: skip
    assert f"{JOB}/{first}: 3 URLs missed\n" in text
    begin = [f"{JOB}/{first}", "3 URLs missed", *text.splitlines()[:3]]
    assert warcmill(tmp_path, "report")[1].splitlines()[:5] == begin, "what was missed comes first"
    site.pages["a.example", "/3"] = page([])
    crawl(tmp_path, site, "--config", "once.toml")
    assert f"{site.url}3" not in warcmill(tmp_path, "report", JOB, first, "--missed")[1], "a later launch got it"


def ended(folder: Path) -> None:
    wait_for(lambda: not folders.holder(folder / "archive/jobs" / JOB / "state"))
    assert warcmill(folder, "scan")[0] == 0


def test_a_retry_asks_for_what_was_missed_and_for_nothing_that_was_got(tmp_path: Path, site: Site) -> None:
    (tmp_path / "once.toml").write_text(ONCE)
    site.pages["a.example", "/3"] = Page(b"", status=500)
    del site.pages["a.example", "/4"]
    crawl(tmp_path, site, "--config", "once.toml")
    site.pages["a.example", "/3"] = page(["/new", "/5"])
    site.pages["a.example", "/new"] = page([])
    code, out = warcmill(tmp_path, "job", JOB, "retry", "--missed")
    assert (code, f"{JOB}: 2 URLs are asked for again" in out) == (0, True), out
    ended(tmp_path)
    first, second = launches(tmp_path)
    lines = [*(tmp_path / "archive/output/logs" / JOB / second).glob("crawl.log*")]
    asked = {line.split()[3] for log in lines for line in log.read_text().splitlines()}
    assert {f"{site.url}{path}" for path in ("3", "4", "new")} == asked - {f"{site.url}robots.txt"}
    assert [one["url"] for one in of_json(tmp_path, "report", JOB, first, "--missed")["missed"]] == [f"{site.url}4"]
    assert not (tmp_path / "archive/jobs" / JOB / "retry.jsonl").exists()
    assert warcmill(tmp_path, "why")[0] == 0

    def retried(*words: str) -> tuple[int, str]:
        return warcmill(tmp_path, "job", JOB, "retry", *words)

    code, _ = retried("http://elsewhere.example/")
    assert (code, len(launches(tmp_path))) == (1, 2), "it is out of the scope: nothing is begun, nothing is written"
    assert not (tmp_path / "archive/jobs" / JOB / "retry.jsonl").exists()
    assert retried(f"{site.url}7", "http://elsewhere.example/")[0] == 0
    ended(tmp_path)
    third = launches(tmp_path)[2]
    assert f" {site.url}7 " in (tmp_path / "archive/output/logs" / JOB / third / "crawl.log").read_text()
