"""Requests of applications for a spider of Scrapy: it wakes, its items are results, and it hands over to others."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import preloaded
from requesting.requests_line import APP, JOB, requests_line, role
from waiting import wait_for

WANDERER = """
import scrapy
from crawling.items import RawResponseItem
from lxmlhtml import CustomLxmlLinkExtractor as LinkExtractor
from redis_spider import RedisSpider


class Wanderer(RedisSpider):
    name = "wanderer"

    def parse(self, response):
        meta, step = response.meta, response.meta.get("step", 0)
        item = RawResponseItem(appid=meta["appid"], crawlid=meta["crawlid"], attrs=meta["attrs"] or {})
        item["attrs"]["step"] = step
        item["url"], item["response_url"], item["status_code"] = response.request.url, response.url, response.status
        item["request_headers"], item["body"] = response.request.headers, response.body
        links = LinkExtractor(
            allow_domains=meta["allowed_domains"], allow=meta["allow_regex"], deny=meta["deny_regex"],
            deny_extensions=meta["deny_extensions"],
        ).extract_links(response)
        if meta["crawlid"] == "broken":
            raise KeyError("a fault of the callback")
        if step < 2:
            yield scrapy.Request(links[step].url, callback=self.parse, meta={"step": step + 1})
        else:
            yield scrapy.Request(links[5].url, meta={"spiderid": "link"})
            yield scrapy.Request(links[6].url, meta={"spiderid": "absent"})
        yield item
"""


def test_an_idle_spider_is_woken_by_a_request_and_hands_over_to_our_crawler(tmp_path: Path) -> None:
    with requests_line(tmp_path / "line") as line:
        spider = tmp_path / "wanderer.py"
        spider.write_text(WANDERER)
        with (tmp_path / "printed").open("wb") as out:
            words = ("run", "spider", str(spider), "--job", JOB)
            process = preloaded.start("commands.main", *words, env=line.env, out=out.fileno(), err=out.fileno())

        def results() -> list[dict[str, Any]]:
            """The results that the sender will put on the bus."""
            (log,) = (line.folder / "output" / "logs" / JOB).glob("*/results.jsonl")
            return [json.loads(one)["value"] for one in log.read_text("utf-8").splitlines()]

        def told() -> str:
            return f"{(tmp_path / 'printed').read_text()}\n{line.log()}\n{results()}"

        try:
            wait_for(lambda: "Spider opened" in (tmp_path / "printed").read_text(), told)
            with role(line):
                asked = {"spiderid": "wanderer", "useragent": "app/1.0", "attrs": {"by": "me"}, "deny_regex": ["/0$"]}
                line.feed(line.crawl("/9", "walk", **asked), line.crawl("/8", "page"))
                line.feed(line.crawl("/7", "broken", spiderid="wanderer"))
                wait_for(lambda: len(results()) >= 6, told)
                found = results()
                whole = line.ask(uuid="i1", action="info", spiderid="absent")
                assert whole["crawlids"]["walk"]["total"] == whole["total_pending"] == 1
                assert line.ask(uuid="i2", action="info", spiderid="absent", crawlid="walk")["total_pending"] == 1
                assert line.ask(uuid="i3", action="info", spiderid="wanderer")["total_pending"] == 0
                machines = line.ask(uuid="i4", stats="crawler")["spiders"]
                assert {name: machines[name]["200"]["lifetime"] for name in ("link", "wanderer")} == {
                    "link": 2, "wanderer": 4
                }  # fmt: skip
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 130, told()
        finally:
            process.kill()
    walked = {one["attrs"]["step"]: one for one in found if one["crawlid"] == "walk" and "step" in (one["attrs"] or {})}
    assert sorted(walked) == [0, 1, 2], told()
    assert [walked[step]["url"] for step in range(3)] == [line.url(path) for path in ("/9", "/1", "/2")]
    assert all((one["appid"], one["attrs"]["by"]) == (APP, "me") for one in walked.values())
    assert walked[0]["request_headers"]["User-Agent"] == ["app/1.0"]
    handed = [one for one in found if one["crawlid"] == "walk" and "step" not in (one["attrs"] or {})]
    assert [one["url"] for one in handed] == [line.url("/6")]
    assert [one["url"] for one in found if one["crawlid"] == "page"] == [line.url("/8")]
    (broken,) = (one for one in found if one["crawlid"] == "broken")
    assert (broken["action"], broken["why"]) == ("failed", "its callback, or a pipeline, has failed")
    assert sorted(line.paths()) == ["/1", "/2", "/6", "/7", "/8", "/9"]
