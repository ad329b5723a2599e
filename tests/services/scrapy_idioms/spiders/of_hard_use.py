"""Hard use of spiders: values in values, every way to write a callback, ends in odd places. A spider each."""

import asyncio
import enum
import functools
import uuid
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import attrs
import scrapy
from scrapy import signals
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import CloseSpider, DontCloseSpider
from scrapy.http import FormRequest, JsonRequest, XmlRpcRequest
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

Point = namedtuple("Point", "x y")


class Colour(enum.Enum):
    RED = 1


class Work(scrapy.Item):
    title = scrapy.Field()
    parts = scrapy.Field()


@attrs.define
class Author:
    name: str
    works: list = attrs.Factory(list)


EVERY = {
    "dates": (date(2023, 3, 1), datetime(2023, 3, 1, 2, 3, 4, 5, UTC), time(1, 2), timedelta(-1)),
    "numbers": [Decimal("1E+400"), float("inf"), -0.0, 10**60],
    "texts": [b"\x00\xff", "\ud800", "\0", "😀"],
    "sets": [{1}, frozenset([frozenset([2])]), {("a", (1,))}],
    "keys": {1: "a", (1, 2): "b", None: "c", date(2020, 1, 1): 1, "_type": 1},
    "tagged": {"_type": ["date", "x"]},
    "own": [Work, Work(title="t", parts=[Work(title="u"), Author("Ann", [Point(1, Point(2, 3))])]), Colour.RED],
    "collections": [
        OrderedDict(b=1),
        Counter("aab"),
        defaultdict(list, a=[1]),
        deque([1], 2),
        range(3),
        uuid.UUID(int=5),
    ],
}


class Nested(scrapy.Spider):
    """A request within a request within a request, each with every type."""

    name = "values_in_requests"

    async def start(self):
        last = scrapy.Request(f"{self.site}/book/01", self.last, meta=EVERY, cb_kwargs={"every": EVERY})
        form = FormRequest(f"{self.site}/api?2", self.second, formdata={"a": "é"}, meta={"after": last, "every": EVERY})
        yield scrapy.Request(f"{self.site}/book/00", meta={"after": form, **EVERY}, cb_kwargs={"every": EVERY})

    def parse(self, response, every):
        yield from self.last(response, every)
        yield response.meta["after"]

    def second(self, response):
        yield {"sent": response.text, "class": type(response.request).__name__, "every": repr(response.meta["every"])}
        yield response.meta["after"]

    def last(self, response, every):
        yield {"every": repr(every), "meta": repr({key: response.meta[key] for key in EVERY})}


class Replayed(scrapy.Spider):
    """A request that its own callback sends again, and one that it has retried."""

    name = "replaced_requests"

    async def start(self):
        words = {"headers": {"X-A": ["1", "2"]}, "flags": ["f"], "priority": 3, "encoding": "latin-1"}
        yield JsonRequest(f"{self.site}/api", self.parse, data={"a": [1]}, cb_kwargs={"number": 0}, **words)
        yield scrapy.Request(f"{self.site}/book/00", self.tired, meta={"seen": {1, 2}})

    def parse(self, response, number):
        request = response.request
        more = [request.priority, request.flags, request.encoding, request.dont_filter, type(request).__name__]
        yield {"number": number, "text": response.text, "more": more, "headers": str(request.headers.getlist("X-A"))}
        if number < 3:
            yield request.replace(cb_kwargs={"number": number + 1}, dont_filter=True, data={"a": [number]})

    def tired(self, response):
        yield {"times": response.meta.get("retry_times"), "seen": sorted(response.meta["seen"])}
        if again := get_retry_request(response.request, spider=self, reason="tired"):
            yield again


class Mixed:
    def mixed(self, response):
        yield {"mixed": response.url[-2:]}


def outside(response):
    yield {"outside": response.url[-2:]}


def wrapped(function):
    @functools.wraps(function)
    def inner(self, response):
        yield from function(self, response)

    return inner


class Callbacks(Mixed, scrapy.Spider):
    name = "callbacks_of_all_kinds"
    static = staticmethod(outside)
    alias = Mixed.mixed
    unnamed = lambda self, response: [{"lambda": response.url[-2:]}]  # noqa: E731 as projects have them

    async def start(self):
        self.bound = functools.partial(self.with_number, number=5)
        ways = [self.mixed, self.alias, self.static, self.unnamed, self.generated, self.awaited, self.nothing]
        ways += [self.listed, self.of_class, self.twice_wrapped, self.bound, self.one_item]
        for number, way in enumerate(ways, 10):
            yield scrapy.Request(f"{self.site}/book/{number}", way)
        for number, way in enumerate([self.failed, self.failed_later, self.failed_twice]):
            yield scrapy.Request(f"{self.site}/status/41{number}", errback=way, cb_kwargs={"number": {number}})

    async def generated(self, response):
        await asyncio.sleep(0.001)
        yield {"generated": 1}
        yield response.follow("/book/90", self.awaited)

    async def awaited(self, response):
        await asyncio.sleep(0.001)
        return [{"awaited": response.url[-2:]}]

    def nothing(self, response):
        """Yields nothing."""

    def listed(self, response):
        return [{"listed": 1}, response.follow("/book/91", self.awaited), None]

    def one_item(self, response):
        return {"one": 1}

    @classmethod
    def of_class(cls, response):
        yield {"class": cls.name}

    @wrapped
    @wrapped
    def twice_wrapped(self, response):
        yield {"wrapped": 1}

    def with_number(self, response, number):
        yield {"number": number}

    def failed(self, failure):
        return {"failed": failure.value.response.status, "number": str(failure.request.cb_kwargs["number"])}

    async def failed_later(self, failure):
        return [{"later": failure.value.response.status}]

    def failed_twice(self, failure):
        yield {"twice": failure.value.response.status}
        yield scrapy.Request(f"{self.site}/book/92", self.mixed)


class Sent(scrapy.Spider):
    name = "methods_and_bodies"

    async def start(self):
        yield XmlRpcRequest(f"{self.site}/api?x", methodname="m", params=(1, "a"))
        yield FormRequest(f"{self.site}/api?f", method="GET", formdata=[("a", "1"), ("a", "2"), ("ü", "é")])
        yield scrapy.Request.from_curl(f"curl '{self.site}/api?c' -H 'X-A: 1' --data-raw 'q=1'")
        yield scrapy.Request(f"{self.site}/api?l", method="post", body="x")
        yield scrapy.Request(f"{self.site}/api?b", method="POST", body=bytes(range(256)) * 20_000)
        yield scrapy.Request(f"{self.site}/api?m", meta={"large": "a" * 5_000_000}, priority=10**30)

    def parse(self, response):
        request = response.request
        yield {"page": response.url, "by": request.method, "kind": type(request).__name__, "priority": request.priority}
        yield {"text": response.text[:500], "size": len(response.body), "large": len(response.meta.get("large", ""))}


class Judged(CrawlSpider):
    name = "rules_with_process_request"
    rules = (
        Rule(LinkExtractor(allow="/shelf/"), "shelf", follow=True, process_request="judge"),
        Rule(LinkExtractor(allow=r"/book/\d[01]"), "book", process_request=lambda request, response: request),
    )
    custom_settings = {"DEPTH_LIMIT": 3}

    async def start(self):
        yield scrapy.Request(f"{self.site}/shelf/0")

    def parse_start_url(self, response):
        yield {"start": response.url}

    def judge(self, request, response):
        request.meta["from"] = response.url
        return None if request.url.endswith("4") else request.replace(priority=5)

    def shelf(self, response):
        yield {"shelf": response.url, "from": response.meta["from"], "depth": response.meta["depth"]}

    def book(self, response):
        yield {"book": response.url, "rule": response.meta["rule"]}


class Besides:
    """A pipeline that fetches a page for each item."""

    @classmethod
    def from_crawler(cls, crawler):
        made = cls()
        made.engine = lambda: crawler.engine
        return made

    async def process_item(self, item):
        found = await self.engine().download_async(scrapy.Request(f"{item['page']}?besides"))
        return {**item, "besides": found.css("h1::text").get()}


class Downloads(scrapy.Spider):
    name = "downloads_besides"
    custom_settings = {"ITEM_PIPELINES": {Besides: 1}}

    async def start(self):
        found = await self.crawler.engine.download_async(scrapy.Request(f"{self.site}/status/404"))
        yield scrapy.Request(f"{self.site}/shelf/0", cb_kwargs={"status": found.status})

    async def parse(self, response, status):
        asked = (
            self.crawler.engine.download_async(response.follow(f"/book/9{n}").replace(callback=None)) for n in "12"
        )
        yield {
            "page": response.url,
            "status": status,
            "both": [one.css("h1::text").get() for one in await asyncio.gather(*asked)],
        }
        for one in response.follow_all(css="a.book", callback=self.book, meta={"of": "shelf"}, flags=["f"]):
            yield one

    def book(self, response):
        yield {"page": response.url, "of": response.meta["of"], "flags": response.request.flags}


class Jars(scrapy.Spider):
    name = "many_cookiejars"

    async def start(self):
        for number in range(4):
            jar = number if number % 2 else ("jar", number)
            yield FormRequest(
                f"{self.site}/login", self.opened, formdata={"user": f"u{number}"}, meta={"cookiejar": jar}
            )

    def opened(self, response):
        for number in range(3):
            jar = response.meta["cookiejar"]
            yield response.follow(f"/private?{jar}{number}", self.private, meta={"cookiejar": jar}, dont_filter=True)

    def private(self, response):
        yield {"jar": response.meta["cookiejar"], "text": response.text}


class Unfiltered(scrapy.Spider):
    name = "filter_of_none"
    custom_settings = {"DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter", "DEPTH_LIMIT": 2}

    async def start(self):
        yield scrapy.Request(f"{self.site}/shelf/0")

    def parse(self, response):
        yield {"page": response.url}
        yield from response.follow_all(["/shelf/0", "/shelf/0", "/moved/1"])


class IdleAgain(scrapy.Spider):
    """Closed by itself, once it was idle some times."""

    name = "idle_and_closed"

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        made = super().from_crawler(crawler, *args, **kwargs)
        made.times = 0
        crawler.signals.connect(made.idle, signals.spider_idle)
        return made

    async def start(self):
        yield scrapy.Request(f"{self.site}/shelf/0")

    def idle(self):
        self.times += 1
        if self.times > 2:
            raise CloseSpider("idle")
        for number in range(3):
            self.crawler.engine.crawl(scrapy.Request(f"{self.site}/book/{self.times}{number}", meta={"seen": {1}}))
        raise DontCloseSpider

    def parse(self, response):
        yield {"page": response.url, "seen": len(response.meta.get("seen", ()))}

    def closed(self, reason):
        self.crawler.stats.inc_value(f"idiom/closed/{reason}")


class ClosedAtStart(scrapy.Spider):
    """What it had yielded before is fetched."""

    name = "closed_in_start"

    async def start(self):
        yield scrapy.Request(f"{self.site}/book/00")
        yield scrapy.Request(f"{self.site}/book/01")
        raise CloseSpider("enough")

    def parse(self, response):
        yield {"page": response.url}


class Nowhere(scrapy.Spider):
    name = "urls_that_lead_nowhere"

    async def start(self):
        yield scrapy.Request(f"{self.site}/shelf/0")

    def parse(self, response):
        for url in ("javascript://x", "about:blank", "gopher://x/", "http://"):
            try:
                yield response.follow(url, self.parse, errback=self.failed, meta=response.meta)
            except ValueError as error:
                yield {"url": url, "error": str(error)}

    def failed(self, failure):
        yield {"url": failure.request.url, "failed": failure.type.__name__}
        yield scrapy.Request(f"{self.site}/book/00", self.book)

    def book(self, response):
        yield {"page": response.url}
