"""Settings of a project or of a spider, a spider each."""

import scrapy
from scrapy.exceptions import CloseSpider, DontCloseSpider


class Depth(scrapy.Spider):
    name = "depth"
    custom_settings = {"DEPTH_LIMIT": 3, "DEPTH_STATS_VERBOSE": True}

    async def start(self):
        yield scrapy.Request(f"{self.site}/shelf/0")

    def parse(self, response):
        yield {"page": response.url, "depth": response.meta["depth"]}
        yield from response.follow_all(css="a.next")


class Unfiltered(scrapy.Spider):
    name = "dont_filter"

    async def start(self):
        yield scrapy.Request(f"{self.site}/shelf/0")

    def parse(self, response):
        yield {"page": response.url}
        for number in range(3):
            yield response.follow("/book/00", self.book, cb_kwargs={"number": number}, dont_filter=True)
            yield response.follow("/book/01", self.book, cb_kwargs={"number": 0})

    def book(self, response, number):
        yield {"page": response.url, "number": number}


class WithoutQuery:
    """A fingerprinter of a project's own."""

    def fingerprint(self, request):
        return request.url.partition("?")[0].encode()


class Fingerprints(scrapy.Spider):
    name = "fingerprinter"
    custom_settings = {"REQUEST_FINGERPRINTER_CLASS": WithoutQuery}

    async def start(self):
        yield scrapy.Request(f"{self.site}/shelf/0")

    def parse(self, response):
        yield {"page": response.url.partition("?")[0]}
        for number in range(3):
            yield response.follow(f"/book/00?{number}")


class Cached(scrapy.Spider):
    name = "httpcache"
    custom_settings = {"HTTPCACHE_ENABLED": True}

    async def start(self):
        yield scrapy.Request(f"{self.site}/shelf/0")

    def parse(self, response):
        yield {"page": response.url}


class Headers(scrapy.Spider):
    name = "headers"
    custom_settings = {"USER_AGENT": "books/1.0", "DEFAULT_REQUEST_HEADERS": {"Accept": "text/x", "X-Own": "1"}}

    async def start(self):
        yield scrapy.Request(f"{self.site}/echo", headers={"X-Own": "2", "X-More": ["a", "b"]})

    def parse(self, response):
        found = response.json()
        yield {name: found.get(name) for name in ("User-Agent", "Accept", "X-Own", "X-More")}


class NoCookies(scrapy.Spider):
    name = "no_cookies"
    custom_settings = {"COOKIES_ENABLED": False, "REFERER_ENABLED": False}

    async def start(self):
        yield scrapy.Request(f"{self.site}/echo?1", headers={"Cookie": 'a="1;2"'})

    def parse(self, response):
        yield {"cookie": response.json().get("Cookie"), "referer": response.json().get("Referer")}
        yield response.follow("/echo?2")


class Offsite(scrapy.Spider):
    name = "offsite"
    allowed_domains = ["127.0.0.1"]
    custom_settings = {"URLLENGTH_LIMIT": 200}

    async def start(self):
        yield scrapy.Request(f"{self.site}/shelf/0")

    def parse(self, response):
        yield {"page": response.url}
        yield response.follow("http://elsewhere.invalid/")
        yield response.follow(f"/book/{'0' * 300}")
        yield response.follow("/book/00", self.book)

    def book(self, response):
        yield {"page": response.url}


class Closing(scrapy.Spider):
    name = "close_spider"

    async def start(self):
        yield scrapy.Request(f"{self.site}/shelf/0")

    def parse(self, response):
        yield {"page": response.url}
        raise CloseSpider("enough")


class Coded(scrapy.Spider):
    name = "compression"

    async def start(self):
        yield scrapy.Request(f"{self.site}/gzip")

    def parse(self, response):
        yield {"text": response.text, "type": type(response).__name__}


class Idle(scrapy.Spider):
    name = "spider_idle"

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        made = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(made.idle, scrapy.signals.spider_idle)
        made.left = ["/book/00", "/book/01"]
        return made

    async def start(self):
        yield scrapy.Request(f"{self.site}/shelf/0")

    def parse(self, response):
        yield {"page": response.url}

    def idle(self):
        if self.left:
            self.crawler.engine.crawl(scrapy.Request(f"{self.site}{self.left.pop()}"))
            raise DontCloseSpider
