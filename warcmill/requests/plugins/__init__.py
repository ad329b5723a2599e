"""Plugins of one's own, written for Scrapy Cluster: they run unchanged, in processes beside the role.

names       modules that plugins import by its names, such as `base_handler` and `scutils`
process     the process that has the plugins: loads them, and does one thing at a time
runners     the side of the role: starts that process, asks it, and ends one that hangs
"""
