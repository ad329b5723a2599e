"""Rendering beside another engine: it asks for a page over HTTP, gets its links, and finds its WARC in a folder."""
