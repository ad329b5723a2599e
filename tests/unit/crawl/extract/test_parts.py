"""Parts that a browser loads not by tags: sheets of XML, sets of images, playlists; and sitemaps in text."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from crawls import crawled
from sites.several_hosts import Page, serve

from warcmill.crawl import extract
from warcmill.crawl.extract import embedded, feeds, playlists
from warcmill.crawl.extract.links import Outlinks
from warcmill.crawl.fetch.answer import HeaderFields
from warcmill.crawl.policies.scope import SITEMAP, CrawlScope, SurtPrefixes
from warcmill.crawl.uri import make

URI = "http://news.example/en/0"
NAMED = "{" + SITEMAP + "}"
INDEX = b"<sitemapindex><sitemap><loc>/1.xml</loc></sitemap></sitemapindex>"
SITEMAP_XML = '<?xml version="1.0" encoding="UTF-16"?><urlset><url><loc>/a</loc></url></urlset>'


def read(data: bytes, content_type: str, uri: str = URI, payload: str = "") -> Outlinks:
    fields = HeaderFields([("content-type", content_type)] if content_type else [])
    return extract.find(data, uri, 200, fields, payload=payload)


def paths(links: Outlinks) -> list[str]:
    return [f"{link.hop} {link.uri.removeprefix('http://news.example')}" for link in links]


@pytest.mark.parametrize(
    ("content_type", "data", "expected"),
    [
        ("application/xml", b"<?xml version='1.0'?><?xml-stylesheet href='law.xsl'?><law/>", ["E /en/law.xsl"]),
        ("text/xml", b"<?xml-stylesheet href='#inside'?><?xml-stylesheet title='a' href='/a.css'?><x/>", ["E /a.css"]),
        ("image/svg+xml", b"<?xml-stylesheet href='/a.css'?><svg><a href='/a'/></svg>", ["E /a.css", "L /a"]),
        ("application/rss+xml", b"<?xml-stylesheet href='/a.xsl'?><rss><link>/</link></rss>", ["E /a.xsl", "L /"]),
        ("text/xml", b"<?xml-stylesheet href='/a.xsl'?>" + INDEX, ["E /a.xsl", "M /1.xml"]),
        ("text/html", b"<?xml-stylesheet href='/a.xsl'?><p>", []),
        (
            "text/xsl",
            b"<?xml version='1.0'?><xsl:stylesheet><xsl:import href='b.xsl'/><xsl:include href='c.xsl'/>\n\
<xsl:template match='/'><link rel='stylesheet' href='/a.css'/><a href='{@url}'/></xsl:template>",
            ["E /en/b.xsl", "E /en/c.xsl", "E /a.css"],
        ),
    ],
)  # fmt: skip
def test_sheets_of_xml(content_type: str, data: bytes, expected: list[str]) -> None:
    assert paths(read(data, content_type)) == expected
    assert paths(read(data.decode().encode("utf-16"), content_type)) == expected


@pytest.mark.parametrize(
    ("sheet", "expected"),
    [
        ("a{b:image-set('a.avif' type('image/avif') 1x, \"b.png\" 2x)}", ["/en/a.avif", "/en/b.png"]),
        ("a{b:-webkit-image-set(url(a.png) 1x, 'b.png' 2x); content: 'no.png'}", ["/en/a.png", "/en/b.png"]),
        ("a{b:image-set(linear-gradient(to left, red) 1x, 'a.png' 2x)} c{d: 'no.png'}", ["/en/a.png"]),
        ("a{b:IMAGE-SET( 'a\\'.png' 1x", ["/en/a'.png"]),
        ("/* image-set('no.png') */ a{b:image-set('a.png'", ["/en/a.png"]),
        ("a{b:url('a.png", ["/en/a.png"]),
        ("a{b:url(a.png  ", ["/en/a.png"]),
        ("a{b:url(no b.png", []),
        ("a{b:url('no.png\n')}", []),
    ],
)
def test_strings_of_sets_of_images_and_what_is_not_closed(sheet: str, expected: list[str]) -> None:
    assert [
        link.uri.removeprefix("http://news.example") for link in embedded.css_links(sheet.encode(), URI)
    ] == expected


def test_the_base_of_a_feed_may_change_inside() -> None:
    feed = (
        b"<feed xml:base='/a/'><link href='0'/><entry xml:base='b/'><link href='1'/><content xml:base='/c/'/></entry>"
        b"<entry><link href='2'/></entry></feed>"
    )
    assert paths(feeds.feed_links(feed, URI)) == ["L /a/0", "L /a/b/1", "L /a/2"]


HLS = b"""#EXTM3U
#EXT-X-KEY:METHOD=AES-128,URI="key.bin"
#EXT-X-MAP:URI="init.mp4"
#EXTINF:4,
seg0.ts
#EXTINF:4,
/seg1.ts?a
#EXT-X-ENDLIST
"""


@pytest.mark.parametrize(
    "content_type", ["application/vnd.apple.mpegurl", "application/x-mpegURL", "audio/x-mpegurl", "text/plain", ""]
)
def test_a_playlist_of_hls(content_type: str) -> None:
    assert paths(read(HLS, content_type)) == ["E /en/key.bin", "E /en/init.mp4", "E /en/seg0.ts", "E /seg1.ts?a"]


def test_a_list_of_radio_stations_is_not_a_film() -> None:
    assert not read(b"#EXTM3U\n#EXTINF:-1,Radio\nhttp://radio.example/live\n", "audio/x-mpegurl")


DASH = b"""<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" mediaPresentationDuration="PT8.5S">
<BaseURL>/film/</BaseURL><Period><AdaptationSet>
<SegmentTemplate initialization="$RepresentationID$/i.mp4" media="$RepresentationID$/$Number%03d$.m4s" duration="4000"
 timescale="1000" startNumber="0"/><Representation id="a"/><Representation id="b">
<BaseURL>hd/</BaseURL></Representation>
</AdaptationSet><AdaptationSet><Representation id="c"><SegmentTemplate media="c-$Time$-$$.m4s"><SegmentTimeline>
<S t="5" d="2" r="1"/><S d="3"/></SegmentTimeline></SegmentTemplate></Representation></AdaptationSet>
<AdaptationSet><Representation id="d"><BaseURL>d.webm</BaseURL><SegmentBase indexRange="0-9"/></Representation>
<Representation><SegmentList><Initialization sourceURL="e0.mp4"/><SegmentURL media="e1.m4s"/></SegmentList>
</Representation></AdaptationSet></Period></MPD>"""


@pytest.mark.parametrize("content_type", ["application/dash+xml", "application/xml", ""])
def test_a_playlist_of_dash(content_type: str) -> None:
    found = read(DASH, content_type)
    assert [path.removeprefix("E /film/") for path in paths(found)] == [
        "a/i.mp4", "a/000.m4s", "a/001.m4s", "a/002.m4s", "hd/b/i.mp4", "hd/b/000.m4s", "hd/b/001.m4s", "hd/b/002.m4s",
        "c-5-$.m4s", "c-7-$.m4s", "c-9-$.m4s", "d.webm", "e0.mp4", "e1.m4s",
    ]  # fmt: skip
    assert not found.cut


@pytest.mark.parametrize(
    ("data", "most"),
    [
        (b"#EXTM3U\n#EXT-X-VERSION:3\n" + b"".join(b"%d.ts\n" % number for number in range(1_000_000)), 20_000),
        (DASH.replace(b"PT8.5S", b"P9000D").replace(b"4000", b"1"), 20_000),
        (DASH.replace(b'r="1"', b'r="999999999"'), 20_000),
        (DASH.replace(b'd="2" r="1"', b'd="0" r="999999999"'), 20),
        (DASH.replace(b' mediaPresentationDuration="PT8.5S"', b' type="dynamic"'), 10),
        (DASH.replace(b"<Representation id", b"<Representation " * 30_000 + b" id"), 20),
        (b"<MPD>" + b"<Period><AdaptationSet>" * 100_000, 0),
    ],
    ids=["hls", "duration", "timeline", "without duration", "without end", "one tag", "deep"],
)
def test_a_playlist_without_end_is_cut_and_says_so(data: bytes, most: int) -> None:
    found = playlists.links(data, URI)
    assert len(found) <= most
    assert found.cut == (len(found) == 20_000 or b"dynamic" in data)


@pytest.mark.parametrize(
    ("data", "content_type", "uri", "payload", "expected"),
    [
        (b"http://news.example/a\r\nHTTP://news.example/b\n\nno\n", "text/plain", URI, NAMED, ["M /a", "M /b"]),
        (b"\xef\xbb\xbfhttp://news.example/a", "text/plain", "http://news.example/sitemap_1.txt", "", ["M /a"]),
        ("http://news.example/a\n".encode("utf-16"), "text/plain", URI, NAMED, ["M /a"]),
        (gzip.compress(b"http://news.example/a\n", mtime=0), "application/gzip", URI, NAMED, ["M /a"]),
        (gzip.compress(b"http://news.example/a\n", mtime=0), "", "http://news.example/sitemap.txt.gz", "", ["M /a"]),
        (b"http://news.example/a\n", "text/html", URI, NAMED, ["M /a"]),
        (b"<a href=/a>http://news.example/b", "text/html", URI, NAMED, ["L /a"]),
        (b"http://news.example/a\n", "text/plain", "http://news.example/notes.txt", "", []),
        (b"Not found", "text/plain", URI, NAMED, []),
        (b"<!--" + b" " * 5_000 + b"-->" + INDEX, "text/xml", URI, "", ["M /1.xml"]),
        (b"<?xml version='1.0'?><!--" + b" " * 90_000 + b"-->\n" + INDEX, "text/plain", URI, "", ["M /1.xml"]),
        (gzip.compress(b"<!--" + b" " * 5_000 + b"-->" + INDEX, mtime=0), "application/gzip", URI, "", ["M /1.xml"]),
        (gzip.compress(INDEX, mtime=0), "", URI, "", ["M /1.xml"]),
        (SITEMAP_XML.encode("utf-16"), "application/xml", URI, "", ["M /a"]),
        (SITEMAP_XML.encode("utf-16-be"), "application/xml; charset=utf-8", URI, "", ["M /a"]),
        (SITEMAP_XML.encode("utf-16-le"), "text/plain", URI, "", ["M /a"]),
        (gzip.compress(SITEMAP_XML.encode("utf-16"), mtime=0), "application/octet-stream", URI, "", ["M /a"]),
    ],
)
def test_sitemaps_as_servers_send_them(
    data: bytes, content_type: str, uri: str, payload: str, expected: list[str]
) -> None:
    assert paths(read(data, content_type, uri, payload)) == expected


def test_who_names_a_sitemap_says_that_it_is_one() -> None:
    assert [link.payload for link in feeds.from_robots(b"Sitemap: /s.txt", URI)] == [NAMED]
    assert [link.payload for link in feeds.sitemap_links(INDEX, URI)] == [NAMED]
    assert [link.payload for link in feeds.sitemap_links(SITEMAP_XML.encode(), URI)] == [""]


@pytest.mark.parametrize(
    ("uri", "hops", "via", "payload", "accepted"),
    [
        ("http://news.example/index.xml", "PM", "http://news.example/robots.txt", NAMED, True),
        ("http://news.example/child.xml", "PMM", "http://news.example/index.xml", NAMED, True),
        ("http://other.example/child.xml", "PMRMR", "http://news.example/index.xml", NAMED, True),
        ("http://news.example/page", "PMM", "http://news.example/index.xml", "", False),
        ("http://news.example/deeper.xml", "PMMM", "http://news.example/child.xml", NAMED, False),
        ("http://news.example/child.xml", "LM", "http://news.example/news/index.xml", NAMED, True),
        ("http://news.example/child.xml", "LLMMM", "http://news.example/index.xml", NAMED, False),
        ("http://cdn.example/sitemap.xml", "LEPM", "http://cdn.example/robots.txt", NAMED, False),
    ],
)
def test_sitemaps_belong_to_the_crawl_wherever_they_are(
    uri: str, hops: str, via: str, payload: str, accepted: bool
) -> None:
    scope = CrawlScope(SurtPrefixes(["http://(example,news,)/news/"]))
    assert (scope.judge(make(uri, hops=hops, via=via, payload=payload)) is None) == accepted


def test_parts_of_parts_belong_to_their_page_and_far_frames_do_not() -> None:
    scope = CrawlScope(SurtPrefixes(["http://(example,news,)/news/"]))
    for hops in ("LEEE", "MEEE", "L" + "E" * 20, "LERRE", "PMME"):
        assert scope.judge(make("http://cdn.example/x", hops=hops)) is None, hops
    for hops in ("L" + "E" * 21, "LEXX", "PMM", "LEEEL"):
        assert scope.judge(make("http://cdn.example/x", hops=hops)) is not None, hops
    assert [scope.judge_frame(make("http://cdn.example/x", hops=hops)) is None for hops in ("LEE", "LEEE")] == [
        True,
        False,
    ]
    assert scope.judge_frame(make("http://news.example/news/x", hops="LEEE")) is None
    assert scope.judge_frame(make("http://cdn.example/x", hops="PMME")) is None


def test_pages_that_are_far_inside_a_page_have_no_parts_and_sheets_have(tmp_path: Path) -> None:
    inside = b"<link rel=prefetch href='http://c.example:%d/%d'><iframe src='http://c.example:%d/f%d'></iframe>"
    with serve(web := dict[tuple[str, str], Page]()) as port:
        sheet = b"<link rel=stylesheet href=http://c.example:%d/1.css>" % port
        web["a.example", "/"] = Page(inside % (port, 1, port, 1) + sheet)
        for number in range(1, 9):
            for name in ("", "f"):
                web["c.example", f"/{name}{number}"] = Page(inside % (port, number + 1, port, number + 1))
            web["c.example", f"/{number}.css"] = Page(b"@import '/%d.css'" % (number + 1), "text/css")
        hosts = {"a.example": ("127.0.0.1",), "c.example": ("127.0.0.1",)}
        crawled.crawl(tmp_path, crawled.job(port, "a.example", resolve=hosts))
    got = {crawled.plain(line.uri).removeprefix("http://c.example") for line in crawled.lines(tmp_path)}
    assert {path for path in got if path.startswith("/") and "css" not in path} == {
        "/1", "/f1", "/2", "/f2", "/3", "/robots.txt",
    }  # fmt: skip
    assert {f"/{number}.css" for number in range(1, 10)} <= got
