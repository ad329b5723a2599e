"""Small office documents, made here of the words that they shall have. None comes from anywhere else."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_P = "http://schemas.openxmlformats.org/presentationml/2006/main"
_S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = "application/vnd.openxmlformats-officedocument."
_ODF = "urn:oasis:names:tc:opendocument:xmlns:"
_END, _FREE, _FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD  # [MS-CFB], 2.1
_SECTOR, _SMALLEST = 512, 4_096  # bytes; a smaller stream would lie in another place


def docx(words: str, before: str = "") -> bytes:
    """A document of Word; `before` comes before its root element."""
    body = f'{before}<w:document xmlns:w="{_W}"><w:body><w:p><w:r><w:t>{words}</w:t></w:r></w:p></w:body></w:document>'
    return _ooxml("word/document.xml", "wordprocessingml.document.main", {"word/document.xml": body})


def xlsx(words: str) -> bytes:
    """A table of Excel with one cell."""
    book = (
        f'<workbook xmlns="{_S}" xmlns:r="{_R}"><sheets><sheet name="One" sheetId="1" r:id="r1"/></sheets></workbook>'
    )
    cell = f'<c r="A1" t="inlineStr"><is><t>{words}</t></is></c>'
    sheet = f'<worksheet xmlns="{_S}"><sheetData><row r="1">{cell}</row></sheetData></worksheet>'
    parts = {
        "xl/workbook.xml": book,
        "xl/sheet1.xml": sheet,
        "xl/_rels/workbook.xml.rels": _rels("worksheet", "sheet1.xml"),
    }
    return _ooxml("xl/workbook.xml", "spreadsheetml.sheet.main", parts, {"xl/sheet1.xml": "spreadsheetml.worksheet"})


def pptx(words: str) -> bytes:
    """A presentation of one slide."""
    slides = '<p:sldIdLst><p:sldId id="256" r:id="r1"/></p:sldIdLst>'
    show = f'<p:presentation xmlns:p="{_P}" xmlns:r="{_R}">{slides}</p:presentation>'
    text = f"<p:txBody><a:bodyPr/><a:p><a:r><a:t>{words}</a:t></a:r></a:p></p:txBody>"
    named = '<p:nvSpPr><p:cNvPr id="2" name="a"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/>'
    group = '<p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>'
    tree = f"<p:cSld><p:spTree>{group}<p:sp>{named}{text}</p:sp></p:spTree></p:cSld>"
    slide = f'<p:sld xmlns:p="{_P}" xmlns:a="{_A}">{tree}</p:sld>'
    parts = {"ppt/presentation.xml": show, "ppt/slide1.xml": slide}
    parts["ppt/_rels/presentation.xml.rels"] = _rels("slide", "slide1.xml")
    parts["ppt/_rels/slide1.xml.rels"] = _rels("slideLayout", "layout1.xml")
    parts["ppt/layout1.xml"] = (
        f'<p:sldLayout xmlns:p="{_P}" xmlns:a="{_A}"><p:cSld><p:spTree>{group}</p:spTree></p:cSld></p:sldLayout>'
    )
    parts["ppt/_rels/layout1.xml.rels"] = _rels("slideMaster", "master1.xml")
    parts["ppt/master1.xml"] = parts["ppt/layout1.xml"].replace("sldLayout", "sldMaster")
    names = {"slide1": "slide", "layout1": "slideLayout", "master1": "slideMaster"}
    types = {f"ppt/{name}.xml": f"presentationml.{type_}" for name, type_ in names.items()}
    return _ooxml("ppt/presentation.xml", "presentationml.presentation.main", parts, types)


def odt(words: str, before: str = "") -> bytes:
    """A text of OpenDocument; `before` comes before its root element."""
    spaces = f'xmlns:office="{_ODF}office:1.0" xmlns:text="{_ODF}text:1.0"'
    body = f"<office:body><office:text><text:p>{words}</text:p></office:text></office:body>"
    content = f'{before}<office:document-content {spaces} office:version="1.2">{body}</office:document-content>'
    return zipped({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content})


def epub(words: str) -> bytes:
    """A book of one page."""
    container = '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles>'
    container += '<rootfile full-path="a.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    package = '<package xmlns="http://www.idpf.org/2007/opf" version="2.0"><manifest><item id="a" href="a.xhtml"'
    package += ' media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine></package>'
    page = f'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>{words}</p></body></html>'
    parts = {"META-INF/container.xml": container, "a.opf": package, "a.xhtml": page}
    return zipped({"mimetype": "application/epub+zip", **parts})


def rtf(words: str) -> bytes:
    """A document in Rich Text Format."""
    return b"{\\rtf1\\ansi\\pard %s\\par}" % words.encode("ascii")


def doc(words: str) -> bytes:
    """A document of Word 97 ([MS-DOC]): one piece of text, one run of characters, and else nothing."""
    text = words.encode("cp1252") + b"\r"
    first, last, page = 1_024, 1_024 + len(text), 2_048
    piece = struct.pack("<II", 0, len(text)) + struct.pack("<HIH", 0, first * 2 | 1 << 30, 0)  # 2.9.177: a byte each
    parts = {
        1: struct.pack("<H9H", 18, 0, 10, 1, 91, 15, 0, 0, 0, 0),  # 2.9.272: no styles
        12: struct.pack("<III", first, last, page // _SECTOR),  # 2.8.5: the run
        15: bytes(4),  # no fonts
        31: bytes(700),  # 2.7: what the document is like, in general
        33: b"\x02" + struct.pack("<I", len(piece)) + piece,
    }
    table, places = b"", [0] * 186  # 2.5.6: where each part of the table is, and how long
    for number, part in parts.items():
        places[2 * number : 2 * number + 2] = len(table), len(part)
        table += part.ljust(-(-len(part) // 64) * 64, b"\0")
    run = struct.pack("<II", first, last).ljust(_SECTOR - 1, b"\0") + b"\x01"  # 2.9.33
    header = struct.pack("<HHHHHHHIBBHHII", 0xA5EC, 193, 0, 1033, 0, 0x1200, 191, 0, 0, 0, 0, 0, first, last)
    header += struct.pack("<H14H", 14, *[0] * 14) + struct.pack("<H22I", 22, 0, 0, 0, len(text), *[0] * 18)
    header += struct.pack("<H186I", 93, *places) + struct.pack("<H", 0)
    main = (header.ljust(first, b"\0") + text).ljust(page, b"\0") + run
    return compound({"WordDocument": main, "1Table": table})


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    """A zip of these files; the first one is not compressed."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for number, (name, data) in enumerate(parts.items()):
            file.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED if number else zipfile.ZIP_STORED)
    return made.getvalue()


def _ooxml(main: str, type_: str, parts: Mapping[str, str], more: Mapping[str, str] | None = None) -> bytes:
    """A package (ISO/IEC 29500-2) whose main part is of a type."""
    types = "".join(
        f'<Override PartName="/{part}" ContentType="{_TYPES}{one}+xml"/>' for part, one in (more or {}).items()
    )
    types += f'<Override PartName="/{main}" ContentType="{_TYPES}{type_}+xml"/>'
    default = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    listed = f'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">{default}{types}</Types>'
    return zipped({"[Content_Types].xml": listed, "_rels/.rels": _rels("officeDocument", main), **parts})


def _rels(type_: str, target: str) -> str:
    relation = f'<Relationship Id="r1" Type="{_R}/{type_}" Target="{target}"/>'
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{relation}</Relationships>'


def compound(streams: Mapping[str, bytes]) -> bytes:
    """A compound file ([MS-CFB]): its header, one sector of the FAT, one of the directory, and two streams."""
    chain, body, first = [_FAT, _END], b"", dict[str, int]()
    for name, data in streams.items():
        first[name] = len(chain)
        padded = data.ljust(-(-max(len(data), _SMALLEST) // _SECTOR) * _SECTOR, b"\0")
        number = len(padded) // _SECTOR
        chain += [*range(len(chain) + 1, len(chain) + number), _END]
        body += padded
    fat = struct.pack(f"<{len(chain)}I", *chain).ljust(_SECTOR, b"\xff")
    (one, other), sizes = streams, {name: max(len(data), _SMALLEST) for name, data in streams.items()}
    folder = _entry("Root Entry", 5, _FREE, 1, _END, 0) + _entry(one, 2, 2, _FREE, first[one], sizes[one])
    folder += _entry(other, 2, _FREE, _FREE, first[other], sizes[other]) + bytes(128)
    header = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16) + struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    header += struct.pack("<IIIIIIIIII", 0, 1, 1, 0, _SMALLEST, _END, 0, _END, 0, 0)
    return header.ljust(_SECTOR, b"\xff") + fat + folder + body


def _entry(name: str, type_: int, left: int, child: int, start: int, size: int) -> bytes:
    """An entry of the directory ([MS-CFB], 2.6.1)."""
    encoded = (name + "\0").encode("utf-16-le")
    head = encoded.ljust(64, b"\0") + struct.pack("<HBBIII", len(encoded), type_, 1, left, _FREE, child)
    return head + bytes(36) + struct.pack("<IQ", start, size)
