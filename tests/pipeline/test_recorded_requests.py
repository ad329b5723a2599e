"""Recorded cases of the running Scrapy Cluster, beside a whole line: pages, answers and those of the REST service.

`tests/data/requests/recorded.json` has its pages by crawlid and path, and the cases of its REST service;
`replies.json` its answers to actions and requests for statistics; `cases.json` all requests. Times, ids, hosts and
numbers in windows are left out; keys, types and all other values are the same.
"""

from __future__ import annotations

import base64
import http.client
import json
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import preloaded
import pytest
from requesting.requests_line import RequestsLine, requests_line, served
from sites.several_hosts import Page
from waiting import wait_for

from servers import pins

DATA = Path(__file__).parents[1] / "data" / "requests"
CASES, REPLIES, RECORDED = (
    json.loads((DATA / f"{name}.json").read_text("utf-8")) for name in ("cases", "replies", "recorded")
)
THEIRS, HOST = 8624, "127.0.0.1"
PASSING = {"server_time", "my_id", "uptime_sec", "timestamp", "expires"}
LEFT_OUT = {"timestamp", "response_headers", "request_headers"}
PAGES = RECORDED["pages"]
UNRECORDED = {
    "err": Page(b"broken", "text/html", 500),
    "moved": Page(b"/p/1.html", status=301),
    "slow": Page(b"", status=0),
}


def web(port: int) -> dict[tuple[str, str], Page]:
    """The site that the original crawled, by what it delivered of it."""
    found = {(host, f"/{path}"): page for path, page in UNRECORDED.items() for host in (HOST, "localhost")}
    for key, value in moved(PAGES, port).items():
        kind, path = value["response_headers"]["Content-Type"][0], f"/{key.partition(' ')[2]}"
        body = value["body"].encode("latin-1" if value["encoding"] == "cp1252" else value["encoding"])
        for host in (HOST, "localhost"):
            found[host, path] = Page(body, kind, value["status_code"])
    return found


def shape(value: Any) -> Any:
    """Keys and types, for what counts or names a process; nothing of the keys that tell a time."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items() if key not in PASSING}
    return [shape(value[0])] if isinstance(value, list) and value else type(value).__name__


def moved(value: Any, port: int) -> Any:
    """A recorded value, at the port where the site is here."""
    return json.loads(json.dumps(value).replace(f":{THEIRS}", f":{port}"))


def pages(line: RequestsLine) -> dict[str, dict[str, Any]]:
    return {f"{one['crawlid']} {one['url'].split('/', 3)[3]}": one for one in line.told("crawled_firehose")}


@contextmanager
def rest_of(line: RequestsLine) -> Iterator[int]:
    port = pins.free({"rest": 0})["rest"]
    path = line.folder / "rest.log"
    with path.open("wb") as log:
        rest = preloaded.start(
            "commands.main", "run", "rest", "--port", str(port), env=line.env, out=log.fileno(), err=log.fileno()
        )
    try:
        wait_for(lambda: "answers; Ctrl-C" in path.read_text(), path.read_text)
        wait_for(lambda: asked(port, "GET", "/")[2]["node_health"] == "GREEN", path.read_text)
        yield port
    finally:
        rest.send_signal(signal.SIGTERM)
        rest.wait()


def asked(
    port: int, method: str, path: str, body: str | None = None, headers: dict[str, str] | None = None
) -> tuple[int, str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    found = answer.status, str(answer.headers["Content-Type"]), json.loads(answer.read())
    connection.close()
    return found


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RequestsLine]:
    """A line that was asked for all recorded pages, and whose roles run."""
    crawls = [CASES[name]["request"] for name in CASES if name.startswith(("crawl-", "bad-url"))]
    crawls += [
        {"url": f"http://{HOST}:{THEIRS}/doc.pdf", "appid": "testapp", "crawlid": "c-pdf"},
        {"url": f"http://localhost:{THEIRS}/", "appid": "testapp", "crawlid": "c-deep2", "maxdepth": 2},
        {"url": f"http://{HOST}:{THEIRS}/p/4.html", "appid": "testapp", "crawlid": "c-rest"},
    ]
    site = dict[tuple[str, str], Page]()
    with requests_line(tmp_path_factory.mktemp("line"), site, WAIT_FOR_RESPONSE_TIME=60) as line:
        site.update(web(line.port))
        crawl = line.folder / "jobs" / "ondemand" / "crawl.toml"
        crawl.write_text(crawl.read_text().replace("c.example=127.0.0.1", "localhost=127.0.0.1"))
        with served(line):
            for one in moved(crawls, line.port):
                line.feed({key: value for key, value in one.items() if key != "expires"})
            ours = {*PAGES, "c-500 err", "c-redirect p/1.html", "c-noscheme p/3.html"}
            wait_for(lambda: ours <= set(pages(line)), lambda: f"{ours - set(pages(line))} {line.log()}")
            yield line


def test_pages_are_those_of_the_original(crawled: RequestsLine) -> None:
    found = pages(crawled)
    for name, recorded in moved(PAGES, crawled.port).items():
        ours, theirs = dict(found[name]), dict(recorded)
        assert set(ours) == set(theirs) | {"id", "warc"}, name
        if theirs["encoding"] == "cp1252":  # it is not text: base64 here
            body, theirs["body"] = theirs["body"].encode("cp1252"), ours["body"]
            assert (base64.b64decode(ours["body"]), ours["encoding"], theirs.pop("encoding")) == (
                body, "base64", "cp1252"
            )  # fmt: skip
        assert {key: ours[key] for key in theirs if key not in LEFT_OUT} == {
            key: value for key, value in theirs.items() if key not in LEFT_OUT
        }, name
        assert shape(ours["request_headers"]) == shape(theirs["request_headers"]), name
        assert set(ours["response_headers"]) == set(theirs["response_headers"]) - {"Set-Cookie"}, name
        assert len(ours["timestamp"]) == len(theirs["timestamp"]), name
    full = found["c-full p/2.html"]["request_headers"]
    assert (full["Cookie"], full["User-Agent"]) == (["a=1; b=2"], ["warcmill-golden/1"])
    assert (found["c-500 err"]["status_code"], found["c-500 err"]["body"]) == (500, "broken")
    assert found["c-redirect p/1.html"]["response_url"] == crawled.url("/p/1.html", HOST)
    wait_for(lambda: [one for one in crawled.told() if one.get("crawlid") == "c-slow"], crawled.log)
    (failed,) = (one for one in crawled.told() if one.get("crawlid") == "c-slow")
    assert failed["action"] == "failed"


def test_answers_are_those_of_the_original(crawled: RequestsLine) -> None:
    """`info` and `stop` while something waits, changes of the policy, statistics; by the bus and by the service."""
    with rest_of(crawled) as port:
        for name, case in RECORDED["rest"].items():
            if name not in {"rest-feed-info", "rest-feed-crawl"}:
                request = case["request"]
                found = asked(port, request["method"], request["path"], request["body"], request["headers"])
                assert found[:2] == (case["status"], "application/json"), name
                assert shape(found[2]) == shape(case["body"]), name
                assert found[2].get("error") == case["body"].get("error"), name
        crawled.control("pause")
        home, other = crawled.url("/", HOST), crawled.url("/l/1.html", "localhost")
        common: dict[str, Any] = {"appid": "testapp", "expires": 4_000_000_000}
        crawled.feed(
            {**common, "url": home, "crawlid": "c-deep", "priority": 60, "maxdepth": 1},
            {**common, "url": other, "crawlid": "c-deep"}, {"appid": "testapp", "url": other, "crawlid": "c-deep2"},
        )  # fmt: skip
        info = REPLIES["info-appid"]
        found = crawled.ask(**info["request"])
        assert shape(found) == shape(info["reply"])
        assert (found["total_pending"], found["total_crawlids"], found["total_domains"]) == (3, 2, 2)
        for name in ("stop", "info-after-stop", "info-unknown"):
            if name == "info-after-stop":
                crawled.feed({"appid": "testapp", "url": home, "crawlid": "c-deep", "maxdepth": 1})
            found = crawled.ask(**REPLIES[name]["request"])
            assert shape(found) == shape(REPLIES[name]["reply"]), name
        case = RECORDED["rest"]["rest-feed-crawl"]["request"]
        body = case["body"].replace(str(THEIRS), str(crawled.port))
        assert asked(port, "POST", "/feed", body, case["headers"])[2]["status"] == "SUCCESS"
        case = RECORDED["rest"]["rest-feed-info"]
        request = case["request"]
        status, _, answer = asked(port, request["method"], request["path"], request["body"], request["headers"])
        assert status == case["status"]
        assert set(answer["data"]["crawlids"]) == {"c-deep", *case["body"]["data"]["crawlids"]}
        answer["data"]["crawlids"].pop("c-deep")
        assert shape(answer) == shape(case["body"])
        crawled.feed({"appid": "testapp", "url": home, "crawlid": "c-exp", "expires": int(time.time()) - 5})
        wait_for(lambda: [one for one in crawled.told() if one.get("action") == "expired"], crawled.log)
        (expired,) = (one for one in crawled.told() if one.get("action") == "expired")
        assert {**expired, "server_time": 0} == {**REPLIES["crawl-expiring"]["reply"], "server_time": 0}
        for name, case in REPLIES.items():
            if name.startswith(("stats-", "zk-")):
                reply, found = case["reply"], crawled.ask(**case["request"])
                assert set(found) == set(reply), name
                assert {key: value for key, value in found.items() if isinstance(value, str)} == {
                    key: value for key, value in reply.items() if isinstance(value, str)
                }, name
                assert keys(found) >= keys(reply), name
        crawled.control("resume")


def keys(value: Any, before: str = "") -> set[str]:
    """The places of numbers and texts in a document, by their keys; those of a machine without its name."""
    if isinstance(value, dict):
        found: set[str] = set()
        for key, inner in value.items():
            found |= keys(inner, f"{before}/{'MACHINE' if key in {'vm', socket.gethostname()} else key}")
        return found
    if isinstance(value, list):
        return set().union(*(keys(inner, f"{before}/*") for inner in value))
    return {f"{before}: {type(value).__name__}"}
