"""The words of documents: HTML, PDF, plain text; hostile bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some
from records.pdfs import pdf

from warcmill.formats.text import document as documents
from warcmill.formats.text.document import MOST, NOT_A_DOCUMENT, NOT_TEXT, Document, Kind, kind_of, made, read_as
from warcmill.formats.text.extract import document

PAGE = """<!DOCTYPE html><html><head><title>
 A   title &amp; more </title><style>p { color: red }</style><script>var hidden = 1</script></head>
<body><h1>Heading</h1><p>one <b>two</b> three<br>four</p><img alt="a picture"><!-- nothing -->
<ul><li>item</ul></body></html>"""
ENGLISH = (
    "The archive keeps what is on the web, so that people can read it in a hundred years from now, and it is free."
)
GERMAN = "Das Archiv bewahrt, was im Netz steht, damit die Menschen es auch in hundert Jahren noch lesen können und"
GREEK = "Το αρχείο φυλάει ό,τι υπάρχει στον ιστό"


def html(data: bytes, charset: str = "") -> Document:
    return document(Kind.HTML, data, charset)


def test_a_page_has_a_title_and_what_a_reader_sees() -> None:
    found = html(PAGE.encode())
    assert (found.title, found.charset, found.why) == ("A title & more", "utf-8", "")
    assert found.text == "Heading\n\none two three\nfour\n\na picture\n  item"


def test_words_of_open_shadow_roots_and_of_frames_are_those_of_their_page() -> None:
    """As the DOM of a page declares them; a template that is no root is seen by nobody."""
    page = b"""<p>outside<x-a><template shadowrootmode=open><b>root</b><template>never</template></template>light</x-a>
    <template>never</template><iframe srcdoc="<p>frame<iframe srcdoc='<p>deep'></iframe>"></iframe>"""
    assert html(page).text.split() == ["outside", "root", "light", "frame", "deep"]


@pytest.mark.parametrize(
    ("text", "language"), [(ENGLISH, "en"), (GERMAN, "de"), ("too short", ""), (GREEK * 4, "el"), ("", "")]
)
def test_the_language_is_found_where_there_is_enough_text(text: str, language: str) -> None:
    assert html(f"<p>{text}".encode()).language == language
    assert document(Kind.PLAIN, text.encode()).language == language


def test_a_declaration_in_plain_text_is_text() -> None:
    assert document(Kind.PLAIN, b"<meta charset=koi8-r>").charset == "utf-8"


def test_what_is_not_of_its_charset_is_replaced() -> None:
    assert html(b"<p>a\xff\x81b", "utf-8").text == "a\ufffd\ufffdb"


def test_a_pdf() -> None:
    found = document(Kind.PDF, pdf("First page", "Zymurgy on the second", title="Of beer"))
    assert found == Document("First page\nZymurgy on the second", "Of beer")


@pytest.mark.parametrize("data", [b"", b"%PDF-1.4", b"no pdf", pdf("cut")[:200]])
def test_a_damaged_pdf_says_why(data: bytes) -> None:
    assert document(Kind.PDF, data) == documents.refused(
        "PDFium cannot read it: Failed to load document (PDFium: Data format error)."
    )


def test_a_locked_pdf_says_why() -> None:
    assert "assword" in document(Kind.PDF, pdf("secret", encrypted=True)).why


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [
        ("TEXT/HTML", Kind.HTML), (" application/xhtml+xml ", Kind.HTML), ("application/pdf", Kind.PDF),
        ("text/plain", Kind.PLAIN), ("", Kind.UNDECLARED), ("*/*", Kind.UNDECLARED), ("unknown", Kind.UNDECLARED),
        ("image/png", None), ("text/css", None), ("html>", None), ("x" * 1_000, None), ('text/"html', None),
    ],
)  # fmt: skip
def test_kinds_by_media_type(media_type: str, kind: Kind | None) -> None:
    assert kind_of(media_type) is kind


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"%PDF-1.4", Kind.PDF), (b"  <!DOCTYPE HTML>", Kind.HTML), (b"\xef\xbb\xbf<html>", Kind.HTML),
        (b"<!--", Kind.HTML), (b"<p>", Kind.HTML), (b"<pre>", Kind.PLAIN), (b"words", Kind.PLAIN), (b"", Kind.PLAIN),
        (b"\x89PNG\r\n\x1a\n\0", None), (b"\xff\xfea\0", Kind.PLAIN), (b"PK\x03\x04", None),
    ],
)  # fmt: skip
def test_bytes_decide_where_no_type_is_declared(data: bytes, kind: Kind | None) -> None:
    assert read_as(Kind.UNDECLARED, data) is kind
    assert read_as(Kind.PLAIN, data) is Kind.PLAIN
    if kind is None:
        assert document(Kind.UNDECLARED, data).why == NOT_A_DOCUMENT
        assert document(Kind.PLAIN, data).why == NOT_TEXT


def test_html_nested_deep() -> None:
    found = html(b"<title>T</title>" + b"<div>" * 100_000 + b"deep" + b"</div>" * 100_000)
    assert (found.text, found.title) == ("deep", "T")


def test_text_over_the_limit_is_cut() -> None:
    found = made("x" * (MOST + 1), "t" * 2_000)
    assert (len(found.text), found.is_cut, len(found.title)) == (MOST, True, 1_000)


def test_control_characters_and_surrogates_are_no_text() -> None:
    found = made("a\0b\r\nc\rd\x1b\x7fe\ud800f", "t\n\0u")
    assert (found.text, found.title) == ("a b\nc\nd  e?f", "t u")


def test_a_reason_is_one_short_line() -> None:
    assert documents.refused("a\nb" + "x" * 500).why == ("a b" + "x" * 500)[:200]


def test_tools_and_their_versions() -> None:
    assert documents.missing() == ()
    assert documents.tool_of(Kind.HTML).startswith("resiliparse 2.")
    assert documents.tool_of(Kind.PDF).startswith("pypdfium2 5.")


@given(data=some.binary(max_size=300), kind=some.sampled_from(Kind), charset=some.text(max_size=20))
def test_any_bytes_give_a_document(data: bytes, kind: Kind, charset: str) -> None:
    found = document(kind, data, charset)
    found.text.encode()
    assert found == document(kind, data, charset)
