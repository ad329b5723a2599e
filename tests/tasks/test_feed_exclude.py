"""What is never crawled, from a file, a URL or a command: read anew each time, and nothing is started without it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import luigi
import pytest
from configured import configured
from line import Line, line_at
from sites.several_hosts import Page, serve

from tasks.config import feed as feeds
from tasks.pulse import CrawlFeed
from warcmill import layout
from warcmill.errors import BadConfig, BadInput, Unavailable
from warcmill.markers.attempts import Attempts

HERE = "127.0.0.1"
LIST = b"# never\nhttp://a.example/private/\nhttp://(example,b,\n"
DUE = "20261121060000"


@dataclass
class Curators:
    """A server that gives the list, and a line whose [feed] exclude is to be said."""

    web: dict[tuple[str, str], Page]
    port: int
    line: Line
    monkeypatch: pytest.MonkeyPatch

    @property
    def url(self) -> str:
        return f"http://{HERE}:{self.port}/exclude?token=secret"

    def gives(self, body: bytes, status: int = 200) -> None:
        self.web[HERE, "/exclude?token=secret"] = Page(body, "text/plain", status)

    def excludes(self, source: str) -> None:
        feed = self.line.config.parent / "feed.jsonl"
        target = {
            "id": 1,
            "seeds": ["http://a.example/"],
            "schedules": [{"startDate": "2026-01-01", "frequency": "DAILY"}],
        }
        feed.write_text(json.dumps(target))
        text = self.line.config.read_text().partition("\n[job.daily]")[0]
        fed = f"[feed]\njobs=daily\nsource={feed}\ncontact=http://archive.example/\nexclude={source}\n"
        sections = f"[job.daily]\nfrequency=daily\nstart=2026-01-01\n{fed}"
        self.line.config.write_text(f"{text}\n{sections}")
        configured(self.monkeypatch, self.line.config)


@pytest.fixture
def curators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Curators]:
    web: dict[tuple[str, str], Page] = {}
    with serve(web) as port:
        yield Curators(web, port, line_at(tmp_path), monkeypatch)


def test_a_file_a_url_and_a_command_give_the_same(curators: Curators, tmp_path: Path) -> None:
    path = tmp_path / "exclude.txt"
    path.write_bytes(LIST)
    curators.gives(LIST)
    for source in (str(path), curators.url, f"command:cat {path}"):
        curators.excludes(source)
        assert feeds.excluded() == ("# never", "http://a.example/private/", "http://(example,b,")
    curators.excludes("")
    assert feeds.excluded() == ()


def test_it_is_read_each_time(curators: Curators) -> None:
    curators.gives(b"http://a.example/\n")
    curators.excludes(curators.url)
    assert feeds.excluded() == ("http://a.example/",)
    curators.gives(b"http://b.example/\n")
    assert feeds.excluded() == ("http://b.example/",)


@pytest.mark.parametrize("body", [b"", b" \n\n"])
def test_an_empty_answer_is_refused_and_one_that_declares_it_is_not(curators: Curators, body: bytes) -> None:
    curators.excludes(curators.url)
    curators.gives(body)
    with pytest.raises(BadInput, match="exclude is empty"):
        feeds.excluded()
    curators.gives(b"# nothing is excluded\n")
    assert feeds.excluded() == ("# nothing is excluded",)


def test_what_is_no_list_is_refused_and_no_secret_is_reported(curators: Curators) -> None:
    curators.excludes(curators.url)
    curators.gives(b"http://a.example/\n<html>Sorry</html>\n")
    with pytest.raises(BadConfig, match=r"\[feed\] exclude: line 2"):
        feeds.excluded()
    curators.gives(b"\xff\xfe")
    with pytest.raises(BadInput, match="is not UTF-8") as told:
        feeds.excluded()
    assert "secret" not in str(told.value)
    curators.gives(b"", 503)
    with pytest.raises(Unavailable, match="it was answered 503") as lost:
        feeds.excluded()
    assert "secret" not in str(lost.value)


@pytest.mark.parametrize(("source", "key"), [("command:", "exclude"), ("command:cat 'x", "exclude")])
def test_a_command_that_is_none_names_the_key(curators: Curators, source: str, key: str) -> None:
    curators.excludes(source)
    with pytest.raises(BadConfig, match=rf"\[feed\] {key}"):
        feeds.excluded()


def test_no_launch_is_stopped_for_a_crawl_that_cannot_start(curators: Curators) -> None:
    """Stopping the launch before requires the feed's marker: none while the list is away, or the profile is unfit."""
    curators.excludes(f"command:'{sys.executable}' -c exit(3)")
    crawl = CrawlFeed(job="daily", due=DUE)
    assert not luigi.build([crawl], local_scheduler=True, no_lock=True)
    assert curators.line.state.read(crawl.key) is None
    (attempt,) = Attempts(curators.line.state, layout.feed_key("daily", DUE)).earlier()
    assert "it ended with 3" in attempt.error
    curators.gives(LIST)
    losing = curators.line.config.parent / "profile.cxml"
    losing.write_text(feeds.SHIPPED.read_text("utf-8").replace('<ref bean="forgetOldDigest"/>', ""), "utf-8")
    curators.excludes(f"{curators.url}\nprofile={losing}")
    assert not luigi.build([crawl], local_scheduler=True, no_lock=True)
    attempt = Attempts(curators.line.state, layout.feed_key("daily", DUE)).earlier()[-1]
    assert "lose each page that has changed" in attempt.error
    curators.excludes(curators.url)
    assert luigi.build([crawl], local_scheduler=True, no_lock=True)
    assert curators.line.state.read(crawl.key) is not None
