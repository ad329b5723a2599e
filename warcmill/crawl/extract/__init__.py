"""The links of an answer: its type, and what the job's file allows, decide which extractor reads it. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from warcmill.crawl.extract import embedded, feeds, html, links, package_index
from warcmill.crawl.extract.links import Outlinks
from warcmill.crawl.fetch.answer import HeaderFields

NAMES = ("headers", "html", "css", "sitemap", "feed", "script", package_index.NAME)
DEFAULT = frozenset(NAMES) - {"script", package_index.NAME}
_HTML = frozenset(["text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"])
_GZIP = frozenset(["application/gzip", "application/x-gzip"])
_TYPE_END = re.compile(r"[;,\s]")  # servers write "text/html charset=utf-8", and browsers read it
_UNKNOWN = frozenset(["unknown/unknown", "application/unknown", "*/*"])  # WHATWG MIME Sniffing, 7
_VAGUE = frozenset(["text/plain", "application/octet-stream", "binary/octet-stream"])
_MARKUP = re.compile(
    rb"(?:<!--|<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)[\s/>])"
)
_BEGIN = 4096  # bytes that show the root of an XML document
_SCRIPT = ("javascript", "ecmascript", "json")


def find(
    data: bytes, uri: str, status: int, fields: HeaderFields, names: Collection[str] = DEFAULT, payload: str = ""
) -> Outlinks:
    """The links of an answer with these header fields. `data` is what it brought, decoded; nothing in it raises.

    `payload` is the URI's.
    """
    found = links.links(fields, uri, status) if "headers" in names else Outlinks()
    inside = _inside(data, uri, status, fields, names, payload)
    found += inside
    found.cut = found.cut or inside.cut
    return found


def reads(data: bytes, uri: str, fields: HeaderFields, names: Collection[str] = DEFAULT, payload: str = "") -> bool:
    """True if `find` would read what begins so; others have links in their header alone."""
    if package_index.NAME in names and package_index.reads(payload):
        return True
    kind = kind_of(data, uri, fields.first("content-type"))
    return ("sitemap" if kind == "robots" else kind) in names


def unpacks(data: bytes, uri: str, fields: HeaderFields, names: Collection[str] = DEFAULT) -> bool:
    """True if `find` would unpack it: a small file may be a large sitemap."""
    return feeds.is_packed(data) and reads(data, uri, fields, names)


def _inside(data: bytes, uri: str, status: int, fields: HeaderFields, names: Collection[str], payload: str) -> Outlinks:
    if package_index.NAME in names and package_index.reads(payload):
        return package_index.find(data, uri, status, fields, payload)
    content_type = fields.first("content-type")
    kind = kind_of(data, uri, content_type)
    if kind == "robots" and "sitemap" in names:
        return feeds.from_robots(data, uri)
    if kind == "html" and "html" in names:
        return html.links(data, uri, content_type, scripts="script" in names)
    return _READERS[kind](data, uri, content_type) if kind in names else Outlinks()


_READERS = {
    "css": embedded.css_links,
    "sitemap": feeds.sitemap_links,
    "feed": feeds.feed_links,
    "script": embedded.script_links,
}


def kind_of(data: bytes, uri: str, content_type: str) -> str:
    """The extractor for a payload: by its type; where that is missing or vague, by its beginning."""
    mime = _TYPE_END.split(content_type.strip().lower(), 1)[0]
    if mime in _HTML:
        return _vague(data) or "html"
    if mime == "text/css":
        return "css"
    if mime.endswith(("xml", "feed+json")) or mime in _GZIP:
        return _by_root(data)
    if mime == "text/plain" and uri.endswith("/robots.txt"):
        return "robots"
    if mime in _VAGUE:
        return _vague(data)
    if any(word in mime for word in _SCRIPT):
        return "script"
    return "" if "/" in mime and mime not in _UNKNOWN else _sniffed(data)


def _by_root(data: bytes) -> str:
    data = feeds.unpacked(data, _BEGIN)
    if feeds.is_sitemap(data):
        return "sitemap"
    if feeds.is_feed(data) or data[:1] == b"{":
        return "feed"
    begin = data[:_BEGIN].lower()
    return "html" if b"<html" in begin or b"<svg" in begin else ""


def _vague(data: bytes) -> str:
    """A sitemap by its root, where the type may be wrong: servers give some types to files of unknown type."""
    begin = feeds.unpacked(data, _BEGIN)[:_BEGIN]
    is_xml = begin.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"<?xml", b"<!--", b"<urlset", b"<sitemapindex"))
    return "sitemap" if is_xml and feeds.is_sitemap(begin) and b"<html" not in begin else ""


def _sniffed(data: bytes) -> str:
    """Without a type: markup is a page, as browsers take it (WHATWG MIME Sniffing, 7.1)."""
    begin = data[:1024].lstrip().lower()
    if begin.startswith(b"<?xml"):
        return _by_root(data)
    return "html" if _MARKUP.match(begin) else ""
