"""PDFs for tests, built object by object (ISO 32000-1, 7.5)."""

from __future__ import annotations


def pdf(*pages: str, title: str = "", encrypted: bool = False) -> bytes:
    """A PDF with a line of text on each page."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode("latin-1")
        font = "/Resources << /Font << /F1 3 0 R >> >>"
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {font} /Contents {5 + 2 * number} 0 R >>"
        objects += [page.encode(), b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream)]
    objects.append(f"<< /Title ({title}) >>".encode("latin-1"))
    return _file(objects, encrypted)


def linked(*actions: bytes, pages: int = 1) -> bytes:
    """A PDF whose pages each have these actions as links, such as `/S /URI /URI (http://a.example/)`."""
    kids = b" ".join(b"%d 0 R" % (3 + number) for number in range(pages))
    links = b" ".join(b"<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] /A << %s >> >>" % action for action in actions)
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Annots [%s] >>" % links
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, pages)]
    return _file([*objects, *[page] * pages, b"<< >>"], encrypted=False)


def laughing(depth: int) -> bytes:
    """A PDF whose page draws a form, which draws the next one ten times, and so on to the last level."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Resources << /XObject << /X 5 0 R >> >> /Contents 4 0 R >>",
        b"<< /Length 5 >>\nstream\n/X Do\nendstream",
    ]
    form = b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << %s >> /Length %d >>\nstream\n%s\nendstream"
    for number in range(6, 6 + depth):
        draws = b"/X Do " * 10
        objects.append(form % (b"/XObject << /X %d 0 R >>" % number, len(draws), draws))
    objects += [form % (b"", 0, b""), b"<< >>"]
    return _file(objects, encrypted=False)


def _file(objects: list[bytes], encrypted: bool) -> bytes:
    data, places = bytearray(b"%PDF-1.4\n"), list[int]()
    for number, one in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    begin = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % place for place in places)
    key = b"<" + b"00" * 32 + b">"
    lock = b"/Encrypt << /Filter /Standard /V 1 /R 2 /O %s /U %s /P -4 >> /ID [%s %s]" % (key, key, key, key)
    trailer = b"<< /Size %d /Root 1 0 R /Info %d 0 R %s >>" % (len(objects) + 1, len(objects), lock * encrypted)
    return bytes(data + b"trailer\n%s\nstartxref\n%d\n%%%%EOF\n" % (trailer, begin))
