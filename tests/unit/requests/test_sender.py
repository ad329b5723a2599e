"""The sender of results: each page of each launch once, with all that Scrapy Cluster's messages have."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from crawls import crawled
from msgspec.structs import replace
from sites.several_hosts import Page, page, serve

from warcmill import layout
from warcmill.clients.bus import TooLong
from warcmill.clients.bus.spool import Spool
from warcmill.crawl.job.job import Job, Sheets
from warcmill.errors import Unavailable
from warcmill.layout import RESULTS_LOG
from warcmill.model import Launch
from warcmill.requests.sender import PLACE, SENT, ResultSender, ResultSource, damaged_lines
from warcmill.requests.serving.scope import RequestScope, RequestTarget
from warcmill.requests.serving.targets import RequestAudience
from warcmill.requests.settings import RequestsPlace
from warcmill.scutils.log_factory import LogObject
from warcmill.stores import sentinel
from warcmill.stores.opening import open_folder

LATER = Launch("news", "20261121091844")
TOPIC = "demo.crawled_firehose"
RECORDED = {
    "appid", "attrs", "body", "crawlid", "encoding", "links", "request_headers", "response_headers", "response_url",
    "status_code", "status_msg", "timestamp", "url",
}  # fmt: skip
SJIS = "<title>日本</title>日本語".encode("cp932")
SITE = {
    ("a.example", "/"): Page(
        b'<title>Home</title><a href="/1">one <b>page</b></a> <a href="/sjis">s</a><a href="/doc">d</a>'
        b'<a href="/1#again">again</a>'
    ),
    ("a.example", "/1"): Page("Café".encode(), "text/html; charset=utf-8"),
    ("a.example", "/sjis"): Page(SJIS, "text/html; charset=Shift_JIS"),
    ("a.example", "/doc"): Page(b"%PDF-1.4 not much", "application/pdf"),
}


def asked(port: int) -> Job:
    plain = crawled.job(port, "a.example", results_log=True, robots=False)
    target = RequestTarget(0, plain.seeds[0], "testapp", "c1", "link", RequestScope(), attrs={"k": 1})
    audience = RequestAudience(target, gets_notices=True)
    return replace(plain, sheets=Sheets(by_seed={plain.seeds[0]: replace(plain, audience=audience)}))


def place(folder: Path, **given: Any) -> RequestsPlace:
    (folder / "state").mkdir(exist_ok=True)
    spool = folder / "state" / "spool"
    return RequestsPlace("news", "demo", "spool", "", spool, given=given)


def sender(folder: Path, bus: Spool | None = None, **given: Any) -> ResultSender:
    at = place(folder, **given)
    if not (store := folder / "store").exists():
        sentinel.adopt({"store": store})
    source = ResultSource.of_job(at, crawled.places(folder))
    return ResultSender(at, source, bus, lambda: open_folder("store", str(store)))


def send(folder: Path, **given: Any) -> int:
    """Send all that is there; return how many."""
    one = sender(folder, **given)
    try:
        return sum(iter(one.step, 0))
    finally:
        one.close()


def sent(folder: Path, topic: str = TOPIC) -> list[dict[str, Any]]:
    """The messages of a topic."""
    files = sorted((folder / "state" / "spool" / topic).glob("*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_bytes().splitlines()]


def by_path(messages: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {one["url"].rpartition(":")[2].partition("/")[2]: one for one in messages}


@pytest.fixture
def port() -> Iterator[int]:
    with serve(dict(SITE)) as port:
        yield port


def test_a_page_has_all_that_the_original_sends_and_where_its_record_is(tmp_path: Path, port: int) -> None:
    crawled.crawl(tmp_path, asked(port))
    assert send(tmp_path) == 4
    home = by_path(sent(tmp_path))[""]
    base = f"http://a.example:{port}"
    assert set(home) == RECORDED | {"id", "warc"}
    assert home["body"] == SITE["a.example", "/"].body.decode()
    assert home["encoding"] == "cp1252"
    assert home["links"] == [
        {"text": "one page", "url": f"{base}/1"}, {"text": "s", "url": f"{base}/sjis"},
        {"text": "d", "url": f"{base}/doc"},
    ]  # fmt: skip
    assert (tmp_path / "output/warcs/news" / crawled.LAUNCH.id / home["warc"]["name"]).exists()
    assert home["id"] == f"{home['warc']['name']}:{home['warc']['offset']}"


def test_text_is_text_in_its_charset_and_what_is_none_is_base64(tmp_path: Path, port: int) -> None:
    crawled.crawl(tmp_path, asked(port))
    send(tmp_path)
    found = by_path(sent(tmp_path))
    assert (found["1"]["body"], found["1"]["encoding"]) == ("Café", "utf-8")
    assert (found["sjis"]["body"], found["sjis"]["encoding"]) == (SJIS.decode("cp932"), "cp932")
    assert base64.b64decode(found["doc"]["body"]) == b"%PDF-1.4 not much"
    assert found["doc"]["encoding"] == "base64"


def test_with_kafka_base_64_encode_each_body_is_its_bytes(tmp_path: Path, port: int) -> None:
    crawled.crawl(tmp_path, asked(port))
    send(tmp_path, KAFKA_BASE_64_ENCODE=True)
    found = by_path(sent(tmp_path))
    assert base64.b64decode(found["sjis"]["body"]) == SJIS
    assert found["sjis"]["encoding"] == "cp932"


def test_an_application_has_a_topic_of_its_own_where_that_is_on(tmp_path: Path, port: int) -> None:
    crawled.crawl(tmp_path, asked(port))
    send(tmp_path, KAFKA_APPID_TOPICS=True)
    assert sent(tmp_path, "demo.crawled_testapp") == sent(tmp_path)


def test_each_result_is_sent_once_across_stages_and_launches(tmp_path: Path, port: int) -> None:
    """The log that is read gets the name of its stage meanwhile."""
    crawled.crawl(tmp_path, asked(port))
    log = tmp_path / "output/logs/news" / crawled.LAUNCH.id / RESULTS_LOG
    whole = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(whole[:1]))
    assert send(tmp_path) == 1
    log.write_bytes(b"".join(whole[:2]))
    log.rename(log.with_name(f"{RESULTS_LOG}.cp00001-20261121081902"))
    log.write_bytes(b"".join(whole[2:]))
    assert send(tmp_path) == 3
    crawled.crawl(tmp_path, asked(port), launch=LATER)
    assert send(tmp_path) == 4
    assert send(tmp_path) == 0
    assert len({one["id"] for one in sent(tmp_path)}) == len(sent(tmp_path)) == 8


def test_what_was_sent_before_a_death_has_the_same_id_when_it_is_sent_again(tmp_path: Path, port: int) -> None:
    crawled.crawl(tmp_path, asked(port))
    send(tmp_path)
    (tmp_path / "state" / PLACE).unlink()
    assert send(tmp_path) == 4
    ids = [one["id"] for one in sent(tmp_path)]
    assert ids[:4] == ids[4:]


def test_a_log_that_is_another_than_before_is_sent_from_its_beginning(tmp_path: Path, port: int) -> None:
    crawled.crawl(tmp_path, asked(port))
    send(tmp_path)
    log = tmp_path / "output/logs/news" / crawled.LAUNCH.id / RESULTS_LOG
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:2]))
    assert send(tmp_path) == 2


def test_nothing_is_sent_of_a_launch_that_was_killed_until_it_is_in_order(tmp_path: Path, port: int) -> None:
    """The books may cut what they have not committed."""
    crawled.crawl(tmp_path, asked(port))
    for log in (tmp_path / "jobs/news/job.log", tmp_path / "jobs/news" / crawled.LAUNCH.id / "job.log"):
        log.write_text("".join(line for line in log.read_text().splitlines(keepends=True) if "FINISHED" not in line))
    assert send(tmp_path) == 0
    crawled.crawl(tmp_path, asked(port))
    assert send(tmp_path) == 4


def test_a_warc_that_is_gone_costs_the_body_alone(tmp_path: Path, port: int) -> None:
    crawled.crawl(tmp_path, asked(port))
    for path in crawled.warcs(tmp_path):
        path.rename(path.with_name(f"{path.name}.elsewhere"))
    assert send(tmp_path) == 4
    assert {(one["body"], one["encoding"]) for one in sent(tmp_path)} == {(None, None)}


def test_a_damaged_line_is_named_and_what_is_behind_it_is_sent(tmp_path: Path, port: int) -> None:
    crawled.crawl(tmp_path, asked(port))
    log = tmp_path / "output/logs/news" / crawled.LAUNCH.id / RESULTS_LOG
    first, second, third, last = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(
        first + b"\0" * len(second[:-1]) + b"\n" + third + b'["no result"]\n' + b"[" * 100_000 + b"\n" + last
    )
    assert damaged_lines(place(tmp_path)) == []
    assert send(tmp_path) == 6
    assert [one["id"] for one in sent(tmp_path)] == [json.loads(line)["id"] for line in (first, third, last)]
    found = damaged_lines(place(tmp_path))
    assert [one.partition(": the line")[0] for one in found] == [
        f"{log}: byte {at}" for at in (len(first), len(first + second + third), len(first + second + third) + 14)
    ]
    log.write_bytes(log.read_bytes() + b"nonsense\n")
    assert (send(tmp_path), send(tmp_path)) == (1, 0), "the place behind a damaged line is known again"
    (tmp_path / "state" / PLACE).unlink()
    assert send(tmp_path) == 7
    assert len(damaged_lines(place(tmp_path))) == 4, "each is named once"


def test_the_body_of_a_page_whose_warc_is_only_in_the_store_is_taken_from_there(tmp_path: Path, port: int) -> None:
    crawled.crawl(tmp_path, asked(port))
    one = sender(tmp_path)
    for path in crawled.warcs(tmp_path):
        stored = tmp_path / "store" / layout.stored_path("warcs", crawled.LAUNCH, path.name)
        stored.parent.mkdir(parents=True, exist_ok=True)
        path.rename(stored)
    word, away = tmp_path / "store" / layout.SENTINEL, tmp_path / "away"
    word.rename(away)
    with pytest.raises(Unavailable):  # an outage of the store is not the absence of the WARC
        one.step()
    away.rename(word)
    assert sum(iter(one.step, 0)) == 4
    found = by_path(sent(tmp_path))
    assert found[""]["body"] == SITE["a.example", "/"].body.decode()
    assert found["sjis"]["body"] == SJIS.decode("cp932")


class _Narrow(Spool):
    """A spool that takes short messages."""

    most = 1 << 20

    def append(self, topic: str, values: Sequence[bytes]) -> None:
        if max(map(len, values)) > self.most:
            raise TooLong(topic, "too long")
        super().append(topic, values)


def test_a_message_that_is_too_long_for_the_bus_has_no_body(tmp_path: Path) -> None:
    site = {**SITE, ("a.example", "/1"): Page(b"x" * 20_000)}
    with serve(site) as port:
        crawled.crawl(tmp_path, asked(port))
    bus = _Narrow(tmp_path / "state" / "spool")
    bus.most = 10_000
    one = sender(tmp_path, bus)
    assert sum(iter(one.step, 0)) == 4
    found = by_path(sent(tmp_path))
    assert found["1"]["body"] is None
    assert found["1"]["warc"]
    assert found[""]["body"]


def test_a_message_that_no_bus_takes_is_named_and_others_are_sent(tmp_path: Path, port: int) -> None:
    crawled.crawl(tmp_path, asked(port))
    log = tmp_path / "output/logs/news" / crawled.LAUNCH.id / RESULTS_LOG
    first = log.read_bytes().splitlines(keepends=True)[0]
    log.write_bytes(first.replace(b'"k": 1', b'"k": "' + b"x" * 20_000 + b'"') + log.read_bytes())
    bus = _Narrow(tmp_path / "state" / "spool")
    bus.most = 10_000
    one = sender(tmp_path, bus)
    assert sum(iter(one.step, 0)) == 5
    assert len(sent(tmp_path)) == 4
    (found,) = damaged_lines(place(tmp_path))
    assert found.startswith(f"{log}: byte 0: the bus does not take it")


class _Away(Spool):
    def append(self, topic: str, values: Sequence[bytes]) -> None:
        raise Unavailable("the bus", "away")


def test_while_the_bus_is_away_results_wait_in_their_log(tmp_path: Path, port: int) -> None:
    crawled.crawl(tmp_path, asked(port))
    one = sender(tmp_path, _Away(tmp_path / "state" / "spool"))
    for _ in range(2):
        with pytest.raises(Unavailable):
            one.step()
    one.close()
    assert send(tmp_path) == 4


def test_a_worker_that_ends_while_the_bus_is_away_reports_that_results_are_left(tmp_path: Path, port: int) -> None:
    crawled.crawl(tmp_path, asked(port))
    ended, log = Event(), LogObject()
    ended.set()
    with pytest.raises(Unavailable):
        sender(tmp_path, _Away(tmp_path / "state" / "spool")).run(ended, log, to_end=True)
    sender(tmp_path, _Away(tmp_path / "state" / "spool")).run(ended, log)  # a role's are sent by the next role
    sender(tmp_path).run(ended, log, to_end=True)
    assert len(sent(tmp_path)) == 4


def test_a_line_of_the_log_names_each_page_that_was_sent_and_no_notice(
    tmp_path: Path, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    crawled.crawl(tmp_path, asked(port))
    log = tmp_path / "output/logs/news" / crawled.LAUNCH.id / RESULTS_LOG
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(lines[0].replace(b'"kind": "page"', b'"kind": "notice"') + b"".join(lines[1:]))
    ended = Event()
    ended.set()
    sender(tmp_path).run(ended, LogObject(json=True, name="of-pages"), to_end=True)
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    pages = sent(tmp_path)
    assert [one["url"] for one in found if one["message"] == SENT] == [one["url"] for one in pages]
    assert {(one["appid"], one["crawlid"], one["action"], one["success"]) for one in found} == {
        (pages[0]["appid"], pages[0]["crawlid"], "ack", True)
    }


def test_one_process_sends_and_another_goes_on_after_its_end(tmp_path: Path, port: int) -> None:
    crawled.crawl(tmp_path, asked(port))
    first, second = sender(tmp_path), sender(tmp_path)
    assert first.step() == 4
    crawled.crawl(tmp_path, asked(port), launch=LATER)
    assert second.step() == 0
    first.close()
    assert second.step() == 4


def test_a_page_that_takes_long_to_parse_is_sent_without_the_texts_of_its_links(tmp_path: Path) -> None:
    site = {("a.example", "/"): page(["/1"], filler=1), ("a.example", "/1"): Page(b"<a href=/>" + b"<i>" * 200_000)}
    with serve(site) as port:
        crawled.crawl(tmp_path, asked(port))
    assert send(tmp_path) == 2
