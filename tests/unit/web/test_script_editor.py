"""The page of a script and its forms: by role, saved as editions, conflicts, steps with real processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from launches.engine import LAUNCH, Engine
from msgspec.structs import replace
from operating.web_client import WebAnswer
from operating.web_site import WebSite

from warcmill.audit.answers.line import JobEngine
from warcmill.errors import BadConfig
from warcmill.markers.editions import JobEditions
from warcmill.scripts import process
from warcmill.scripts.debugger import ScriptDebugger
from warcmill.scripts.folder import ScriptPlace, ScriptStatus, set_row
from warcmill.versions import hidden_list
from warcmill.web.access import Forms, Role, User

JOB = LAUNCH.job
PAGE = f"/jobs/{JOB}/scripts/shop"
TEXT = """\
# <b>&amp;</b> \u202e\tä
from pyspider.libs.base_handler import *
class Handler(BaseHandler):
    def on_start(self):
        self.crawl("http://a.example/", callback=self.on_start)
        return {"a": "<b>\u202e"}
"""
KEY = b"of the forms"
START = json.dumps({"url": "data:,on_start", "process": {"callback": "on_start"}})


class EditorSite(WebSite):
    """The pages of a line with one script."""

    def __init__(self, base: Path, debugger: ScriptDebugger, *, has_walls: bool = True) -> None:
        engine = Engine(base)
        engines = {JOB: JobEngine("engine.own", "warcmill", driven=True)}
        super().__init__(engine, replace(engine.audited, engines=engines), has_walls=has_walls)
        self.job = engine.folders["jobs"] / JOB
        (self.job / "scripts").mkdir(parents=True)
        for name, data in process.files({}).items():
            (self.job / name).write_bytes(data)
        self.path = self.job / "scripts" / "shop.py"
        self.path.write_text(TEXT)
        place = ScriptPlace(JOB, self.job, has_walls=False)  # the processes of a test run without
        self.more = {"forms": Forms(KEY), "debugger": lambda: debugger, "script_place": lambda _: place}
        self.editions = JobEditions(self.state, lambda: self.roots.store, JOB)

    def document(self, role: str = "curator", **fields: str) -> Any:
        return self.get(PAGE, {**fields, "format": "json"}, role).document

    def token(self, what: str, role: str = "curator") -> str:
        """The token of a form of the page."""
        text = self.get(PAGE, role=role).text
        forms = json.loads(unescape(text.partition('data-forms="')[2].partition('"')[0]))
        return str(forms[what])

    def send(self, what: str, role: str = "curator", **fields: str) -> WebAnswer:
        """Post one of its forms, as the page's own script does."""
        may = role in ("curator", "operator")
        posted = {"form": self.token(what, role) if may else "", "format": "json", "text": TEXT, **fields}
        return self.post(f"{PAGE}/{what}", posted, role)


@pytest.fixture(scope="module")
def running() -> Iterator[ScriptDebugger]:
    found = ScriptDebugger()
    yield found
    found.close()


@pytest.fixture
def site(tmp_path: Path, running: ScriptDebugger) -> EditorSite:
    return EditorSite(tmp_path, running)


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def field(text: str) -> str:
    """The text in the field of a page."""
    return unescape(text.partition('<textarea name="text"')[2].partition(">")[2].partition("</textarea>")[0])


def test_the_text_is_shown_as_it_is(site: EditorSite) -> None:
    answer = site.document()
    assert (answer["text"], answer["seen"], answer["status"], answer["edition"]) == (TEXT, digest(TEXT), "TODO", 0)
    assert answer["task"] == {"process": {"callback": "on_start"}, "taskid": "on_start", "url": "data:,on_start"}
    page = site.get(PAGE, role="curator").text
    assert field(page) == f"\n{TEXT}", "HTML drops the line end at its begin"
    assert "<b>&amp;" not in page


def test_readers_look_curators_step_and_save(site: EditorSite) -> None:
    page = site.get(PAGE, role="reader")
    assert "readonly" in page.text
    assert "/static/debugger.js" not in page.text
    for what in ("step", "try", "save"):
        assert site.send(what, "reader").status == 403
        assert site.send(what, "", task=START).status == 403
        assert site.send(what, "curator", task=START, seen=digest(TEXT)).status == 200
        assert site.send(what, "operator", task=START, seen=digest(TEXT)).status == 200


def test_without_walls_operators_alone_step_and_save(tmp_path: Path, running: ScriptDebugger) -> None:
    site = EditorSite(tmp_path, running, has_walls=False)
    page = site.get(PAGE, role="curator").text
    assert "without walls" in page
    assert "readonly" in page
    for what in ("step", "try", "save"):
        assert site.send(what, "operator", task=START, seen=digest(TEXT)).status == 200
        form = {"form": Forms(KEY).new(User(Role.CURATOR, "curator"), f"{PAGE}/{what}"), "task": START, "text": TEXT}
        refused = site.post(f"{PAGE}/{what}", form, "curator")
        assert (refused.status, "needs the role operator" in refused.text) == (403, True)
    assert site.editions.newest().who in ("", "operator")  # type: ignore[union-attr]


def test_a_token_of_one_form_opens_no_other_and_each_answer_has_the_next(site: EditorSite) -> None:
    assert site.send("save", form=site.token("step")).status == 400
    assert site.send("step", form=site.token("step", "operator"), task=START).status == 400
    found = site.send("step", task=START).document
    assert site.send("step", form=found["form"], task=START).status == 200


def test_a_step_answers_all_that_came_as_text(site: EditorSite) -> None:
    found = site.send("step", task=START).document
    assert [one["url"] for one in found["follows"]] == ["http://a.example/"]
    assert found["results"] == ['{\n  "a": "<b>\\u202e"\n}']
    assert (found["why"], found["answer"], found["left_out"]["follows"]) == ("", None, 0)


def test_a_step_with_a_million_letters_is_bounded(site: EditorSite) -> None:
    text = TEXT.replace(
        'return {"a": "<b>\u202e"}',
        'for n in range(3000): self.crawl(f"http://a.example/{n}", callback=self.on_start)\n'
        '        self.send_message("shop", "x" * 2_000_000)\n        return "y" * 3_000_000',
    )  # fmt: skip
    answer = site.send("step", text=text, task=START)
    found = answer.document
    assert (len(found["follows"]), found["left_out"]["follows"]) == (200, 2801)
    assert (found["messages"], found["left_out"]["messages"]) == ([], 1)
    assert len(answer.body) < 3 << 20


@pytest.mark.parametrize(
    ("task", "why"),
    [("{", "it is not JSON"), ("[" * 100_000, "it is not JSON"), ("5", "it is not an object"), ("{}", "not a URI"),
     ('{"url": "\\ud800"}', "")],
)  # fmt: skip
def test_a_task_that_is_none_is_named(site: EditorSite, task: str, why: str) -> None:
    found = site.send("step", task=task)
    assert found.status == 400
    assert why in found.document["error"]


def test_what_is_missing_for_a_step_is_named(site: EditorSite) -> None:
    def missing() -> ScriptDebugger:
        raise BadConfig("scripts", "pyquery is missing; pip install 'warcmill[scripts]'")

    site.more["debugger"] = missing
    found = site.send("step", task=START)
    assert (found.status, "pip install" in found.document["error"]) == (503, True)


def test_each_saved_text_is_an_edition_with_who_and_why(site: EditorSite) -> None:
    set_row(site.job, "shop", {"status": ScriptStatus.RUNNING})
    new = TEXT.replace("\n", "\r\n") + "# more\r\n"
    found = site.send("save", text=new, why=" it \n moved ", seen=digest(TEXT), edition="0").document
    newest = site.editions.newest()
    assert newest is not None
    assert (newest.who, newest.why, newest.number, found["edition"]) == ("curator", "it moved", 2, 2)
    assert site.path.read_text() == f"{TEXT}# more\n", "as the editor has it, not as forms are sent"
    assert (found["seen"], found["status"]) == (digest(f"{TEXT}# more\n"), "CHECKING")
    third = site.send("save", text=TEXT, seen=found["seen"], edition="2").document
    assert (third["edition"], [one["number"] for one in site.document()["editions"]]) == (3, [3, 2, 1])
    assert site.get(PAGE, role="curator").text.count("it moved") == 1


def test_of_two_who_save_the_second_sees_both_and_nothing_is_written(site: EditorSite) -> None:
    theirs, mine = f"{TEXT}# theirs\n", f"{TEXT}# mine\n"
    site.send("save", "operator", text=theirs, why="first", seen=digest(TEXT))
    second = site.send("save", text=mine, why="second", seen=digest(TEXT), edition="0")
    found = second.document
    assert (second.status, found["theirs"], found["yours"], found["who"]) == (409, theirs, mine, "operator")
    assert site.path.read_text() == theirs
    assert found["number"] == 2
    page = site.post(f"{PAGE}/save", {"form": site.token("save"), "text": mine, "seen": digest(TEXT)}, "curator")
    assert (page.status, field(page.text)) == (409, f"\n{mine}")
    assert "# theirs" in page.text
    saved = site.send("save", text=mine, seen=found["seen"], edition=str(found["edition"]))
    assert (saved.status, site.path.read_text()) == (200, mine)


def test_a_text_that_was_edited_by_hand_since_is_not_lost(site: EditorSite) -> None:
    site.send("save", text=f"{TEXT}# 1\n", seen=digest(TEXT))
    seen = site.document()
    site.path.write_text(f"{TEXT}# by hand\n")
    found = site.send("save", text=f"{TEXT}# 2\n", seen=seen["seen"], edition=str(seen["edition"]))
    assert (found.status, found.document["theirs"], found.document["who"]) == (409, f"{TEXT}# by hand\n", "")
    again = site.document()
    assert again["text"] == f"{TEXT}# by hand\n"
    assert site.send("save", text=f"{TEXT}# 2\n", seen=again["seen"], edition="0").status == 200, "she has seen it"


def test_a_text_with_a_mark_of_its_encoding_is_no_conflict(site: EditorSite) -> None:
    site.path.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    seen = site.document()
    assert seen["text"] == TEXT
    assert site.send("save", text=f"{TEXT}#\n", seen=seen["seen"]).status == 200


def test_without_javascript_the_page_comes_next(site: EditorSite) -> None:
    form = {"form": site.token("save"), "text": f"{TEXT}#\n", "seen": digest(TEXT), "edition": "0", "why": ""}
    moved = site.post(f"{PAGE}/save", form, "curator")
    assert (moved.status, moved.header("location")) == (303, PAGE)


def test_a_text_that_is_too_long_is_named(site: EditorSite) -> None:
    assert site.send("save", text="#" * (1 << 20), seen=digest(TEXT)).status == 400
    assert site.path.read_text() == TEXT


@pytest.mark.parametrize("path", ["nothing", "no-script", "%2E%2E", "shop/step/x"])
def test_what_is_not_there_is_404(site: EditorSite, path: str) -> None:
    (site.job / "scripts" / "no-script.py").write_text("")
    assert site.get(f"/jobs/{JOB}/scripts/{path}", role="curator").status == 404
    assert site.get("/jobs/other/scripts/shop", role="curator").status == 404
    assert site.get(PAGE, {"task": "nothing"}, "curator").status == 404


def test_readers_get_no_line_that_names_what_is_hidden(site: EditorSite) -> None:
    hidden_list.decide(site.state, lambda: site.roots.store, "example,a)", "order of a court", hides=True)
    assert "a.example" not in site.get(PAGE, role="reader").text
    assert "a.example" not in json.dumps(site.document("reader"))
    assert "a.example" in site.get(PAGE, role="curator").text
