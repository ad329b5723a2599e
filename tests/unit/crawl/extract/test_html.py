"""Links of pages, as browsers follow and load them."""

from __future__ import annotations

import pytest
from records.warcs import WEEKLY
from warcio.archiveiterator import ArchiveIterator

from warcmill.crawl.extract import html
from warcmill.crawl.extract.html import too_much

URI = "http://news.example/en/0"


def found(
    page: str | bytes, content_type: str = "text/html; charset=utf-8", **more: bool
) -> list[tuple[str, str, str]]:
    data = page.encode() if isinstance(page, str) else page
    links = html.links(data, URI, content_type, **more)
    return [(link.hop, link.uri, link.context) for link in links if link.is_uri]


def one(hop: str, path: str, context: str) -> list[tuple[str, str, str]]:
    return [(hop, f"http://news.example{path}", context)]


ELEMENTS = [
    ('<a href="/a">', one("L", "/a", "a/@href")),
    ("<A HREF=../b#c>", one("L", "/b", "a/@href")),
    ('<a href=" /a\n">', one("L", "/a", "a/@href")),
    ('<a href="?q=1&amp;r=2">', one("L", "/en/0?q=1&r=2", "a/@href")),
    ('<a href="">', []),
    ('<a href="/a"><a href="/a#b">', one("L", "/a", "a/@href")),
    ('<area href="/a">', one("L", "/a", "area/@href")),
    ('<img src="/a.png">', one("E", "/a.png", "img/@src")),
    ('<img data-src="/a.png" src="data:image/gif;base64,R0">', one("E", "/a.png", "img/@data-src")),
    ('<div data-bg="/a.png">', one("E", "/a.png", "div/@data-bg")),
    ("<div data-bg='url(/a.png)'>", one("E", "/a.png", "div/@data-bg")),
    ("<script src=/a.js></script>", one("E", "/a.js", "script/@src")),
    ("<iframe src=/a></iframe>", one("E", "/a", "iframe/@src")),
    ("<frameset><frame src=/a></frameset>", one("E", "/a", "frame/@src")),
    ("<amp-img src=/a.png></amp-img>", one("E", "/a.png", "amp-img/@src")),
    ("<embed src=/a.swf>", one("E", "/a.swf", "embed/@src")),
    ("<object data=/a.swf></object>", one("E", "/a.swf", "object/@data")),
    ("<video poster=/a.png></video>", one("E", "/a.png", "video/@poster")),
    ("<video src=/a.mp4></video>", one("E", "/a.mp4", "video/@src")),
    ("<audio><source src=/a.mp3></audio>", one("E", "/a.mp3", "source/@src")),
    ("<video><track src=/a.vtt></video>", one("E", "/a.vtt", "track/@src")),
    ("<body background=/a.png>", one("E", "/a.png", "body/@background")),
    ("<input type=image src=/a.png>", one("E", "/a.png", "input/@src")),
    ("<svg><use href='/a.svg#x'/></svg>", one("E", "/a.svg", "use/@href")),
    ("<svg><image href='/a.png'/></svg>", one("E", "/a.png", "image/@href")),
    ("<svg><use xlink:href='/a.svg#x'/></svg>", one("E", "/a.svg", "use/@xlink:href")),
    ("<svg><image XLINK:HREF=/a.png /></svg>", one("E", "/a.png", "image/@xlink:href")),
    ("<svg><image xlink:href=/b.png href=/a.png /></svg>", one("E", "/a.png", "image/@href")),
    ("<svg><a xlink:href='/a'>x</a></svg>", one("L", "/a", "a/@xlink:href")),
    ("<svg><a xlink:href='/b' href='/a'>x</a></svg>", one("L", "/a", "a/@href")),
    ("<svg><script xlink:href='/a.js'></script></svg>", one("E", "/a.js", "script/@xlink:href")),
    ("<link rel=stylesheet href=/a.css>", one("E", "/a.css", "link/@href")),
    ("<link rel='shortcut icon' href=/a.ico>", one("E", "/a.ico", "link/@href")),
    ("<link rel=canonical href=/a>", one("L", "/a", "link/@href")),
    ("<link rel=alternate hreflang=de href=/de>", one("L", "/de", "link/@href")),
    ("<link rel=amphtml href=/amp>", one("L", "/amp", "link/@href")),
    ("<link rel=next href=/2>", one("L", "/2", "link/@href")),
    ("<link rel=preconnect href=//cdn.example>", []),
    ("<meta http-equiv=Refresh content='5; URL=/a'>", one("R", "/a", "meta/@content")),
    ("<meta http-equiv=refresh content=\"0;url='/a'\">", one("R", "/a", "meta/@content")),
    ("<meta http-equiv=refresh content='50'>", []),
    ("<meta property=og:image content=/a.png>", one("E", "/a.png", "meta/@og:image")),
    ("<meta name=description content=/a.png>", []),
    ("<form action=/search><input name=q></form>", one("S", "/search", "form/@action")),
    ("<form method=POST action=/order></form>", []),
    ("<style>body { background: url('/a.png') }</style>", one("E", "/a.png", "style")),
    ("<p style='background: url(/a.png)'>", one("E", "/a.png", "p/@style")),
    ("<noscript><img src=/a.png></noscript>", one("E", "/a.png", "img/@src")),
    ("<template><img src=/a.png></template>", one("E", "/a.png", "img/@src")),
    ("<div><TEMPLATE shadowrootmode=open><a href=/a></TEMPLATE></div>", one("L", "/a", "a/@href")),
    ("<iframe srcdoc='<img src=&quot;/a.png&quot;>'></iframe>", one("E", "/a.png", "img/@src")),
    ("<base href=/b/><iframe srcdoc='<a href=a>'></iframe>", one("L", "/b/a", "a/@href")),
    ("<iframe srcdoc='<iframe srcdoc=&quot;&lt;a href=/a>&quot;></iframe>'></iframe>", one("L", "/a", "a/@href")),
    (
        "<iframe srcdoc='<base href=/b/><a href=a>'></iframe><a href=c>",
        [("L", "http://news.example/b/a", "a/@href"), ("L", "http://news.example/en/c", "a/@href")],
    ),
    (
        '<script type=speculationrules>{"prerender": [{"urls": ["/a", 1]}, {"where": {}}, 2]}</script>',
        one("L", "/a", "script/speculationrules"),
    ),
    ('<script type=speculationrules>[{"urls": 1}]</script><script type=speculationrules>{</script>', []),
    ('<script type=speculationrules>{"prefetch": [{"urls": 1}]}</script>', []),
    ("<head><noscript><link rel=stylesheet href=/a.css></noscript>", one("E", "/a.css", "link/@href")),
    ("<a href='javascript:go(1)'><a href=mailto:a@b><a href='tel:1'><a href='data:,x'><a href='ftp://a/'>", []),
    ("<a href='http://[broken'><a href='http://a b/'>", []),
    ("<a href='//assets.example:80/x'>", [("L", "http://assets.example/x", "a/@href")]),
    ("<a href='HTTP://WWW.Example:80/../A'>", [("L", "http://www.example/A", "a/@href")]),
    ("<a href='http://bücher.example/ä?ö'>", [("L", "http://xn--bcher-kva.example/%C3%A4?%C3%B6", "a/@href")]),
    ("<!-- <a href=/a> --><textarea><a href=/b></textarea>", []),
    ("<a href=/a", []),
    ("", []),
]


@pytest.mark.parametrize(("page", "expected"), ELEMENTS)
def test_each_element_has_its_hop(page: str, expected: list[tuple[str, str, str]]) -> None:
    assert found(page) == expected


def uris(page: str | bytes, content_type: str = "text/html; charset=utf-8") -> list[str]:
    return [uri.removeprefix("http://news.example") for _, uri, _ in found(page, content_type)]


SRCSETS = [
    ("/a.png", ["/a.png"]),
    ("/a.png 1x, /b.png 2x", ["/a.png", "/b.png"]),
    ("/a.png, /b.png", ["/a.png", "/b.png"]),
    ("/a,b.png 100w,/c.png 200w", ["/a,b.png", "/c.png"]),
    ("\n /a.png\t1x ,\n/b.png ,", ["/a.png", "/b.png"]),
    ("/a.png (x,y) 1x, /b.png", ["/a.png", "/b.png"]),
    ("/a.png (x, /b.png", ["/a.png"]),
    (", ,", []),
]


@pytest.mark.parametrize(("srcset", "expected"), SRCSETS)
def test_a_srcset_is_read_as_browsers_do(srcset: str, expected: list[str]) -> None:
    assert uris(f'<picture><source srcset="{srcset}"></picture>') == expected
    assert uris(f'<link rel=preload as=image imagesrcset="{srcset}">') == expected


def test_links_join_with_the_first_base_wherever_it_is() -> None:
    assert uris('<a href=a><base href="/x/"><base href="/y/"><a href="b">') == ["/x/a", "/x/b"]
    assert uris('<base href="javascript:x"><a href="b">') == ["/en/b"]


def test_nofollow_is_kept_with_the_link() -> None:
    links = html.links(b'<a rel="noopener NoFollow" href=/a><a href=/b>', URI)
    assert [link.nofollow for link in links] == [True, False]


def test_a_link_that_is_there_without_it_too_is_an_ordinary_one() -> None:
    (link,) = html.links(b"<a rel=nofollow href=/a><a href=/a>", URI)
    assert not link.nofollow


@pytest.mark.parametrize(
    ("meta", "closed"),
    [
        ("<meta name=robots content='noindex,nofollow'>", True),
        ("<meta name=ROBOTS content=none>", True),
        ("<meta name=robots content='index follow'>", False),
        ("<meta name=warcmill content=nofollow>", True),
        ("<meta name=googlebot content=nofollow>", False),
    ],
)
def test_a_page_may_say_nofollow_of_all_its_links(meta: str, closed: bool) -> None:
    assert [link.nofollow for link in html.links(f"<a href=/a>{meta}<a href=/b>".encode(), URI)] == [closed] * 2


def test_json_ld_has_links() -> None:
    page = """<script type="application/ld+json">{"@graph": [{"url": "/a", "image": ["/b.png"], "name": "/c"},
        {"image": {"url": "/d.png"}}]}</script><script type="application/ld+json">{"url": </script>"""
    assert found(page) == [
        *one("L", "/a", "json-ld/url"),
        *one("E", "/b.png", "json-ld/image"),
        *one("L", "/d.png", "json-ld/url"),
    ]


def test_scripts_are_guessed_from_only_when_asked() -> None:
    page = (
        """<script>var a = "/x/page.html", b = 'http:\\/\\/cdn.example\\/y.js', c = "plain", d = "text/css";</script>"""
    )
    assert found(page) == []
    assert found(page, scripts=True) == [
        *one("X", "/x/page.html", "script"),
        ("X", "http://cdn.example/y.js", "script"),
    ]


@pytest.mark.parametrize(
    ("page", "content_type", "expected"),
    [
        ("<a href='/ä?ä'>".encode("latin-1"), "text/html; charset=ISO-8859-1", "/%C3%A4?%E4"),
        ("<a href='/ä?ä'>".encode(), "text/html; charset=UTF-8", "/%C3%A4?%C3%A4"),
        ("<meta charset=windows-1251><a href='/я?я'>".encode("cp1251"), "text/html", "/%D1%8F?%FF"),
        ("<!-- <meta charset=koi8-r> --><meta charset=cp1251><a href='/я'>".encode("cp1251"), "", "/%D1%8F"),
        ("<meta content='charset of a'><meta charset=cp1251><a href='/я'>".encode("cp1251"), "", "/%D1%8F"),
        ("<a href='/ä'>".encode("latin-1"), "text/html", "/%C3%A4"),
        ("<a href='/ä'>".encode(), "", "/%C3%A4"),
        ("\ufeff<a href='/ä'>".encode(), "text/html; charset=latin1", "/%C3%A4"),
        ("\ufeff<a href='/ä'>".encode("utf-16-le"), "text/html", "/%C3%A4"),
        ("\ufeff<a href='/ä?ä'>".encode("utf-16-le"), "text/html", "/%C3%A4?%C3%A4"),
        ("<a href='/?ä'>".encode("utf-16-be"), "text/html; charset=utf-16be", "/?%C3%A4"),
        ("<meta charset=utf-16><a href='/ä'>".encode(), "text/html", "/%C3%A4"),
        ("<a href='/日'>".encode("shift_jis"), "text/html; charset=Shift_JIS", "/%E6%97%A5"),
        ("<a href='/א'>".encode("iso8859-8"), "text/html; charset=ISO-8859-8-I", "/%D7%90"),
        ("<a href='/ก'>".encode("cp874"), "text/html; charset=windows-874", "/%E0%B8%81"),
        ("<a href='/日'>".encode("euc_jp"), "text/html; charset=x-euc-jp", "/%E6%97%A5"),
        ("<a href='/ł'>".encode("iso8859-2"), "text/html; charset=iso88592", "/%C5%82"),
        ("<a href='/ä'>".encode(), "text/html; charset=rot13", "/%C3%A4"),
        ("<a href='/ä'>".encode(), "text/html; charset=punycode", "/%C3%A4"),
    ],
)
def test_the_charset_is_found_as_browsers_do(page: bytes, content_type: str, expected: str) -> None:
    assert uris(page, content_type) == [expected]


SAME = [page for page, _ in ELEMENTS] + [f'<img srcset="{srcset}">' for srcset, _ in SRCSETS]
SAME += [
    "<a title='a>b' href=/a>", "<a title=it's href=/a>", "<a href='/a&amp;b&copy=1'>", "<a href=/a/>", "<a/href=/a>",
    "<a href = /a >", "<a href=/a href=/b>", "<a href='/a", "<!--><a href=/a>", "<!-- --!><a href=/a>", "< a href=/a>",
    "<?php <a href=/a> ?>", "<title><a href=/a></title><a href=/b>", "<script>'<a href=/a>'</SCRIPT ><a href=/b>",
    "<style>a { b: url(/a.png)", "<a href=/a\n/b>", "<a b='\"' href=\"/a\">", "<img src=/a.png/>", "<x:a href=/a>",
    "<a =href=/a>", "<svg><title/><style/><path/></svg><a href=/a>",
    "<svg></SVG><title/><a href=/a></title><a href=/b>",
]  # fmt: skip


@pytest.mark.parametrize("page", SAME)
def test_tags_alone_give_what_the_tree_gives(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of_tree = found(page, scripts=True)
    monkeypatch.setattr(html, "too_much", lambda _page: True)
    assert found(page, scripts=True) == of_tree


def test_tags_alone_give_what_the_tree_gives_of_real_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    with WEEKLY.open("rb") as stream:
        pages = [answer.raw_stream.read() for answer in ArchiveIterator(stream) if answer.rec_type == "response"]
    of_trees = [set(found(page, "")) for page in pages]
    assert sum(map(len, of_trees)) > 600
    monkeypatch.setattr(html, "too_much", lambda _page: True)
    assert [set(found(page, "")) for page in pages] == of_trees


HOSTILE = {
    "deep": b"<div>" * 100_000,
    "many attributes": b"<a " + b" ".join(b"a%d" % number for number in range(100_000)) + b">",
    "attributes without blanks": b"<a " + b"".join(b"a%d='x'" % number for number in range(100_000)) + b">",
    "elements opened anew": b"<p>" + b"".join(b"<b id=%d>" % number for number in range(500)) + b"<p>x</p>" * 9_000,
}


@pytest.mark.parametrize("page", HOSTILE.values(), ids=HOSTILE)
def test_a_page_whose_tree_takes_too_long_is_read_by_its_tags(page: bytes) -> None:
    assert too_much(page)
    assert uris(page + b"<a href=/a>") == ["/a"]


def test_ordinary_pages_are_read_as_trees() -> None:
    picture = b"<img src='data:image/png;base64," + b"iVBORw0KGgoAAAA/+" * 5_000 + b"'>"
    coloured = b"<li><font color=red><a href=/a>x</a></font></li>" * 300
    for page in (picture, b"<p>" + b"some words and more " * 400, coloured):
        assert not too_much(page)


def test_a_page_of_a_million_links_is_read_up_to_the_limit() -> None:
    page = b"".join(b"<a href=/%d>" % number for number in range(60_000))
    assert len(html.links(page, URI)) == 50_000


def test_each_link_has_its_text_by_the_address_that_it_has_among_the_links() -> None:
    page = '<a href="/é?q=é">one</a><a href="">here</a><a href="#top">top</a>'.encode("latin-1")
    kind = "text/html; charset=iso-8859-1"
    texts = html.texts(page, URI, kind)
    assert {link.uri: texts[link.uri] for link in html.links(page, URI, kind)} == {
        "http://news.example/%C3%A9?q=%E9": "one", URI: "here",
    }  # fmt: skip
