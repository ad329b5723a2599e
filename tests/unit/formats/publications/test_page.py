"""The facts of pages: titles, links with headings, and what structured data name; hostile pages."""

from __future__ import annotations

import json

import pytest

from warcmill.formats.harvested import NamedDocument, PageFacts, PageLink
from warcmill.formats.publications import page

URL = "http://e.x/news/index.html?a=1"


def read(html: str, url: str = URL) -> PageFacts:
    return page.read(html.encode(), url)


def named(html: str) -> list[NamedDocument]:
    return [*read(html).named]


def test_titles_and_canonical_urls() -> None:
    found = read(
        "<title> A\n title </title><link rel=canonical href=/c#x><meta property=og:title content=Og>"
        "<meta name=article:published_time content=2020-01-01><body><svg><title>no</title></svg>"
        "<h2>Second</h2><h1>First <b>one</b></h1><h1>Later</h1>"
    )
    assert (found.title, found.h1, found.canonical) == ("A title", "First one", "http://e.x/c")
    assert found.og == {"og:title": "Og", "article:published_time": "2020-01-01"}


def test_links_have_their_text_and_the_heading_before() -> None:
    found = read(
        "<a href=first.pdf>First</a><h2>Reports <a href=in.pdf>2020</a></h2>"
        "<p><a href=../up.pdf rel=nofollow>U<i>p</i></a>"
        "<a href=pic.pdf><img alt=' a picture '></a><a href=l.pdf aria-label=Label></a><a href=t.pdf title=T></a>"
        "<h3>More</h3><map><area href=area.pdf alt=Area></map><iframe src=frame.pdf></iframe>"
        "<object data=o.pdf></object><embed src=e.pdf><a href=#here>here</a><a href='index.html?a=1#x'>self</a>"
        "<a href=mailto:a@e.x>m</a>"
        "<a href='javascript:x()'>j</a><a>none</a><a href=first.pdf>Again</a><a href=first.pdf>Again</a>"
    )
    base = "http://e.x/news/"
    assert found.links == (
        PageLink(f"{base}first.pdf", "First"),
        PageLink(f"{base}in.pdf", "2020", "Reports 2020"),
        PageLink("http://e.x/up.pdf", "Up", "Reports 2020", "nofollow"),
        PageLink(f"{base}pic.pdf", "a picture", "Reports 2020"),
        PageLink(f"{base}l.pdf", "Label", "Reports 2020"),
        PageLink(f"{base}t.pdf", "T", "Reports 2020"),
        PageLink(f"{base}area.pdf", "Area", "More"),
        PageLink(f"{base}frame.pdf", "", "More"),
        PageLink(f"{base}o.pdf", "", "More"),
        PageLink(f"{base}e.pdf", "", "More"),
        PageLink(f"{base}first.pdf", "Again", "More"),
    )


def test_relations_of_a_page_are_links_and_its_base_counts() -> None:
    found = read(
        "<base href=/b/><base href=/c/><link rel=up href=..><link rel='alternate' href=a.pdf title=PDF>"
        "<link rel=stylesheet href=a.css><template><a href=t.pdf>T</a></template>"
    )
    assert found.links == (
        PageLink("http://e.x/", "", "", "up"),
        PageLink("http://e.x/b/a.pdf", "PDF", "", "alternate"),
        PageLink("http://e.x/b/t.pdf", "T"),
    )


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("a b.pdf", "http://e.x/news/a%20b.pdf"),
        ("a+b%2Bc.pdf", "http://e.x/news/a+b%2Bc.pdf"),
        ("Bücher/ä.pdf", "http://e.x/news/B%C3%BCcher/%C3%A4.pdf"),
        ("./x/../y.pdf", "http://e.x/news/y.pdf"),
        ("%2e%2e/y.pdf", "http://e.x/y.pdf"),
        ("/doc.pdf/ID?t=1", "http://e.x/doc.pdf/ID?t=1"),
        ("//other.x/a.pdf", "http://other.x/a.pdf"),
        ("?b=2", "http://e.x/news/index.html?b=2"),
        ("ftp://f.x/a", "ftp://f.x/a"),
        ("HTTP://Other.X:80/a", "http://other.x/a"),
    ],
)
def test_links_are_joined_as_browsers_do(href: str, expected: str) -> None:
    assert [one.url for one in read(f'<a href="{href}">x</a>').links] == [expected]


def test_pages_are_read_in_their_charset() -> None:
    found = page.read(
        "<title>Grün</title><a href='ü?q=ü'>Ä</a>".encode("latin-1"), URL, "text/html; charset=iso-8859-1"
    )
    assert (found.title, found.links) == ("Grün", (PageLink("http://e.x/news/%C3%BC?q=%FC", "Ä"),))
    assert page.read(b"\xff\xfe" + "<title>Д</title>".encode("utf-16-le"), URL).title == "Д"


def test_highwire_and_dublin_core() -> None:
    assert named(
        "<meta name=citation_title content=T><meta name=citation_author content='Ann'>"
        "<meta name=citation_author content=Bo>"
        "<meta name=citation_pdf_url content=/t.pdf><meta name=citation_publication_date content=2020/01/02>"
        "<meta name=citation_doi content=doi:10.1000/X><meta name=citation_isbn content=0-306-40615-2>"
        "<meta name=citation_publisher content=House>"
    ) == [
        NamedDocument(
            "citation", ("http://e.x/t.pdf",), "T", ("Ann", "Bo"), "House", "2020/01/02", ("9780306406157",),
            ("10.1000/x",),
        )
    ]  # fmt: skip
    assert named(
        "<meta name=DC.Title content=T><meta name=DCTERMS.issued content=2020><meta name=dc.date content=2019>"
        "<meta name=DC.identifier content='http://e.x/files/t.pdf'><meta name=DC.identifier content='http://e.x/t/'>"
        "<meta name=DC.creator content='Ann; Bo'><meta name=dc.publisher content=P>"
    ) == [NamedDocument("dc", ("http://e.x/files/t.pdf",), "T", ("Ann", "Bo"), "P", "2020")]


def test_json_ld_of_any_shape() -> None:
    graph = {
        "@context": "https://schema.org",
        "@graph": [
            {"@type": "Organization", "@id": "#org", "name": "The Office"},
            {"@type": ["Report", "CreativeWork"], "name": {"@value": "A report", "@language": "en"},
             "author": [{"@type": "Person", "name": "Ann"}, "Bo"], "publisher": {"@id": "#org"},
             "datePublished": "2020-01-02", "isbn": "978-0-306-40615-7",
             "identifier": {"@type": "PropertyValue", "propertyID": "doi", "value": "10.1000/x"},
             "encoding": [{"@type": "MediaObject", "contentUrl": "/files/report", "encodingFormat": "application/pdf"}],
             "hasPart": {"@type": "Chapter", "headline": "One", "url": "one.pdf"}},
            {"@type": "WebPage", "name": "The page itself"},
        ],
    }  # fmt: skip
    found = {one.title: one for one in named(f"<script type='application/ld+json'>{json.dumps(graph)}</script>")}
    assert found["A report"] == NamedDocument(
        "jsonld", ("http://e.x/files/report",), "A report", ("Ann", "Bo"), "The Office", "2020-01-02",
        ("9780306406157",), ("10.1000/x",),
    )  # fmt: skip
    assert found["One"].urls == ("http://e.x/news/one.pdf",)
    assert found[""] == NamedDocument("jsonld", ("http://e.x/files/report",))  # the file of the report
    assert len(found) == 3


def test_microdata_of_an_item_alone() -> None:
    (one,) = named(
        "<div itemscope itemtype='https://schema.org/Book http://schema.org/Product'><h3 itemprop=name>Book</h3>"
        "<div itemprop=author itemscope itemtype=http://schema.org/Person><b itemprop=name>Ann</b></div>"
        "<time itemprop=datePublished datetime=2020-01-02>in 2020</time><meta itemprop=isbn content=0306406152>"
        "<a itemprop=url href=book.epub>EPUB</a><span itemprop=publisher>House</span></div>"
        "<div itemscope itemtype=http://schema.org/Person><i itemprop=name>Nobody</i></div>"
    )
    assert one == NamedDocument(
        "microdata", ("http://e.x/news/book.epub",), "Book", ("Ann",), "House", "2020-01-02", ("9780306406157",)
    )


@pytest.mark.parametrize("wrapped", ["<!-- {} -->", "//<![CDATA[\n{}\n//]]>", "{};", "\n{}\n"])
def test_json_ld_may_be_wrapped(wrapped: str) -> None:
    script = wrapped.format('{"@type": "Report", "name": "A"}')
    assert named(f"<script type=application/ld+json>{script}</script>") == [NamedDocument("jsonld", title="A")]


def test_a_meta_may_have_two_names() -> None:
    found = read(
        "<meta name=citation_title property=og:title content=T><meta name=bepress_citation_doi content=10.1000/x>"
    )
    assert (found.og, found.named) == ({"og:title": "T"}, (NamedDocument("citation", title="T", doi=("10.1000/x",)),))


@pytest.mark.parametrize(
    "script",
    [
        "[" * 10_000 + "]" * 10_000,
        '{"a":' * 10_000 + "1" + "}" * 10_000,
        "{", "null", "[[[1]]]", '{"@type": "Report", "name": {"@value": [1]}, "author": 5, "@id": [1]}',
        json.dumps({"@type": ["Report"] * 5_000, "name": "x" * 1_000_000}),
        json.dumps([{"@type": "Thing", "@id": str(number)} for number in range(20_000)]),
    ],
)  # fmt: skip
def test_hostile_json_ld_names_little_and_costs_little(script: str) -> None:
    found = read(f"<title>T</title><script type=application/ld+json>{script}</script><a href=a.pdf>A</a>")
    assert (found.title, len(found.links)) == ("T", 1)
    assert all(len(one.title) <= 300 for one in found.named)


@pytest.mark.parametrize(
    "html",
    [
        "<a href=a.pdf>" * 20_000,
        "<h1><div>" * 5_000,
        "<div>" * 20_000,
        "<a href=x" + " a" * 5_000 + ">",
        "<div itemscope itemtype=http://schema.org/Book>" * 1_000 + "<p itemprop=name>x" * 1_000,
        "<meta name=citation_title content=x>" * 20_000,
        "<title>" + "x" * (1 << 20),
        "\0" * 1_000 + "<title>a",
        "",
    ],
)
def test_hostile_pages_end(html: str) -> None:
    found = read(html)
    assert len(found.title) <= 300
    assert len(found.named) <= 200


def test_ten_thousand_links_are_kept_and_more_are_counted() -> None:
    found = read("".join(f"<a href={number}.pdf>{number}</a>" for number in range(10_050)))
    assert (len(found.links), found.cut) == (10_000, 50)


def test_markup_and_right_to_left_stay_texts() -> None:
    found = read("<title>&lt;script&gt;\u202e\u05d3\u05d5\u05d7</title><a href=a.pdf>\u05d3\u05d5\u05d7 \u200f2020</a>")
    assert found.title == "<script> \u05d3\u05d5\u05d7"
    assert found.links[0].text == "\u05d3\u05d5\u05d7 \u200f2020"
