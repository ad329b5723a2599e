"""Every page of the table of routes before its judges, over an archive with launches, scripts and a group.

A new route is judged by its own address, filled in from `NAMES`; what has more addresses gets them in `MORE`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from string import Formatter
from urllib.parse import quote, urlencode

import pytest
from crawls import centres
from indexing.document_archive import DocumentArchive, id_of, warc
from indexing.searchable import Searchable
from launches import launch_sorts
from launches.engine import LAUNCH, Engine
from operating import page_trials
from playwright.sync_api import Browser, Page, expect
from records.captures import response
from records.pdfs import pdf
from records.warcs import warc_gz, warcinfo
from requesting import script_books

from commands.init import configuration
from servers import browsing, page_judges, serving
from servers.postgresql import PostgresqlServer
from servers.serving import RunningServe
from warcmill.audit import day_summary, survey
from warcmill.audit.day_summary import ScannedDays
from warcmill.extracts.harvest import HarvestWorkers
from warcmill.extracts.text_workers import TextWorkers
from warcmill.web.access import Role, add_token
from warcmill.web.routes import ROUTES

JOBS = ("refused", "runs-and-has-a-checkpoint", "crawled", "failed", "stale")
FED = JOBS[2]
DAY = date(2016, 10, 19)
HTML = b"Content-Type: text/html; charset=utf-8"
TITLE = "<title>&lt;b&gt; \u202egpj.exe".encode() + b"W" * 900 + b"</title>"
HOSTILE = "%3Cb%3E%E2%80%AE" + "W" * 900
ENGINE = f"""
[engine.own]
kind=warcmill
jobs={",".join(JOBS)}

[job.{JOBS[0]}]
frequency=daily
start=2016-10-19T00:00:00Z

[job.{FED}]
frequency=daily
start=2016-10-19T00:00:00Z

[feed]
jobs={FED}
source={{feed}}
contact=https://archive.example/

[documents]
since=2016-10-01

[group.{centres.NAME}]
centre={{centre}}
jobs={centres.EAST}, {centres.WEST}
"""
BEES, WASPS = pdf("Of bees", title="Bees and others"), pdf("Of wasps")
NAMES = {
    "id": id_of(BEES),
    "job": JOBS[0], "launch_id": LAUNCH.id, "group": centres.NAME, "cluster": centres.EAST, "host": centres.LARGE,
    "number": "1", "target": "7",
}  # fmt: skip
OF_DOCUMENTS = {
    "http://s.example/": f"{TITLE.decode()}<h1>Insects</h1><a href=/bees.pdf>All about bees</a>"
    f" <a href=/wasps.pdf>&lt;b&gt; \u202egpj.exe {'W' * 900}</a>",
    "http://s.example/bees.pdf": BEES,
    "http://s.example/wasps.pdf": WASPS,
}  # fmt: skip
OF_TRIALS = {"action_id": page_trials.ID}
OF_SCRIPTS = {"name": "shop", "key": quote(quote(script_books.MARKUP, safe=""))}
MORE = {
    "/captures": ["?url=http://a.example/1", "?url=http://nowhere.example/"],
    "/hide": ["?entry=http://a.example/1"],
    "/documents": ["?status=", f"?words={HOSTILE}&status=NEW&days=9999"],
    "/groups/{group}/clusters/{cluster}": ["?status=Failed"],
    "/groups/{group}/uri": [f"?{urlencode({'url': url})}" for url in (f"http://{centres.LARGE}/0", centres.ODD)],
    "/calendar": [f"?day={date.today()}", f"?words={HOSTILE}"],
    "/jobs": [f"?words={HOSTILE}", "?tag=news"],
    "/jobs-at-once": [f"?do=pause&job={JOBS[0]}&job=nowhere"],
    "/jobs/{job}": ["?status=RUNNING", "?status=STOP"],
    "/jobs/{job}/targets": ["?words=7", f"?words={HOSTILE}"],
    "/jobs/{job}/tasks": ["?status=failed", "?status=odd"],
    "/launches/{job}/{launch_id}/pages": ["?view=sites", "?view=not-got", "?view=changed"],
    "/search": ["?q=heron", f"?q={HOSTILE}", "?q=a.example/1", "?q=heron&from=yesterday"],
    "/status": ["?from=2016-10-01&to=2016-10-31", "?from=2016-10-01&to=2016-10-31&by=day"],
}
OF_EVERY_SORT = "/launches/{job}/{launch_id}"
NOWHERE = ("/nowhere", f"/{HOSTILE}", "/jobs/%2E%2E/start")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, postgresql: PostgresqlServer) -> Iterator[RunningServe]:
    """An archive with a launch of every sort, and one that can be searched."""
    made = Searchable(tmp_path_factory.mktemp("archive"))
    first = Engine(made.base / "line")
    assert set(JOBS) <= set(launch_sorts.leave_all(first))
    script_books.leave(first.folders["jobs"] / JOBS[0])
    page_trials.leave(first.state.store, JOBS[0])
    pages = (response(f"http://a.example/{number}", HTML, body=TITLE + b"heron") for number in range(40))
    with TextWorkers(1) as made.workers:
        made.add("20161021234428", {"a.warc.gz": warc_gz(warcinfo(), *pages)})
        made.fold()
    documents = DocumentArchive(made.base)
    with HarvestWorkers(1) as documents.readers:
        documents.add("20161022234428", {"d.warc.gz": warc(OF_DOCUMENTS)})
        documents.fold()
    days = DAY, DAY + timedelta(days=1)
    found = survey.find(first.state, first.rootmap, *days)
    day_summary.rewrite(first.state, first.rootmap, ScannedDays(*days, found.launches, frozenset()), {})
    group = centres.leave(postgresql, made.base)
    config = made.base / "luigi.cfg"
    config.write_text(configuration({**first.folders, "index": made.base / "index"}, first.layout))
    feed = made.base / "feed.jsonl"
    title = f"<b> \u202e{'W' * 900}"
    feed.write_text(json.dumps({"id": 7, "title": title, "seeds": ["http://a.example/"]}) + "\nbroken <b>\n")
    with config.open("a") as file:
        file.write(ENGINE.format(centre=group.centre.url, feed=feed))
    serving.configure(config)
    token = add_token(made.state.store, "anna", Role.OPERATOR, None)
    with serving.serving(config, made.base / "log", token) as server:
        yield server


def addresses(page: Page, served: RunningServe) -> Iterator[str]:
    """The addresses of all pages, those of refusals too."""
    yield from NOWHERE
    of_every = NAMES | a_log(page, served) | {"action_id": taken(page, served)}
    for route in ROUTES:
        own = OF_SCRIPTS if "/scripts/" in route.path else OF_TRIALS if "/trial/" in route.path else {}
        names = of_every | own
        if not route.template or "GET" not in route.methods:
            continue
        of_one = (FED,) if "target" in route.path else JOBS[:1]
        for job in JOBS if route.path == OF_EVERY_SORT else of_one:
            parts = [name.partition(":")[0] for _, name, _, _ in Formatter().parse(route.path) if name]
            assert set(parts) <= names.keys(), f"{route.path}: give NAMES a value for each part"
            path = re.sub(r"\{(\w+)[^}]*\}", lambda match: {**names, "job": job}[match[1]], route.path)  # noqa: B023
            yield a_record(page, served) if path == "/record" else path
            yield from (path + fields for fields in MORE.get(route.path, []))


def a_record(page: Page, served: RunningServe) -> str:
    """The address of the header of a record, as the page of a URL links to it."""
    page.goto(f"{served.address}captures?url=http://a.example/1")
    way = page.get_by_role("link", name="header").first.get_attribute("href")
    assert way
    return way


def a_log(page: Page, served: RunningServe) -> dict[str, str]:
    """A stage and the name of a log of it, as a launch's page links to it."""
    page.goto(served.address + OF_EVERY_SORT[1:].format(**NAMES))
    way = page.get_by_role("link", name="crawl.log").first.get_attribute("href")
    assert way
    stage, _, name = way.partition("/reports/")[2].partition("/")
    return {"stage": stage, "name": name}


def taken(page: Page, served: RunningServe) -> str:
    """An action that was taken, by the keyboard: its id."""
    page.goto(f"{served.address}scan")
    browsing.press_to(page, "Scan")
    page.keyboard.press("Enter")
    page.wait_for_url("**/actions/*")
    page.locator("#action:not([data-refresh])").wait_for()
    return page.url.rpartition("/")[2]


def test_every_page_passes_the_judges(served: RunningServe, browser: Browser, tmp_path: Path) -> None:
    faults, saved, statuses = [], [], {}
    with browsing.window(browser, token=served.token) as page:
        messages: list[str] = []
        page.on("console", lambda message: messages.append(f"{page.url}: {message.text}"))
        for number, address in enumerate(addresses(page, served)):
            answer = page.goto(served.address + address.removeprefix("/"))
            assert answer
            statuses[address] = answer.status
            saved.append(tmp_path / f"{number}{re.sub(r'[^a-z]+', '-', address)[:80]}.html")
            saved[-1].write_bytes(answer.body())
            faults += page_judges.faults(page)
    assert {statuses.pop(address) for address in NOWHERE} == {404}
    refused = {address for address, status in statuses.items() if status != 200}
    assert all("?" in address for address in refused), f"{refused}: a page that shows nothing is not judged"
    assert faults == []
    assert page_judges.nu(*saved) == []
    assert [one for one in messages if "Content Security Policy" in one] == []


def test_a_script_is_set_by_the_keyboard_without_javascript(served: RunningServe, browser: Browser) -> None:
    with browsing.window(browser, 320, token=served.token, scripts=False) as page:
        page.goto(f"{served.address}jobs/{JOBS[0]}")
        browsing.press_to(page, "Set… idle")
        page.keyboard.press("Enter")
        page.wait_for_url("**/scripts/idle/set")
        browsing.press_to(page, "Group")
        page.keyboard.type("museums")
        browsing.press_to(page, "Set")
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/jobs/{JOBS[0]}")
        expect(page.get_by_role("rowheader", name="museums")).to_be_attached()


def test_a_curator_s_day_by_the_keyboard_without_javascript(served: RunningServe, browser: Browser) -> None:
    with browsing.window(browser, 320, token=served.token, scripts=False) as page:
        page.goto(f"{served.address}documents")
        browsing.press_to(page, "All")
        page.keyboard.press("Enter")
        page.wait_for_url("**/documents?status=")
        browsing.press_to(page, "All about bees")  # the box before it
        page.keyboard.press("Space")
        browsing.press_to(page, "make them")
        page.keyboard.type("SAVED")
        browsing.press_to(page, "Decide")
        page.keyboard.press("Enter")
        page.wait_for_url("**/documents?status=&done=1")
        expect(page.get_by_text("1 document is decided.")).to_be_visible()
        page.goto(f"{served.address}documents/{id_of(BEES)}")
        browsing.press_to(page, "Other title")
        page.keyboard.type("Bees, wasps and ants")
        browsing.press_to(page, "Decide")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Bees, wasps and ants")
        page.reload()
        browsing.press_to(page, "Other title")
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("ArrowDown")  # as crawls have it
        browsing.press_to(page, "Decide")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("All about bees")
        expect(page.get_by_role("row", name="title withdrawn")).to_have_count(1)
