"""More requests, as the running Scrapy Cluster serves them: charsets, statuses, scopes, addresses, headers.

`tests/data/requests/varied.json` has the pages of a site, the requests by crawlid, and what the original delivered for
them: of a page of one request all, of others the address and the links. An absent value is the usual one. `asked.json`
has actions and changes of the policy in their order, and what the original answered.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from requesting.requests_line import RequestsLine, requests_line, served
from sites.several_hosts import Page
from waiting import wait_for

DATA = Path(__file__).parents[1] / "data" / "requests"
VARIED = (DATA / "varied.json").read_text("utf-8")
ASKED = json.loads((DATA / "asked.json").read_text("utf-8"))
HOSTS = ("127.0.0.1", "localhost")
USUAL: dict[str, Any] = {"attrs": None, "links": [], "status_code": 200}
OWN_HEADERS = ("Accept", "Accept-Encoding", "Accept-Language")


def body(page: dict[str, str]) -> bytes:
    return base64.b64decode(page["base64"]) if "base64" in page else page["text"].encode()


def shown(found: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """What is compared of a message: what was recorded of it, and what differs from the usual."""
    values = {key: value for key, value in found.items() if key in USUAL and value != USUAL[key]}
    values |= {key: found[key] for key in ("body", "encoding") if key in wanted}
    if found["response_url"] != found["url"]:
        values["response_url"] = found["response_url"]
    headers = {name: value for name, (value,) in found["request_headers"].items() if name not in OWN_HEADERS}
    if "warcmill" in headers["User-Agent"]:
        del headers["User-Agent"]
    return {**values, **({"request_headers": headers} if headers else {})}


def delivered(line: RequestsLine) -> dict[str, dict[str, Any]]:
    return {f"{one['crawlid']} {one['url']}": one for one in line.told("crawled_firehose")}


def test_varied_requests_bring_what_the_original_brings(tmp_path: Path) -> None:
    site = dict[tuple[str, str], Page]()
    with requests_line(tmp_path, site) as line:
        varied = json.loads(VARIED.replace("{P}", str(line.port)))
        for path, page in varied["site"].items():
            site |= {(host, path): Page(body(page), page["kind"], page.get("status", 200)) for host in HOSTS}
        crawl = line.folder / "jobs" / "ondemand" / "crawl.toml"
        crawl.write_text(crawl.read_text().replace("c.example=127.0.0.1", "localhost=127.0.0.1"))
        with served(line):
            line.feed(*({"appid": "testapp", "crawlid": name, **one} for name, one in varied["crawls"].items()))
            recorded = varied["pages"]
            wait_for(lambda: set(recorded) <= set(delivered(line)), lambda: f"{set(recorded) - set(delivered(line))}")
        found = delivered(line)
        assert set(found) == set(recorded)
        for name, wanted in recorded.items():
            assert shown(found[name], wanted) == wanted, name


def test_actions_in_a_row_are_answered_as_the_original_answers_them(tmp_path: Path) -> None:
    """Before any crawl, of nobody, with several applications, after a stop, after expiry; changes made twice."""
    with requests_line(tmp_path, {}) as line, served(line):
        told = list[dict[str, Any]]()
        for step in ASKED:
            line.feed(*step["asked"])
            wait_for(lambda: len(line.told()) >= len(told) + len(step["told"]), line.log)  # noqa: B023 called at once
            new = sorted(line.told()[len(told) :], key=lambda one: str(one.get("uuid")))
            told += new
            assert all(isinstance(one.pop("server_time"), int) for one in new)
            assert new == step["told"], step["asked"]
        assert len(line.told()) == len(told)
