"""Spiders of Scrapy on bad days: what fails is named, and no page and no item is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import several_hosts
from line import Line
from scrapy_runs import HERE, HURRIED, items, line_for, pages, responses, run_spider, site

JOB = "spiders"
SPIDER = """
import os, scrapy

class Odd:
    def process_item(self, item):
        if item["n"] == 2 and os.path.exists("{folder}/ends"):
            os._exit(1)
        return item

class Small(scrapy.Spider):
    name = "small"
    custom_settings = {{"FEEDS": {{"items.jsonl": {{"format": "jsonlines"}}}}, "LOG_LEVEL": "INFO", {settings}}}

    async def start(self):
        yield scrapy.Request(self.url, meta={{"appid": "app", "crawlid": "one"}})

    def parse(self, response):
        yield {{"n": 0, "appid": "app", "crawlid": "one"}}
        for n in range(1, 4):
            yield response.follow(f"/shelf/{{n}}", self.second, cb_kwargs={{"n": n}})

    def second(self, response, n):
        yield {{"n": n, "appid": "app", "crawlid": "one", {more}}}
"""
FILES = '"ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1}, "FILES_STORE": "files"'
DEEP = '"deep": __import__("functools").reduce(lambda inner, _: [inner], range(9_000), []) if n == 1 else 0'


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with several_hosts.serve(site()) as port:
        yield port


def words(port: int, folder: Path, settings: str = "", more: str = "") -> tuple[str, ...]:
    """The words of a run of a spider, which is written here."""
    (folder / "spider.py").write_text(SPIDER.format(folder=folder, settings=settings, more=more))
    return str(folder / "spider.py"), "-a", f"url={shelf(port, 0)}", "--job", JOB


def shelf(port: int, number: int) -> str:
    return f"http://{HERE}:{port}/shelf/{number}"


def results(line: Line) -> list[int]:
    """The numbers of the items that are results, in all launches."""
    logs = (line.folders["output"] / "logs" / JOB).glob("*/results.jsonl*")
    return sorted(json.loads(one)["value"]["n"] for log in logs for one in log.read_text("utf-8").splitlines())


def test_a_spider_stays_open_while_only_requests_of_an_application_wait(port: int, tmp_path: Path) -> None:
    """They are of a crawl of their own; and each waits here for a second."""
    line = line_for(tmp_path / "line", JOB, f"results_log = true\n{HURRIED}".replace("least = 0.0", "least = 1.0"))
    done = run_spider(line, *words(port, tmp_path), folder=tmp_path / "ours")
    assert done.returncode == 0, done.stdout + done.stderr
    assert pages(line, JOB) == {(shelf(port, number), 200): 1 for number in range(4)}
    assert results(line) == [0, 1, 2, 3]


def test_a_pipeline_that_ends_the_process_costs_no_page_and_no_result(port: int, tmp_path: Path) -> None:
    line = line_for(tmp_path / "line", JOB, f"results_log = true\n{HURRIED}")
    run = words(port, tmp_path, '"ITEM_PIPELINES": {Odd: 1}')
    (tmp_path / "ends").touch()
    for number in range(2):
        done = run_spider(line, *run, folder=tmp_path / str(number))
        assert done.returncode == 1, done.stdout + done.stderr
    assert "continues from" in done.stdout
    assert (shelf(port, 2), 200) not in pages(line, JOB)
    (tmp_path / "ends").unlink()
    done = run_spider(line, *run, folder=tmp_path / "last")
    assert done.returncode == 0, done.stdout + done.stderr
    assert pages(line, JOB) == {(shelf(port, number), 200): 1 for number in range(4)}
    assert results(line) == [0, 1, 2, 3]


def test_a_file_that_a_pipeline_asks_for_is_in_its_folder_and_in_a_warc(port: int, tmp_path: Path) -> None:
    line = line_for(tmp_path / "line", JOB)
    asks = f'"file_urls": ["http://{HERE}:{port}/book/0{{n}}".format(n=n)]'
    done = run_spider(line, *words(port, tmp_path, FILES, asks), folder=tmp_path / "ours")
    assert done.returncode == 0, done.stdout + done.stderr
    kept = [one["files"] for one in map(json.loads, items(tmp_path / "ours")) if one["n"]]
    assert sorted(len(one) for one in kept) == [0, 1, 1]  # the third is gone: 404
    for one in kept:
        assert all((tmp_path / "ours" / "files" / file["path"]).stat().st_size for file in one)
    asked = {f"http://{HERE}:{port}/book/0{number}" for number in (1, 2, 3)}
    assert asked <= set(responses(line, JOB))


def test_an_item_that_is_too_deep_to_be_a_result_is_named_and_its_page_is_kept(port: int, tmp_path: Path) -> None:
    line = line_for(tmp_path / "line", JOB, f"results_log = true\n{HURRIED}")
    done = run_spider(line, *words(port, tmp_path, more=DEEP), folder=tmp_path / "ours")
    assert done.returncode == 0, done.stdout + done.stderr
    assert pages(line, JOB) == {(shelf(port, number), 200): 1 for number in range(4)}
    assert results(line) == [0, 2, 3]
    (log,) = (line.folders["output"] / "logs" / JOB).glob("*/runtime-errors.log")
    assert "an item of it is no result: it is nested too deep" in log.read_text()
