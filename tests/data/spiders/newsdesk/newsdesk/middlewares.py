from scrapy import Request


class Signed:
    """Has each request name who asks."""

    def process_request(self, request):
        request.headers["X-Desk"] = "news"


class Counted:
    """Notes which link of its page a request was."""

    async def process_start(self, start):
        async for one in start:
            yield one

    def process_spider_output(self, response, result):
        for number, one in enumerate(result):
            yield self._counted(one, number)

    async def process_spider_output_async(self, response, result):
        number = 0
        async for one in result:
            yield self._counted(one, number)
            number += 1

    def _counted(self, one, number):
        return one.replace(meta={**one.meta, "number": number}) if isinstance(one, Request) else one
