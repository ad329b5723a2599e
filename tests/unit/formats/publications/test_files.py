"""Document files of every kind: their properties and identifiers; those that are cut, encrypted or hostile."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping

import pytest
from records import office_documents, pdfs
from records.office_documents import zipped

from warcmill.formats.publications import kinds, older, pdf
from warcmill.formats.publications import zipped as packages
from warcmill.formats.publications.kinds import DOC, DOCX, EPUB, OFFICE, PDF, PPT, PPTX, RTF, XLS, Begin, begins_as

CP = 'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/"'
CORE = f"""<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" {CP}>
<dc:title>A {{title}}</dc:title><dc:creator>Ann;Bo</dc:creator><dcterms:created>2020-01-02T03:04:05Z</dcterms:created>
<dc:language>en-GB</dc:language><dc:identifier>urn:isbn:0-306-40615-2</dc:identifier></cp:coreProperties>"""
APP = "<Properties><Company>The Office</Company></Properties>"
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STYLED = (
    f'<w:document xmlns:w="{W}"><w:body><w:p><w:pPr><w:pStyle w:val="Subtitle"/></w:pPr><w:r><w:t>Sub</w:t></w:r></w:p>'
    '<w:p><w:pPr><w:pStyle w:val="Title"/></w:pPr><w:r><w:t>The </w:t></w:r><w:r><w:t>Title</w:t></w:r></w:p>'
    "<w:p><w:r><w:t>doi:10.1000/x</w:t></w:r></w:p></w:body></w:document>"
)


def changed(package: bytes, parts: Mapping[str, str | bytes]) -> bytes:
    """A zip with some parts more, or others in their places."""
    with zipfile.ZipFile(io.BytesIO(package)) as file:
        known: dict[str, str | bytes] = {name: file.read(name) for name in file.namelist()}
    return zipped({**known, **parts})


def word(title: str = "title", document: str = STYLED) -> bytes:
    core = CORE.format(title=title)
    return changed(
        office_documents.docx("x"),
        {"docProps/core.xml": core, "docProps/app.xml": APP, "word/document.xml": document},
    )


def test_a_document_of_word_has_its_properties_title_and_identifiers() -> None:
    found = packages.read(word())
    assert (found.type, found.fault, found.largest) == (DOCX, "", "The Title")
    assert found.properties == {
        "title": ("A title",), "authors": ("Ann;Bo",), "date": ("2020-01-02T03:04:05Z",), "language": ("en-GB",),
        "identifier": ("urn:isbn:0-306-40615-2",), "publisher": ("The Office",),
    }  # fmt: skip
    assert (found.isbn, found.doi) == (("9780306406157",), ("10.1000/x",))


def test_the_title_of_a_presentation_is_that_of_its_first_slide() -> None:
    spaces = (
        'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
        'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    )

    def shape(kind: str, words: str) -> str:
        return (
            f'<p:sp><p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>{words}</a:t>'
            "</a:r></a:p></p:txBody></p:sp>"
        )

    slide = f"<p:sld {spaces}>{shape('subTitle', 'By me')}{shape('ctrTitle', 'The Talk')}</p:sld>"
    found = packages.read(changed(office_documents.pptx("x"), {"ppt/slides/slide1.xml": slide}))
    assert (found.type, found.largest, found.fault) == (PPTX, "The Talk", "")


def test_an_odt_and_an_epub() -> None:
    space = "urn:oasis:names:tc:opendocument:xmlns:meta:1.0"
    meta = (
        f'<o:m xmlns:o="urn:o" xmlns:m="{space}" {CP}><dc:title>ODF</dc:title>'
        "<m:initial-creator>Ann</m:initial-creator><dc:creator>Last</dc:creator>"
        "<m:creation-date>2020-01-02</m:creation-date><dc:date>2021-01-01</dc:date></o:m>"
    )
    found = packages.read(changed(office_documents.odt("doi:10.1000/x"), {"meta.xml": meta}))
    assert found.properties == {"title": ("ODF",), "authors": ("Ann",), "date": ("2020-01-02",)}
    assert (found.doi, found.fault) == (("10.1000/x",), "")
    package = (
        f'<package xmlns="http://www.idpf.org/2007/opf" {CP}><metadata><dc:title>Book</dc:title>'
        "<dc:creator>A</dc:creator><dc:creator>B</dc:creator><dc:identifier>urn:uuid:5</dc:identifier></metadata><manifest>"
        '<item id="a" href="x/a%20b.xhtml"/></manifest><spine><itemref idref="a"/></spine></package>'
    )
    page = "<html><h1>A Book</h1><p>ISBN 978-0-306-40615-7&nbsp;</p></html>"
    found = packages.read(changed(office_documents.epub(""), {"a.opf": package, "x/a b.xhtml": page}))
    assert found.properties == {"title": ("Book",), "authors": ("A", "B"), "identifier": ("urn:uuid:5",)}
    assert (found.type, found.largest, found.isbn) == (EPUB, "A Book", ("9780306406157",))


@pytest.mark.parametrize("make", [office_documents.docx, office_documents.odt, office_documents.epub])
def test_a_cut_zip_stays_a_document(make: object) -> None:
    whole = make("words " * 1_000)  # type: ignore[operator]
    for part in (0.5, 0.8, 0.99):
        found = packages.read(whole[: int(len(whole) * part)])
        assert (found.type, found.fault) == (packages.read(whole).type, "cut: the directory of the zip is missing")


def test_bombs_cost_their_limit_alone() -> None:
    laughing = '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    found = packages.read(changed(word(), {"docProps/core.xml": f"{laughing}<a><title>&b;</title></a>"}))
    assert (found.type, found.fault) == (DOCX, "its XML cannot be read: EntitiesForbidden")
    found = packages.read(word(document=f"{laughing}{STYLED}"))
    assert (found.properties["title"], found.fault) == (("A title",), "its XML cannot be read: EntitiesForbidden")
    zeros = changed(word(), {"word/document.xml": b"<a>" + b" " * (300 << 20), "docProps/core.xml": b" " * (64 << 20)})
    assert len(zeros) < 1 << 20
    found = packages.read(zeros)
    assert (found.type, found.fault) == (DOCX, "its XML cannot be read: ParseError")
    deep = f'<w:document xmlns:w="{W}">' + "<w:x>" * 100_000
    assert packages.read(word(document=deep)).fault == "its XML cannot be read: ParseError"


def test_long_and_right_to_left_titles_are_kept_within_their_bound() -> None:
    assert packages.read(word(title="x" * (1 << 20))).properties["title"] == ("A " + "x" * 298,)
    found = packages.read(word(title="\u202e\u05d3\u05d5\u05d7&lt;script&gt;"))
    assert found.properties["title"] == ("A \u05d3\u05d5\u05d7<script>",)


def test_encrypted_files() -> None:
    data = bytearray(office_documents.docx("a"))
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = -1
        while (place := data.find(signature, place + 1)) >= 0:
            data[place + at] |= 1
    assert (packages.read(bytes(data)).type, packages.read(bytes(data)).fault) == (DOCX, "encrypted")
    manifest = "<m><encryption-data/></m>"
    assert packages.read(changed(office_documents.odt("a"), {"META-INF/manifest.xml": manifest})).fault == "encrypted"
    assert packages.read(changed(office_documents.epub("a"), {"META-INF/rights.xml": "<r/>"})).fault == "encrypted"
    found = pdf.read(pdfs.pdf("a", encrypted=True))
    assert (found.type, found.fault) == (PDF, "encrypted")


def test_zips_that_are_not_documents() -> None:
    for parts in ({"a": "b"}, {"mimetype": "application/x-krita"}, {"[Content_Types].xml": "<Types/>"}):
        assert packages.read(zipped(parts)).type == ""
    assert packages.read(b"PK\x03\x04" + b"\0" * 100).type == ""


def test_the_largest_text_of_a_pdf_is_over_all_of_its_lines() -> None:
    def page(*shown: tuple[int, str]) -> bytes:
        lines = "".join(f"/F1 {size} Tf 0 -40 Td ({words}) Tj " for size, words in shown)
        made = pdfs.pdf("x")
        text = f"BT 72 720 Td {lines} ET".encode()
        begin, end = made.index(b"/Length "), made.index(b"endstream")
        return made[:begin] + b"/Length %d >>\nstream\n%s\n" % (len(text), text) + made[end:]

    found = pdf.read(page((9, "A series"), (24, "The long title"), (24, "of a report"), (12, "By Ann")))
    assert found.largest == "The long title of a report"
    assert pdf.read(page((60, "7"), (24, "Title"), (12, "text"))).largest == "Title"
    assert pdf.read(page((12, ""))).largest == ""


def test_the_xmp_of_a_pdf_names_what_its_dictionary_lacks() -> None:
    packet = (
        f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="r" {CP}><rdf:Description><dc:title><rdf:Alt><rdf:li>'
        "XMP</rdf:li></rdf:Alt></dc:title><dc:creator><rdf:Seq><rdf:li>Ann</rdf:li><rdf:li>Bo</rdf:li></rdf:Seq>"
        "</dc:creator><dc:identifier>doi:10.1000/x</dc:identifier></rdf:Description></rdf:RDF></x:xmpmeta>"
    )
    data = pdfs.pdf("a", title="Own").replace(b"%%EOF", packet.encode() + b"\n%%EOF")
    found = pdf.read(data)
    assert found.properties == {"title": ("Own",), "authors": ("Ann", "Bo"), "identifier": ("doi:10.1000/x",)}
    assert found.doi == ("10.1000/x",)


def test_rtf() -> None:
    info = rb"{\info{\title \'c4\u1086?\'ea}{\author A;B}{\company C}{\creatim\yr2020\mo1\dy3}}"
    data = rb"{\rtf1\ansi\ansicpg1251" + info + rb"doi:10.1000/x}"
    found = older.read_rtf(data)
    assert (found.type, found.fault, found.doi) == (RTF, "", ("10.1000/x",))
    assert found.properties == {
        "title": ("Док",), "authors": ("A", "B"), "publisher": ("C",), "date": ("2020-01-03",)
    }  # fmt: skip
    assert older.read_rtf(data[:40]).fault == "cut: its last brace is missing"
    assert older.read_rtf(rb"{\rtf1" + rb"{\info" * 50_000).type == RTF


def summary(values: Mapping[int, tuple[int, bytes]]) -> bytes:
    """A property set ([MS-OLEPS], 2.21)."""
    places, data = b"", b""
    for number, (kind, value) in values.items():
        places += struct.pack("<II", number, 8 + 8 * len(values) + len(data))
        data += struct.pack("<I", kind) + value
    return b"\xfe\xff" + bytes(42) + struct.pack("<I", 48) + struct.pack("<II", len(data), len(values)) + places + data


def text_of(value: bytes) -> tuple[int, bytes]:
    return 0x1E, struct.pack("<I", len(value) + 1) + value + b"\0"


TICKS = (132_223_104_000_000_000).to_bytes(8, "little")  # 2020-01-01
SUMMARY = summary(
    {1: (2, struct.pack("<hh", 1251, 0)), 2: text_of(b"\xc4\xee\xea"), 4: text_of(b"A;B"), 12: (0x40, TICKS)}
)


def compound(streams: Mapping[str, bytes]) -> bytes:
    whole = {name: data.ljust(4_096, b"\0") for name, data in streams.items()}
    return office_documents.compound(whole if len(whole) == 2 else {**whole, "More": bytes(4_096)})


@pytest.mark.parametrize(
    ("stream", "type_"), [("WordDocument", DOC), ("Workbook", XLS), ("Book", XLS), ("PowerPoint Document", PPT)]
)
def test_what_office_wrote_up_to_2003(stream: str, type_: str) -> None:
    data = compound({stream: b"\x09\x08\x04\0", "\x05SummaryInformation": SUMMARY})
    found = older.read(data)
    assert (found.type, found.fault) == (type_, "")
    assert found.properties == {"title": ("Док",), "authors": ("A", "B"), "date": ("2020-01-01",)}
    assert older.read(data[:700]).fault.startswith("cut or damaged") or not older.read(data[:700]).type


def test_encrypted_and_foreign_compound_files() -> None:
    locked = struct.pack("<5HH", 0xA5EC, 193, 0, 1033, 0, 0x1300)
    assert older.read(compound({"WordDocument": locked})).fault == "encrypted"
    filepass = struct.pack("<HH", 0x809, 4) + b"abcd" + struct.pack("<HH", 0x2F, 0)
    assert older.read(compound({"Workbook": filepass})).fault == "encrypted"
    found = older.read(compound({"EncryptedPackage": b"x"}))
    assert (found.type, found.fault) == (OFFICE, "encrypted")
    assert older.read(compound({"Other": b"x"})).type == ""


def test_a_compound_file_whose_sectors_are_in_a_circle_ends() -> None:
    data = bytearray(compound({"WordDocument": bytes(8_000)}))
    fat = data.index(struct.pack("<I", 0xFFFFFFFD)) // 512 * 512
    for at in range(fat, fat + 512, 4):
        struct.pack_into("<I", data, at, (at - fat) // 4)
    assert "cut or damaged" in older.read(bytes(data)).fault
    assert older.read(b"\xd0\xcf\x11\xe0" + b"\xff" * 2_000).type == ""


@pytest.mark.parametrize(
    ("head", "declared", "expected"),
    [
        (b"%PDF-1.4", "", Begin.PDF),
        (b"\0\0junk\n%PDF-1.4", "text/html", Begin.PDF),
        (b"The words %PDF-1.4", "text/plain", Begin.OTHER),
        (b"x" * 1_020 + b"\n%PDF-1.4", "", Begin.OTHER),
        (b"<!DOCTYPE html>\n%PDF-1.4", "application/pdf", Begin.PAGE),
        (b"<?xml version='1.0'?><html>", "application/xhtml+xml", Begin.PAGE),
        (b"<!-- made by x --><svg>", "image/svg+xml", Begin.OTHER),
        (b"\x89PNG\r\n\x1a\n\0\0", "text/html", Begin.OTHER),
        (b"<html><body>", "text/plain", Begin.OTHER),
        (b"<html><body>", "", Begin.PAGE),
        (b"<html><body>", "binary/octet-stream", Begin.PAGE),
        (b"<html><body>", "application/msword", Begin.PAGE),
        (b"hello", "text/html", Begin.PAGE),
        (b"hello", "text/plain", Begin.OTHER),
        (b"\x1f\x8b\x08", "application/pdf", Begin.OTHER),
        (b"", "text/html", Begin.OTHER),
        (b"{\\rtf1", "application/msword", Begin.RTF),
        (b"PK\x03\x04", "", Begin.ZIP),
    ],
)
def test_bytes_sort_bodies(head: bytes, declared: str, expected: Begin) -> None:
    assert begins_as(head, declared) is expected


def test_types_that_no_document_has() -> None:
    for type_ in ("text/html", "image/png", "text/css", "application/javascript", "video/mp4", "font/woff2"):
        assert not kinds.may_declare(type_)
    for type_ in ("", "application/pdf", "application/octet-stream", "text/plain", "application/json"):
        assert kinds.may_declare(type_)
