"""The helpers that spiders and plugins of Scrapy Cluster import as `scutils`. They know nothing else of Warcmill.

Names, parameters and results are as in Scrapy Cluster 1.2, so that a file written for it runs unchanged.
"""
