"""The links of an answer: its type, and what the job's file allows, decide which extractor reads it. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from warcmill.crawl.extract import embedded, feeds, html, links, package_index, pdfs, playlists, xml
from warcmill.crawl.extract.links import LIMITS, LinkLimits, Outlinks
from warcmill.crawl.fetch.answer import HeaderFields

NAMES = ("headers", "html", "css", "sitemap", "feed", "playlist", "xml", "pdf", "script", package_index.NAME)
DEFAULT = frozenset(NAMES) - {"script", package_index.NAME}
_HTML = frozenset(["text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"])
_GZIP = frozenset(["application/gzip", "application/x-gzip"])
_TYPE_END = re.compile(r"[;,\s]")  # servers write "text/html charset=utf-8", and browsers read it
_UNKNOWN = frozenset(["unknown/unknown", "application/unknown", "*/*"])  # WHATWG MIME Sniffing, 7
_VAGUE = frozenset(["text/plain", "application/octet-stream", "binary/octet-stream"])
_MARKUP = re.compile(
    rb"(?:<!--|<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)[\s/>])"
)
_begins_as_xml = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+<(?:\?xml|!--|urlset|sitemapindex)|\x1f\x8b|\xff\xfe|\xfe\xff|<\0|\0<"
).match
_LONG = frozenset(["playlist", "pdf"])
_SCRIPT = ("javascript", "ecmascript", "json")


def find(
    data: bytes, uri: str, status: int, fields: HeaderFields, names: Collection[str] = DEFAULT, payload: str = "",
    limits: LinkLimits = LIMITS,
) -> Outlinks:  # fmt: skip
    """The links of an answer with these header fields. `data` is what it brought, decoded; nothing in it raises.

    `payload` is the URI's.
    """
    found = links.links(fields, uri, status) if "headers" in names else Outlinks()
    for inside in _inside(data, uri, status, fields, names, payload, limits):
        found += inside
        found.cut_by = found.cut_by or inside.cut_by
    return found


def reads(data: bytes, uri: str, fields: HeaderFields, names: Collection[str] = DEFAULT, payload: str = "") -> bool:
    """True if `find` would read what begins so; others have links in their header alone."""
    if package_index.NAME in names and package_index.reads(payload):
        return True
    content_type = fields.first("content-type")
    kind = kind_of(data, uri, content_type, payload)
    return ("sitemap" if kind == "robots" else kind) in names or _has_sheets(data, content_type, names)


def expands(data: bytes, uri: str, fields: HeaderFields, names: Collection[str] = DEFAULT, payload: str = "") -> bool:
    """True if `find` could take long with what begins so, however short it is: a packed sitemap, a template of films,
    a PDF."""
    if data[:2] == xml.GZIP:
        return reads(data, uri, fields, names, payload)
    mime = _mime(fields.first("content-type"))
    return mime not in _HTML and (kind := _kind(data, uri, mime)) in _LONG and kind in names


def longest(data: bytes, uri: str, fields: HeaderFields, decoded: int) -> int:
    """The most bytes of what begins so that are read, where it is `decoded` for others: a PDF that is cut often has no
    links at all."""
    return 2 * decoded if _kind(data, uri, _mime(fields.first("content-type"))) == "pdf" else decoded


def _inside(
    data: bytes, uri: str, status: int, fields: HeaderFields, names: Collection[str], payload: str, limits: LinkLimits
) -> Iterator[Outlinks]:
    if package_index.NAME in names and package_index.reads(payload):
        yield package_index.find(data, uri, status, fields, payload, limits)
        return
    content_type = fields.first("content-type")
    kind = kind_of(data, uri, content_type, payload)
    if _has_sheets(data, content_type, names):
        yield xml.sheet_links(data, uri, content_type)
    if kind == "robots" and "sitemap" in names:
        yield feeds.from_robots(data, uri, limits)
    elif kind == "html" and "html" in names:
        yield html.links(data, uri, content_type, limits, scripts="script" in names)
    elif kind in names and (read := _READERS.get(kind)):
        yield read(data, uri, content_type, limits)
    if kind == "xml" and "html" in names:  # the page that it makes, but for instructions and what they compute
        made = html.links(data, uri, content_type, limits)
        yield Outlinks(link for link in made if ":" not in link.context and "%7B" not in link.uri)


def _has_sheets(data: bytes, content_type: str, names: Collection[str]) -> bool:
    return "xml" in names and _mime(content_type).endswith("xml") and xml.names_sheets(data)


_READERS = {
    "css": embedded.css_links,
    "sitemap": feeds.sitemap_links,
    "feed": feeds.feed_links,
    "playlist": playlists.links,
    "xml": xml.transform_links,
    "pdf": pdfs.links,
    "script": embedded.script_links,
}


def kind_of(data: bytes, uri: str, content_type: str, payload: str = "") -> str:
    """The extractor for a payload: by its type; where that is missing or vague, by its beginning. `payload`: that of
    the URI, which may have been named as a sitemap."""
    kind = _kind(data, uri, _mime(content_type))
    is_text = kind in ("", "html") and (bool(payload) or ".txt" in uri)  # most are not even asked about
    if is_text and feeds.is_named(uri, payload) and feeds.is_list(xml.root(data)):
        return "sitemap"
    return kind


def _mime(content_type: str) -> str:
    return _TYPE_END.split(content_type.strip().lower(), 1)[0]


def _kind(data: bytes, uri: str, mime: str) -> str:
    if mime in _HTML:
        return _vague(data) or "html"
    if mime == "text/css":
        return "css"
    if mime in pdfs.TYPES:
        return "pdf" if pdfs.BEGIN in data[:1024] else ""
    if mime in playlists.TYPES or (mime in playlists.AUDIO_TYPES and playlists.is_hls(data)):
        return "playlist"
    if mime.endswith(("xml", "xsl", "feed+json")) or mime in _GZIP:
        return _by_root(data)
    if mime == "text/plain" and uri.endswith("/robots.txt"):
        return "robots"
    if mime in _VAGUE:
        return _vague(data)
    if any(word in mime for word in _SCRIPT):
        return "script"
    return "" if "/" in mime and mime not in _UNKNOWN else _sniffed(data)


def _by_root(data: bytes) -> str:
    begin = xml.root(data)
    if feeds.is_sitemap(begin):
        return "sitemap"
    if feeds.is_feed(begin) or begin[:1] == b"{":
        return "feed"
    if playlists.is_dash(begin):
        return "playlist"
    if xml.is_transform(begin):
        return "xml"
    begin = begin.lower()
    return "html" if b"<html" in begin or b"<svg" in begin else ""


def _vague(data: bytes) -> str:
    """A playlist or a PDF by its first line, a sitemap by its root, where the type may be wrong: servers give some
    types to files of unknown type."""
    if b"#EXTM3U" in data[:10] and playlists.is_hls(data):
        return "playlist"
    if data.startswith(pdfs.BEGIN):
        return "pdf"
    if not _begins_as_xml(data):
        return ""
    begin = xml.root(data)
    return "sitemap" if feeds.is_sitemap(begin) and b"<html" not in begin else ""


def _sniffed(data: bytes) -> str:
    """Without a type: markup is a page, as browsers take it (WHATWG MIME Sniffing, 7.1)."""
    begin = data[:1024].lstrip().lower()
    if _MARKUP.match(begin):
        return "html"
    return _by_root(data) if _begins_as_xml(data) else _vague(data)
