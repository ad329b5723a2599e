import scrapy


class Article(scrapy.Item):
    url = scrapy.Field()
    title = scrapy.Field()
    words = scrapy.Field()
    agent = scrapy.Field()
    came_by = scrapy.Field()
    number = scrapy.Field()
