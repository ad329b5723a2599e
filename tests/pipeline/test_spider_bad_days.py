"""Spiders of Scrapy on bad days: what fails is named, and no page and no item is lost."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from line import Line
from requesting.scrapy_runs import HERE, HURRIED, items, line_for, pages, responses, run_spider, site, start_spider
from sites import several_hosts
from waiting import wait_for

JOB = "spiders"
SPIDER = """
import os, scrapy

class Odd:
    def process_item(self, item):
        if item["n"] == 2 and os.path.exists("{folder}/ends"):
            os._exit(1)
        return item

class Ending:
    def process_item(self, item):
        if item["n"] == 3:
            raise SystemExit(4)
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


def test_a_file_that_robots_txt_closes_to_a_pipeline_has_a_line(port: int, tmp_path: Path) -> None:
    line = line_for(tmp_path / "line", JOB)
    asks = f'"file_urls": ["http://{HERE}:{port}/closed/{{n}}".format(n=n)]'
    done = run_spider(line, *words(port, tmp_path, FILES, asks), folder=tmp_path / "ours")
    assert done.returncode == 0, done.stdout + done.stderr
    closed = {(f"http://{HERE}:{port}/closed/{number}", -9998): 1 for number in (1, 2, 3)}
    assert pages(line, JOB) == {(shelf(port, number), 200): 1 for number in range(4)} | closed
    (log,) = (line.folders["output"] / "logs" / JOB).glob("*/nonfatal-errors.log")
    assert "robots.txt says" in log.read_text()


def test_an_item_that_is_too_deep_to_be_a_result_is_named_and_its_page_is_kept(port: int, tmp_path: Path) -> None:
    line = line_for(tmp_path / "line", JOB, f"results_log = true\n{HURRIED}")
    done = run_spider(line, *words(port, tmp_path, more=DEEP), folder=tmp_path / "ours")
    assert done.returncode == 0, done.stdout + done.stderr
    assert pages(line, JOB) == {(shelf(port, number), 200): 1 for number in range(4)}
    assert results(line) == [0, 2, 3]
    (log,) = (line.folders["output"] / "logs" / JOB).glob("*/runtime-errors.log")
    assert "an item of it is no result: it is nested too deep" in log.read_text()


def shelves(line: Line, port: int) -> None:
    """Check that each shelf is kept once."""
    assert pages(line, JOB) == {(shelf(port, number), 200): 1 for number in range(4)}


def log(line: Line, name: str) -> str:
    """A log of all launches."""
    return "".join(one.read_text() for one in sorted((line.folders["output"] / "logs" / JOB).glob(f"*/{name}*")))


ENDS = """
import asyncio, scrapy

class Small(scrapy.Spider):
    name = "small"

    async def start(self):
        yield scrapy.Request(self.url)

    def parse(self, response):
        yield response.follow("/shelf/1", self.plain)
        yield response.follow("/shelf/2", self.second)
        yield response.follow("/shelf/3", self.third)
        yield response.follow("/book/03", self.plain, errback=self.gone)
        raise GeneratorExit

    def plain(self, response):
        raise GeneratorExit

    def second(self, response):
        yield {"n": 2}
        raise KeyboardInterrupt

    async def third(self, response):
        task = asyncio.ensure_future(asyncio.sleep(60))
        task.cancel()
        await task
        yield {"n": 3}

    def gone(self, failure):
        raise SystemExit(7)
"""


def test_a_callback_that_raises_what_is_no_error_is_an_error_of_its_page(port: int, tmp_path: Path) -> None:
    """Scrapy waits for such a page for ever, and asyncio ends the process by some of them."""
    line = line_for(tmp_path / "line", JOB)
    (tmp_path / "spider.py").write_text(ENDS)
    words_ = (str(tmp_path / "spider.py"), "-a", f"url={shelf(port, 0)}", "--job", JOB)
    done = run_spider(line, *words_, folder=tmp_path / "ours")
    assert done.returncode == 0, done.stdout + done.stderr
    gone = {(f"http://{HERE}:{port}/book/03", 404): 1}
    assert pages(line, JOB) == {(shelf(port, number), 200): 1 for number in range(4)} | gone
    logged = log(line, "runtime-errors.log")
    for what in ("raised GeneratorExit", "raised KeyboardInterrupt", "raised CancelledError", "called sys.exit(7)"):
        assert f"the code of spider small has {what}" in logged, logged
    assert "a fault in the code of spider small" in log(line, "alerts.log")


CLOSES = """
import scrapy

class Small(scrapy.Spider):
    name = "small"
    custom_settings = {"CONCURRENT_REQUESTS": 1, "FEEDS": {"items.jsonl": {"format": "jsonlines"}}}
    begins = "1"

    async def start(self):
        if self.begins != "1":
            raise scrapy.exceptions.CloseSpider("not today")
        yield scrapy.Request(self.url)

    def parse(self, response):
        yield {"page": response.url.rpartition("/")[2]}
        yield from response.follow_all(css="a")
"""


def test_a_spider_that_closes_itself_has_finished_and_the_next_run_begins_anew(port: int, tmp_path: Path) -> None:
    """By a setting, and in `start()`; one that is stopped by a signal is continued, and says so."""
    line = line_for(tmp_path / "line", JOB)
    (tmp_path / "spider.py").write_text(CLOSES)
    run = (str(tmp_path / "spider.py"), "-a", f"url={shelf(port, 0)}", "--job", JOB)
    for number in (1, 2):
        done = run_spider(line, *run, "-s", "CLOSESPIDER_PAGECOUNT=2", folder=tmp_path / str(number))
        assert done.returncode == 0, done.stdout + done.stderr
        assert "the spider has closed itself, by closespider_pagecount; the next run begins anew" in done.stdout
        assert "continues" not in done.stdout
        assert pages(line, JOB)[shelf(port, 0), 200] == number
    done = run_spider(line, *run, "-a", "begins=0", folder=tmp_path / "3")
    assert (done.returncode, "by not today" in done.stdout) == (0, True), done.stdout + done.stderr
    assert items(tmp_path / "3") == []
    (line.folders["jobs"] / JOB / "crawl.toml").write_text(HURRIED.replace("least = 0.0", "least = 0.3"))
    with start_spider(line, *run, folder=tmp_path / "4") as process:
        wait_for(lambda: pages(line, JOB)[shelf(port, 0), 200] == 3, (tmp_path / "4" / "printed").read_text)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 130
    done = run_spider(line, *run, "-s", "CLOSESPIDER_PAGECOUNT=2", folder=tmp_path / "5")
    assert (done.returncode, "continues from cp0" in done.stdout) == (0, True), done.stdout + done.stderr
    assert pages(line, JOB)[shelf(port, 0), 200] == 3


EXITS = """
import sys
import scrapy

class Down:
    def process_request(self, request):
        if request.url.endswith("/1"):
            sys.exit(1)
        if request.url.endswith("/2"):
            raise GeneratorExit

    def process_response(self, request, response):
        if request.url.endswith("/3"):
            sys.exit(3)
        return response

class Spiders:
    def process_spider_input(self, response):
        if response.url.endswith("/4"):
            sys.exit(4)

    async def process_spider_output(self, response, result):
        async for one in result:
            yield one
        if response.url.endswith("/5"):
            raise GeneratorExit

    def process_spider_exception(self, response, exception):
        if response.url.endswith("/14"):
            sys.exit(6)

    async def process_start(self, start):
        async for one in start:
            yield one
        sys.exit(7)

class Pipe:
    def process_item(self, item):
        if item["page"] == "12":
            raise GeneratorExit
        return item

    def close_spider(self):
        sys.exit(8)

class Small(scrapy.Spider):
    name = "small"
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {Down: 500}, "SPIDER_MIDDLEWARES": {Spiders: 500},
                       "ITEM_PIPELINES": {Pipe: 1}, "FEEDS": {"items.jsonl": {"format": "jsonlines"}}}

    async def start(self):
        for page in (*(f"/shelf/{n}" for n in range(6)), "/book/11", "/book/12", "/book/14"):
            yield scrapy.Request(self.url + page)

    def parse(self, response):
        yield {"page": response.url.rpartition("/")[2]}
        if response.url.endswith("/14"):
            raise ValueError
"""


def test_an_exit_in_a_middleware_a_pipeline_or_start_is_an_error_of_its_page_alone(port: int, tmp_path: Path) -> None:
    line = line_for(tmp_path / "line", JOB)
    (tmp_path / "spider.py").write_text(EXITS)
    words_ = (str(tmp_path / "spider.py"), "-a", f"url=http://{HERE}:{port}", "--job", JOB)
    done = run_spider(line, *words_, folder=tmp_path / "ours")
    assert done.returncode == 0, done.stdout + done.stderr
    books = {(f"http://{HERE}:{port}/book/1{number}", 200): 1 for number in (1, 2, 4)}
    shelves_ = {(shelf(port, number), -5 if number in (1, 2) else 200): 1 for number in range(6)}
    assert pages(line, JOB) == books | shelves_
    assert [json.loads(one)["page"] for one in items(tmp_path / "ours")] == ["0", "11", "14", "5"]
    logged = log(line, "runtime-errors.log")
    for what in ("called sys.exit(1)", "raised GeneratorExit", "called sys.exit(3)", "called sys.exit(4)"):
        assert f"the code of spider small has {what}" in logged, logged
    for number in (7, 8):
        assert f"called sys.exit({number})" in done.stderr


def test_a_pipeline_that_calls_sys_exit_loses_its_item_alone(port: int, tmp_path: Path) -> None:
    line = line_for(tmp_path / "line", JOB, f"results_log = true\n{HURRIED}")
    done = run_spider(line, *words(port, tmp_path, '"ITEM_PIPELINES": {Ending: 1}'), folder=tmp_path / "ours")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "called sys.exit(4)" in done.stderr
    shelves(line, port)
    assert results(line) == [0, 1, 2]


def test_a_page_at_which_the_process_has_died_three_times_is_given_up_by_name(port: int, tmp_path: Path) -> None:
    line = line_for(tmp_path / "line", JOB, f"results_log = true\n{HURRIED}")
    run = words(port, tmp_path, '"ITEM_PIPELINES": {Odd: 1}')
    (tmp_path / "ends").touch()
    for number in range(3):
        done = run_spider(line, *run, folder=tmp_path / str(number))
        assert done.returncode == 1, done.stdout + done.stderr
    done = run_spider(line, *run, folder=tmp_path / "last")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"1 got no answer, first {shelf(port, 2)}: it is given up: the process has died 3 times" in done.stderr
    assert pages(line, JOB) == {(shelf(port, number), -5 if number == 2 else 200): 1 for number in range(4)}
    assert results(line) == [0, 1, 3]
    assert "has died 3 times while the code of spider small was at this page" in log(line, "runtime-errors.log")
    assert f"a fault in the code of spider small at {shelf(port, 2)}" in log(line, "alerts.log")


def test_items_of_pages_that_are_kept_are_in_the_feed_though_the_process_died(port: int, tmp_path: Path) -> None:
    """Scrapy writes a feed out at its end only, and what is kept is not visited again."""
    line, ours = line_for(tmp_path / "line", JOB), tmp_path / "ours"
    run = words(port, tmp_path, '"ITEM_PIPELINES": {Odd: 1}')
    (tmp_path / "ends").touch()
    assert run_spider(line, *run, folder=ours).returncode == 1
    (tmp_path / "ends").unlink()
    done = run_spider(line, *run, folder=ours)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {json.loads(one)["n"] for one in items(ours)} == {0, 1, 2, 3}
    shelves(line, port)


BLOCKS = """
import os, time
import scrapy
from warcmill.spiders import guard

guard.STANDS = 6.0

def asks():
    while not os.path.exists("{folder}/answer"):
        time.sleep(0.05)

class Small(scrapy.Spider):
    name = "small"
    custom_settings = {{"WARCMILL_CALLBACK_SECONDS": 5}}

    async def start(self):
        yield scrapy.Request(self.url)

    def parse(self, response):
        for n in range(1, 4):
            yield response.follow(f"/shelf/{{n}}", self.second, cb_kwargs={{"n": n}})

    def second(self, response, n):
        if n == 2:
            asks()
        yield {{"n": n}}
"""


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_callback_that_blocks_is_named_and_a_kill_loses_nothing(is_killed: bool, port: int, tmp_path: Path) -> None:
    line, ours = line_for(tmp_path / "line", JOB), tmp_path / "ours"
    (tmp_path / "spider.py").write_text(BLOCKS.format(folder=tmp_path))
    run = (str(tmp_path / "spider.py"), "-a", f"url={shelf(port, 0)}", "--job", JOB)

    def alerts() -> str:
        return log(line, "alerts.log")

    with start_spider(line, *run, folder=ours) as process:
        wait_for(lambda: "has not let go" in alerts(), (ours / "printed").read_text)
        (tmp_path / "answer").touch()
        if is_killed:
            process.kill()
        else:
            wait_for(lambda: process.poll() is not None, (ours / "printed").read_text)
            assert process.returncode == 0, (ours / "printed").read_text()
    if is_killed:
        done = run_spider(line, *run, folder=tmp_path / "rest")
        assert done.returncode == 0, done.stdout + done.stderr
    (named,) = [one for one in alerts().splitlines() if "has not let go" in one]
    assert "spider.py:" in named
    assert f"at {shelf(port, 2)}" in named
    assert f"kill -9 {process.pid}" in named or not is_killed
    assert "Small.second" in named
    assert is_killed or "has let go of the loop, after" in alerts()
    shelves(line, port)
    assert not log(line, "runtime-errors.log")  # what others had to wait is not their time
