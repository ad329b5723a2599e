"""Requests of applications, by the API of Scrapy Cluster: what a message asks for, and which handler takes it."""
