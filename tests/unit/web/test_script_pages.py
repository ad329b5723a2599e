"""The pages of scripts: dashboard, rows, tasks and results; each by its role, hostile, hidden, and many."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

import pytest
from launches.engine import LAUNCH, Engine
from msgspec.structs import replace
from operating.web_client import ask
from operating.web_site import WebSite
from requesting import script_books
from requesting.script_books import HIDDEN_HOST, KEYS, MARKUP, note, result
from starlette.types import Message
from waiting import wait_for

from warcmill.audit.answers.line import JobEngine
from warcmill.scripts import answers
from warcmill.scripts.folder import ScriptFolder, ScriptStatus
from warcmill.scripts.taskbook import TaskBook
from warcmill.versions import hidden_list
from warcmill.web import access
from warcmill.web.access import Role

JOB = LAUNCH.job
SECRET = "hidden-and-not-for-readers"
PAGES = (
    f"/jobs/{JOB}", f"/jobs/{JOB}/tasks", f"/jobs/{JOB}/results", f"/jobs/{JOB}/scripts/shop/tasks",
    f"/jobs/{JOB}/scripts/shop/results", f"/jobs/{JOB}/scripts/shop/tasks/on_start",
)  # fmt: skip
WRITERS = (
    f"/jobs/{JOB}/new-script", f"/jobs/{JOB}/scripts/shop/set", f"/jobs/{JOB}/scripts/shop/run",
    f"/jobs/{JOB}/scripts/shop/tasks/on_start/again",
)  # fmt: skip


class ScriptSite(WebSite):
    """The pages of a line with one job of scripts."""

    def __init__(self, base: Path, *, has_walls: bool = True) -> None:
        engine = Engine(base)
        engines = {JOB: JobEngine("engine.own", "warcmill", driven=True)}
        super().__init__(engine, replace(engine.audited, engines=engines), has_walls=has_walls)
        self.job = engine.folders["jobs"] / JOB
        self.book = script_books.leave(self.job)

    def document(self, path: str, fields: dict[str, str] | None = None, role: str = "operator") -> Any:
        return self.get(path, {**(fields or {}), "format": "json"}, role).document

    def hide(self, surt: str) -> None:
        hidden_list.decide(self.state, lambda: self.roots.store, surt, "order of a court", hides=True)


@pytest.fixture
def site(tmp_path: Path) -> ScriptSite:
    return ScriptSite(tmp_path)


def rows(text: str) -> list[list[str]]:
    """The cells of the table of a page, without markup."""
    found = re.findall(r"<tr>(.*?)</tr>", text, re.DOTALL)
    cells = (re.findall(r"<t[hd].*?</t[hd]>", one, re.DOTALL) for one in found)
    return [[" ".join(unescape(re.sub(r"<[^>]*>", "", cell)).split()) for cell in row] for row in cells]


def test_the_dashboard_has_each_script_in_its_group_with_counts_and_watch(site: ScriptSite) -> None:
    found = site.document(f"/jobs/{JOB}")
    by_name = {one["name"]: one for one in found["scripts"]}
    assert {name: one["status"] for name, one in by_name.items()} == {
        "idle": "TODO", "news": "CHECKING", "shop": "RUNNING"
    }  # fmt: skip
    assert by_name["shop"]["counts"]["all"] == {"failed": 0, "pending": 1, "retry": 0, "success": len(KEYS) + 2}
    assert by_name["shop"]["late_seconds"] >= 0
    assert [one["state"] for one in by_name["shop"]["watch"]] == ["changed", "late"]
    assert by_name["news"]["watch"] == [], "a script that does not run is not watched"
    assert (found["walls"], [one["name"] for one in found["unfit"]]) == (True, ["no-script"])
    text = site.get(f"/jobs/{JOB}").text
    table = rows(text)
    assert [row[0] for row in table[1:]][:5] == ["No group", "idle", "news", f"{MARKUP} \\u202a", "shop"]
    shop = next(row for row in table if row[0] == "shop")
    assert shop[2:3] + shop[7:9] == ["0.5/3", f"{len(KEYS) + 2}/0/0", "changed late"]
    assert "It was edited while it ran, and does nothing until it is set RUNNING again" in text
    assert f"the field &#39;{MARKUP.replace('<', '&lt;').replace('>', '&gt;')}&#39; is empty" in text
    assert MARKUP not in text
    assert "/capture?url=http%3A%2F%2Fshop.example%2F1&amp;warc=w.warc.gz&amp;offset=7" in text
    assert "without walls" not in text


def test_the_dashboard_is_filtered_by_status_and_group(site: ScriptSite) -> None:
    group = f"{MARKUP} \u202a"
    for fields, names in (
        ({"status": "RUNNING"}, ["shop"]), ({"group": ""}, ["idle", "news"]), ({"group": group}, ["shop"]),
        ({"group": "*", "status": ""}, ["idle", "news", "shop"]), ({"group": "none", "status": "x"}, []),
    ):  # fmt: skip
        assert [one["name"] for one in site.document(f"/jobs/{JOB}", fields)["scripts"]] == names
        assert site.get(f"/jobs/{JOB}", fields).status == 200


def test_a_job_without_scripts_is_as_it_was(site: ScriptSite) -> None:
    (site.job / "crawl.toml").write_text("endless = true\n")
    assert "scripts" not in site.document(f"/jobs/{JOB}")
    assert "<h2>Scripts</h2>" not in site.get(f"/jobs/{JOB}").text
    for path in (*PAGES[1:], *WRITERS):
        assert site.get(path).status == 404


def test_a_broken_folder_or_book_is_named_and_the_page_stays(site: ScriptSite) -> None:
    (site.job / "scripts.toml").write_text("[shop]\nrate = 'x'\n")
    assert "scripts.toml" in site.get(f"/jobs/{JOB}").text
    (site.job / "crawl.toml").write_text("scripts = ")
    (site.job / "state" / "tasks.sqlite").write_bytes(b"garbage" * 1000)
    for name in ("tasks.sqlite-wal", "tasks.sqlite-shm"):
        (site.job / "state" / name).unlink(missing_ok=True)
    answer = site.get(f"/jobs/{JOB}")
    assert (answer.status, "the job&#39;s next launch makes it anew" in answer.text) == (200, True)
    assert [site.get(path).status for path in PAGES[1:]] == [503] * 5
    (site.job / "state" / "tasks.sqlite").unlink()
    assert [site.get(path).status for path in PAGES[1:]] == [200] * 4 + [404]


def test_readers_look_curators_write_and_operators_delete(site: ScriptSite) -> None:
    delete = f"/jobs/{JOB}/scripts/shop/delete"
    for role, may in (("reader", False), ("curator", True), ("operator", True)):
        assert {site.get(path, role=role).status for path in PAGES} == {200}
        assert {site.get(path, role=role).status for path in WRITERS} == {200 if may else 403}
        assert site.get(delete, role=role).status == (200 if role == "operator" else 403)
        text = site.get(f"/jobs/{JOB}", role=role).text
        assert ("Create…" in text, "Run…" in text) == (may, may)
        assert ("Delete it…" in site.get(WRITERS[1], role=role).text) == (role == "operator")


def test_without_walls_every_page_says_so_and_only_operators_write(tmp_path: Path) -> None:
    site = ScriptSite(tmp_path, has_walls=False)
    for path in PAGES:
        assert "Scripts run without walls here" in site.get(path, role="reader").text
    assert site.document(f"/jobs/{JOB}")["walls"] is False
    for path in WRITERS:
        assert site.get(path, role="curator").status == 403
        assert "Scripts run without walls here" in site.get(path, role="operator").text
        assert site.post(path, {"form": ""}, role="curator").status in (400, 403)
    assert "Run…" not in site.get(f"/jobs/{JOB}", role="curator").text
    form = {"form": site.form(f"/jobs/{JOB}/scripts/shop/set"), "status": "STOP"}
    assert site.post(f"/jobs/{JOB}/scripts/shop/set", form, role="curator").status == 400
    assert status(site) == "RUNNING"


def status(site: ScriptSite, name: str = "shop") -> str:
    folder = ScriptFolder(site.job)
    folder.look()
    return str(folder.row(name).status)


def fields_of(site: ScriptSite, path: str, role: str = "curator") -> dict[str, str]:
    """The fields of a form as its page has them."""
    text = site.get(path, role=role).text
    found = dict(re.findall(r'<input[^>]* name="([a-z]+)"[^>]* value="([^"]*)"', text))
    found |= {name: one[1] for name, one in _chosen(text).items()}
    return {name: unescape(value) for name, value in found.items()}


def _chosen(text: str) -> dict[str, tuple[str, str]]:
    selects = re.findall(r'<select id="[a-z]+" name="([a-z]+)"(.*?)</select>', text, re.DOTALL)
    return {name: ("", *re.findall(r'value="([^"]*)" selected', options)) for name, options in selects}


def test_a_curator_sets_a_row_and_only_what_differs(site: ScriptSite) -> None:
    path = f"/jobs/{JOB}/scripts/shop/set"
    form = fields_of(site, path)
    assert {name: form[name] for name in ("status", "rate", "burst")} == {
        "status": "RUNNING", "rate": "0.5", "burst": "3"
    }  # fmt: skip
    answer = site.post(path, {**form, "rate": "2", "group": "news"}, role="curator")
    assert (answer.status, answer.header("location")) == (303, f"/jobs/{JOB}")
    folder = ScriptFolder(site.job)
    folder.look()
    row = folder.row("shop")
    assert (row.status, row.rate, row.burst, row.group) == (ScriptStatus.RUNNING, 2.0, 3.0, "news")
    (site.job / "scripts" / "shop.py").write_text("# edited meanwhile\n")
    answer = site.post(path, {**form, "rate": "3", "group": "news"}, role="curator")
    assert (answer.status, 'value="CHECKING" selected' in answer.text) == (400, True), "nobody has seen the new text"
    assert site.post(path, {**fields_of(site, path), "rate": "3"}, role="curator").status == 303
    assert status(site) == "CHECKING"
    for wrong, said in (
        ({"rate": "x"}, "is not a number"), ({"rate": "nan"}, "above 0"), ({"burst": "1e9"}, "at most 1000"),
        ({"group": "a\nb"}, "63 letters"), ({"group": "x" * 64}, "63 letters"), ({"status": "CHECKING "}, ""),
        ({"status": "RUN"}, "none of TODO"),
    ):  # fmt: skip
        fresh = fields_of(site, path)
        answer = site.post(path, {**fresh, **wrong}, role="curator")
        assert said in unescape(answer.text), wrong
        assert answer.status == (400 if said else 303)


def test_a_text_that_nobody_has_seen_is_not_set_to_run(site: ScriptSite) -> None:
    path = f"/jobs/{JOB}/scripts/news/set"
    form = {**fields_of(site, path), "status": "RUNNING"}
    (site.job / "scripts" / "news.py").write_text("# another text\n")
    answer = site.post(path, form, role="curator")
    assert (answer.status, "it was edited since this page was opened" in answer.text) == (400, True)
    assert status(site, "news") == "CHECKING"
    assert site.post(path, {**fields_of(site, path), "status": "RUNNING"}, role="curator").status == 303
    assert status(site, "news") == "RUNNING"
    assert site.get(f"/jobs/{JOB}/scripts/none/set").status == 404
    assert site.get(f"/jobs/{JOB}/scripts/no-script/set").status == 404


def test_a_curator_creates_a_script(site: ScriptSite) -> None:
    path = f"/jobs/{JOB}/new-script"
    answer = site.post(path, {"name": "fresh", "start": "fresh.example/news"}, role="curator")
    assert (answer.status, answer.header("location")) == (303, f"/jobs/{JOB}/scripts/fresh")
    assert 'self.crawl("https://fresh.example/news"' in (site.job / "scripts" / "fresh.py").read_text()
    assert status(site, "fresh") == "TODO"
    before = sorted((site.job / "scripts").iterdir())
    names = {"fresh": "it exists", **dict.fromkeys(("../x", MARKUP, "", "x" * 64), "cannot be imported")}
    odd = [(name, "a.example", said) for name, said in names.items()]
    for name, start, said in (*odd, ("x", "file:///etc/passwd", ""), ("x", "", "")):
        answer = site.post(path, {"name": name, "start": start}, role="curator")
        assert (answer.status, said in unescape(answer.text), MARKUP in answer.text) == (400, True, False), name
    assert sorted((site.job / "scripts").iterdir()) == before


def test_run_again_and_delete_are_the_verbs_of_the_command(site: ScriptSite) -> None:
    for key in ("--help", "a/../b", MARKUP):
        task = task_path(key)
        assert site.get(f"{task}/again", role="curator").status == 200
        answer = site.post(f"{task}/again", role="curator")
        own = answer.header("location")
        assert site.document(own, role="curator")["words"] == ["script", "again", f"{JOB}/shop", "--", key]
        wait_for(lambda: site.document(own, role="curator")["exit_code"] == 0, "the action")  # noqa: B023
        assert site.get(own, role="reader").status == 403
    assert site.get(own, role="curator").status == 200
    site.post(f"/jobs/{JOB}/scripts/shop/run", role="curator")
    assert ("script", "start", f"{JOB}/shop") in [one.words for one in site.actions.newest(site.state, 9)]
    others = site.post(f"/jobs/{JOB}/scripts/shop/delete").header("location")
    assert ("script", "delete", f"{JOB}/shop") in [one.words for one in site.actions.newest(site.state, 9)]
    assert site.get(others, role="curator").status == 403, "it is an operator's"
    assert site.get(others).status == 200
    for path in (f"{task_path('nobody')}/again", f"/jobs/{JOB}/scripts/none/run", f"/jobs/{JOB}/scripts/no-script/run"):
        assert site.get(path).status == 404
    assert site.post(f"{task_path(chr(0).join('ab'))}/again").status == 400


def task_path(key: str) -> str:
    """The path of a task as a server gets it: unquoted once."""
    return f"/jobs/{JOB}/scripts/shop/tasks/{quote(key, safe='').replace('.', '%2E')}"


def test_every_taskid_is_led_to_and_escaped(site: ScriptSite) -> None:
    text = site.get(f"/jobs/{JOB}/scripts/shop/tasks").text
    ways = [unescape(one) for one in re.findall(r'href="(/jobs/[^"]*/tasks/[^"]+)"', text)]
    assert len(ways) == len(KEYS) + 3
    keys = set()
    for way in ways:
        assert re.fullmatch(rf"/jobs/{JOB}/scripts/shop/tasks/[\w%~-]+", way), "no browser takes it apart"
        document = site.document(unquote(way))
        keys.add(document["taskid"])
        page = site.get(unquote(way)).text
        assert MARKUP not in page
        assert "\u202e" not in page
    assert keys == {*KEYS, "waits", "private", "deep"}


def test_a_task_has_its_schedule_fetch_process_log_and_record(site: ScriptSite) -> None:
    found = site.document(task_path("on_start"))
    assert (found["task"]["schedule"], found["warc"], found["offset"]) == ({"age": 60}, "w.warc.gz", 7)
    text = unescape(site.get(task_path("on_start")).text)
    for part in (
        "second line",
        '"age": 60',
        f'"save": "{MARKUP}"',
        "w.warc.gz</bdi></span> at 7",
        "Open in debugger",
        "Replay its page",
    ):
        assert part in text
    assert f"/jobs/{JOB}/scripts/shop?task=on_start" in text
    failed = site.get(f"/jobs/{JOB}/scripts/news/tasks/failed").text
    assert ("KeyError" in failed, "Replay its page" in failed) == (True, False)
    assert "nested too deeply" in site.get(task_path("deep"), role="reader").text
    assert site.get(task_path("nobody")).status == 404


def test_tasks_are_paged_by_their_last_change_each_once(site: ScriptSite) -> None:
    site.book.note([note(f"n{number}", "idle" if number % 2 else "shop") for number in range(170)], [])
    site.book.note([note("newest", "news")], [])
    for path, fields, number in (
        (f"/jobs/{JOB}/tasks", {}, len(KEYS) + 4 + 171), (f"/jobs/{JOB}/tasks", {"script": "idle"}, 85),
        (f"/jobs/{JOB}/scripts/idle/tasks", {}, 85), (f"/jobs/{JOB}/tasks", {"status": "failed"}, 1),
        (f"/jobs/{JOB}/tasks", {"status": "success"}, len(KEYS) + 2 + 171),
    ):  # fmt: skip
        seen: list[tuple[str, str]] = []
        before = ""
        while True:
            found = site.document(path, {**fields, "before": before})
            seen += [(one["script"], one["taskid"]) for one in found["tasks"]]
            before = found["before"]
            if not before:
                break
        assert (len(seen), len(set(seen))) == (number, number)
    first = site.document(f"/jobs/{JOB}/tasks")["tasks"][0]
    assert first["taskid"] == "newest"
    text = site.get(f"/jobs/{JOB}/tasks").text
    older = unescape(re.findall(r'href="([^"]*)" rel="next"', text)[0])
    assert "The newest" in site.get(older.partition("?")[0], dict(parse_qsl(older.partition("?")[2]))).text
    for odd in ("[", "[1]", "[1,2,3,4]", '["x","a","b"]', "[1e999,1,1]", "[1" + "0" * 400 + ",1,1]", '[1,"\\ud800",""]',
                "[" * 5000):  # fmt: skip
        assert site.get(f"/jobs/{JOB}/tasks", {"before": odd}).status in (200, 400)
    assert site.get(f"/jobs/{JOB}/tasks", {"status": "odd"}).status == 400


def test_results_have_a_column_a_field_and_a_link_to_replay(site: ScriptSite) -> None:
    text = site.get(f"/jobs/{JOB}/results").text
    head, *table = rows(text)
    assert head == ["Number", "Came", "Script", "Task", "Page", "price", "title", "result", "a", "links"]
    assert [row[0] for row in table] == ["7", "6", "5", "4", "3", "2", "1"]
    assert table[0][5:7] == ["-5", "the last"]
    assert "it has 3000" in table[1][7]
    assert table[-1][5:7] == ["=1+1", f"{MARKUP} \\u202e"]
    assert MARKUP not in text
    assert "/capture?url=http%3A%2F%2Fshop.example%2F1&amp;warc=w.warc.gz&amp;offset=7" in text


def test_results_are_paged_by_number(site: ScriptSite) -> None:
    site.book.note([], [result(f"r{number}", {"n": number}, "idle") for number in range(120)])
    path = f"/jobs/{JOB}/scripts/idle/results"
    seen, fields = [], dict[str, str]()
    while True:
        text = site.get(path, fields).text
        seen += [int(row[0]) for row in rows(text)[1:]]
        older = re.findall(r'href="[^"]*\?before=([0-9]+)" rel="next"', text)
        if not older:
            break
        fields = {"before": older[0]}
    assert seen == list(range(127, 7, -1))
    newer = re.findall(r'href="[^"]*\?after=([0-9]+)" rel="prev"', text)
    assert [int(row[0]) for row in rows(site.get(path, {"after": newer[0]}).text)[1:]] == list(range(77, 27, -1))
    for odd in ("x", "-1", "1" * 20, "\u0661"):
        assert site.get(path, {"after": odd}).status == site.get(path, {"before": odd}).status == 400
    many = {f"field{number}": number for number in range(300)}
    site.book.note([], [result("wide", many, "idle")])
    text = site.get(path).text
    assert (len(rows(text)[0]), "261 more fields" in text) == (4 + 40, True)


def test_exports_are_what_the_verb_prints_and_continue(site: ScriptSite) -> None:
    for form in answers.FORMATS:
        for name, path in (("", f"/jobs/{JOB}/results"), ("shop", f"/jobs/{JOB}/scripts/shop/results")):
            answer = site.get(path, {"format": form})
            assert answer.text == "".join(answers.results(site.job, name, form))
            assert answer.header("content-disposition").endswith(f'.{form}"')
    lines = site.get(f"/jobs/{JOB}/results", {"format": "jsonl", "after": "3"}).text.splitlines()
    assert [json.loads(line)["number"] for line in lines] == [4, 5, 6, 7]
    head = ask(site.app, f"/jobs/{JOB}/results", {"format": "csv"}, "HEAD", headers=site.headers("reader"))
    assert (head.status, head.body) == (200, b"")


def test_an_export_ends_with_its_client(site: ScriptSite) -> None:
    site.book.note([], [result(f"long{number}", "x" * 40_000, "idle") for number in range(400)])
    path = f"/jobs/{JOB}/scripts/idle/results"
    whole = len(site.get(path, {"format": "jsonl"}).body)
    got: list[int] = []
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": b"format=jsonl", "root_path": "",
        "headers": [(name.encode(), text.encode()) for name, text in site.headers("reader", host="a").items()],
        "client": ("127.0.0.1", 50_000), "server": ("127.0.0.1", 8090),
    }  # fmt: skip

    async def asked() -> None:
        begun = asyncio.Event()

        async def receive() -> Message:
            await begun.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            got.append(len(message.get("body", b"")))
            if sum(got):
                begun.set()

        await site.app(scope, receive, send)

    asyncio.run(asked())
    assert 0 < sum(got) < whole / 2


def test_no_cell_of_a_table_is_a_formula_and_its_columns_have_an_end(tmp_path: Path) -> None:
    job = tmp_path / "job"
    (job / "state").mkdir(parents=True)
    formulas = ["=1", "+1", "-1", "@a", "\t=1", "\r=1", " =1", "\uff1d1"]
    found = [result(str(place), {text: text, "n": -1}) for place, text in enumerate(formulas)]
    TaskBook(job / "state").note([], found)
    table = [*csv.reader(io.StringIO("".join(answers.results(job, "shop", "csv"))))]
    assert [cell for row in table for cell in row if cell.lstrip(" ")[:1] in tuple("=+-@\t\r\uff1d")] == ["-1"] * len(
        found
    )
    TaskBook(job / "state").note([], [result("wide", {f"f{number}": number for number in range(2000)})])
    head, *_, last = csv.reader(io.StringIO("".join(answers.results(job, "shop", "csv"))))
    assert (len(head), head[-1], len(json.loads(last[-1]))) == (5 + 1000 + 1, "_more", 2000 - 1000 + len(formulas) + 1)


def test_what_is_hidden_is_not_there_for_readers(site: ScriptSite) -> None:
    def seen(role: str) -> dict[str, bool]:
        found = {
            f"{path} {form}": any(one in site.get(path, {"format": form} if form else {}, role).text
                                  for one in (HIDDEN_HOST, "private"))
            for path in PAGES[:5] for form in ("", "json", *(("jsonl", "csv") if "results" in path else ()))
        }  # fmt: skip
        return {**found, "task": site.get(task_path("private"), role=role).status == 200}

    assert all(seen("reader").values()), seen("reader")
    number = len(site.document(f"/jobs/{JOB}/tasks", role="reader")["tasks"])
    site.hide("example,private")
    assert not any(seen("reader").values()), seen("reader")
    assert all(seen("curator").values())
    assert len(site.document(f"/jobs/{JOB}/tasks", role="reader")["tasks"]) == number - 1
    texts = [site.get(f"/jobs/{JOB}/results", {"format": form}, "reader").text for form in ("jsonl", "csv")]
    assert [text.count("\n") for text in texts] == [5, 6], "of 7 results two name it"


def test_a_proxy_names_curators_and_their_forms_are_theirs(site: ScriptSite) -> None:
    made = access.Proxies(access.networks(["127.0.0.1/32"]), curators=frozenset({"editors"}))
    site.proxies = made
    sent = {"x-forwarded-user": "anna", "x-forwarded-groups": "staff, editors"}
    path = f"/jobs/{JOB}/scripts/shop/set"
    page = ask(site.app, path, headers=sent)
    assert page.status == 200
    form = dict(re.findall(r'<input[^>]* name="([a-z]+)"[^>]* value="([^"]*)"', page.text))
    fields = {**form, "status": "STOP", "group": "", "rate": "0.5"}
    other = {**sent, "x-forwarded-user": "berta"}
    assert ask(site.app, path, posted=fields, headers={**other, "x-forwarded-host": "127.0.0.1:8090"}).status == 400
    assert ask(site.app, path, posted=fields, headers=sent).status == 303
    assert status(site) == "STOP"
    assert Role.CURATOR.word == "curator"
