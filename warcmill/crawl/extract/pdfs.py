"""Links of PDFs: those that a person can click on, by their annotations (ISO 32000-1, 12.5.6.5). Pure; needs pypdfium2.

PDFium is native code, and a PDF may be made so that it takes long: only worker processes read one. An address in the
text is not a link, and no script is run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

from warcmill.crawl.extract.links import LIMITS, LINK, LONGEST, LinkCollector, LinkLimits, Outlinks

TYPES = frozenset(["application/pdf", "application/x-pdf"])
BEGIN = b"%PDF-"


def links(data: bytes, uri: str, _content_type: str = "", limits: LinkLimits = LIMITS) -> Outlinks:
    """The links of a document; none of one that is damaged, or locked."""
    from pypdfium2 import PdfDocument, PdfiumError, raw  # noqa: PLC0415 only worker processes load it

    found = LinkCollector(uri, limits=limits)
    try:
        pdf = PdfDocument(data)
    except PdfiumError:
        return found.all()
    for number in range(len(pdf)):
        try:
            page = pdf[number]
        except PdfiumError:  # a damaged one: the others still have links
            continue
        for written in _written(raw, pdf.raw, page.raw):
            found.add(written, LINK, "pdf")
        page.close()
        if found.cut:
            break
    pdf.close()
    return found.all()


def _written(pdfium: Any, pdf: Any, page: Any) -> Iterator[str]:
    """The addresses of a page's links: of the web, or of a file beside this one."""
    at, link = ctypes.c_int(0), pdfium.FPDF_LINK()
    while pdfium.FPDFLink_Enumerate(page, at, link):
        action = pdfium.FPDFLink_GetAction(link)
        kind = pdfium.FPDFAction_GetType(action) if action else 0
        if kind == pdfium.PDFACTION_URI:
            yield _text(pdfium.FPDFAction_GetURIPath, pdf, action)
        elif kind == pdfium.PDFACTION_REMOTEGOTO:
            yield _text(pdfium.FPDFAction_GetFilePath, action)


def _text(write: Callable[..., int], *of: Any) -> str:
    """The text that a function of PDFium writes, which first gives its length."""
    length = write(*of, None, 0)
    if not 0 < length <= LONGEST:
        return ""
    room = ctypes.create_string_buffer(length)
    write(*of, room, length)
    return room.raw.partition(b"\0")[0].decode("utf-8", "replace")
