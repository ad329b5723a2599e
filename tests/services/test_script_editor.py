"""The page of a script in a real browser: it fetches, steps, steps into a follow, proposes selectors, saves.

The site's own log shows what was asked for; scripts run within their walls.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from records.captures import response
from records.warcs import warc_gz, warcinfo
from sites import scripted_site
from sites.scripted_site import ScriptedSite

from commands.init import configuration
from servers import browsing, page_judges, pins, serving
from servers.serving import RunningServe
from warcmill.crawl.launch.folders import STATE
from warcmill.layout import OutputLayout
from warcmill.model import Root
from warcmill.scripts import process
from warcmill.scripts.taskbook import ResultNote, TaskBook, TaskNote
from warcmill.stores import sentinel
from warcmill.stores.opening import open_folder
from warcmill.web.access import Role, add_token

ROOTS: tuple[Root, ...] = ("output", "jobs", "state", "store")
SCRIPT = """\
from pyspider.libs.base_handler import *


class Handler(BaseHandler):
    def on_start(self):
        self.crawl("SITE/list", callback=self.index_page)

    def index_page(self, response):
        for link in response.doc("table.books a.title").items():
            self.crawl(link.attr.href, callback=self.detail_page)

    def detail_page(self, response):
        print("read", response.url)
        return {"title": response.doc("h1").text()}
"""
LIST = """<!doctype html><title>Books</title><base href="/elsewhere/"><h1>Books</h1>
<table class="books"><tr><td><a class="title" href="/one">One</a><td>1.00</tr>
<tr><td><a class="title" href="/two">Two</a><td>2.00</tr></table>"""
BOOK = '<!doctype html><title>One</title><h1>The first</h1><p class="price">1.00</p><p class="price old">2.00</p>'
HOSTILE = """<!doctype html><title>x</title><base href="http://a.example/">
<meta http-equiv="refresh" content="0; url=/leaked/refresh">
<script>top.ran = 1; fetch("/leaked/script")</script><script src="/static/refresh.js"></script>
<link rel="stylesheet" href="/leaked/style"><link rel="prefetch" href="/leaked/prefetch">
<style>@import "/leaked/import";</style>
<body onload="top.ran = 2" background="/leaked/background" style="background: url(/leaked/inline)">
<h1 onclick="top.ran = 3">Heading</h1><a id="js" href="javascript:top.ran = 4">script</a>
<a id="away" href="/leaked/link" target="_top" ping="/leaked/ping">away</a>
<iframe src="/leaked/frame"></iframe><iframe srcdoc="<script>top.ran = 5</script>"></iframe>
<object data="/leaked/object"></object><embed src="/leaked/embed">
<img src="/leaked/image" srcset="/leaked/set 2x" onerror="top.ran = 6">
<picture><source srcset="/leaked/source"><img src="/leaked/in-picture"></picture>
<video src="/leaked/video" poster="/leaked/poster" autoplay></video><audio src="/leaked/audio" autoplay></audio>
<svg onload="top.ran = 7"><image href="/leaked/svg"/><script>top.ran = 8</script>
<foreignObject><img src="/leaked/foreign"></foreignObject></svg>
<form action="/leaked/form"><input autofocus onfocus="top.ran = 9" name="a"><button id="send">send</button>
<input type="image" src="/leaked/button"></form>
<template><img src="/leaked/template"></template><noscript><img src="/leaked/noscript"></noscript>
<details open ontoggle="top.ran = 10">x</details><b"d>odd</b"d><x-y>own</x-y><p>\u202egnp.exe \U0001f600</p>
"""


@dataclass(frozen=True)
class World:
    """A served job of scripts, and the site that they crawl."""

    jobs: Path
    server: RunningServe
    site: ScriptedSite
    token: str
    other: str

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.site.port}"

    def write(self, name: str, text: str = SCRIPT) -> str:
        """Write a script; return the address of its page."""
        (self.jobs / "shops" / "scripts" / f"{name}.py").write_text(text.replace("SITE", self.base))
        return f"{self.server.address}jobs/shops/scripts/{name}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A line with one job of scripts, served without replay."""
    base = tmp_path_factory.mktemp("a line")
    folders = {root: base / root for root in ROOTS}
    for folder in folders.values():
        folder.mkdir()
    sentinel.adopt(folders)
    job = folders["jobs"] / "shops"
    (job / "scripts").mkdir(parents=True)
    for name, data in process.files({"render": {"sandbox": False}}).items():
        (job / name).write_bytes(data)
    config = base / "luigi.cfg"
    config.write_text(configuration(folders, OutputLayout.KIND_FIRST))
    ports = pins.free({"port": 0, "replay_port": 0})
    with config.open("a") as file:
        file.write("\n[engine.own]\nkind=warcmill\njobs=shops\nallow_private=127.0.0.0/8\n\n[serve]\nreplay=false\n")
        file.write("".join(f"{name}={port}\n" for name, port in ports.items()))
    state = open_folder("state", str(folders["state"]))
    tokens = [add_token(state, name, Role.CURATOR, None) for name in ("anna", "boris")]
    with scripted_site.serve() as site, serving.serving(config, base / "log", tokens[0]) as server:
        site.pages |= {"/list": (LIST, "text/html"), "/one": (BOOK, "text/html"), "/two": (BOOK, "text/html")}
        site.pages["/hostile"] = (HOSTILE, "text/html; charset=utf-8")
        site.pages["/long"] = ("<!doctype html>" + "<p class=a>word</p>" * 550_000, "text/html; charset=utf-8")
        yield World(folders["jobs"], server, site, *tokens)


@pytest.fixture
def page(world: World, browser: Browser) -> Iterator[Page]:
    """A window of a curator."""
    with browsing.window(browser, token=world.token) as window:
        yield window


def editor(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Text of the script")


def step(page: Page, name: str = "Step") -> None:
    page.get_by_role("button", name=name, exact=True).click()
    expect(page.locator("#debugger")).to_have_attribute("aria-busy", "false")


def into(page: Page, number: int = 0) -> None:
    """Step into a follow."""
    page.get_by_role("button", name="Step into").nth(number).click()
    expect(page.locator("#debugger")).to_have_attribute("aria-busy", "false")


def tab(page: Page, name: str) -> Locator:
    """Open a tab; return its panel."""
    page.get_by_role("tab", name=name).click()
    return page.get_by_role("tabpanel")


def replace(page: Page, old: str, new: str) -> None:
    """Edit the text as a person does: all of it is selected and written again."""
    text = "\n".join(one.strip("\n") for one in editor(page).locator(".cm-line").all_inner_texts())
    assert old in text
    editor(page).focus()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text.replace(old, new))


def test_a_script_is_fetched_stepped_edited_and_stepped_again_without_asking_the_site(page: Page, world: World) -> None:
    page.goto(world.write("shop"))
    step(page)
    expect(page.get_by_role("tab", name="Follows")).to_have_text("Follows 1")
    asked = len(world.site.log)
    into(page)
    assert world.site.log[asked:] == ["GET 127.0.0.1/robots.txt", "GET 127.0.0.1/list"]
    expect(page.locator("#said")).to_contain_text("Read from the site: 200")
    into(page, 1)
    expect(tab(page, "Result")).to_contain_text('"title": "The first"')
    expect(tab(page, "Log")).to_contain_text(f"read {world.base}/two")
    replace(page, '"h1"', '"p.price.old"')
    step(page)
    expect(tab(page, "Result")).to_contain_text('"title": "2.00"')
    assert world.site.log[asked + 2 :] == ["GET 127.0.0.1/two"]
    step(page, "Fetch again")
    assert world.site.log[asked + 3 :] == ["GET 127.0.0.1/two"]
    step(page, "Back")
    assert json.loads(page.locator("#task").input_value())["url"] == f"{world.base}/list"
    expect(page.get_by_role("tab", name="Follows")).to_have_text("Follows 2")
    step(page)
    assert len(world.site.log) == asked + 4, "its answer is still there"


def test_a_click_in_the_page_proposes_a_selector_that_is_marked_edited_and_added(page: Page, world: World) -> None:
    page.goto(world.write("helped"))
    step(page)
    into(page)
    tab(page, "Web")
    shown = page.frame_locator("#web")
    shown.get_by_text("Two", exact=True).click()
    expect(page.get_by_label("Selector helper")).to_have_value("a.title")
    expect(page.locator("#matched")).to_have_text("2 elements")
    expect(shown.locator("[data-marked]")).to_have_text(["One", "Two"])
    shown.get_by_text("1.00").click()
    expect(page.locator("#matched")).to_have_text("4 elements")
    page.get_by_label("Selector helper").fill("table a[href='/two']")
    expect(shown.locator("[data-marked]")).to_have_text(["Two"])
    page.get_by_label("Selector helper").fill("a[")
    expect(page.locator("#matched")).to_have_text("This is not a CSS selector.")
    page.get_by_label("Selector helper").fill("td > a.title")
    editor(page).focus()
    page.keyboard.press("Control+End")
    page.get_by_role("button", name="Add to the script").click()
    expect(editor(page)).to_contain_text("response.doc('td > a.title')")
    assert browsing.focused(page) == "" or page.evaluate("document.activeElement.id") == "editor"


def test_of_two_who_save_the_second_sees_both_texts_and_nothing_of_theirs_is_lost(
    page: Page, world: World, browser: Browser
) -> None:
    address = world.write("both")
    path = world.jobs / "shops" / "scripts" / "both.py"
    page.goto(address)
    with browsing.window(browser, token=world.other) as second:
        second.goto(address)
        replace(second, '"h1"', '"h2"')
        second.get_by_label("Why").fill("The heading has moved")
        second.keyboard.press("Control+s")
        expect(second.locator("#saved")).to_contain_text("Saved as edition")
    assert '"h2"' in path.read_text()
    replace(page, '"h1"', '"h3"')
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("boris has saved it meanwhile")
    expect(page.get_by_role("alert").locator("pre")).to_contain_text('"h2"')
    expect(editor(page)).to_contain_text('"h3"')
    assert page_judges.faults(page) == []
    assert '"h2"' in path.read_text()
    page.get_by_role("button", name="Save mine over it").click()
    expect(page.locator("#saved")).to_contain_text("Saved as edition")
    expect(page.get_by_role("alert")).to_have_count(0)
    assert '"h3"' in path.read_text()
    page.goto(address)
    expect(page.get_by_role("region", name="Editions of the script").locator("tbody tr")).to_have_count(3)


def test_without_javascript_a_text_is_saved_and_a_conflict_shows_both(
    world: World, browser: Browser, tmp_path: Path
) -> None:
    address = world.write("plain")
    path = world.jobs / "shops" / "scripts" / "plain.py"
    with browsing.window(browser, scripts=False, token=world.token) as first:
        first.goto(address)
        before = first.get_by_label("Text of the script").input_value()
        assert before == path.read_text()
        path.write_text(before.replace('"h1"', '"h2"'))
        first.get_by_label("Text of the script").fill(before.replace('"h1"', '"h3"'))
        first.get_by_role("button", name="Save").click()
        expect(first.get_by_role("alert")).to_contain_text("it was edited by hand meanwhile")
        assert '"h2"' in first.get_by_label("Edition").input_value()
        assert '"h3"' in first.get_by_label("Yours").input_value()
        (tmp_path / "conflict.html").write_text(first.content(), "utf-8")
        assert page_judges.nu(tmp_path / "conflict.html") == []
        assert '"h2"' in path.read_text()
        first.get_by_role("button", name="Save").click()
        expect(first.locator("h1")).to_contain_text("Script plain")
    assert path.read_text() == before.replace('"h1"', '"h3"')


def test_nothing_of_a_hostile_page_runs_and_no_request_leaves(page: Page, world: World) -> None:
    requests = list[str]()
    page.goto(world.write("hostile", SCRIPT.replace("/list", "/hostile").replace("table.books a.title", "a")))
    step(page)
    into(page)
    page.on("request", lambda request: requests.append(request.url))
    tab(page, "Web")
    shown = page.frame_locator("#web")
    expect(shown.locator("h1")).to_have_text("Heading")
    for text in ("Heading", "script", "away", "send", "odd"):
        shown.get_by_text(text, exact=True).first.click()
        expect(page.locator("#matched")).to_contain_text("element")
    expect(shown.locator("[data-kind=img]").first).to_be_visible()
    page.get_by_label("Selector helper").fill("form input")
    expect(page.locator("#matched")).to_have_text("2 elements")
    tab(page, "HTML")
    expect(page.get_by_role("tabpanel")).to_contain_text('<body onload="top.ran = 2"')
    assert page.evaluate("typeof ran") == "undefined"
    assert [one for one in requests if urlsplit(one).path != "/jobs/shops/scripts/hostile"] == []
    assert not [one for one in world.site.log if "leaked" in one]
    assert page.evaluate("location.pathname") == "/jobs/shops/scripts/hostile"


def test_markup_and_odd_letters_in_logs_results_and_follows_are_texts(page: Page, world: World) -> None:
    markup = "<img src=/leaked onerror=top.ran=1>"
    body = f'''\
        print("{markup} \\u202e \\ud800 \\x1b[31m")
        self.crawl("http://a.example/?{markup}", callback=self.on_start, save="{markup}")
        self.send_message("hostile", "{markup}")
        return {{"{markup}": "{markup}\\ud800"}}
'''
    page.goto(world.write("marked", SCRIPT.partition('        self.crawl("SITE')[0] + body))
    step(page)
    for name in ("Follows", "Messages", "Result", "Log"):
        expect(tab(page, name)).to_contain_text("onerror")
        expect(page.locator("[role=tabpanel] img")).to_have_count(0)
    expect(page.get_by_role("tabpanel")).to_contain_text("\\u202e")
    assert page.evaluate("typeof ran") == "undefined"


def test_a_page_of_ten_megabytes_is_stepped_and_the_beginning_of_it_shown(page: Page, world: World) -> None:
    text = SCRIPT.replace("/list", "/long").replace('response.doc("table.books a.title").items()', "[]")
    page.goto(world.write("long", text.replace("for link", 'print(len(response.doc("p.a")))\n        for link')))
    step(page)
    into(page)
    expect(tab(page, "Log")).to_contain_text("550000")
    tab(page, "Web")
    expect(page.locator("#matched")).to_have_text("The page is longer than what is shown.")


def test_a_page_that_is_made_by_its_scripts_is_opened_in_the_browser(page: Page, world: World) -> None:
    world.site.pages["/made"] = ("<title>x</title><script>document.write('<h1>by a script</h1>')</script>", "text/html")
    text = SCRIPT.replace("/list", "/made").replace("callback=self.index_page", "callback=self.detail_page")
    page.goto(world.write("rendered", text.replace("=self.detail_page)", '=self.detail_page, fetch_type="js")', 1)))
    step(page)
    into(page)
    expect(tab(page, "Result")).to_contain_text('"title": "by a script"')
    expect(page.frame_locator("#web").locator("h1")).to_have_count(0)
    tab(page, "Web")
    expect(page.frame_locator("#web").locator("h1")).to_have_text("by a script")


def test_a_task_of_the_archive_is_opened_on_its_record_and_a_trial_names_the_empty_field(
    page: Page, world: World
) -> None:
    address, url = world.write("stored"), f"{world.base}/one"
    archived(world, url, b"<h1>As it was</h1>")
    page.goto(f"{address}?task=t")
    assert json.loads(page.get_by_label("Task, as JSON").input_value())["url"] == url
    asked = len(world.site.log)
    step(page)
    expect(page.locator("#said")).to_contain_text("Read from the archive, w.warc.gz at ")
    expect(tab(page, "Result")).to_contain_text("As it was")
    replace(page, '"h1"', '"h9"')
    step(page, "Try")
    expect(page.locator("#said")).to_have_text("1 page, 1 of them worse than before; no site was asked.")
    expect(page.get_by_role("tabpanel")).to_contain_text('title: "As it was" → ""')
    assert page_judges.faults(page) == []
    assert len(world.site.log) == asked
    step(page, "Fetch again")
    assert world.site.log[-1] == "GET 127.0.0.1/one"


def archived(world: World, url: str, body: bytes) -> None:
    """Leave a task `t` of the script `stored` that has read a page, and the WARC of a launch that has it."""
    launch = "20261021234428"
    warcs = world.jobs.parent / "output" / "warcs" / "shops" / launch
    warcs.mkdir(parents=True)
    (world.jobs / "shops" / launch).mkdir()
    info, record = warc_gz(warcinfo()), warc_gz(response(url, b"Content-Type: text/html", body=body))
    (warcs / "w.warc.gz").write_bytes(info + record)
    (world.jobs / "shops" / STATE).mkdir(exist_ok=True)
    book = TaskBook(world.jobs / "shops" / STATE)
    task = {"taskid": "t", "url": url, "process": {"callback": "detail_page"}}
    done = TaskNote(
        "stored", "t", url, "detail_page", "success", task, http=200, warc="w.warc.gz", place=len(info), uri=url
    )
    book.note([done], [ResultNote("stored", "t", url, {"title": "As it was"}, 5, "w.warc.gz", len(info))])
    book.close()


def test_faults_are_said_in_the_page(page: Page, world: World) -> None:
    page.goto(world.write("wrong"))
    for task, why in (
        ("{", "it is not JSON"), ("[]", "it is not an object"), ('{"url": "mailto:a@b"}', "mailto: is not fetched"),
        (json.dumps({"url": "http://10.0.0.1/", "process": {"callback": "detail_page"}}), "10.0.0.1 is not dialled"),
    ):  # fmt: skip
        page.get_by_label("Task, as JSON").fill(task)
        step(page)
        expect(page.locator("#said")).to_contain_text(why)
    replace(page, "class Handler", "class Handler(")
    step(page)
    expect(page.locator("#said")).to_contain_text("SyntaxError")
    expect(page.get_by_role("tabpanel")).to_contain_text("SyntaxError")


def test_it_is_worked_by_keyboard(page: Page, world: World) -> None:
    page.goto(world.write("keys"))
    page.get_by_label("Task, as JSON").focus()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("tab", name="Follows")).to_have_attribute("aria-selected", "true")
    browsing.press_to(page, "Follows 1")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Messages")).to_be_focused()
    page.keyboard.press("End")
    expect(page.get_by_role("tab", name="Web")).to_be_focused()
    page.keyboard.press("Home")
    browsing.press_to(page, f"Step into {world.base}/list")
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name="Follows")).to_have_text("Follows 2")
    page.get_by_label("Task, as JSON").focus()
    editor(page).focus()
    page.keyboard.press("Escape")
    browsing.press_to(page, "Why")


def test_the_judges_find_no_fault_in_any_tab(page: Page, world: World, tmp_path: Path) -> None:
    page.goto(world.write("judged"))
    step(page)
    into(page)
    for name in ("Follows", "Messages", "Result", "Log", "HTML", "Web"):
        page.set_viewport_size({"width": 1280, "height": 900})
        tab(page, name)
        assert page_judges.faults(page) == []
    step(page, "Try")
    assert page_judges.faults(page) == []
    saved = tmp_path / "script.html"
    saved.write_text(page.request.get(page.url).text(), "utf-8")
    assert page_judges.nu(saved) == []
