"""The visits of a crawl: the loop that begins them, and one of them, from admission to its entry in the books."""
