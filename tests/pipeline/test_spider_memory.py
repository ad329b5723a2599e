"""A spider that has logged in and is killed: it continues with its cookies, and with what it has counted."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from requesting.scrapy_runs import HERE, items, line_for, pages, run_spider

JOB, MEMBERS = "members", 8
SPIDER = """
import datetime, os
import scrapy

class Members(scrapy.Spider):
    name = "members"
    custom_settings = {"FEEDS": {"items.jsonl": {"format": "jsonlines"}}, "LOG_LEVEL": "INFO"}

    async def start(self):
        yield scrapy.Request(self.url + "/login", self.inside, meta={"cookiejar": ("by", 1)})

    def inside(self, response):
        self.state |= {"pages": {0}, "since": datetime.date(2026, 1, 2)}
        for number in range(8):
            yield response.follow(f"/member/{number}", self.member, meta={"cookiejar": ("by", 1)})

    def member(self, response):
        if os.path.exists(self.folder + "/dies"):
            os.kill(os.getpid(), 9)
        self.state["pages"].add(response.url)
        yield {"text": response.text, "pages": len(self.state["pages"]), "since": self.state["since"]}
"""


@contextmanager
def walled(asked: list[tuple[str, str]]) -> Iterator[int]:
    """A site whose pages are for those who have logged in; `asked` has each path and the cookies."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            cookies = self.headers.get("Cookie") or ""
            asked.append((self.path, cookies))
            self.send_response(404 if self.path == "/robots.txt" else 200)
            if self.path == "/login":
                self.send_header("Set-Cookie", "session=1; Path=/")
            body = b"inside" if self.path == "/login" or "session=1" in cookies else b"please log in"
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class calls it so
            """Nothing."""

    server = ThreadingHTTPServer((HERE, 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def test_a_spider_that_was_killed_asks_with_its_cookies_and_one_that_begins_anew_without(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []
    line, file, dies = line_for(tmp_path / "line", JOB), tmp_path / "members.py", tmp_path / "dies"
    file.write_text(SPIDER)
    dies.touch()
    with walled(asked) as port:
        words = (str(file), "-a", f"url=http://{HERE}:{port}", "-a", f"folder={tmp_path}", "--job", JOB)
        assert run_spider(line, *words, folder=tmp_path / "killed").returncode != 0
        dies.unlink()
        for folder in ("continued", "anew"):
            done = run_spider(line, *words, folder=tmp_path / folder)
            assert done.returncode == 0, done.stdout + done.stderr
            found = [json.loads(one) for one in items(tmp_path / folder)]
            assert {one["text"] for one in found} == {"inside"}
            assert {one["since"] for one in found} == {"2026-01-02"}
            assert sorted(one["pages"] for one in found) == list(range(2, MEMBERS + 2))
            expected = "members continues: 8 requests wait; its cookies and spider.state are as they were kept"
            assert (expected in done.stderr) == (folder == "continued")
    logins = [cookies for path, cookies in asked if path == "/login"]
    assert logins == ["", ""]
    assert pages(line, JOB) == {
        **{(f"http://{HERE}:{port}/member/{number}", 200): 2 for number in range(MEMBERS)},
        (f"http://{HERE}:{port}/login", 200): 2,
    }
