"""A script whose site is offline is in one notice, and so is its end: by the scan that runs every five minutes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from line import Line
from requesting.script_runs import HERE, crawling, line_for, script
from sites import several_hosts
from sites.receivers import mail_server, web_server
from sites.several_hosts import Page
from waiting import wait_for

NUMBER = 12
SCRIPT = """\
from pyspider.libs.base_handler import *


class Handler(BaseHandler):
    def on_start(self):
        for number in range(12):
            self.crawl(f"http://127.0.0.1:PORT/p/{number}", callback=self.page, force_update=True, retries=0)

    def page(self, response):
        return {"title": response.doc("title").text()}
"""
OFFLINE = Page(b"down for maintenance", status=503)


def pages(page: Page | None = None) -> dict[tuple[str, str], Page]:
    found = {number: page or Page(f"<title>Page {number}</title>".encode()) for number in range(NUMBER)}
    return {(HERE, f"/p/{number}"): one for number, one in found.items()}


def due_scan(line: Line, code: int = 0) -> str:
    """The scan for due crawls, as cron runs it; what it logs."""
    today = datetime.now(UTC).date()
    interval = f"{today - timedelta(days=1)}-{today + timedelta(days=1)}"
    done = line.luigi("--module", "tasks.pulse", "pulse.ScanForLaunches", "--date-interval", interval)
    assert done.returncode == code, done.stderr
    return done.stderr


def configure(line: Line, without: str, smtp_port: int, web_port: int) -> None:
    keys = ["mail_to=editor@news.example", "mail_from=warcmill@news.example", "smtp_host=127.0.0.1"]
    keys += [f"smtp_port={smtp_port}", f"webhook=http://127.0.0.1:{web_port}/hook?token=s3cret"]
    line.config.write_text("\n".join([without, "[notice]", *keys, ""]))


def test_a_site_that_goes_offline_is_told_once_and_so_is_its_return(tmp_path: Path, closed_port: int) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    web = pages()

    def listed() -> dict[str, Any]:
        (found,) = json.loads(script(line, here, "list", "papers", "--json").stdout)["scripts"]
        return dict(found)

    with several_hosts.serve(web) as port, mail_server() as mails, web_server() as posts:
        assert script(line, here, "new", "papers/news", "--start", "news.example").returncode == 0
        job = line.folders["jobs"] / "papers"
        (job / "scripts" / "news.py").write_text(SCRIPT.replace("PORT", str(port)))
        with (job / "crawl.toml").open("a") as file:
            file.write('no_delay = true\nallow_private = ["127.0.0.0/8"]\n')
        more = ("--status", "RUNNING", "--rate", "1000", "--burst", "500")
        assert script(line, here, "set", "papers/news", *more).returncode == 0
        with crawling(line, here):
            plain = line.config.read_text()
            configure(line, plain, closed_port, closed_port)
            assert script(line, here, "start", "papers/news").returncode == 0
            wait_for(lambda: listed()["counts"]["all"]["success"] > NUMBER)
            assert "notice" not in due_scan(line)
            web |= pages(OFFLINE)
            assert script(line, here, "start", "papers/news").returncode == 0
            wait_for(lambda: [one["state"] for one in listed()["watch"]] == ["offline"])
            assert "the notice was not sent: mail server" in due_scan(line)
            configure(line, plain, mails.port, posts.port)
            due_scan(line)
            due_scan(line)
        with crawling(line, here, "--again"):
            pass
        due_scan(line)
        with crawling(line, here, "--again"):
            ((_, _, told),) = posts.posts
            assert len(mails.mails) == 1, "a new launch is no news of its site"
            (trouble,) = told["troubles"]
            assert (trouble["launch"], trouble["kind"], trouble["name"]) == ("papers", "offline", "script news")
            assert trouble["why"].startswith("paused: its last tasks have failed, HTTPError: 503")
            assert (told["todo"], told["ended"]) == ("warcmill script list papers", [])
            assert b"papers: offline: script news" in mails.mails[0][2]
            web |= pages()
            assert script(line, here, "start", "papers/news").returncode == 0
            wait_for(lambda: listed()["watch"] == [])
            due_scan(line)
            due_scan(line)
        (_, (_, _, told)) = posts.posts
        assert len(mails.mails) == 2
        assert (told["troubles"], [one["kind"] for one in told["ended"]]) == ([], ["offline"])


def test_a_book_that_cannot_be_read_ends_nothing_that_was_told(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    assert script(line, here, "new", "papers/news", "--start", "news.example").returncode == 0
    state = line.folders["jobs"] / "papers" / "state"
    state.mkdir(exist_ok=True)
    (state / "tasks.sqlite").write_bytes(b"garbage" * 1000)
    with mail_server() as mails, web_server() as posts:
        configure(line, line.config.read_text(), mails.port, posts.port)
        assert "file is not a database" in due_scan(line)
        due_scan(line)
    assert [told["counts"] for _, _, told in posts.posts] == [{"unreadable": 1}]


def test_a_disk_that_is_not_mounted_ends_nothing_that_was_told(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    assert script(line, here, "new", "papers/news", "--start", "news.example").returncode == 0
    jobs = line.folders["jobs"]
    jobs.rename(jobs.with_name("away"))
    jobs.mkdir()
    with mail_server() as mails, web_server() as posts:
        configure(line, line.config.read_text(), mails.port, posts.port)
        assert "root 'jobs'" in due_scan(line, 30)
    ((_, _, told),) = posts.posts
    assert ("papers", "unreadable", "scripts") in [
        (one["launch"], one["kind"], one["name"]) for one in told["troubles"]
    ]
