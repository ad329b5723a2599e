"""`warcmill run spider` on projects of Scrapy as they are: its items, and each page once in a WARC and in the logs."""

from __future__ import annotations

import json
import re
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback_site import windmills
from operating.documented import PAGES, PRINTED, is_as_shown
from requesting.scrapy_runs import (
    HERE,
    HURRIED,
    PROJECTS,
    SECTIONS,
    SHELVES,
    SPIDERS,
    by_plain_scrapy,
    items,
    line_for,
    pages,
    plain_items,
    responses,
    run_spider,
    run_warcmill,
    site,
    start_spider,
    write_job,
)
from sites import several_hosts
from waiting import wait_for

from warcmill.base import clock
from warcmill.crawl.launch import folders, job_log

JOB = "spiders"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with several_hosts.serve(site()) as port:
        yield port


def url(port: int, path: str = "/") -> str:
    return f"http://{HERE}:{port}{path}"


def written(folder: Path, body: str, name: str = "spider.py") -> Path:
    """A spider of a few lines, which begins at `self.url`."""
    head = "import asyncio, os, sys, time\nimport scrapy\n\n\nclass Small(scrapy.Spider):\n    name = 'small'\n"
    feed = "    custom_settings = {'FEEDS': {'items.jsonl': {'format': 'jsonlines'}}}\n\n"
    start = "    async def start(self):\n        yield scrapy.Request(self.url)\n\n"
    file = folder / name
    file.write_text(head + feed + start + "".join(f"    {line}\n" if line else "\n" for line in body.splitlines()))
    return file


@pytest.mark.parametrize("spider", PROJECTS)
def test_a_project_yields_what_plain_scrapy_yields_and_each_page_is_in_a_warc(
    spider: str, port: int, tmp_path: Path
) -> None:
    what, begins = PROJECTS[spider]
    wanted = by_plain_scrapy(spider, url(port, begins), tmp_path)
    line = line_for(tmp_path / "line", JOB)
    done = run_spider(
        line, str(SPIDERS / what), "-a", f"url={url(port, begins)}", "--job", JOB, folder=tmp_path / "ours"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert items(tmp_path / "ours") == wanted
    assert len(wanted) == {"books": SHELVES * 19, "articles": SECTIONS * 8}[spider]

    found = pages(line, JOB)
    answered = {page: number for page, number in found.items() if page[1] > 0}
    assert responses(line, JOB) == {page: number for (page, _), number in answered.items()}
    if spider == "articles":
        assert found[url(port, "/moved/08"), 301] == found[url(port, "/article/08"), 200] == 1
        assert found[url(port, "/closed/article/1"), -9998] == 1
        assert not any("elsewhere" in page for page, _ in found)
    else:
        assert found[url(port, "/visitors"), 200] == SHELVES * 9
        assert found[url(port, "/book/03"), 404] == 1
    launch = job_log.last(line.folders["jobs"] / JOB)
    assert launch
    assert line.scan_all(clock.stamp_text(launch.launch)[:10]) == 0


def test_a_spider_that_was_killed_goes_on_and_loses_nothing(port: int, tmp_path: Path) -> None:
    begins = url(port, "/shelf/0")
    wanted = by_plain_scrapy("books", begins, tmp_path)
    line, ours = line_for(tmp_path / "line", JOB, HURRIED.replace("no_delay = true\n", "")), tmp_path / "ours"
    words = (str(SPIDERS / "books.py"), "-a", f"url={begins}", "--job", JOB)
    for number in range(1, 4):
        with start_spider(line, *words, folder=ours / str(number)) as process:
            wait_for(lambda wanted=15 * number: sum(pages(line, JOB).values()) >= wanted)
            process.kill()
    done = run_spider(line, *words, folder=ours)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "continues from cp0" in done.stdout
    found = pages(line, JOB)
    assert {page for page, _ in found} == {page.partition('"url": "')[2].partition('"')[0] for page in wanted} | {
        url(port, f"/shelf/{shelf}") for shelf in range(SHELVES)
    }
    assert found[url(port, "/visitors"), 200] == SHELVES * 9
    assert sum(found.values()) == SHELVES * (1 + 10 + 9)


def test_a_spider_that_is_stopped_closes_its_feed_and_goes_on(port: int, tmp_path: Path) -> None:
    line, ours = (
        line_for(tmp_path / "line", JOB, "hops = 255\nallow_private = ['127.0.0.0/8']\n[politeness]\nleast = 0.1\n"),
        tmp_path / "ours",
    )
    words = (str(SPIDERS / "books.py"), "-a", f"url={url(port, '/shelf/0')}", "--job", JOB)
    with start_spider(line, *words, folder=ours) as process:
        wait_for(lambda: len(pages(line, JOB)) >= 10)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 130
    assert items(ours), (ours / "printed").read_text()
    (line.folders["jobs"] / JOB / "crawl.toml").write_text(HURRIED)
    done = run_spider(line, *words, folder=tmp_path / "rest")
    assert done.returncode == 0, done.stdout + done.stderr
    assert sum(pages(line, JOB).values()) == SHELVES * 20
    assert len(items(ours)) + len(items(tmp_path / "rest")) == SHELVES * 19


OF_DATA = """
def parse(self, response):
    yield {"page": response.url, "title": response.css("title::text").get(), "status": response.status}
    yield scrapy.Request("data:,last", self.last)
    yield scrapy.Request(self.other)

def last(self, response):
    yield {"page": response.text}
    raise ValueError("a fault of the callback")
"""


def test_a_data_start_runs_its_callback_in_a_job_that_has_a_crawl_toml_alone(port: int, tmp_path: Path) -> None:
    line = line_for(tmp_path / "line", "another")
    own = line.folders["jobs"] / JOB
    own.mkdir()
    (own / "crawl.toml").write_text(HURRIED)
    words = ("-a", "url=data:text/html,<title>Ä</title>", "-a", f"other={url(port, '/shelf/0')}", "--job", JOB)
    done = run_spider(line, str(written(tmp_path, OF_DATA)), *words, folder=tmp_path / "ours")
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(one) for one in items(tmp_path / "ours")]
    data = "data:text/html,%3Ctitle%3E%C3%84%3C/title%3E"
    assert [(one["page"], one.get("title")) for one in found] == [
        (data, "Ä"), (url(port, "/shelf/0"), None), ("last", None)
    ]  # fmt: skip
    assert pages(line, JOB) == {(data, 200): 1, ("data:,last", 200): 1, (url(port, "/shelf/0"), 200): 1}
    (log,) = (line.folders["output"] / "logs" / JOB).glob("*/runtime-errors.log")
    assert "a fault of the callback" in log.read_text()
    assert (own / "crawl.toml").read_text() == HURRIED


RAISING = """
def parse(self, response):
    yield {"page": response.url}
    yield response.follow("/shelf/1", self.first)
    raise ValueError("a fault of the callback")

def first(self, response):
    yield response.follow("/shelf/2", self.second)
    sys.exit(3)

async def second(self, response):
    yield {"page": response.url}
    await asyncio.sleep(0)
    raise KeyError("later")
"""


def test_callbacks_that_raise_or_exit_cost_nothing_but_what_they_had_not_yielded(port: int, tmp_path: Path) -> None:
    line = line_for(tmp_path / "line", JOB)
    file = written(tmp_path, RAISING)
    done = run_spider(line, str(file), "-a", f"url={url(port, '/shelf/0')}", "--job", JOB, folder=tmp_path / "ours")
    assert done.returncode == 0, done.stdout + done.stderr
    assert pages(line, JOB) == {(url(port, f"/shelf/{shelf}"), 200): 1 for shelf in range(3)}
    assert len(items(tmp_path / "ours")) == 2
    (log,) = (line.folders["output"] / "logs" / JOB).glob("*/runtime-errors.log")
    told = log.read_text()
    assert all(words in told for words in ("a fault of the callback", "sys.exit(3)", "KeyError"))


REFUSED = """
from urllib.request import OpenerDirector as Opener
opener = Opener()

def parse(self, response):
    yield {"page": response.url}
    yield response.follow("/shelf/1", lambda response: None)
    yield response.follow("/shelf/2", meta={"when": object()})
    yield response.follow("/shelf/3", meta={"proxy": "http://127.0.0.1:9"})
    yield scrapy.Request("file:///etc/hostname")
    yield response.follow("/shelf/4", cb_kwargs={"by": self.opener})
    yield response.follow("/shelf/4", meta={"blob": "a" * (17 << 20)})
    yield response.follow("/shelf/5", self.last, meta={"kept": [1, "a", {"b": None}]})

def last(self, response):
    yield {"kept": response.meta["kept"]}
"""


def test_what_cannot_wait_is_refused_by_name_and_the_rest_is_fetched(port: int, tmp_path: Path) -> None:
    line = line_for(tmp_path / "line", JOB)
    words = (str(written(tmp_path, REFUSED)), "-a", f"url={url(port, '/shelf/0')}", "--job", JOB)
    done = run_spider(line, *words, folder=tmp_path / "ours")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "6 requests could not wait" in done.stderr
    for words_ in (
        "its callback Small.parse.<locals>.<lambda> is not a method of spider 'small'",
        "its meta['when'] is object, which cannot wait",
        "its meta has 'proxy'",
        "file: is not fetched",
        "its cb_kwargs['by'] is OpenerDirector, which cannot wait",
        "its payload is larger than 16777216 bytes",
    ):
        assert words_ in done.stderr, done.stderr
    refused = f"the frontier refused 6 requests of a spider, first {url(port, '/shelf/1')}"
    assert refused in done.stdout
    (log,) = (line.folders["output"] / "logs" / JOB).glob("*/uri-errors.log")
    assert len(log.read_text().splitlines()) == 6
    (report,) = (line.folders["output"] / "reports" / JOB).glob("*/bounds-report.txt")
    assert f"6 waits 0 default {url(port, '/shelf/1')}" in report.read_text()
    assert items(tmp_path / "ours")[0] == '{"kept": [1, "a", {"b": null}]}'
    assert sum(pages(line, JOB).values()) == 2


LARGE = """
def parse(self, response, depth=0):
    yield {"depth": depth, "enqueued": self.crawler.stats.get_value("scheduler/enqueued")}
    if depth == 0:
        yield response.follow("/book/11", self.second, meta={"blob": "a" * 100_000})
        yield response.follow("/book/12", self.second, priority=10**12)
        yield response.follow("/book/14", self.second, body=bytes(range(256)) * 400)
    if depth < 22:
        yield response.follow("/shelf/0", cb_kwargs={"depth": depth + 1}, dont_filter=True)

def second(self, response):
    yield {"large": len(response.meta.get("blob", "")), "far": response.request.priority}
"""


def test_large_and_far_requests_and_a_long_chain_bring_what_plain_scrapy_brings(port: int, tmp_path: Path) -> None:
    """Whatever `hops` says."""
    line, file = line_for(tmp_path / "line", JOB, HURRIED.replace("hops = 255\n", "")), written(tmp_path, LARGE)
    words = (str(file), "-a", f"url={url(port, '/shelf/0')}")
    done = run_spider(line, *words, "--job", JOB, folder=tmp_path / "ours")
    assert done.returncode == 0, done.stdout + done.stderr
    wanted = plain_items(words, tmp_path / "plain")
    assert len(wanted) == 26
    assert items(tmp_path / "ours") == wanted
    assert sum(pages(line, JOB).values()) == 26


@pytest.mark.parametrize(
    ("body", "words", "why"),
    [
        ("import scrapy\n", (), "has no spider"),
        ("import scrapy\nclass A(scrapy.Spider):\n    name = 'a'\nclass B(scrapy.Spider):\n    name = 'b'\n", (),
         "has 2 spiders; name one"),
        ("import nothing_of_this_name\n", (), "cannot be imported: ModuleNotFoundError"),
        ("import sys\nsys.exit()\n", (), "cannot be imported: SystemExit"),
        ("import scrapy\nclass A(scrapy.Spider):\n    name = 'a'\n", ("-a", "novalue"), "is not NAME=VALUE"),
        ("import scrapy\nclass A(scrapy.Spider):\n    name = 'a'\n", ("-o", "items.odd"), "output format 'odd'"),
        ("import scrapy\nclass A(scrapy.Spider):\n    name = 'link'\n", (), "'link' is our own crawler"),
        ("import scrapy\nclass A(scrapy.Spider):\n    name = 'a'\n    def __init__(self, url): ...\n", (),
         "spider a: it cannot be run: TypeError"),
    ],
)  # fmt: skip
def test_a_spider_that_cannot_be_run_is_named_with_the_reason(
    body: str, words: tuple[str, ...], why: str, tmp_path: Path
) -> None:
    line, file = line_for(tmp_path / "line", JOB), tmp_path / "odd.py"
    file.write_text(body)
    done = run_spider(line, str(file), "--job", JOB, *words, folder=tmp_path / "ours")
    assert (done.returncode, "Traceback" in done.stderr) == (3, "TypeError" in why), done.stderr
    assert why in done.stderr


def test_one_of_two_spiders_in_a_file_is_meant_by_its_name_and_one_that_yields_nothing_ends(tmp_path: Path) -> None:
    line, file = line_for(tmp_path / "line", JOB), tmp_path / "two.py"
    file.write_text("import scrapy\nclass A(scrapy.Spider):\n    name = 'a'\nclass B(scrapy.Spider):\n    name = 'b'\n")
    done = run_spider(line, f"{file}:b", "--job", JOB, folder=tmp_path / "ours")
    assert (done.returncode, "0 documents" in done.stdout) == (1, True), done.stdout + done.stderr
    assert folders.CHECKPOINTS not in done.stdout


def test_a_pipeline_that_hangs_or_raises_does_not_keep_a_page_from_its_record(port: int, tmp_path: Path) -> None:
    body = """
def parse(self, response):
    yield {"page": response.url}
"""
    file = written(tmp_path, body)
    text = file.read_text().replace("{'FEEDS'", "{'ITEM_PIPELINES': {'odd_pipeline.Raising': 1}, 'FEEDS'")
    file.write_text(text)
    (tmp_path / "odd_pipeline.py").write_text(
        "class Raising:\n    def process_item(self, item):\n        raise RuntimeError('a fault of the pipeline')\n"
    )
    line = line_for(tmp_path / "line", JOB)
    done = run_spider(line, str(file), "-a", f"url={url(port, '/shelf/0')}", "--job", JOB, folder=tmp_path / "ours")
    assert done.returncode == 0, done.stderr
    assert "a fault of the pipeline" in done.stderr
    assert pages(line, JOB) == {(url(port, "/shelf/0"), 200): 1}
    (log,) = (line.folders["output"] / "logs" / JOB).glob("*/runtime-errors.log")
    assert "a fault of the pipeline" in log.read_text()


HANGING = """
async def parse(self, response):
    yield {"page": response.url}
    yield response.follow("/shelf/1", self.first)
    await asyncio.sleep(3600)

def first(self, response):
    yield {"page": response.url}
"""


def test_a_callback_that_hangs_is_given_up_and_the_launch_ends(port: int, tmp_path: Path) -> None:
    line, file = line_for(tmp_path / "line", JOB), written(tmp_path, HANGING)
    file.write_text(file.read_text().replace("{'FEEDS'", "{'WARCMILL_CALLBACK_SECONDS': 5, 'FEEDS'"))
    words = (str(file), "-a", f"url={url(port, '/shelf/0')}", "--job", JOB)
    with start_spider(line, *words, folder=tmp_path / "ours") as process:
        wait_for(lambda: process.poll() is not None, (tmp_path / "ours" / "printed").read_text)
    assert process.returncode == 0, (tmp_path / "ours" / "printed").read_text()
    assert pages(line, JOB) == {(url(port, f"/shelf/{shelf}"), 200): 1 for shelf in range(2)}
    (log,) = (line.folders["output"] / "logs" / JOB).glob("*/runtime-errors.log")
    assert "has not ended in 5 s" in log.read_text()


HANGING_LATER = """
def parse(self, response):
    yield response.follow("/closed/1", self.parse, errback=self.never)

async def never(self, failure):
    self.logger.info("the errback hangs")
    await asyncio.sleep(3600)
"""


def test_an_errback_that_hangs_is_given_up_too(port: int, tmp_path: Path) -> None:
    line, file = line_for(tmp_path / "line", JOB), written(tmp_path, HANGING_LATER)
    file.write_text(file.read_text().replace("{'FEEDS'", "{'WARCMILL_CALLBACK_SECONDS': 5, 'FEEDS'"))
    words = (str(file), "-a", f"url={url(port, '/shelf/0')}", "--job", JOB)
    with start_spider(line, *words, folder=tmp_path / "ours") as process:
        wait_for(lambda: process.poll() is not None, (tmp_path / "ours" / "printed").read_text)
    printed = (tmp_path / "ours" / "printed").read_text()
    assert process.returncode == 0, printed
    assert "the errback hangs" in printed
    assert f"{url(port, '/closed/1')}: its callback, or a pipeline, has not ended in 5 s" in printed
    assert set(pages(line, JOB)) == {(url(port, "/shelf/0"), 200), (url(port, "/closed/1"), -9998)}


MANY = 50_000
CROWD = f"""
def parse(self, response):
    for number in range({MANY}):
        yield response.follow(f"/closed/{{number}}", self.parse)
    yield {{"page": response.url, "peak": __import__("resource").getrusage(0).ru_maxrss}}
    raise scrapy.exceptions.CloseSpider("enough")
"""


def test_many_requests_from_one_page_are_offered_as_they_come(port: int, tmp_path: Path) -> None:
    line = line_for(tmp_path / "line", JOB)
    words = (str(written(tmp_path, CROWD)), "-a", f"url={url(port, '/shelf/0')}", "--job", JOB)
    done = run_spider(line, *words, folder=tmp_path / "ours")
    assert done.returncode == 0, done.stderr
    assert "the spider has closed itself, by enough; the next run begins anew" in done.stdout
    assert sum(pages(line, JOB).values()) < MANY
    (found,) = items(tmp_path / "ours")
    assert found


def test_without_a_job_s_files_they_are_written_and_are_left_as_they_are(port: int, tmp_path: Path) -> None:
    line = line_for(tmp_path / "line", "another")
    words = (str(SPIDERS / "books.py"), "-a", f"url={url(port, '/shelf/0')}", "--job", JOB)
    done = run_spider(line, *words, folder=tmp_path / "ours")
    configuration = line.folders["jobs"] / JOB / "crawl.toml"
    assert done.returncode == 1, done.stdout + done.stderr  # an inside address: it may not be connected to
    assert "run spider" in configuration.read_text()
    assert pages(line, JOB) == {(url(port, "/shelf/0"), -5002): 1}
    assert "127.0.0.1 is not dialled: loopback" in done.stderr
    configuration.write_text(HURRIED)
    done = run_spider(line, *words, folder=tmp_path / "again")
    assert (done.returncode, configuration.read_text()) == (0, HURRIED), done.stderr


HEARING = """
def parse(self, response):
    for page in ("/closed/article/1", "http://127.0.0.1:1/"):
        yield response.follow(page, errback=self.heard)

def heard(self, failure):
    yield {"page": failure.request.url.rpartition(":")[2].partition("/")[2], "error": type(failure.value).__name__}
"""


def test_a_page_that_is_closed_is_ignored_and_a_site_that_does_not_answer_has_failed(port: int, tmp_path: Path) -> None:
    line = line_for(tmp_path / "line", JOB, HURRIED.replace("[retries]", "[retries]\ntimes = 1"))
    words = (str(written(tmp_path, HEARING)), "-a", f"url={url(port, '/section/0')}", "--job", JOB)
    done = run_spider(line, *words, folder=tmp_path / "ours")
    assert done.returncode == 0, done.stderr
    assert items(tmp_path / "ours") == [
        '{"error": "DownloadConnectionRefusedError", "page": ""}',
        '{"error": "IgnoreRequest", "page": "closed/article/1"}',
    ]  # fmt: skip


ANSWERING = """
def parse(self, response):
    yield {"page": response.url}
    for page in ("/mocked", "/mocked?2", "/shelf/1#part"):
        yield response.follow(page, self.parse)

class Mock:
    async def process_request(self, request):
        if "mocked" in request.url:
            return scrapy.http.HtmlResponse(request.url, body=b"")
"""


def test_a_middleware_that_answers_itself_is_named_and_a_url_has_no_fragment(port: int, tmp_path: Path) -> None:
    line, file = line_for(tmp_path / "line", JOB), written(tmp_path, ANSWERING)
    file.write_text(file.read_text() + "\n    custom_settings['DOWNLOADER_MIDDLEWARES'] = {Mock: 543}\n")
    done = run_spider(line, str(file), "-a", f"url={url(port, '/shelf/0')}", "--job", JOB, folder=tmp_path / "ours")
    assert done.returncode == 0, done.stderr
    assert "spiders: 2 answered by Mock, not archived" in done.stderr
    found = {json.loads(one)["page"] for one in items(tmp_path / "ours")}
    assert found == {url(port, path) for path in ("/shelf/0", "/shelf/1", "/mocked", "/mocked?2")}
    assert {page for page, _ in pages(line, JOB)} == {url(port, path) for path in ("/shelf/0", "/shelf/1")}


COUNTING = """
def parse(self, response):
    stats = self.crawler.stats
    if stats.get_value("scheduler/enqueued") < self.settings.getint("MOST"):
        yield {"enqueued": stats.get_value("scheduler/enqueued"), "filtered": stats.get_value("dupefilter/filtered")}
        for path in ("/shelf/1", "/shelf/0", "/book/11"):
            yield response.follow(path, meta={"dont_obey_robotstxt": True})

@classmethod
def from_crawler(cls, crawler, *args, **kwargs):
    made = super(cls, cls).from_crawler(crawler, *args, **kwargs)
    crawler.signals.connect(made.parse, scrapy.signals.request_dropped)
    return made
"""


def test_options_are_those_of_scrapy_and_a_spider_reads_the_counts_of_its_scheduler(port: int, tmp_path: Path) -> None:
    line = line_for(tmp_path / "line", JOB)
    words = ("-a", f"url={url(port, '/shelf/0')}", "--job", JOB, "-s", "MOST=3")
    file = written(tmp_path, COUNTING)
    odd = (
        "'DUPEFILTER_CLASS': 'scrapy.dupefilters.RFPDupeFilter', 'HTTPCACHE_ENABLED': True, "
        "'DOWNLOAD_HANDLERS': {'http': 'browser.Handler'}, 'FEEDS': {'not"
    )
    file.write_text(file.read_text().replace("'FEEDS': {'items", odd))
    done = run_spider(line, str(file), *words, "-O", "items.jsonl", folder=tmp_path / "ours")
    assert done.returncode == 0, done.stderr
    assert items(tmp_path / "ours") == ['{"enqueued": 1, "filtered": null}']
    assert {path for path, _ in pages(line, JOB)} == {url(port, path) for path in ("/shelf/0", "/shelf/1", "/book/11")}
    assert "DOWNLOAD_HANDLERS for http: not used" in done.stderr
    assert "HTTPCACHE_ENABLED: switched off" in done.stderr
    assert "DUPEFILTER_CLASS: not used" in done.stderr
    assert "signal request_dropped: not sent" in done.stderr
    assert done.stderr.count("meta has 'dont_obey_robotstxt': not heard") == 1
    assert not list((tmp_path / "ours").rglob("httpcache"))
    for number in ("'scheduler/enqueued': 3", "'scheduler/dequeued': 3", "'dupefilter/filtered': 1"):
        assert number in done.stderr


WANDERER = """
from crawling.items import RawResponseItem
from lxmlhtml import CustomLxmlLinkExtractor as LinkExtractor
from redis_spider import RedisSpider
from scrapy import Request
from scrapy.conf import settings
from scutils.log_factory import LogFactory
from scutils.method_timer import MethodTimer


class Wanderer(RedisSpider):
    name = "wanderer"
    asked = {"appid": "app1", "crawlid": "crawl1", "attrs": {"by": "me"}, "allowed_domains": None, "allow_regex": None}
    unwanted = {"deny_regex": ["/closed/"], "deny_extensions": None, "useragent": "wanderer/1.0"}

    async def start(self):
        yield Request(self.url, meta={**self.asked, **self.unwanted})

    def parse(self, response):
        meta, step = response.meta, response.meta.get("step", 0)
        item = RawResponseItem(appid=meta["appid"], crawlid=meta["crawlid"], attrs=meta["attrs"] or {})
        item["attrs"]["step"] = step
        item["url"], item["response_url"] = response.request.url, response.url
        item["status_code"], item["status_msg"], item["links"] = response.status, "OK", []
        item["response_headers"], item["request_headers"] = self.reconstruct_headers(response), response.request.headers
        item["body"], item["encoding"] = response.body, response.encoding
        links = LinkExtractor(
            allow_domains=meta["allowed_domains"], allow=meta["allow_regex"], deny=meta["deny_regex"],
            deny_extensions=meta["deny_extensions"],
        ).extract_links(response)
        if links and step < 3:
            yield Request(links[0].url, callback=self.parse, meta={"step": step + 1})
        self._logger.info(f"step {step} of {settings.get('BOT_NAME')}")
        yield item
        if not links:
            self.crawler.signals.disconnect(self.spider_idle, self.idle)

    @property
    def idle(self):
        from scrapy import signals
        return signals.spider_idle
"""


def test_a_spider_of_scrapy_cluster_finds_its_modules_and_its_items_are_results(port: int, tmp_path: Path) -> None:
    """An idle one stays open until it does not want to; what a request knows is passed on to those that it finds."""
    line = line_for(tmp_path / "line", JOB, f"results_log = true\n{HURRIED}")
    (tmp_path / "wanderer.py").write_text(WANDERER)
    words = (str(tmp_path / "wanderer.py"), "-a", f"url={url(port, '/section/0')}", "--job", JOB)
    done = run_spider(line, *words, folder=tmp_path / "ours")
    assert done.returncode == 0, done.stdout + done.stderr
    (log,) = (line.folders["output"] / "logs" / JOB).glob("*/results.jsonl")
    results = [json.loads(one) for one in log.read_text("utf-8").splitlines()]
    assert [one["kind"] for one in results] == ["item"] * 2, done.stderr  # an article links to nothing
    first, second = (one["value"] for one in results)
    assert (first["appid"], first["crawlid"], first["attrs"]) == ("app1", "crawl1", {"by": "me", "step": 0})
    assert (second["attrs"]["step"], second["url"]) == (1, url(port, "/article/00"))
    assert second["body"].startswith("<!doctype html>")
    assert first["request_headers"]["User-Agent"][0].startswith("Mozilla/5.0 (compatible; warcmill")
    assert first["response_headers"]["Content-Type"] == ["text/html; charset=utf-8"]
    assert all(one["warc"] for one in results)


CLUSTER = {
    "scrapy.cfg": "[settings]\ndefault = crawling.settings\n",
    "crawling/__init__.py": "",
    "crawling/spiders/__init__.py": "",
    "crawling/items.py": """
from scrapy import Field, Item

class RawResponseItem(Item):
    status = cookie = Field()
""",
    "crawling/redis_stats_middleware.py": "import nothing_of_this_name\n",
    "crawling/pipelines.py": """
class Own:
    def process_item(self, item):
        return {**dict(item), "own": True}
""",
    "crawling/settings.py": """
SPIDER_MODULES = ["crawling.spiders"]
SCHEDULER = "crawling.distributed_scheduler.DistributedScheduler"
ITEM_PIPELINES = {"crawling.pipelines.KafkaPipeline": 100, "crawling.pipelines.Own": 200}
SPIDER_MIDDLEWARES = {"crawling.redis_stats_middleware.RedisStatsMiddleware": 101}
DOWNLOADER_MIDDLEWARES = {
    "scrapy.downloadermiddlewares.cookies.CookiesMiddleware": None,
    "crawling.custom_cookies.CustomCookiesMiddleware": 700,
}
FEEDS = {"items.jsonl": {"format": "jsonlines"}}
""",
    "crawling/spiders/gone.py": """
from __future__ import absolute_import
from scrapy import Request, signals
from crawling.items import RawResponseItem
from .redis_spider import RedisSpider

class Gone(RedisSpider):
    name = "gone"

    async def start(self):
        yield Request(self.url, cookies={"a": "1"})

    def parse(self, response):
        cookie = response.request.headers.get("Cookie", b"").decode()
        yield RawResponseItem(status=response.status, cookie=cookie)
        if response.status == 200:
            yield response.follow("/book/03")
        else:
            self.crawler.signals.disconnect(self.spider_idle, signals.spider_idle)
""",
}


def test_the_parts_of_scrapy_cluster_s_own_project_are_left_out_and_others_stay(port: int, tmp_path: Path) -> None:
    for name, text in CLUSTER.items():
        (tmp_path / "cluster" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "cluster" / name).write_text(text)
    line = line_for(tmp_path / "line", JOB)
    words = (str(tmp_path / "cluster"), "-a", f"url={url(port, '/shelf/0')}", "--job", JOB)
    done = run_spider(line, *words, folder=tmp_path / "ours")
    assert done.returncode == 0, done.stdout + done.stderr
    assert items(tmp_path / "ours") == [
        '{"cookie": "", "own": true, "status": 404}', '{"cookie": "a=1", "own": true, "status": 200}',
    ]  # fmt: skip


PAGE = "start/scrapy-spider.md"


def test_the_page_is_followed_from_an_empty_folder(tmp_path: Path) -> None:
    """As tests/pipeline/test_start_pages.py follows others: with addresses of loopback besides."""
    (text,) = re.findall(r"```python\n# museum.py\n(.*?)```", PAGES[PAGE], re.DOTALL)
    with windmills() as port:
        (tmp_path / "museum.py").write_text(text.replace("windmills.example", f"windmills.example:{port}"))
        for command in (one for one in PRINTED if one.page == PAGE and one.bare.startswith("warcmill ")):
            words = shlex.split(command.bare)[1:]
            days = [clock.stamp_text(warcs.name)[:10] for warcs in tmp_path.glob("archive/output/warcs/museum/*")]
            words = [days[0] if re.fullmatch(r"\d{4}-\d\d-\d\d", word) else word for word in words]
            done = run_warcmill(*words, folder=tmp_path)
            assert done.returncode == 0, done.stdout + done.stderr
            assert is_as_shown(plain(done.stdout), command.shown), f"{command.text}\n{done.stdout}\n{command.shown}"
            if words[0] == "init":
                write_job(tmp_path / "archive" / "jobs" / "museum", f"{HURRIED_HERE}\n")


HURRIED_HERE = 'hops = 255\nallow_private = ["127.0.0.0/8"]\nno_delay = true\nresolve = ["windmills.example=127.0.0.1"]'


def plain(text: str) -> str:
    text = re.sub(r"\b20\d{12}\b", "20261124170213", text)
    return re.sub(r"\b20\d\d-\d\d-\d\d\b", "2026-11-24", text)
