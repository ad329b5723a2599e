"""The properties of the sample's PDFs beside those that poppler's pdfinfo finds."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from sample import SAMPLE
from warcio.archiveiterator import ArchiveIterator

from warcmill.formats.publications import pdf
from warcmill.formats.publications.identifiers import cleaned


def pdfs() -> dict[str, bytes]:
    """The PDFs that the sample's crawls got, by URL."""
    found = dict[str, bytes]()
    for path in sorted(SAMPLE.rglob("*.warc.gz")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                kind = (record.http_headers and record.http_headers.get_header("Content-Type")) or ""
                is_one = record.rec_type == "response" and kind.startswith(("application/pdf", "application/octet"))
                body = record.content_stream().read() if is_one else b""
                if body.startswith(b"%PDF"):
                    found[record.rec_headers.get_header("WARC-Target-URI")] = body
    return found


PDFS = pdfs()


def test_there_are_some() -> None:
    assert len(PDFS) > 2


@pytest.mark.parametrize("url", PDFS)
def test_pdfinfo_finds_the_same(url: str, tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(PDFS[url])
    done = subprocess.run(
        ["pdfinfo", "-isodates", str(file)], stdout=subprocess.PIPE, text=True, check=True, env={"LC_ALL": "C.UTF-8"}
    )
    told = dict(re.findall(r"^(\w+): +(\S.*)$", done.stdout, re.MULTILINE))
    read = pdf.read(PDFS[url])
    assert (read.fault, told["Encrypted"]) == ("", "no")
    for name, key in (("title", "Title"), ("authors", "Author"), ("subject", "Subject")):
        assert "; ".join(read.properties.get(name, ())) == cleaned(told.get(key, ""))
    assert "".join(read.properties.get("date", ())) == told.get("CreationDate", "")[:10]
