"""A spider that stands alone: it walks a catalogue, page by page, and yields each book."""

import scrapy


class Books(scrapy.Spider):
    name = "books"
    custom_settings = {"LOG_LEVEL": "INFO", "FEEDS": {"items.jsonl": {"format": "jsonlines"}}}

    def __init__(self, url="", **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [url]

    def parse(self, response):
        for link in response.css("a.book"):
            yield response.follow(link, self.book, errback=self.lost, cb_kwargs={"shelf": response.css("h1::text").get()})
        yield from response.follow_all(css="a.next")

    def book(self, response, shelf):
        title = response.css("h1::text").get()
        yield {"url": response.url, "title": title, "shelf": shelf, "depth": response.meta["depth"]}
        for link in response.css("a.again"):  # each time it is asked for
            yield response.follow(link, self.visitor, dont_filter=True, meta={"book": title})

    def visitor(self, response):
        yield {"url": response.url, "visited for": response.meta["book"]}

    def lost(self, failure):
        yield {"url": failure.request.url, "lost": failure.value.response.status}
