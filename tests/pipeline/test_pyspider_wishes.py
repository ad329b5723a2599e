"""What pyspider's users asked for, of a job of scripts that is always on: `test_pyspider_issues.py` has the list."""

from __future__ import annotations

import json
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from requesting.job_of_scripts import HEAD, alerts, running, workers
from requesting.script_runs import HERE, RUN, line_for, results, script
from sites import several_hosts
from sites.several_hosts import Page
from waiting import wait_for

from warcmill.scripts.folder import SCRIPTS, ScriptStatus, set_row

SPAN, SECONDS, MANY = 2, 16, 30
TICKS = """
class Handler(BaseHandler):
    @every(seconds=2)
    def on_start(self):
        self.crawl("SITE/NAME", callback=self.page, force_update=True)
    def page(self, response):
        return {"title": response.doc("title").text()}
"""
FAILS = """
class Handler(BaseHandler):
    retry_delay = {"": 1}
    @every(seconds=2)
    def on_start(self):
        for number in range(20):
            self.crawl("SITE/gone/%d" % number, callback=self.page)
    def page(self, response):
        return 1
"""


def test_no_task_is_stuck_no_tick_is_missed_and_a_site_that_is_offline_is_an_alert(tmp_path: Path) -> None:
    line, asked = line_for(tmp_path / "line"), list[tuple[float, str, str]]()
    names = [f"s{number}" for number in range(MANY)]
    web = {(HERE, f"/{name}"): Page(f"<title>{name}</title>".encode()) for name in names}
    texts = {name: TICKS.replace("NAME", name) for name in names} | {"fails": FAILS}
    with several_hosts.serve(web, asked) as port, running(line, tmp_path / "here", port, texts) as job:
        wait_for(lambda: len({path for _, _, path in asked if path[1:] in names}) == MANY, lambda: "each begins")
        begun = time.monotonic()
        time.sleep(SECONDS)
        ended = time.monotonic()
        wait_for(lambda: "script fails is offline: paused" in alerts(line), lambda: alerts(line))
        times = Counter(path[1:] for moment, _, path in asked if begun <= moment < ended)
        assert min(times[name] for name in names) >= SECONDS // SPAN - 2, times
        listed = json.loads(script(line, tmp_path / "here", "list", "papers", "--json").stdout)["scripts"]
        assert all(one["late_seconds"] < 60 for one in listed)
        # What a stopped script holds in memory is free: its processes end.
        for name in (*names, "fails"):
            set_row(job, name, {"status": ScriptStatus.STOP})
        wait_for(lambda: not workers(line), lambda: workers(line))


OLD = """
class Handler(BaseHandler):
    crawl_config = {"proxy": "first.example:80", "headers": {"X-Version": "one"}}
    retry_delay = {"": 2}
    def on_start(self):
        self.crawl("SITE/retried", callback=self.page, taskid="retried", retries=100)
        self.crawl("SITE/once", callback=self.page, age=86400, taskid="once")
    def page(self, response):
        return {"url": response.url}
"""


def test_a_retry_has_the_newest_arguments_a_new_age_counts_and_a_script_runs_again_from_scratch(tmp_path: Path) -> None:
    line, here, asked = line_for(tmp_path / "line"), tmp_path / "here", list[tuple[float, str, str]]()
    web = {(HERE, path): Page(b"x") for path in ("/retried", "/once")}

    def tasks() -> dict[str, dict[str, Any]]:
        found = json.loads(script(line, here, "tasks", "papers/shop", "--json").stdout)["tasks"]
        return {one["taskid"]: one for one in found}

    def edited(*changes: tuple[str, str]) -> None:
        path = job / SCRIPTS / "shop.py"
        text = path.read_text()
        for before, after in changes:
            assert before in text
            text = text.replace(before, after)
        path.write_text(text)
        set_row(job, "shop", {"status": ScriptStatus.RUNNING})

    with several_hosts.serve(web, asked) as port, running(line, here, port, {"shop": OLD}) as job:
        assert script(line, here, "start", "papers/shop").returncode == 0
        wait_for(lambda: "first.example:80" in tasks().get("retried", {}).get("why", ""), tasks)
        edited(("first.example", "second.example"))
        wait_for(lambda: "second.example:80" in tasks()["retried"]["why"], tasks)
        edited(('"proxy": "second.example:80", ', ""))
        wait_for(lambda: tasks()["retried"]["status"] == "success", tasks)
        times = Counter(path for _, _, path in asked)
        assert times["/retried"] == 1, "by a proxy nobody was asked"
        # The age of what was visited is the one that is asked for now.
        edited(("age=86400", "age=0"))
        before = times["/once"]
        assert script(line, here, "start", "papers/shop").returncode == 0
        wait_for(lambda: sum(path == "/once" for _, _, path in asked) > before, lambda: asked)
        # Deleted now, and begun from nothing: all is fetched again.
        text = (job / SCRIPTS / "shop.py").read_text()
        assert "deleted" in script(line, here, "delete", "papers/shop").stdout
        assert (script(line, here, "results", "papers").stdout, tasks()) == ("", {})
        (job / SCRIPTS / "shop.py").write_text(text)
        set_row(job, "shop", {"status": ScriptStatus.RUNNING, "rate": 100.0})
        before = len(asked)
        wait_for(lambda: "it is not running" not in script(line, here, "start", "papers/shop").stderr)
        wait_for(lambda: {path for _, _, path in asked[before:]} >= {"/retried", "/once"}, lambda: asked)
        wait_for(lambda: len(script(line, here, "results", "papers").stdout.splitlines()) == 2)


LOGIN = """
class Handler(BaseHandler):
    def on_start(self):
        self.crawl("SITE/login", method="POST", data={"user": "me"}, callback=self.logged_in)
    def logged_in(self, response):
        self.crawl("SITE/account", cookies=response.cookies, callback=self.account)
    def account(self, response):
        return {"text": response.text}
"""


class Members(BaseHTTPRequestHandler):
    """A page for who has the cookie of a login."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200, b"welcome", {"Set-Cookie": "session=secret; Path=/; HttpOnly"})

    def do_GET(self) -> None:
        is_member = "session=secret" in (self.headers.get("Cookie") or "")
        self.answer(200 if is_member else 403, b"members only" if is_member else b"no")

    def answer(self, status: int, body: bytes, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "text/html", "Content-Length": str(len(body)), **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_the_cookies_of_a_login_are_there_for_the_next_request(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    here.mkdir()
    server = ThreadingHTTPServer((HERE, 0), Members)
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        (here / "members.py").write_text(HEAD + LOGIN.replace("SITE", f"http://{HERE}:{server.server_address[1]}"))
        done = script(line, here, "run", str(here / "members.py"), *RUN)
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 0, done.stderr
    assert [one["result"] for one in results(line, "members")] == [{"text": "members only"}]
