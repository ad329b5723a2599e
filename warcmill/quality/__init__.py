"""Quality: how the pages of a launch look in replay with the network cut, beside what its crawl saw."""
