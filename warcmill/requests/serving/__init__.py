"""Requests within a launch: their feed, the audience of each, results; docked to the crawler as its service."""
