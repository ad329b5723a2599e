"""The control socket of a crawl that runs: its two ends, and their words."""
