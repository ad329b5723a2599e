"""The debugger of scripts over a site on loopback, with real processes: what it asks, keeps, refuses and bounds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from records.captures import response
from records.warcs import warc_gz, warcinfo
from sites import scripted_site
from sites.scripted_site import ScriptedSite
from waiting import wait_for

from warcmill.crawl.launch.folders import STATE
from warcmill.errors import BadConfig, BadInput, Busy
from warcmill.scripts import debugger as module
from warcmill.scripts import process
from warcmill.scripts.debugger import DebugStep, ScriptDebugger
from warcmill.scripts.folder import ScriptPlace
from warcmill.scripts.taskbook import ResultNote, TaskBook, TaskNote

SCRIPT = """\
from pyspider.libs.base_handler import *

class Handler(BaseHandler):
    def on_start(self):
        self.crawl("SITE/page", callback=self.page, save={"a": 1})

    def page(self, response):
        print("read", response.url)
        return {"title": response.doc("title").text(), "save": response.save, "seen": response.headers.get("X-Seen")}
"""


def nested() -> Any:
    """A value that is too deep for a task."""
    value: Any = 1
    for _ in range(100):
        value = [value]
    return value


START = {"url": "data:,on_start", "process": {"callback": "on_start"}}


class Bench:
    """A job of scripts, its debugger, and the site that it asks."""

    def __init__(self, folder: Path, site: ScriptedSite, debugger: ScriptDebugger) -> None:
        self.site, self.debugger, self.folder = site, debugger, folder
        (folder / "scripts").mkdir(parents=True)
        for name, data in process.files({}).items():
            (folder / name).write_bytes(data)
        self.place = ScriptPlace("shops", folder, (folder,), ("127.0.0.0/8",), has_walls=False)
        self.base = f"http://127.0.0.1:{site.port}"
        self.text = SCRIPT.replace("SITE", self.base)
        site.pages["/page"] = ("<title>T</title>", "text/html")
        site.pages["/robots.txt"] = ("User-agent: *\nDisallow: /never", "text/plain")

    def task(self, path: str = "/page", **fetch: Any) -> dict[str, Any]:
        return {"url": f"{self.base}{path}", "process": {"callback": "page"}, "fetch": fetch}

    def step(self, task: dict[str, Any], text: str = "", user: str = "anna", **more: Any) -> DebugStep:
        return self.debugger.step(self.place, user, "shop", text or self.text, task, **more)

    @property
    def asked(self) -> list[str]:
        """The paths that the site was asked for, but robots.txt."""
        paths = [one.partition("127.0.0.1")[2] for one in self.site.log]
        return [path for path in paths if path != "/robots.txt"]


@pytest.fixture(scope="module")
def running() -> Iterator[ScriptDebugger]:
    """One debugger, as a server has it."""
    found = ScriptDebugger()
    yield found
    found.close()


@pytest.fixture
def bench(tmp_path: Path, running: ScriptDebugger) -> Iterator[Bench]:
    with scripted_site.serve() as site:
        yield Bench(tmp_path / "shops", site, running)


def why(done: DebugStep) -> str:
    """Why no answer came."""
    assert done.answer
    return str(done.answer.answer.fields.get("error"))


def test_a_follow_of_a_step_is_the_task_of_the_next(bench: Bench) -> None:
    first = bench.step(START)
    assert (first.outcome.why, first.answer) == ("", None)
    second = bench.step(first.outcome.follows[0])
    assert second.outcome.results == [{"title": "T", "save": {"a": 1}, "seen": None}]
    assert second.outcome.log.startswith(f"read {bench.base}/page")
    assert bench.asked == ["/page"]


def test_an_edited_text_reads_the_answer_that_is_there(bench: Bench) -> None:
    first = bench.step(bench.task())
    assert first.answer
    edited = bench.text.replace('"title":', '"name":')
    second = bench.step(bench.task(), edited, answer=first.answer.id)
    assert second.outcome.results[0]["name"] == "T"
    assert bench.asked == ["/page"]
    with_save = bench.step(bench.task(save=[1]), answer=first.answer.id)
    assert with_save.outcome.results[0]["save"] == [1], "what its maker passes on is no part of the request"
    assert bench.asked == ["/page"]
    again = bench.step(bench.task(), answer=first.answer.id, is_again=True)
    assert bench.asked == ["/page", "/page"]
    assert again.answer
    assert again.answer.id != first.answer.id


def test_another_request_or_another_user_asks_the_site(bench: Bench) -> None:
    first = bench.step(bench.task())
    assert first.answer
    bench.step(bench.task(headers={"X-A": "1"}), answer=first.answer.id)
    bench.step(bench.task(method="POST", data="a=1"), answer=first.answer.id)
    bench.step(bench.task(), user="boris", answer=first.answer.id)
    bench.step(bench.task(), answer="nothing")
    assert bench.asked == ["/page"] * 5


def test_a_request_is_sent_as_its_task_has_it(bench: Bench) -> None:
    seen: dict[str, str] = {}

    def act(request: BaseHTTPRequestHandler) -> None:
        seen.update({"method": request.command, **{name.lower(): one for name, one in request.headers.items()}})
        request.send_response(200)
        request.send_header("Content-Length", "0")
        request.end_headers()

    bench.site.acts["/seen"] = act
    bench.step(bench.task("/seen", method="POST", data="a=1", headers={"X-A": "b"}, cookies={"c": "d"}))
    assert (seen["method"], seen["x-a"], seen["cookie"], seen["content-length"]) == ("POST", "b", "c=d", "3")
    assert "Warcmill" in seen["user-agent"] or "warcmill" in seen["user-agent"]


def test_redirects_are_followed_each_by_the_same_policies(bench: Bench) -> None:
    def to(where: str) -> Any:
        def act(request: BaseHTTPRequestHandler) -> None:
            request.send_response(302)
            request.send_header("Location", where)
            request.send_header("Content-Length", "0")
            request.end_headers()

        return act

    acts = {"/old": "/page", "/inside": "http://10.1.2.3/", "/forbidden": "/never", "/round": "/round"}
    bench.site.acts |= {path: to(where) for path, where in acts.items()}
    assert bench.step(bench.task("/old")).outcome.results[0]["title"] == "T"
    assert bench.asked == ["/old", "/page"]
    assert "10.1.2.3 is not dialled" in why(bench.step(bench.task("/inside")))
    assert "robots.txt" in why(bench.step(bench.task("/forbidden")))
    assert why(bench.step(bench.task("/round"))) == "Maximum (5) redirects followed"
    assert "/never" not in bench.asked


def test_what_the_crawl_would_not_ask_for_is_not_asked_for(bench: Bench) -> None:
    assert "robots.txt: Disallow: /never" in why(bench.step(bench.task("/never")))
    assert "proxy" in why(bench.step(bench.task(proxy="http://p.example:8080")))
    (bench.folder / "exclude.txt").write_text("http://(127.0.0.1\n")
    done = bench.step(bench.task())
    assert "scope" in why(done), why(done)
    assert done.outcome.why.startswith("HTTPError")
    (bench.folder / "exclude.txt").unlink()
    bench.place = ScriptPlace("shops", bench.folder, has_walls=False)
    assert "127.0.0.1 is not dialled" in why(bench.step(bench.task("/other")))
    assert bench.asked == []


def test_after_no_answer_the_next_step_asks_again(bench: Bench) -> None:
    first = bench.step(bench.task("/never"))
    bench.site.pages["/robots.txt"] = ("", "text/plain")
    (bench.folder / "crawl.toml").write_bytes(process.files({"contact": "http://a.example/"})["crawl.toml"])
    assert first.answer
    second = bench.step(bench.task("/never"), answer=first.answer.id)
    assert (bench.asked, second.answer and second.answer.answer.fields["status_code"]) == (["/never"], 404)


def test_a_text_that_cannot_be_loaded_asks_nothing(bench: Bench) -> None:
    found = bench.step(bench.task(), "class Handler(:")
    assert "SyntaxError" in found.outcome.why
    assert "SyntaxError" in found.outcome.log
    assert bench.asked == []


@pytest.mark.parametrize(
    "task",
    [{}, {"url": "mailto:a@b"}, {"url": "dns:a.example"}, {"url": "x"}, {"url": "http://a.example/", "fetch": 1},
     {"url": "data:no-comma"}, {"url": 5}, {"url": "http://a.example/", "process": {"a": nested()}}],
)  # fmt: skip
def test_a_task_that_cannot_be_fetched_is_named(bench: Bench, task: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        bench.step(task)


@pytest.mark.parametrize(
    "odd",
    [{"fetch": {"headers": {"X": "\ud800"}}}, {"fetch": {"headers": {"X": "a\r\nB: c"}}}, {"taskid": "\ud800"},
     {"fetch": {"data": "[BASE64-DATA]\ud800[/BASE64-DATA]"}}, {"process": {"callback": "\ud800"}},
     {"process": {"callback": 5}}, {"fetch": {"save": "\ud800", "cookies": {"a": "\ud800"}}},
     {"fetch": {"method": "\ud800"}}, {"fetch": {"timeout": 1e308}}, {"taskid": [1]},
     {"process": {"callback": "page", "process_time_limit": float("nan")}}],
)  # fmt: skip
def test_an_odd_task_has_an_outcome(bench: Bench, odd: dict[str, Any]) -> None:
    assert bench.step({**bench.task(), **odd}).answer is not None


def test_a_callback_that_never_ends_or_dies_costs_its_own_step(bench: Bench) -> None:
    limited = {**START, "process": {"callback": "on_start", "process_time_limit": 0.5}}
    loops = bench.step(limited, bench.text.replace('self.crawl("', 'while True: pass\n        self.crawl("'))
    assert loops.outcome.why.startswith("timeout: its callback ran over 0.5 s")
    dies = bench.step(START, bench.text.replace("self.crawl(", "import os; os._exit(3)\n        self.crawl("))
    assert "its process died" in dies.outcome.why
    assert bench.step(START).outcome.why == ""


def test_a_user_has_one_step_at_a_time_and_all_users_a_few(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, gate = threading.Event(), threading.Event()

    def act(request: BaseHTTPRequestHandler) -> None:
        asked.set()
        gate.wait(60)
        request.send_response(200)
        request.send_header("Content-Length", "0")
        request.end_headers()

    bench.site.acts["/slow"] = act
    monkeypatch.setattr(module, "AT_ONCE", 1)
    first = threading.Thread(target=bench.step, args=(bench.task("/slow"),))
    first.start()
    try:
        assert asked.wait(60)
        with pytest.raises(Busy, match="your last step"):
            bench.step(START)
        with pytest.raises(Busy, match="the steps of 1 others"):
            bench.step(START, user="boris")
        monkeypatch.setattr(module, "AT_ONCE", 2)
        assert bench.step(START, user="boris").outcome.why == ""
    finally:
        gate.set()
        first.join()
    wait_for(lambda: not bench.debugger._busy)
    assert bench.step(START).outcome.why == ""


def test_a_site_that_is_too_slow_is_named(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    bench.site.acts["/slow"] = lambda _: gate.wait(60) and None
    monkeypatch.setattr(module, "SECONDS", 0.5)
    try:
        assert "takes longer" in why(bench.step(bench.task("/slow")))
    finally:
        gate.set()


def test_few_answers_are_kept(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [done.answer.id for done in (bench.step(bench.task(a=number)) for number in range(12)) if done.answer]
    kept = bench.debugger._answers
    assert [one in kept for one in ids] == [False] * 2 + [True] * 10
    monkeypatch.setattr(module, "BYTES", 40)
    bench.step(bench.task())
    assert sum(len(one.answer.body) for one in kept.values()) <= 40


def leave(bench: Bench) -> None:
    """A task of the archive, whose record has another title; and one whose WARC is gone."""
    url = f"{bench.base}/page"
    info, page = warcinfo(), response(url, b"Content-Type: text/html", body=b"<title>Old</title>")
    (bench.folder / "w.warc.gz").write_bytes(warc_gz(info, page))
    task = {**bench.task(), "taskid": "t", "schedule": {}}
    (bench.folder / STATE).mkdir()
    book = TaskBook(bench.folder / STATE)
    note = TaskNote(
        "shop", "t", url, "page", "success", task, http=200, warc="w.warc.gz", place=len(warc_gz(info)), uri=url
    )
    gone = TaskNote(
        "shop", "gone", url, "page", "success", {**task, "taskid": "gone"}, http=200, warc="x.warc.gz", place=0,
        uri=url,
    )  # fmt: skip
    book.note([note, gone], [ResultNote("shop", "t", url, {"title": "Old", "price": "1"}, 5, "w.warc.gz", 7)])
    book.close()


def test_a_task_of_the_archive_is_stepped_on_its_record(bench: Bench) -> None:
    leave(bench)
    done = bench.step({**bench.task(), "taskid": "t"}, stored="t")
    assert done.outcome.results[0]["title"] == "Old"
    assert done.answer
    assert done.answer.source.startswith("the archive, w.warc.gz at ")
    assert bench.asked == []
    assert bench.step(bench.task(headers={"X-A": "1"}), stored="t").outcome.results[0]["title"] == "T"
    assert bench.step(bench.task(), stored="gone").outcome.results[0]["title"] == "T"
    assert bench.step(bench.task(), stored="t", is_again=True).outcome.results[0]["title"] == "T"
    assert bench.asked == ["/page"] * 3


def test_a_trial_shows_each_field_before_and_after_and_asks_no_site(bench: Bench) -> None:
    leave(bench)
    found = bench.debugger.trial(bench.place, "anna", "shop", bench.text, 20)
    (page,) = found.pages
    assert (found.is_whole, page.is_worse, page.why) == (True, True, "")
    assert page.fields == [("price", "1", None)]
    assert bench.asked == []


def test_without_walls_that_can_stand_nothing_runs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    bench.place = ScriptPlace("shops", bench.folder, has_walls=True)
    with pytest.raises(BadConfig, match="bwrap"):
        bench.step(START)


def test_it_ends_with_all_its_processes(bench: Bench) -> None:
    other = ScriptDebugger()
    other.step(bench.place, "anna", "shop", bench.text, START)
    (asker,) = other._askers.values()
    workers = [*asker._workers.all]
    scratch = Path(other._folder)
    assert workers
    assert scratch.is_dir()
    other.close()
    assert all(worker.has_ended() for worker in workers)
    assert not scratch.exists()
    ScriptDebugger().close()
