"""A job of scripts from pages alone: create, set, run, watch, again, results, delete; its crawl and serve are real."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

import preloaded
from line import Line
from msgspec import Struct
from requesting.script_runs import HERE, crawling, line_for, script
from sites import several_hosts
from sites.several_hosts import Page
from waiting import wait_for

from servers import pins

JOB = "papers"
SCRIPT = """\
from pyspider.libs.base_handler import *


class Handler(BaseHandler):
    def on_start(self):
        self.crawl("http://127.0.0.1:PORT/", callback=self.index_page)

    def index_page(self, response):
        for each in response.doc('a[href^="http"]').items():
            self.crawl(each.attr.href, callback=self.detail_page, retries=0)

    def detail_page(self, response):
        return {"title": response.doc("title").text()}
"""


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class Pages(Struct, frozen=True):
    """The pages of a running serve, as an operator's browser asks for them."""

    address: str
    token: str

    def ask(self, path: str, posted: Mapping[str, str] | None = None) -> tuple[int, str, str]:
        """Status, text and Location of an answer."""
        data = urlencode(posted).encode() if posted is not None else None
        headers = {"Authorization": f"Bearer {self.token}", "Origin": self.address}
        try:
            with build_opener(_Stay).open(Request(self.address + path, data, headers), timeout=60) as answer:
                return answer.status, answer.read().decode(), ""
        except HTTPError as error:
            return error.code, error.read().decode(), error.headers.get("Location", "")

    def document(self, path: str) -> Any:
        return json.loads(self.ask(f"{path}{'&' if '?' in path else '?'}format=json")[1])

    def post(self, path: str, **typed: str) -> str:
        """Send the form of a page with what is typed; return where it leads."""
        text = self.ask(path)[1]
        fields = dict(re.findall(r'<input[^>]* name="([a-z]+)"[^>]* value="([^"]*)"', text))
        status, text, where = self.ask(path, {**{name: unescape(one) for name, one in fields.items()}, **typed})
        assert status == 303, text
        return where

    def act(self, path: str) -> None:
        """Press the button of an action, and wait until it is done."""
        where = self.post(path)
        wait_for(lambda: self.document(where)["exit_code"] is not None, "the action")
        found = self.document(where)
        assert found["exit_code"] == 0, found["output"]


@contextmanager
def served(line: Line) -> Iterator[Pages]:
    """The pages of a line, without replay."""
    port = pins.free({"port": 0})["port"]
    env = {**os.environ, "LUIGI_CONFIG_PATH": str(line.config)}
    with preloaded.start("commands.main", "serve", "--port", str(port), "--no-replay", env=env) as process:
        assert process.stdout
        address, _, token = process.stdout.readline().strip().partition("/sign-in?token=")
        try:
            yield Pages(address, token)
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_a_script_lives_and_ends_in_pages(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    job = line.folders["jobs"] / JOB
    site = {(HERE, f"/p/{number}"): Page(f"<title>=Page {number}</title>".encode()) for number in range(8)}
    site[HERE, "/"] = several_hosts.page([f"/p/{number}" for number in range(8)] + ["/gone"])
    with several_hosts.serve(site) as port:
        assert script(line, here, "new", f"{JOB}/first", "--start", f"http://{HERE}:{port}/").returncode == 0
        with (job / "crawl.toml").open("a") as file:
            file.write('no_delay = true\nallow_private = ["127.0.0.0/8"]\n')
        with crawling(line, here), served(line) as pages:
            of_job, of_script = f"/jobs/{JOB}", f"/jobs/{JOB}/scripts/shop"
            assert "Scripts run without walls here" in pages.ask(of_job)[1]
            assert pages.post(f"{of_job}/new-script", name="shop", start=f"http://{HERE}:{port}/") == of_script
            (job / "scripts" / "shop.py").write_text(SCRIPT.replace("PORT", str(port)))
            pages.post(f"{of_script}/set", status="RUNNING", rate="1000", burst="500", group="shops")

            def shop() -> dict[str, Any]:
                return {one["name"]: one for one in pages.document(of_job)["scripts"]}.get("shop", {})

            assert (shop()["status"], shop()["group"]) == ("RUNNING", "shops")
            pages.act(f"{of_script}/run")
            wait_for(
                lambda: shop()["counts"]["all"]["success"] == 10 and shop()["counts"]["all"]["failed"], "all pages"
            )
            (failed,) = pages.document(f"{of_script}/tasks?status=failed")["tasks"]
            assert failed["http"] == 404
            page = pages.ask(f"{of_script}/tasks?status=failed")[1]
            (way,) = re.findall(r'href="(/jobs/[^"]*/tasks/[^"]+)"', page)
            assert f"{HERE}:{port}/gone" in pages.ask(way)[1]
            pages.act(f"{way}/again")
            wait_for(lambda: shop()["counts"]["all"]["failed"] == 2, "the second visit")
            wanted = sorted(f"'=Page {number}" for number in range(8))
            table = csv.DictReader(io.StringIO(pages.ask(f"{of_job}/results?format=csv")[1]))
            assert sorted(one["title"] for one in table) == wanted
            printed = script(line, here, "results", f"{JOB}/shop").stdout
            assert pages.ask(f"{of_script}/results?format=jsonl")[1] == printed
            shown = pages.ask(f"{of_script}/results")[1]
            assert len(re.findall(r'href="/capture\?', shown)) == 8
            pages.act(f"{of_script}/delete")
            assert shop() == {}
            assert pages.ask(f"{of_script}/results?format=jsonl")[1] == ""
            assert script(line, here, "again", f"{JOB}/shop", "nothing").returncode == 1
