"""Classes of spiders and of requests, and ways to write callbacks, a spider each."""

import scrapy
from scrapy.http import FormRequest, JsonRequest
from scrapy.linkextractors import LinkExtractor
from scrapy.loader import ItemLoader
from scrapy.spiders import CrawlSpider, CSVFeedSpider, Rule, SitemapSpider, XMLFeedSpider


class Rules(CrawlSpider):
    name = "crawl_spider"
    rules = (
        Rule(LinkExtractor(allow="/shelf/"), follow=True),
        Rule(LinkExtractor(allow="/book/0"), callback="book", process_links="some", cb_kwargs={"kind": "book"}),
    )

    async def start(self):
        yield scrapy.Request(f"{self.site}/shelf/0")

    def some(self, links):
        return links[:3]

    def book(self, response, kind):
        yield {"kind": kind, "title": response.css("h1::text").get(), "text": response.meta.get("link_text")}


class Sitemap(SitemapSpider):
    name = "sitemap_spider"
    sitemap_rules = [("/book/", "book"), ("/shelf/", "shelf")]

    def __init__(self, site, **words):
        self.site, self.sitemap_urls = site, [f"{site}/sitemap.xml"]
        super().__init__(**words)

    def book(self, response):
        yield {"book": response.url}

    def shelf(self, response):
        yield {"shelf": response.url}


class Feed(XMLFeedSpider):
    name = "xml_feed_spider"
    itertag = "item"

    async def start(self):
        yield scrapy.Request(f"{self.site}/feed.xml")

    def parse_node(self, response, node):
        yield response.follow(
            node.xpath("link/text()").get(), self.book, cb_kwargs={"title": node.xpath("title/text()").get()}
        )

    def book(self, response, title):
        yield {"title": title, "page": response.url}


class Table(CSVFeedSpider):
    name = "csv_feed_spider"
    headers = ["number", "title"]

    async def start(self):
        yield scrapy.Request(f"{self.site}/table.csv")

    def parse_row(self, response, row):
        yield dict(row)


class Login(scrapy.Spider):
    name = "form_request"

    async def start(self):
        yield scrapy.Request(f"{self.site}/form")

    def parse(self, response):
        yield FormRequest.from_response(response, formdata={"user": "ann"}, callback=self.opened)

    def opened(self, response):
        yield {"class": type(response.request).__name__, "method": response.request.method}
        yield response.follow("/private", self.private)

    def private(self, response):
        yield {"text": response.text}


class Numbered(JsonRequest):
    """A class of a project's own, made of another thing than it is."""

    def __init__(self, site, number, **words):
        super().__init__(f"{site}/api", data={"number": number}, **words)
        self.number = number


class Api(scrapy.Spider):
    name = "json_request"

    async def start(self):
        for number in range(3):
            yield Numbered(self.site, number, callback=self.answered)

    def answered(self, response):
        yield {"sent": response.json(), "number": response.request.number}


class Data(scrapy.Spider):
    name = "data_start"
    start_urls = ["data:,begin"]

    def parse(self, response):
        yield {"text": response.text}
        yield scrapy.Request(f"{self.site}/shelf/0#part", self.shelf)

    def shelf(self, response):
        yield {"page": response.url, "asked": response.request.url}


class Awaiting(scrapy.Spider):
    """A request that a callback awaits."""

    name = "inline_requests"

    async def start(self):
        yield {"first": True}
        yield scrapy.Request(f"{self.site}/shelf/0")

    async def parse(self, response):
        found = await self.crawler.engine.download_async(response.follow("/book/00").replace(callback=None))
        yield {"page": response.url, "within": found.css("h1::text").get()}


def logged(function):
    def inner(self, response):
        yield from function(self, response)

    return inner


class Base(scrapy.Spider):
    def parse(self, response):
        yield {"base": response.url}


class Decorated(Base):
    name = "decorated_callbacks"

    async def start(self):
        yield scrapy.Request(f"{self.site}/shelf/0", self.detail)
        yield scrapy.Request(f"{self.site}/shelf/1", super().parse)
        yield scrapy.Request(f"{self.site}/shelf/2", self.__hidden, errback=self.detail)

    @logged
    def detail(self, response):
        yield {"detail": response.url}

    def __hidden(self, response):
        yield {"hidden": response.url}

    def parse(self, response):
        yield {"never": response.url}


class Loaded(scrapy.Spider):
    """@url of a contract in a docstring, and an ItemLoader."""

    name = "loaders_and_contracts"

    async def start(self):
        yield scrapy.Request(f"{self.site}/shelf/0")

    def parse(self, response):
        """Read a shelf.

        @url http://127.0.0.1/shelf/0
        @returns requests 1 20
        """
        yield from response.follow_all(css="a.book", callback=self.book)

    def book(self, response):
        loader = ItemLoader(item={}, response=response)
        loader.add_css("title", "h1::text", lambda found: [one.strip().upper() for one in found])
        yield loader.load_item()
