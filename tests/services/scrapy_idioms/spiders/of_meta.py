"""Keys of `meta` and `cb_kwargs`, a spider each."""

import dataclasses
import datetime
from decimal import Decimal

import scrapy
from scrapy.http import FormRequest


class Session(scrapy.Spider):
    """Two readers of a library at once, each with cookies of its own."""

    name = "cookiejar"

    async def start(self):
        for who in ("ann", "bob"):
            form = {"user": who}
            yield FormRequest(f"{self.site}/login", self.opened, formdata=form, meta={"cookiejar": who})

    def opened(self, response):
        yield response.follow(
            "/private", self.private, meta={"cookiejar": response.meta["cookiejar"]}, dont_filter=True
        )

    def private(self, response):
        yield {"jar": response.meta["cookiejar"], "text": response.text}


class Redirects(scrapy.Spider):
    name = "redirects"

    async def start(self):
        yield scrapy.Request(f"{self.site}/moved/1", self.parse)
        yield scrapy.Request(
            f"{self.site}/moved/2", self.parse, meta={"dont_redirect": True, "handle_httpstatus_list": [301]}
        )

    def parse(self, response):
        meta = response.meta
        yield {"status": response.status, "times": meta.get("redirect_times"), "from": meta.get("redirect_urls")}


class Retries(scrapy.Spider):
    name = "retries"
    custom_settings = {"RETRY_TIMES": 1}

    async def start(self):
        every = {"handle_httpstatus_all": True}
        yield scrapy.Request(f"{self.site}/status/503", self.parse, meta={"dont_retry": True, **every})
        yield scrapy.Request(f"{self.site}/status/500", self.parse, meta={"max_retry_times": 2, **every})
        yield scrapy.Request(f"{self.site}/flaky", self.parse)

    def parse(self, response):
        yield {"page": response.url, "status": response.status}


class Limits(scrapy.Spider):
    name = "limits"
    custom_settings = {"RETRY_ENABLED": False}

    async def start(self):
        yield scrapy.Request(f"{self.site}/slow", self.parse, errback=self.failed, meta={"download_timeout": 1})
        yield scrapy.Request(f"{self.site}/big", self.parse, errback=self.failed, meta={"download_maxsize": 1000})
        yield scrapy.Request(f"{self.site}/shelf/0", self.parse, errback=self.failed)

    def parse(self, response):
        yield {"page": response.url}

    def failed(self, failure):
        yield {"page": failure.request.url, "failed": failure.type.__name__}


class Book(scrapy.Item):
    title = scrapy.Field()
    date = scrapy.Field()
    price = scrapy.Field()


@dataclasses.dataclass
class Shelf:
    number: int
    seen: set = dataclasses.field(default_factory=set)


class Handed(scrapy.Spider):
    """An item and others of its kind, handed on from page to page."""

    name = "values"

    async def start(self):
        book = Book(date=datetime.date(2023, 3, 1), price=Decimal("1.10"))
        meta = {"book": book, "shelf": Shelf(1, {1, 2})}
        yield scrapy.Request(
            f"{self.site}/book/00", meta=meta, cb_kwargs={"at": datetime.datetime(2023, 3, 1, 12), "way": ("a", b"b")}
        )

    def parse(self, response, at, way):
        book = response.meta["book"]
        book["title"] = response.css("h1::text").get()
        shelf = response.meta["shelf"]
        if response.url.endswith("00"):
            yield response.follow(
                "/book/01",
                meta={"book": book, "shelf": shelf, "before": response.request},
                cb_kwargs={"at": at, "way": way},
            )
        else:
            before = response.meta["before"]
            yield {**book, "at": at, "way": repr(way), "shelf": repr(shelf), "before": before.url}


class Statuses(scrapy.Spider):
    name = "statuses"
    handle_httpstatus_list = [404]
    custom_settings = {"RETRY_HTTP_CODES": [502]}

    async def start(self):
        for status in (404, 410, 502):
            yield scrapy.Request(f"{self.site}/status/{status}", self.parse, errback=self.failed)

    def parse(self, response):
        yield {"status": response.status}

    def failed(self, failure):
        yield {"failed": failure.value.response.status, "by": failure.type.__name__}


class Cookies(scrapy.Spider):
    name = "cookies"

    async def start(self):
        yield scrapy.Request(f"{self.site}/echo?1", self.first, cookies={"a": "1"})
        yield scrapy.Request(
            f"{self.site}/echo?2", self.echo, cookies=[{"name": "b", "value": "2"}], meta={"dont_merge_cookies": True}
        )

    def first(self, response):
        yield from self.echo(response)
        yield response.follow("/echo?3", self.echo)

    def echo(self, response):
        yield {"page": response.url[-1], "cookie": response.json().get("Cookie")}
