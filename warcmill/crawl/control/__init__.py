"""Speak with a crawl that runs, by its control socket."""
