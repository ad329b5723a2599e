from crawling.items import RawResponseItem
from crawling.spiders.redis_spider import RedisSpider


class BooksSpider(RedisSpider):
    """Reads the books that another project has found."""

    name = "reader"

    def parse(self, response):
        item = RawResponseItem()
        item["appid"] = response.meta["appid"]
        item["crawlid"] = response.meta["crawlid"]
        item["attrs"] = {"by": self.name, "title": response.css("title::text").get()}
        item["url"] = response.request.url
        item["response_url"] = response.url
        item["status_code"] = response.status
        item["status_msg"] = "OK"
        item["response_headers"] = self.reconstruct_headers(response)
        item["request_headers"] = response.request.headers
        item["body"] = response.text
        item["links"] = []
        yield item
