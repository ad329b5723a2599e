"""The modules that spiders of Scrapy Cluster import, by its names: `redis_spider`, `lxmlhtml`, `crawling.items`,
`scrapy.conf`, `scutils`. Pure, but for the import system of this process.

Names, parameters and results are as in its documentation, so that a spider written for it runs unchanged.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

from scrapy import Field, Item, Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.exceptions import DontCloseSpider
from scrapy.http import Response
from scrapy.linkextractors import LinkExtractor
from scrapy.settings import BaseSettings, Settings

from warcmill.requests.plugins.names import OldNames
from warcmill.scutils.log_factory import LogFactory

log = logging.getLogger(__name__)
_PACKAGES = ("crawling", "crawling.spiders")
_DOWNLOADER = "DOWNLOADER_MIDDLEWARES"
_PARTS = {
    "ITEM_PIPELINES": ("pipelines.KafkaPipeline", "pipelines.LoggingBeforePipeline"),
    "SPIDER_MIDDLEWARES": (
        "meta_passthrough_middleware.MetaPassthroughMiddleware", "redis_stats_middleware.RedisStatsMiddleware",
    ),
    _DOWNLOADER: (
        "redis_retry_middleware.RedisRetryMiddleware", "log_retry_middleware.LogRetryMiddleware",
        "custom_cookies.CustomCookiesMiddleware",
    ),
}  # fmt: skip
"""Parts of its crawler whose work is ours, by the setting that lists them."""
_COOKIES_PLACE = 700  # that of Scrapy's own
_OWN_COOKIES = "scrapy.downloadermiddlewares.cookies.CookiesMiddleware"


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


class RequestCookies(CookiesMiddleware):
    """Cookies of a request are sent with it; those of answers are not kept."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        """Send the cookies of this request alone."""
        _ = spider
        self.jars.clear()
        super().process_request(request)
        if isinstance(request.cookies, dict) and any(";" in str(value) for value in request.cookies.values()):
            crumbs = ("=".join(map(_text, one)) for one in request.cookies.items())
            request.headers["Cookie"] = "; ".join(crumbs)  # a jar ends a cookie at a semicolon, quoted or not

    def process_response(self, request: Request, response: Response, spider: Spider | None = None) -> Response:
        """Leave the cookies of an answer."""
        _ = request, spider
        return response


class RedisSpider(Spider):
    """A spider that is never idle: it waits for requests that applications post."""

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Set what its project had set for every spider: pages of any status, cookies of each request alone."""
        settings.set("HTTPERROR_ALLOW_ALL", True, "addon")
        super().update_settings(settings)
        own = {**settings.getdict(_DOWNLOADER), _OWN_COOKIES: None, RequestCookies: _COOKIES_PLACE}
        settings.set(_DOWNLOADER, own, "spider")

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> RedisSpider:
        """Make it, with a logger of its own."""
        made = super().from_crawler(crawler, *args, **kwargs)
        made.set_logger(
            LogFactory.get_instance(
                name=crawler.settings.get("SC_LOGGER_NAME", "sc-crawler"),
                json=crawler.settings.getbool("SC_LOG_JSON", False),
                stdout=crawler.settings.getbool("SC_LOG_STDOUT", True),
                level=crawler.settings.get("SC_LOG_LEVEL", "INFO"),
                dir=crawler.settings.get("SC_LOG_DIR", "logs"),
                file=crawler.settings.get("SC_LOG_FILE", "sc_crawler.log"),
                bytes=crawler.settings.get("SC_LOG_MAX_BYTES", "10MB"),
                backups=crawler.settings.getint("SC_LOG_BACKUPS", 5),
            )
        )
        crawler.signals.connect(made.spider_idle, signals.spider_idle)
        return made

    def set_logger(self, logger: Any) -> None:
        """Set the logger, `self._logger`."""
        self._logger = logger

    def _increment_status_code_stat(self, response: Response) -> None:
        """Leave it to the launch, which counts its answers itself."""

    def spider_idle(self) -> None:
        """Stay open."""
        raise DontCloseSpider

    def parse(self, response: Response, **kwargs: Any) -> Any:
        """Yield requests and items of a page; each spider has its own."""
        raise NotImplementedError(f"{type(self).__name__} has no parse()")

    def reconstruct_headers(self, response: Response) -> dict[bytes, list[bytes]]:
        """The headers of an answer as a dict: all values of each."""
        return {name: response.headers.getlist(name) for name in response.headers}


class CustomLxmlLinkExtractor(LinkExtractor):
    """A link extractor that takes None for what is not given, and makes URLs canonical."""

    def __init__(
        self,
        allow: Any = (),
        deny: Any = (),
        allow_domains: Any = (),
        deny_domains: Any = (),
        restrict_xpaths: Any = (),
        tags: Any = ("a", "area"),
        attrs: Any = ("href",),
        canonicalize: bool = True,
        unique: bool = True,
        process_value: Any = None,
        deny_extensions: Any = None,
        restrict_css: Any = (),
    ) -> None:
        super().__init__(
            allow=allow or (), deny=deny or (), allow_domains=allow_domains or (), deny_domains=deny_domains or (),
            restrict_xpaths=restrict_xpaths or (), tags=tags, attrs=attrs, canonicalize=canonicalize, unique=unique,
            process_value=process_value, deny_extensions=deny_extensions, restrict_css=restrict_css or (),
        )  # fmt: skip


class RawResponseItem(Item):
    """A page, as an application gets it."""

    appid = Field()
    crawlid = Field()
    url = Field()
    response_url = Field()
    status_code = Field()
    status_msg = Field()
    response_headers = Field()
    request_headers = Field()
    body = Field()
    links = Field()
    attrs = Field()
    success = Field()
    exception = Field()
    encoding = Field()


def leave_out_parts(settings: Settings) -> None:
    """Leave out the parts of Scrapy Cluster's crawler that a project's settings list: they want its Kafka, Redis and
    Scrapy, and the launch has their work."""
    for setting, names in _PARTS.items():
        before = settings.getdict(setting)
        theirs = [f"crawling.{name}" for name in names if f"crawling.{name}" in before]
        left = {name: place for name, place in before.items() if name not in theirs}
        if theirs:
            log.info("%s of the project: left out, as a launch does their work: %s", setting, ", ".join(theirs))
            settings.set(setting, left, settings.getpriority(setting) or 0)


def resolve(settings: Settings) -> None:
    """Have the names resolve to ours in this process; `settings` are `scrapy.conf`'s. Safe to repeat."""
    spiders = {"RedisSpider": RedisSpider}
    links = {"CustomLxmlLinkExtractor": CustomLxmlLinkExtractor}
    modules: dict[str, dict[str, Any]] = {
        "redis_spider": spiders, "crawling.spiders.redis_spider": spiders,
        "lxmlhtml": links, "crawling.spiders.lxmlhtml": links,
        "scrapy.conf": {"settings": settings},
    }  # fmt: skip
    sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, OldNames)]
    sys.meta_path.insert(0, OldNames(modules))
    sys.meta_path.append(OldNames({name: {} for name in _PACKAGES}, is_package=True))
    sys.meta_path.append(OldNames({"crawling.items": {"RawResponseItem": RawResponseItem}}))  # a project has its own
