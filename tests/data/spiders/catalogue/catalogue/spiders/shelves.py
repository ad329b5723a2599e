import scrapy
from crawling.items import RawResponseItem
from crawling.spiders.redis_spider import RedisSpider


class ShelvesSpider(RedisSpider):
    """Reads the shelves of a catalogue; each book is read by the project `reader`."""

    name = "catalogue"

    def parse(self, response):
        item = RawResponseItem()
        item["appid"] = response.meta["appid"]
        item["crawlid"] = response.meta["crawlid"]
        item["attrs"] = {"by": self.name}
        item["url"] = response.request.url
        item["response_url"] = response.url
        item["status_code"] = response.status
        item["status_msg"] = "OK"
        item["response_headers"] = self.reconstruct_headers(response)
        item["request_headers"] = response.request.headers
        item["body"] = response.text
        item["links"] = []
        for link in response.css("a.book::attr(href)").getall():
            yield scrapy.Request(response.urljoin(link), meta={**self.asked(response), "spiderid": "reader"})
        for link in response.css("a.next::attr(href)").getall():
            yield scrapy.Request(response.urljoin(link), meta=self.asked(response), callback=self.parse)
        yield item

    def asked(self, response):
        return {name: response.meta[name] for name in ("appid", "crawlid")}
