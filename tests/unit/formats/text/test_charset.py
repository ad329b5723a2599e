"""The charset of a page: as browsers find it, for the text extracts; and so that no link is lost, for the crawler."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill.formats.text import charset as charsets
from warcmill.formats.text.charset import decoded, label_of, of_links, of_queries


@pytest.mark.parametrize(
    ("data", "http", "charset"),
    [
        (codecs.BOM_UTF8 + b"<meta charset=koi8-r>", "windows-1251", "utf-8"),
        (codecs.BOM_UTF16_BE + "x".encode("utf-16-be"), "utf-8", "utf-16-be"),
        (codecs.BOM_UTF16_LE + "x".encode("utf-16-le"), "", "utf-16-le"),
        (b"<meta charset=koi8-r>", "windows-1251", "cp1251"),
        (b"<meta charset=koi8-r>", "no such", "koi8-r"),
        (b"<meta charset=koi8-r>", "", "koi8-r"),
        (b"<META  CHARSET = 'Shift_JIS' />", "", "shift_jis"),
        (b"<meta charset=iso-8859-1>", "", "cp1252"),
        (b"<meta charset=utf-16>", "", "utf-8"),
        (b"<meta charset=nonsense><meta charset=big5>", "", "big5"),
        (
            b'<!-- <meta charset=koi8-r> --><meta http-equiv=Content-Type content="text/html; charset=gb2312">',
            "",
            "gbk",
        ),
        (b'<meta name=description content="charset=koi8-r">', "", "utf-8"),
        (b" " * 1_024 + b"<meta charset=koi8-r>", "", "utf-8"),
        (b'<?xml version="1.0" encoding="windows-1251"?><html>', "", "cp1251"),
        ("über".encode(), "", "utf-8"),
        (b"\xfcber", "", "cp1252"),
        (b"", "", "utf-8"),
    ],
)
def test_charsets_as_browsers_find_them(data: bytes, http: str, charset: str) -> None:
    found = decoded(data, http, is_html=True)[1]
    assert codecs.lookup(found) == codecs.lookup(charset)


FEW = b"\xd1\xcc"  # no UTF-8
MANY = "\u00fc\u044f".encode()
PRAGMA = b'<meta http-equiv=Content-Type content="text/html; charset=%s">'


# What the standard has stands first; where it finds nothing, the crawler takes what is declared all the same.
@pytest.mark.parametrize(
    ("head", "header", "of_extract", "of_crawler"),
    [
        # As the standard has it (HTML, 13.2.3.2).
        (PRAGMA % b"koi8-r", "", "koi8-r", "koi8-r"),
        (b"<meta name=a content='charset=gbk'><meta charset=koi8-r>", "", "koi8-r", "koi8-r"),
        (b"<meta charset=koi8-r <meta charset=gbk>", "", "koi8-r", "koi8-r"),
        (b"<metadata charset=gbk><meta charset=koi8-r>", "", "koi8-r", "koi8-r"),
        (b"<meta/charset=koi8-r>", "", "koi8-r", "koi8-r"),
        (b"<meta charset=' koi8-r '>", "", "koi8-r", "koi8-r"),
        (b"<meta charset=utf_8><meta charset=koi8-r>", "", "koi8-r", "koi8-r"),
        (b"<meta charset=koi8-r>", "charset=latin-1", "koi8-r", "koi8-r"),
        (b"<?xml version='1.0' encoding='koi8-r'?><meta charset=nonsense>", "", "koi8-r", "koi8-r"),
        (b"<?xml version='1.0' encoding='gbk'?><meta charset=koi8-r>", "", "koi8-r", "koi8-r"),
        (b" <?xml version='1.0' encoding='koi8-r'?>", "", "cp1252", "cp1252"),
        (b"<script charset=koi8-r></script>", "", "cp1252", "cp1252"),
        (b"<meta charset=iso-2022-kr>", "", "cp1252", "cp1252"),
        # Comments: an extract takes no "<!-->" for one, and no comment without an end.
        (b"<!--><meta charset=koi8-r><!-- --><meta charset=gbk>", "", "gbk", "koi8-r"),
        (b"<!---><meta charset=koi8-r><!-- --><meta charset=gbk>", "", "gbk", "koi8-r"),
        (b"<!-- <meta charset=koi8-r>", "", "koi8-r", "cp1252"),
        (b"<!--[if IE]><!--><meta charset=koi8-r><!--<![endif]-->", "", "koi8-r", "koi8-r"),
        # A blank after the quote of a header.
        (b"<meta charset=gbk>", 'text/html; charset=" koi8-r"', "gbk", "koi8-r"),
        (b"", "text/html; charset=koi8-r, text/html", "cp1252", "koi8-r"),
        # Declared, but not as the standard has it, by a page not in UTF-8: browsers guess, the crawler believes it.
        (b'<meta content="text/html; charset=koi8-r">', "", "cp1252", "koi8-r"),
        (b'<meta name=Content-Type content="text/html; charset=koi8-r">', "", "cp1252", "koi8-r"),
        (PRAGMA % b"' koi8-r'", "", "cp1252", "koi8-r"),
        (b"<meta charset=koi8-r", "", "cp1252", "koi8-r"),
        (b"<metacharset=koi8-r>", "", "cp1252", "koi8-r"),
        (b"<meta charset=windows_1251>", "", "cp1252", "cp1251"),
        (b"<meta charset=ms949>", "", "cp1252", "cp949"),
        (b"<?xml version='1.0' encoding='windows_1251'?>", "", "cp1252", "cp1251"),
        (b"", "charset=windows_1251", "cp1252", "cp1251"),
        (b"", "charset=x-mac-cyrillic", "cp1252", "mac-cyrillic"),
        (b"<meta charset=rot13>", "charset=punycode", "cp1252", "cp1252"),
    ],
)
def test_odd_heads(head: bytes, header: str, of_extract: str, of_crawler: str) -> None:
    page = head + FEW
    assert decoded(page, label_of(header.encode()), is_html=True)[1] == of_extract
    assert of_links(page, header) == of_crawler


@pytest.mark.parametrize(
    ("page", "codec"),
    [
        (b'<meta content="text/html; charset=koi8-r">' + MANY, "utf-8"),
        (b"<meta charset=latin-1>" + MANY, "utf-8"),
        (b"<meta charset=koi8-r>" + MANY, "koi8-r"),
        (b'<meta content="text/html; charset=koi8-r">', "koi8-r"),
        (b'<meta content="text/html; charset=iso-2022-jp">\x1b$BF|\x1b(B', "iso2022_jp"),
        (b'<meta content="text/html; charset=utf-16">' + FEW, "utf-8"),
        (MANY[:-1], "utf-8"),
        (MANY[:-1] + b" ", "cp1252"),
    ],
)
def test_bytes_that_are_utf8_outweigh_what_is_not_properly_declared(page: bytes, codec: str) -> None:
    """ASCII alone proves nothing: the charset is that of its queries, and ISO-2022-JP is ASCII."""
    assert of_links(page) == codec


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("shift_jis", "\u2460\uff5e"),
        ("gb2312", "\u20ac"),
        ("big5", "\u55f0"),
        ("euc-kr", "\ub620"),
        ("tis-620", "\u2026"),
    ],
)
def test_the_crawler_has_the_wider_codecs_of_browsers(label: str, text: str) -> None:
    codec = of_links(b"", f"charset={label}")
    assert charsets.text(text.encode(codec), f"charset={label}") == text
    assert decoded(text.encode(codec), label, is_html=True)[0] != text, "an extract keeps its bytes"


def test_queries_of_utf16_are_utf8() -> None:
    assert [of_queries(codec) for codec in ("utf-16-le", "utf-16-be", "koi8-r")] == ["utf-8", "utf-8", "koi8-r"]


PARTS = [
    b"<meta ", b"charset", b"=", b"'", b'"', b">", b"<!--", b"-->", b"<?xml ", b"encoding", b"koi8-r", b"utf_8", b" ",
    b"\0", b"\xff", b"http-equiv=content-type ", b"content=", b"\xff\xfe", b"zlib", b"idna",
]  # fmt: skip


@given(st.lists(st.sampled_from(PARTS), max_size=20).map(b"".join), st.text(max_size=20))
def test_no_head_and_no_header_raises(head: bytes, header: str) -> None:
    assert isinstance(charsets.text(head, "charset=" + header), str)
    text, name = decoded(head, label_of(b"charset=" + head), is_html=True)
    assert codecs.lookup(name)
    assert isinstance(text, str)
