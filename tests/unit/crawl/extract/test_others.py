"""Links of style sheets, sitemaps, feeds, headers; which extractor reads what; nothing raises or takes long."""

from __future__ import annotations

import gzip

import pytest
from ada_url import join_url
from hypothesis import example, given, settings
from hypothesis import strategies as st

from warcmill.crawl import extract
from warcmill.crawl.extract import embedded, feeds, html
from warcmill.crawl.extract import links as headers
from warcmill.crawl.extract.links import Link, LinkCollector
from warcmill.crawl.fetch.answer import HeaderFields
from warcmill.crawl.uri import make
from warcmill.errors import BadInput
from warcmill.formats.text import charset

URI = "http://news.example/en/0"


def found(links: list[Link]) -> list[tuple[str, str]]:
    return [(link.hop, link.uri.removeprefix("http://news.example")) for link in links]


@pytest.mark.parametrize(
    ("sheet", "expected"),
    [
        ("a { b: url(/a.png) }", ["/a.png"]),
        ('a { b: url( "/a b.png" ) }', ["/a%20b.png"]),
        ("a { b: URL('/a.png') }", ["/a.png"]),
        ("@import '/a.css' screen; @IMPORT \"/b.css\"; @import url(/c.css);", ["/a.css", "/b.css", "/c.css"]),
        ("@font-face { src: url(a.woff2) format('woff2'), url(a.woff) }", ["/en/a.woff2", "/en/a.woff"]),
        ("/* url(/no.png) */ a { b: url(/a.png) } /* url(/no.png)", ["/a.png"]),
        (r"a { b: url(/a\29 .png) } c { d: url(/\000062.png) }", ["/a).png", "/b.png"]),
        ("a { b: url() } c { d: url(data:image/png;base64,iVBOR) } e { f: url(#x) }", ["/en/0"]),
        ("a { b: url(/a.png", ["/a.png"]),
        ("@import'/a.css';@import\"/b.css\"screen;@import/* x */'/c.css'", ["/a.css", "/b.css", "/c.css"]),
        ('a { b: \'/*\' } c { d: url(/a.png) } e { f: "\\"/*" url(/b.png) }', ["/a.png", "/b.png"]),
        (
            "a { b: url(/*/a.png) } c { d: url('/*/b.png') } /* ' */ e { f: url(/c.png) }",
            ["/*/a.png", "/*/b.png", "/c.png"],
        ),
    ],
)
def test_style_sheets(sheet: str, expected: list[str]) -> None:
    assert [uri for _, uri in found(embedded.css_links(sheet.encode(), URI))] == expected


SITEMAP = b"""<?xml version="1.0"?><!-- <loc>/no</loc> -->
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="x" xmlns:xhtml="y">
<url><loc> http://news.example/a?b=1&amp;c=2 </loc><image:image><image:loc>/a.png</image:loc></image:image>
<xhtml:link rel="alternate" hreflang="de" href="/de"/></url>
<url><loc><![CDATA[/b]]></loc></url><url><loc>/c"""


@pytest.mark.parametrize("data", [SITEMAP, gzip.compress(SITEMAP, mtime=0), gzip.compress(SITEMAP, mtime=0)[:-9]])
def test_sitemaps_whole_packed_and_cut(data: bytes) -> None:
    assert found(feeds.sitemap_links(data, URI)) == [
        ("M", "/a?b=1&c=2"),
        ("E", "/a.png"),
        ("L", "/de"),
        ("M", "/b"),
        ("M", "/c"),
    ]


def test_an_index_of_sitemaps() -> None:
    index = b"<sitemapindex><sitemap><loc>/1.xml.gz</loc></sitemap><sitemap><loc>/2.xml</loc></sitemap></sitemapindex>"
    assert found(feeds.sitemap_links(index, URI)) == [("M", "/1.xml.gz"), ("M", "/2.xml")]


def test_robots_txt_names_sitemaps() -> None:
    robots = b"User-agent: *\r\nDisallow: /a\r\n SiteMap : /s.xml\r\nsitemap: http://a.example/s\r\n# Sitemap: /no"
    assert found(feeds.from_robots(robots, URI)) == [("M", "/s.xml"), ("M", "http://a.example/s")]
    assert found(feeds.from_robots(b"User-agent: *\rSitemap: /s\rSitemap: /t", URI)) == [("M", "/s"), ("M", "/t")]


RSS = b"""<rss><channel><link>http://news.example/</link><image><url>/i.png</url></image>
<item><title>x</title><link><![CDATA[/1]]></link><guid>http://news.example/guid</guid><comments>/1c</comments>
<enclosure url="/1.mp3" type="audio/mpeg"/><media:content url='/1.jpg'/></item>
<item><link>/2</link><guid isPermaLink="false">http://news.example/none</guid></item></channel></rss>"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><link rel="self" href="/feed"/><link href="/"/><logo>/l.png</logo>
<entry><link rel="alternate" href="/1?a&amp;b"/><link rel="enclosure" href="/1.mp3"/><content src="/full"/></entry>
</feed>"""
JSON = b'{"version": "x", "home_page_url": "/", "items": [{"url": "/1", "image": "/1.png"}, 7, {"url": 3}]}'
ATTACHED = (
    b'{"items": [{"attachments": [{"url": "/1.mp3", "mime_type": "audio/mpeg"}, {"url": 3}, 7]}, {"attachments": 7}]}'
)


def test_feeds() -> None:
    assert found(feeds.feed_links(RSS, URI)) == [
        ("L", "/"),
        ("E", "/i.png"),
        ("L", "/1"),
        ("L", "/guid"),
        ("L", "/1c"),
        ("E", "/1.mp3"),
        ("E", "/1.jpg"),
        ("L", "/2"),
    ]
    assert found(feeds.feed_links(ATOM, URI)) == [
        ("L", "/feed"),
        ("L", "/"),
        ("E", "/l.png"),
        ("L", "/1?a&b"),
        ("E", "/1.mp3"),
        ("E", "/full"),
    ]
    assert found(feeds.feed_links(JSON, URI)) == [("L", "/"), ("L", "/1"), ("E", "/1.png")]
    assert found(feeds.feed_links(ATTACHED, URI)) == [("E", "/1.mp3")]
    based = b"<feed xml:base='/b/'><entry><link href='1'/></entry></feed>"
    assert found(feeds.feed_links(based, URI)) == [("L", "/b/1")]


@pytest.mark.parametrize(
    ("status", "name", "value", "expected"),
    [
        (301, "location", "/a", [("R", "/a")]),
        (302, "location", "a b#c", [("R", "/en/a%20b")]),
        (302, "location", "/\u00c3\u00a4", [("R", "/%C3%A4")]),
        (302, "location", "/\u00e4", [("R", "/%C3%A4")]),
        (201, "location", "/a", [("R", "/a")]),
        (200, "location", "/a", []),
        (200, "refresh", "0; url=/a", [("R", "/a")]),
        (200, "refresh", "7", [("R", "/en/0")]),
        (200, "refresh", "70", []),
        (200, "content-location", "/a", [("L", "/a")]),
        (200, "link", '</a.css>; rel="preload"; as=style, </2>; rel=next', [("E", "/a.css"), ("L", "/2")]),
        (200, "link", "<//cdn.example>; rel=preconnect, nonsense, <", []),
    ],
)
def test_headers(status: int, name: str, value: str, expected: list[tuple[str, str]]) -> None:
    assert found(headers.links(HeaderFields([(name, value)]), URI, status)) == expected


@pytest.mark.parametrize(
    ("uri", "content_type", "data", "kind"),
    [
        (URI, "text/html", b"", "html"),
        (URI, "Application/XHTML+XML; charset=x", b"", "html"),
        (URI, "", b" \n<!DOCTYPE HTML>", "html"),
        (URI, "", b"<P>x", "html"),
        (URI, "", b"\n<table border=1>", "html"),
        (URI, "", b"<pic>", ""),
        (URI, "text/html charset=utf-8", b"", "html"),
        (URI, "text/html, text/html", b"", "html"),
        (URI, "application/unknown", b"<html>", "html"),
        (URI, "unknown/unknown; charset=x", b"\x89PNG", ""),
        (URI, "", b"\x89PNG", ""),
        (URI, "image/png", b"<html>", ""),
        (URI, "text/css", b"", "css"),
        (URI, "text/plain", b"", ""),
        ("http://a.example/robots.txt", "text/plain", b"", "robots"),
        (URI, "application/xml", SITEMAP, "sitemap"),
        (URI, "application/x-gzip", gzip.compress(SITEMAP, mtime=0), "sitemap"),
        (URI, "application/x-gzip", gzip.compress(b"x", mtime=0), ""),
        (URI, "application/octet-stream", SITEMAP, "sitemap"),
        (URI, "Text/Plain; charset=utf-8", b"\xef\xbb\xbf\n" + SITEMAP, "sitemap"),
        (URI, "binary/octet-stream", gzip.compress(SITEMAP, mtime=0), "sitemap"),
        (URI, "text/html; charset=UTF-8", SITEMAP, "sitemap"),
        (URI, "text/html", b"<?xml version='1.0'?><html><p><urlset> begins a sitemap", "html"),
        (URI, "text/plain", b"A sitemap begins with <urlset>", ""),
        (URI, "application/octet-stream", gzip.compress(b"x", mtime=0), ""),
        (URI, "application/octet-stream", RSS, ""),
        (URI, "application/rss+xml", RSS, "feed"),
        (URI, "text/xml", ATOM, "feed"),
        (URI, "application/feed+json", JSON, "feed"),
        (URI, "text/xml", b"<?xml version='1.0'?><html xmlns='x'>", "html"),
        (URI, "image/svg+xml", b"<?xml version='1.0'?><!-- x --><svg xmlns='x'>", "html"),
        (URI, "application/xml", b"<?xml version='1.0'?><other/>", ""),
        (URI, "text/javascript", b"", "script"),
    ],
)
def test_what_reads_an_answer_follows_from_its_type(uri: str, content_type: str, data: bytes, kind: str) -> None:
    assert extract.kind_of(data, uri, content_type) == kind


def test_a_picture_in_svg_is_read_as_one_in_a_page_is() -> None:
    picture = b"""<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">
<style>@import "/a.css";</style><image xlink:href="/a.png"/><a href="/a"><text>a</text></a></svg>"""
    fields = HeaderFields([("content-type", "image/svg+xml")])
    assert found(extract.find(picture, URI, 200, fields)) == [("E", "/a.css"), ("E", "/a.png"), ("L", "/a")]


def test_the_job_says_which_extractors_run() -> None:
    fields = HeaderFields([("content-type", "text/html"), ("link", "</2>; rel=next")])
    page = b'<a href=/a><script>"/x/y.html"</script>'
    assert found(extract.find(page, URI, 200, fields)) == [("L", "/2"), ("L", "/a")]
    assert found(extract.find(page, URI, 200, fields, ["html", "script"])) == [("L", "/a"), ("X", "/x/y.html")]
    assert extract.find(page, URI, 200, fields, []) == []


def test_what_a_browser_cannot_follow_is_kept_as_such_but_for_guesses_and_other_schemes() -> None:
    links = LinkCollector(URI)
    for hop in "LX":
        for written in ("http://[bad/", " http://h:99999/ ", "javascript:void(0)", "foo:bar", f"http://{hop} b/"):
            links.add(written, hop, "a/@href")
    assert [(link.uri, link.is_uri) for link in links.all()] == [
        ("http://[bad/", False), ("http://h:99999/", False), ("http://L b/", False),
    ]  # fmt: skip
    for number in range(1_000):
        links.add(f"http://[{number}", "L", "a/@href")
    assert len(links.all()) == 100, "a page must not fill the log"


# --- the short way to join, and input that is hostile ---

HREF = st.text(st.sampled_from("/.?#%:@&=;~aZ0-_ \\\täé\x00[]()'\"<>"), max_size=20)


@settings(max_examples=500, deadline=None)
@given(HREF)
@example("/a/./b")
@example("/a/..")
@example("/.a")
@example("/a.b")
@example("//a")
@example("/%2e/a")
@example("/%2E%2e")
@example("/a?b/../c")
@example("/'")
def test_the_short_way_to_join_gives_what_the_parser_gives(href: str) -> None:
    try:
        expected = join_url(URI, href).partition("#")[0]
    except ValueError:
        expected = ""
    assert LinkCollector(URI).join(href) == (expected if expected.startswith("http") else "")


READERS = [
    embedded.css_links,
    feeds.sitemap_links,
    feeds.feed_links,
    embedded.script_links,
    html.links,
    feeds.from_robots,
]
PARTS = st.sampled_from(
    [b"<", b">", b"</", b"<a href=", b"<loc>", b"<link ", b"<!--", b"<![CDATA[", b"]]>", b"url(", b"'", b'"', b"\\",
     b"=", b"<meta charset=", b"utf-16", b"&#x110000;", b"&amp;", b"{", b"[", b"<base href=", b"srcset=", b",", b" ",
     b"\xff",
     b"\x00", b"<?xml encoding='", b"<script type=application/ld+json>", b"<style>", b"<svg>", b"http://", b"//",
     b"@import ", b"\x1f\x8b\x08", b"<template>", b"style=", b"/*"]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(PARTS | st.binary(max_size=8), max_size=40).map(b"".join), st.text(max_size=20))
def test_malformed_input_never_raises(data: bytes, content_type: str) -> None:
    for read in READERS:
        read(data, URI)
    headers.links(HeaderFields([("link", data.decode("latin-1")), ("location", content_type)]), URI, 301)
    fields = HeaderFields([("content-type", content_type)])
    assert isinstance(extract.find(data, URI, 200, fields, extract.NAMES), list)


@pytest.mark.parametrize(
    "unit",
    [b"<!--", b"<a", b"<a ", b"<?", b"url(", b"url( ", b"url('", b" ", b"a", b"<loc>", b"<![CDATA[", b"/*", b"'", b"\\",
     b"(", b"<a <", b"a=", b"@import ", b"[", b'{"a":', b"&", b"<a href=/>", b"a, (", b';a="', b"<base href="],
)  # fmt: skip
def test_hostile_input_takes_linear_time(unit: bytes) -> None:
    """Quadratic time would take minutes for each."""
    data = unit * 20_000
    wrapped = [data, b"<img srcset='" + data, b"<p style='" + data, b"<style>" + data, b"url(" + data, b"<a " + data]
    for text in wrapped:
        for read in READERS:
            read(text, URI)
    value = data[: 1 << 18].decode()
    headers.links(HeaderFields([("link", value), ("refresh", value), ("location", value)]), URI, 301)
    charset.of_links(data, "charset=" + value)


def test_deep_json_is_no_fault() -> None:
    page = b'<script type="application/ld+json">' + b"[" * 100_000 + b"</script>"
    assert html.links(page, URI) == []
    assert feeds.feed_links(b'{"a":' * 100_000, URI) == []


_PARTS = [*"ab/.?#%2eE:@\\ \t\n;&=[]{}|^<>\"'é\u2028ß\x00\x7f~!$()+,01\ud800"]
_PARTS += ["http://", "https:", "//", "%2E", "%00", "xn--", "..", "/./", "a.example", "[::1]", "0x7f.1", ":80", "u@"]


@given(st.sampled_from([URI, "http://[::1]/", "https://a.example:8443/b?c"]), st.lists(st.sampled_from(_PARTS)))
def test_a_joined_link_is_canonical_and_needs_no_second_parser(base: str, parts: list[str]) -> None:
    links = LinkCollector(base)
    links.add("".join(parts), "L", "a/@href")
    for link in (one for one in links.all() if one.is_uri):
        assert outcome(link.uri, is_canonical=True) == outcome(link.uri, is_canonical=False)


def outcome(text: str, *, is_canonical: bool) -> str:
    try:
        return make(text, is_canonical=is_canonical).uri
    except BadInput as error:
        return str(error)


@pytest.mark.parametrize(
    "page",
    [
        b"<base href='http://h/" + b"a" * 16_000 + b"/'>" + b"".join(b"<a href=a#%d>" % n for n in range(100_000)),
        b"<base href='http://" + b"a" * 16_000 + b"/'>" + b"".join(b"<a href=/%d>" % n for n in range(100_000)),
        b"<a href=a >" * 800_000,
    ],
    ids=["a long base", "a long host", "one link, again and again"],
)
def test_links_are_cut_where_they_would_take_too_much(page: bytes) -> None:
    found = html.links(page, URI)
    assert sum(len(link.uri) for link in found) <= 1 << 24


def test_the_page_of_117_bytes_that_held_a_crawl_up_for_ever_is_read() -> None:
    assert len(html.links(b"<p style='background:url(\\" + b"a" * 90 + b"'>", URI)) == 1


def test_a_reference_to_a_number_of_thousands_of_digits_is_no_fault() -> None:
    assert feeds.feed_links(b"<rss><link>/a?&#" + b"9" * 5_000 + b";</link></rss>", URI)
