from scrapy.exceptions import DropItem


class Titled:
    def process_item(self, item):
        if not item.get("title"):
            raise DropItem("it has no title")
        item["title"] = item["title"].strip().upper()
        return item


class Once:
    def __init__(self):
        self.seen = set()

    async def process_item(self, item):
        if item["url"] in self.seen:
            raise DropItem("it was there")
        self.seen.add(item["url"])
        return item
