"""Office documents: what declares one, what begins as one, and what is one by its declaration alone."""

from __future__ import annotations

import pytest
from records import office_documents as made
from records.pdfs import pdf

from warcmill.formats.text import document as office
from warcmill.formats.text.document import NOT_A_DOCUMENT, Kind, kind_of, read_as
from warcmill.formats.text.extract import document

OOXML = "application/vnd.openxmlformats-officedocument."
ALL = {
    "doc": made.doc("x"),
    "docx": made.docx("x"),
    "epub": made.epub("x"),
    "odt": made.odt("x"),
    "pptx": made.pptx("x"),
    "rtf": made.rtf("x"),
    "xlsx": made.xlsx("x"),
}


@pytest.mark.parametrize(
    "media_type",
    [
        "application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint", "application/rtf",
        "text/rtf",
        f"{OOXML}wordprocessingml.document", f"{OOXML}spreadsheetml.sheet", f"{OOXML}presentationml.presentation",
        "application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.spreadsheet",
        "application/vnd.oasis.opendocument.presentation", "application/epub+zip",
        " Application/MSWord ", "application/vnd.ms-word.document.macroEnabled.12",
    ],
)  # fmt: skip
def test_types_of_office_documents(media_type: str) -> None:
    assert kind_of(media_type) is Kind.OFFICE


@pytest.mark.parametrize("media_type", ["application/zip", "application/octet-stream", f"{OOXML}x", "image/x-rtf"])
def test_types_of_none(media_type: str) -> None:
    assert kind_of(media_type) is None


def test_types_are_written_as_they_are_compared() -> None:
    assert {one.strip().lower() for one in office.OFFICE_TYPES} == office.OFFICE_TYPES
    assert not office.WORD & office.EXCEL & office.POWERPOINT


@pytest.mark.parametrize("name", ALL)
def test_bytes_decide_where_no_type_is_declared(name: str) -> None:
    assert read_as(Kind.UNDECLARED, ALL[name]) is Kind.OFFICE
    assert read_as(Kind.OFFICE, ALL[name]) is Kind.OFFICE
    assert document(Kind.OFFICE, ALL[name]).why == NOT_A_DOCUMENT, "it is not for parsers of this process"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"<html><table>", Kind.HTML), (b"\xef\xbb\xbf <!DOCTYPE html>", Kind.HTML), (pdf("x"), Kind.PDF),
        (b"words", Kind.OFFICE), (b"", Kind.OFFICE), (b"\0" * 600, Kind.OFFICE),
    ],
)  # fmt: skip
def test_a_wrong_declaration_is_overruled_by_html_and_pdf_alone(data: bytes, kind: Kind) -> None:
    assert read_as(Kind.OFFICE, data) is kind


def test_any_zip_is_none() -> None:
    assert read_as(Kind.UNDECLARED, made.zipped({"a": "1", "word/document.xml": "2"})) is None
    assert not office.begins_as_office(b"PK\x03\x04")
