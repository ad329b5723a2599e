"""The pages of `warcmill serve` before their judges, in a real browser: axe-core, Nu, the width, the keyboard."""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import Browser, Page, Route

from servers import browsing, page_judges
from warcmill.web.rendering import STATIC, environment

SITE = "http://warcmill.example"
HOSTILE = "<b>&'\"\u202egnp.exe\x1b[31m\x00" + "W" * 1_000_000
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'"
)
FRAME = {
    "menu": [{"path": "/", "label": "Home"}, {"path": "/parts", "label": "Parts"}],
    "here": "/parts",
    "who": {"name": HOSTILE[:60], "role": "operator"},
    "written": "2016-10-19T23:44:28Z",
}
# Each part of parts.html, with a text that would break it.
PARTS = """\
{% extends "base.html" %}{% import "parts.html" as parts %}
{% block title %}{{ hostile|cut(60) }}{% endblock %}
{% block main %}
<h1>{{ parts.id(hostile) }}</h1>
<p>{{ parts.outside(hostile) }} {{ parts.time("20161019234428") }} {{ parts.time(hostile) }}
{{ parts.bytes(1087505) }}</p>
<ul class="counts">{% for word in states %}<li>{{ parts.state(word) }} 1</li>{% endfor %}</ul>
<ul class="actions"><li><a class="button first" href="/">Start…</a></li>
<li><a class="button" href="/">Files</a></li></ul>
<h2>What needs a person</h2>
<ul class="gaps">
{% for word in states %}{{ parts.gap(hostile, hostile, hostile, hostile, word, "/") }}{% endfor %}
{{ parts.gap("refused", "a.warc.gz", "it is cut short", "warcmill accept a.warc.gz --reason TEXT", "refused") }}
</ul>
{{ parts.notice(hostile, "failed", alert=true) }}{{ parts.notice("Nothing is running.") }}
<h2>Facts</h2>
{{ parts.facts([("Name", parts.id(hostile, "/")), (hostile|cut, parts.time("2016-10-19T23:44:28Z"))]) }}
<h2>Tables</h2>
{% call parts.table("Launches by steps", "grid") %}
<thead><tr><th scope="col">Launch</th>
{% for word in states * 3 %}<th scope="col">{{ word }}</th>{% endfor %}</tr></thead>
<tbody><tr><th scope="row">{{ parts.id(hostile, "/") }}</th>
{% for word in states * 3 %}<td>{{ parts.state(word, "1/2", grid=true) }}</td>{% endfor %}</tr></tbody>
{% endcall %}
{{ parts.legend(states) }}
{% call parts.table("Files") %}
<thead><tr><th scope="col">File</th><th scope="col" class="number">Bytes</th><th scope="col">Why</th></tr></thead>
<tbody><tr><th scope="row">{{ parts.id(hostile, "/") }}</th><td class="number">{{ parts.bytes(10 ** 18) }}</td>
<td class="long">{{ parts.outside(hostile) }}</td></tr></tbody>
{% endcall %}
{{ parts.pager(1, 100, 12345, "/?page=1", "/?page=3") }}
<form action="/parts" method="post">
<div class="fields">
{{ parts.field("reason", "Reason", hostile|cut, hostile|cut, hostile, wide=true, required=true) }}
{{ parts.field("from", "From", "2016-10-19") }}
{{ parts.choice("job", "Job", [(hostile|cut(9), hostile|cut), ("b", "b")], "b") }}
</div>
<button>Accept</button> <button class="plain">Withdraw</button>
</form>
<h2>A log</h2>
{{ parts.log(hostile ~ "\\n" ~ hostile, "Log") }}
<ol class="results"><li><h3><a href="/">A <mark>mill</mark></a></h3><p class="id small">{{ parts.outside(hostile) }}</p>
<p>Of the <mark>mills</mark> four are left.</p></li></ol>
{% endblock %}
"""


def serve(page: Page, pages: dict[str, list[str]]) -> None:
    """Answer the page's requests: each path with its next text, the last one again and again; and the static files."""

    def answer(route: Route) -> None:
        path = route.request.url.removeprefix(SITE)
        if path.startswith("/static/"):
            route.fulfill(path=STATIC / path.removeprefix("/static/"))
        else:
            texts = pages[path]
            body = texts.pop(0) if len(texts) > 1 else texts[0]
            headers = {"Content-Security-Policy": POLICY}
            route.fulfill(body=body, content_type="text/html; charset=utf-8", headers=headers)

    page.route("**/*", answer)


def test_every_part_passes_the_judges_whatever_is_written_in_it(browser: Browser, tmp_path: Path) -> None:
    html = environment().from_string(PARTS).render(**FRAME, hostile=HOSTILE)
    saved, sheet = tmp_path / "parts.html", tmp_path / "warcmill.css"
    saved.write_text(html, "utf-8")
    shutil.copyfile(STATIC / sheet.name, sheet)
    with browsing.window(browser) as page:
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        serve(page, {"/parts": [html]})
        page.goto(f"{SITE}/parts")
        assert page_judges.faults(page) == []
        assert said == []
    assert page_judges.nu(saved, sheet) == []


def test_the_judges_find_what_is_wrong(browser: Browser, tmp_path: Path) -> None:
    head = "<!doctype html><html style='color-scheme: light dark'><head><title>a</title></head><body>"
    dark = "<p style='color:light-dark(#000, #222);background:light-dark(#fff, #111)'>words</p>"
    html = f"{head}<img src=x><p style='width:2000px'>a</p>{dark}<div></span>"
    saved = tmp_path / "wrong.html"
    saved.write_text(html, "utf-8")
    with browsing.window(browser) as page:
        page.set_content(html)
        found = "\n".join(page_judges.faults(page))
    for fault in (
        "320 dark: 1688 px wider than the window",
        "image-alt: ",
        "html-has-lang: ",
        "1280 dark: color-contrast: ",
    ):
        assert fault in found
    assert any("Stray end tag" in fault for fault in page_judges.nu(saved))


RUNNING = """\
{% extends "base.html" %}{% block title %}a{% endblock %}
{% block main %}<h1>Launch</h1><p id="other">{{ number }}</p>
<div id="progress"{% if number < 3 %} data-refresh="0.05"{% endif %}>
<p id="done">{{ number }} done</p><a href="/one">one</a> {% if number > 1 %}<a href="/new">new</a>{% endif %}
<a href="/two">two</a> <input aria-label="Words"></div>{% endblock %}
"""


def test_what_runs_is_refreshed_where_it_stands_until_it_has_ended(browser: Browser) -> None:
    template = environment().from_string(RUNNING)
    texts = [
        template.render(**FRAME | {"written": f"2016-10-19T23:44:0{number}Z"}, number=number) for number in range(5)
    ]
    with browsing.window(browser) as page:
        serve(page, {"/running": texts[1:]})
        page.goto(f"{SITE}/running")
        browsing.press_to(page, "two")
        page.locator("#done").get_by_text("3 done").wait_for()
        assert browsing.focused(page) == "two", "the link that had the keyboard has it still"
        assert page.locator("#other").text_content() == "1", "only what is marked is replaced"
        assert "23:44:03" in str(page.locator("#written").text_content())
        assert page.locator("#progress").get_attribute("data-refresh") is None


def test_a_part_that_someone_types_in_is_left_alone(browser: Browser) -> None:
    template = environment().from_string(RUNNING)
    with browsing.window(browser) as page:
        serve(page, {"/running": [template.render(**FRAME, number=number) for number in (1, 2)]})
        with page.expect_response(f"{SITE}/running"):
            page.goto(f"{SITE}/running")
        page.get_by_label("Words").fill("windmi")
        for _ in range(3):
            with page.expect_response(f"{SITE}/running"):
                pass
        assert page.get_by_label("Words").input_value() == "windmi"
        page.get_by_role("link", name="one").focus()
        page.locator("#done").get_by_text("2 done").wait_for()


def test_a_server_that_is_away_leaves_what_was_shown(browser: Browser) -> None:
    html = environment().from_string(RUNNING).render(**FRAME, number=1)
    with browsing.window(browser) as page:
        serve(page, {"/running": [html]})
        page.goto(f"{SITE}/running")
        page.unroute("**/*")
        page.route("**/*", lambda route: route.abort())
        for _ in range(2):
            with page.expect_event("requestfailed"):
                pass
        assert page.locator("#done").text_content() == "1 done"


def test_a_window_without_scripts_shows_the_same_page(browser: Browser) -> None:
    html = environment().from_string(RUNNING).render(**FRAME, number=1)
    with browsing.window(browser, scripts=False) as page:
        serve(page, {"/running": [html]})
        page.goto(f"{SITE}/running")
        browsing.press_to(page, "Skip to the content")
        page.keyboard.press("Enter")
        browsing.press_to(page, "one")
        assert page.locator("#done").text_content() == "1 done"
