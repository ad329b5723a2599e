"""Documents that are zips: OOXML, ODF and EPUB. Their properties, title and identifiers, read within limits. Pure.

Of a zip whose end is missing the parts' own headers still show its kind. Only a few parts are inflated, and of each no
more than a limit, so that a bomb costs that much at most.
"""

from __future__ import annotations

import posixpath
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree.ElementTree import Element
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from selectolax.lexbor import LexborHTMLParser

from warcmill.formats.publications import identifiers
from warcmill.formats.publications.kinds import DOCX, ENCRYPTED, EPUB, ODF, PPTX, XLSX, DocumentFile
from warcmill.formats.publications.xml import DUBLIN, FAULTS, MOST, local, paragraphs, properties_of

_ZIP_FAULTS = (BadZipFile, EOFError, NotImplementedError, OSError, RuntimeError, ValueError, struct.error, zlib.error)
_TYPES, _MIMETYPE = "[Content_Types].xml", "mimetype"
_MAIN = re.compile(
    rb"application/vnd\.(?:openxmlformats-officedocument\.(?:wordprocessing|spreadsheet|presentation)ml"
    rb"|ms-(?:word|excel|powerpoint))\.[A-Za-z0-9.]{1,60}?(?=\.main\+xml)"
)
_PART = re.compile(rb"PK\x03\x04.{4}(..).{16}(..)(..)", re.DOTALL)
_FOLDERS = {b"word/": DOCX, b"xl/": XLSX, b"ppt/": PPTX}
_OF_OOXML = DUBLIN | {"created": "date"}
_OF_ODF = {"title": "title", "initial-creator": "authors", "subject": "subject", "creation-date": "date"} | {
    "language": "language"
}
_TITLES = frozenset({"title", "ctrtitle", "titel", "titre", "ttulo", "titolo"})  # names of a style follow the language
_TEXT = 9_000  # characters of the beginning, about three pages
_ITEMS = 5  # of an EPUB, in which identifiers are looked for: its cover and its first pages
_SLIDES = 3


class _Beginning(NamedTuple):
    """The text of the first pages, the title that it has in it, and the fault."""

    text: str = ""
    title: str = ""
    fault: str = ""


def read(data: bytes) -> DocumentFile:
    """Read a zip; a file without a type if it is not a document."""
    try:
        package = ZipFile(BytesIO(data))
    except _ZIP_FAULTS:
        return DocumentFile(_type_of_cut(data), fault="cut: the directory of the zip is missing")
    with package:
        names = frozenset(package.namelist())
        try:
            type_ = _type(package, names)
        except _ZIP_FAULTS as error:
            return DocumentFile(_type_of_cut(data), fault=_why(error))
        if not type_:
            return DocumentFile("")
        try:
            return _read(package, names, type_)
        except _ZIP_FAULTS as error:
            return DocumentFile(type_, fault=_why(error))


def _why(error: Exception) -> str:
    return ENCRYPTED if "encrypted" in str(error) else f"its zip cannot be read: {type(error).__name__}"


def _type(package: ZipFile, names: frozenset[str]) -> str:
    if _MIMETYPE in names:
        return _of_mimetype(_part(package, _MIMETYPE, 200))
    match = _MAIN.search(_part(package, _TYPES)) if _TYPES in names else None
    return _of_main(match[0]) if match else ""


def _of_mimetype(written: bytes) -> str:
    declared = written.decode("ascii", "replace").strip()
    return declared if declared == EPUB or re.fullmatch(rf"{re.escape(ODF)}[a-z-]{{1,40}}", declared) else ""


def _of_main(written: bytes) -> str:
    name = written.decode("ascii")
    return f"{name}.12" if name.endswith("macroEnabled") else name


def _type_of_cut(data: bytes) -> str:
    """The type by the headers before each part; '' if they show none."""
    for match in _PART.finditer(data, 0, MOST):
        method, length, extra = (struct.unpack("<H", number)[0] for number in match.groups())
        name = data[match.end() : match.end() + length]
        begin = match.end() + length + extra
        if name == _TYPES.encode() and (main := _MAIN.search(_inflated(data[begin : begin + MOST], method))):
            return _of_main(main[0])
        if name == _MIMETYPE.encode() and (kind := _of_mimetype(data[begin : begin + 80].partition(b"PK")[0])):
            return kind
        if kind := next((kind for folder, kind in _FOLDERS.items() if name.startswith(folder)), ""):
            return kind
    return ""


def _inflated(data: bytes, method: int) -> bytes:
    """The beginning of a part, as far as it can be inflated."""
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, MOST) if method == ZIP_DEFLATED else data
    except zlib.error:
        return b""


def _part(package: ZipFile, name: str, most: int = MOST) -> bytes:
    with package.open(name) as stream:
        return stream.read(most)


def _read(package: ZipFile, names: frozenset[str], type_: str) -> DocumentFile:
    if type_ == EPUB:
        known, fault, begin = _epub(package, names)
    elif type_.startswith(ODF):
        known, fault = _of_parts(package, names, {"meta.xml": _OF_ODF})
        begin = _beginning(package, names, ["content.xml"])
        if "META-INF/manifest.xml" in names and b"encryption-data" in _part(package, "META-INF/manifest.xml"):
            known, fault, begin = {}, ENCRYPTED, _Beginning()
    else:
        known, fault = _of_parts(package, names, {"docProps/core.xml": _OF_OOXML, "docProps/app.xml": _OF_APP})
        slides = sorted(filter(_SLIDE.fullmatch, names), key=lambda name: (len(name), name))[:_SLIDES]
        begin = _beginning(package, names, slides or sorted(filter(_WORDS.fullmatch, names)), "sp" if slides else "p")
    text = " ".join([begin.text, *known.get("identifier", ())])
    isbn = (*filter(None, map(identifiers.isbn_of, known.get("identifier", ()))), *identifiers.isbns(text))
    return DocumentFile(
        type_, known, begin.title, tuple(dict.fromkeys(isbn)), identifiers.dois(text), fault or begin.fault
    )


_OF_APP = {"Company": "publisher"}
_SLIDE = re.compile(r"ppt/(?:slides/)?slide[0-9]{1,5}\.xml")
_WORDS = re.compile(r"word/document[0-9]{0,3}\.xml")


def _of_parts(
    package: ZipFile, names: frozenset[str], wanted: Mapping[str, Mapping[str, str]]
) -> tuple[dict[str, tuple[str, ...]], str]:
    known, fault = dict[str, tuple[str, ...]](), ""
    for name in sorted(names & wanted.keys()):
        found, why = properties_of(_part(package, name), wanted[name])
        known, fault = found | known, fault or why
    return known, fault


def _beginning(package: ZipFile, names: frozenset[str], parts: Sequence[str], each: str = "p") -> _Beginning:
    """The text of some parts, up to a limit; the title is the first paragraph of such a style."""
    text, title, left = list[str](), "", _TEXT
    for name in parts:
        if name not in names:
            continue
        try:
            with package.open(name) as stream:
                for element in paragraphs(stream, each, left):
                    words = "".join(element.itertext()) if each == "p" else " ".join(element.itertext())
                    text.append(words)
                    left -= len(words)
                    title = title or (identifiers.cleaned(words) if _style(element) in _TITLES else "")
        except FAULTS as error:
            return _Beginning("\n".join(text), title, f"its XML cannot be read: {type(error).__name__}")
    return _Beginning("\n".join(text), title)


def _style(paragraph: Element) -> str:
    """The name of a paragraph's style, or the kind of a shape on a slide; in lower case."""
    for name, value in paragraph.items():
        if local(name) == "style-name":
            return value.lower()
    for element in paragraph.iter():
        named = {"pStyle": "val", "ph": "type"}.get(local(element.tag))
        if named:
            found = next((value for name, value in element.items() if local(name) == named), "")
            return found.lower()
    return ""


def _epub(package: ZipFile, names: frozenset[str]) -> tuple[dict[str, tuple[str, ...]], str, _Beginning]:
    """The properties of its package document, and the text of the first items of its spine (EPUB 3.3, 5)."""
    container = _part(package, "META-INF/container.xml") if "META-INF/container.xml" in names else b""
    path = re.search(rb"""full-path\s*=\s*["']([^"']{1,500})["']""", container)
    place = path[1].decode("utf-8", "replace") if path else ""
    if place not in names:
        return {}, "its container.xml names no package document", _Beginning()
    package_document = _part(package, place)
    known, fault = properties_of(package_document, DUBLIN)
    fault = fault or (ENCRYPTED if "META-INF/rights.xml" in names else "")
    text, title, left = list[str](), "", _TEXT
    for name in _spine(package_document, place)[:_ITEMS]:
        if name in names and not fault and left > 0:
            tree = LexborHTMLParser(_part(package, name, 1 << 20))
            words = (tree.body.text(separator=" ") if tree.body else "")[:left]
            heading = tree.css_first("h1")
            title = title or (identifiers.cleaned(heading.text(separator=" ")) if heading else "")
            text.append(words)
            left -= len(words)
    return known, fault, _Beginning("\n".join(text), title)


_ITEM = re.compile(rb"<(?:[a-z]{1,20}:)?(item|itemref)\s([^<>]{1,2000})>")
_VALUE = re.compile(rb"""\b(id|href|idref)\s*=\s*["']([^"'<>]{1,500})["']""")


def _spine(package_document: bytes, place: str) -> list[str]:
    """The names of the items that are read one after another."""
    hrefs, order = dict[str, str](), list[str]()
    for kind, attributes in _ITEM.findall(package_document):
        own = {name.decode(): value.decode("utf-8", "replace") for name, value in _VALUE.findall(attributes)}
        if kind == b"item":
            hrefs[own.get("id", "")] = own.get("href", "")
        else:
            order.append(own.get("idref", ""))
    return [posixpath.normpath(posixpath.join(posixpath.dirname(place), unquote(hrefs.get(one, "")))) for one in order]
