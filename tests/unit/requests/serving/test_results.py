"""Results of a launch that serves requests: the lines of results.jsonl, and the records that they name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from crawls import crawled
from msgspec.structs import replace
from sites.several_hosts import Page, page, serve
from warcio.archiveiterator import ArchiveIterator

from warcmill.crawl.job.job import NOBODY, Audience, Job, Sheets
from warcmill.crawl.launch.launch import Running
from warcmill.layout import RESULTS_LOG
from warcmill.model import Launch
from warcmill.requests.serving.results import as_asked
from warcmill.requests.serving.scope import RequestScope, RequestTarget
from warcmill.requests.serving.targets import RequestAudience

FIELDS = {"appid": "testapp", "attrs": {"k": [1]}, "crawlid": "c1"}
SITE = {
    ("a.example", "/"): page(["/1", "/moved", "/1#again", "http://b.example/far"], "/i.png"),
    ("a.example", "/1"): page(["/"]),
    ("a.example", "/new"): page([]),
    ("a.example", "/moved"): Page(b"/new", status=301),
    ("a.example", "/back"): Page(b"/", status=301),
    ("a.example", "/i.png"): Page(b"png", "image/png"),
}


TARGET = RequestTarget(0, "http://a.example/", "testapp", "c1", "link", RequestScope(), attrs={"k": [1]})
ASKER = RequestAudience(TARGET, gets_notices=True)


def asked(port: int, audience: Audience, **more: Any) -> Job:
    """A job that crawls all it finds for one who asked."""
    plain = crawled.job(port, "a.example", results_log=True, robots=False, **more)
    return replace(
        plain, sheets=Sheets(by_seed={plain.seeds[0]: replace(plain, audience=audience, revisits=audience is NOBODY)})
    )


def results(folder: Path) -> dict[str, dict[str, Any]]:
    """The results of a launch, by the path of each page."""
    found = [json.loads(line) for line in crawled.told(folder, RESULTS_LOG).splitlines()]
    return {one["value"]["url"].rpartition(":")[2].partition("/")[2]: one for one in found}


def test_each_page_for_an_asker_has_a_line_that_names_its_record(tmp_path: Path) -> None:
    with serve(dict(SITE)) as port:
        crawled.crawl(tmp_path, asked(port, ASKER))
    found = results(tmp_path)
    assert set(found) == {"", "1", "new"}, "not what a page embeds"
    home = found[""]["value"]
    base = f"http://a.example:{port}"
    assert {key: home[key] for key in FIELDS} == FIELDS
    assert home["links"] == [f"{base}/1", f"{base}/moved"], "once each, and no other host's"
    assert (home["url"], home["response_url"], home["status_code"], home["status_msg"]) == (
        f"{base}/", f"{base}/", 200, "OK",
    )  # fmt: skip
    assert set(home["request_headers"]) == {"User-Agent", "Accept", "Accept-Encoding", "Accept-Language"}
    assert home["response_headers"]["Content-Type"] == ["text/html"]
    assert "Content-Length" not in home["response_headers"]
    for one in found.values():
        path = tmp_path / "output/warcs/news" / crawled.LAUNCH.id / one["warc"]
        assert one["id"] == f"{one['warc']}:{one['offset']}"
        with path.open("rb") as stream:
            stream.seek(one["offset"])
            record = next(iter(ArchiveIterator(stream)))
        assert record.rec_type == "response"
        assert record.rec_headers.get_header("WARC-Target-URI") == one["value"]["url"]


def test_a_redirect_is_a_result_only_if_nothing_follows_it(tmp_path: Path) -> None:
    site = {**SITE, ("a.example", "/"): page(["/moved", "/back"])}
    with serve(site) as port:
        crawled.crawl(tmp_path, asked(port, ASKER))
    found = results(tmp_path)
    assert set(found) == {"", "new", "back"}, "the target of /back was a result already"
    assert found["back"]["value"]["status_code"] == 301


def test_a_page_that_was_seen_in_an_earlier_launch_has_a_record_with_its_body(tmp_path: Path) -> None:
    with serve(dict(SITE)) as port:
        crawled.crawl(tmp_path, asked(port, ASKER))
        later = Launch(crawled.LAUNCH.job, "20261121091844")
        crawled.crawl(tmp_path, asked(port, ASKER), launch=later)
    kinds = {kind for kind, _ in crawled.records(crawled.warcs(tmp_path, later))}
    assert "response" in kinds
    assert "revisit" not in kinds


def test_what_nobody_asked_for_has_no_line(tmp_path: Path) -> None:
    with serve(dict(SITE)) as port:
        crawled.crawl(tmp_path, asked(port, NOBODY))
    assert crawled.told(tmp_path, RESULTS_LOG) == ""


def test_the_length_that_no_kill_cuts_is_known(tmp_path: Path) -> None:
    held: list[Running] = []
    with serve(dict(SITE)) as port:
        crawled.crawl(tmp_path, asked(port, ASKER), held.append)
    assert held[0].books.results_length == len(crawled.told(tmp_path, RESULTS_LOG))


def test_a_page_that_soon_refreshes_to_another_is_a_redirect_and_a_later_refresh_is_none(tmp_path: Path) -> None:
    def refreshed(content: str) -> Page:
        return Page(f'<meta http-equiv="refresh" content="{content}"><a href="/1">one</a>'.encode())

    web = {
        ("a.example", "/"): page(["/soon", "/late", "/itself", "/hidden"]),
        ("a.example", "/soon"): refreshed("5; url=/new"),
        ("a.example", "/late"): refreshed("100; url=/far"), ("a.example", "/itself"): refreshed("0; url=/itself"),
        ("a.example", "/hidden"): Page(b"<noscript>" + refreshed("0; url=/far").body + b"</noscript>"),
        ("a.example", "/new"): page([]), ("a.example", "/1"): page([]),
    }  # fmt: skip
    with serve(web) as port:
        crawled.crawl(tmp_path, asked(port, ASKER))
    found = results(tmp_path)
    assert set(found) == {"", "late", "itself", "hidden", "new", "1"}
    base = f"http://a.example:{port}"
    assert {path: one["value"]["links"] for path, one in found.items() if path in {"late", "itself"}} == {
        "late": [f"{base}/1"], "itself": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "uri", "shown"),
    [
        ("http://a.example", "http://a.example/", "http://a.example"),
        ("http://a.example/", "http://a.example/", "http://a.example/"),
        ("http://a.example?q=/", "http://a.example/?q=/", "http://a.example?q=/"),
        ("HTTP://A.example#top", "http://a.example/", "http://a.example#top"),
        ("http://a.example/x#é /", "http://a.example/x", "http://a.example/x#%C3%A9%20/"),
        ("http://a.example\\x\\", "http://a.example/x/", "http://a.example/x/"),
        ("http:a.example/", "http://a.example/", "http://a.example/"),
    ],
)
def test_an_address_is_shown_as_it_was_asked_for(asked: str, uri: str, shown: str) -> None:
    assert as_asked(uri, asked) == shown
