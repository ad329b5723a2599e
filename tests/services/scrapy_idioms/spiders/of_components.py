"""Pipelines, middlewares, extensions and signals of a project, a spider each."""

import scrapy
from scrapy import signals
from scrapy.exceptions import DropItem, IgnoreRequest
from scrapy.http import TextResponse
from scrapy.pipelines.files import FilesPipeline


class Site(scrapy.Spider):
    async def start(self):
        yield scrapy.Request(f"{self.site}/shelf/0")

    def parse(self, response):
        yield {"page": response.url, "files": [], "title": response.css("h1::text").get()}
        yield from response.follow_all(css="a.book")


class DropOdd:
    def process_item(self, item):
        if item["page"][-1] in "13579":
            raise DropItem("odd")
        return {**item, "kept": True}


class Pipelines(Site):
    name = "pipelines"
    custom_settings = {"ITEM_PIPELINES": {DropOdd: 100}}


class Files(Site):
    name = "files_pipeline"
    custom_settings = {"ITEM_PIPELINES": {FilesPipeline: 1}, "FILES_STORE": "files"}

    def parse(self, response):
        yield {"page": response.url, "file_urls": [response.urljoin("/picture")]}

    async def start(self):
        yield scrapy.Request(f"{self.site}/shelf/0")


class Numbering:
    """A spider middleware that leaves out requests and adds to items."""

    async def process_spider_output(self, response, result):
        async for one in result:
            if isinstance(one, scrapy.Request):
                if one.url[-1] in "012":
                    yield one
            else:
                yield {**one, "by": "middleware"}

    def process_spider_exception(self, response, exception):
        return [{"page": response.url, "raised": type(exception).__name__}]


class SpiderMiddlewares(Site):
    name = "spider_middlewares"
    custom_settings = {"SPIDER_MIDDLEWARES": {Numbering: 543}}

    def parse(self, response):
        yield from super().parse(response)
        if response.url.endswith("1"):
            raise ValueError("on purpose")


class Own:
    """A downloader middleware that answers, ignores, changes and catches."""

    def process_request(self, request):
        if request.url.endswith("/book/00"):
            return TextResponse(request.url, body=b"<h1>mocked</h1>", encoding="utf-8")
        if request.url.endswith("/book/01"):
            raise IgnoreRequest("not this one")
        request.headers["X-By"] = "middleware"
        return None

    def process_response(self, request, response):
        if response.url.endswith("/book/02"):
            return request.replace(url=response.urljoin("/book/05"), dont_filter=True)
        return response


class DownloaderMiddlewares(Site):
    name = "downloader_middlewares"
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {Own: 543}}


class Counting:
    """An extension that counts signals."""

    def __init__(self, crawler):
        for name in (
            "request_scheduled",
            "response_received",
            "item_scraped",
            "request_dropped",
            "spider_opened",
            "spider_error",
        ):
            crawler.signals.connect(
                lambda name=name: crawler.stats.inc_value(f"idiom/{name}"), getattr(signals, name), weak=False
            )

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)


class Signals(Site):
    name = "signals"
    custom_settings = {"EXTENSIONS": {Counting: 500}}


class Adding:
    """An add-on."""

    def update_settings(self, settings):
        settings.set("ITEM_PIPELINES", {**settings.getdict("ITEM_PIPELINES"), DropOdd: 10}, "addon")


class Addons(Site):
    name = "addons"
    custom_settings = {"ADDONS": {Adding: 100}}


class Stateful(Site):
    """Statistics of a spider's own, its state, and its arguments."""

    name = "stats_and_state"
    custom_settings = {"JOBDIR": "job-of-state"}

    def parse(self, response):
        self.crawler.stats.inc_value("idiom/pages")
        self.state["pages"] = self.state.get("pages", 0) + 1
        yield {"page": response.url, "argument": self.argument}
        yield from response.follow_all(css="a.next")
