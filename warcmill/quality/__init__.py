"""Quality: how the pages of a launch look in replay with the network cut, beside what its crawl saw."""

SAMPLE, MOST = 20, 200  # seeds, and other pages, that are opened by default, and at most
MARKS = ("good", "poor", "bad")
