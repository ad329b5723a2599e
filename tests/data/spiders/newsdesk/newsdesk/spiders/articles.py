from urllib.parse import urlsplit

from newsdesk.items import Article
from scrapy.linkextractors import LinkExtractor
from scrapy.loader import ItemLoader
from scrapy.spiders import CrawlSpider, Rule


class Articles(CrawlSpider):
    """Follows the sections of a site, and yields the articles that they link to."""

    name = "articles"
    rules = (
        Rule(LinkExtractor(allow=r"/section/"), follow=True),
        Rule(LinkExtractor(allow=r"/(article|moved)/"), callback="article", errback="failed"),
    )

    def __init__(self, url="", **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [url]
        self.allowed_domains = [urlsplit(url).hostname]

    def article(self, response):
        loader = ItemLoader(Article(), response)
        loader.add_value("url", response.url)
        loader.add_css("title", "h1::text")
        loader.add_value("words", str(len(response.text.split())))
        asked = response.request.headers
        loader.add_value("agent", f"{asked['User-Agent'].decode()} for {asked['X-Desk'].decode()}")
        loader.add_value("came_by", response.meta.get("redirect_urls", []))
        loader.add_value("number", str(response.meta["number"]))
        item = loader.load_item()
        yield Article({name: values[0] if len(values) == 1 else values for name, values in item.items()})

    def failed(self, failure):
        self.logger.info("lost: %s", failure.request.url)
