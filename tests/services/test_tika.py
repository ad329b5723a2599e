"""Office documents by the real tika-app: its words, hostile ones, and the line that is told late to use it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import preloaded
import pytest
from records import office_documents as made
from records.captures import response
from records.pdfs import pdf
from records.warcs import warc_gz, warcinfo

from servers import packages
from warcmill.base.worker import WorkerLimits
from warcmill.extracts.tika import LIMITS, Tika, TikaWorkers
from warcmill.formats.text import document
from warcmill.formats.text.document import Document, Kind

KINDS = {
    "doc": ("application/msword", made.doc),
    "docx": ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", made.docx),
    "epub": ("application/epub+zip", made.epub),
    "odt": ("application/vnd.oasis.opendocument.text", made.odt),
    "pptx": ("application/vnd.openxmlformats-officedocument.presentationml.presentation", made.pptx),
    "rtf": ("application/rtf", made.rtf),
    "xlsx": ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", made.xlsx),
}
URL = "http://office.example/"
ENTITY = '<!DOCTYPE w [<!ENTITY x SYSTEM "{}">]>'
LAUGHS = (
    '<!DOCTYPE w [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {new} "{f"&{old};" * 50}">' for old, new in zip("abcdefg", "bcdefgh", strict=True))
    + "]>"
)


@pytest.fixture(scope="module")
def jar() -> str:
    return str(packages.tika())


@pytest.fixture(scope="module")
def tika(jar: str) -> Iterator[TikaWorkers]:
    """One Java for all documents: each test finds it alive, whatever the one before has sent."""
    with TikaWorkers(Tika(jar), 1) as workers:
        yield workers


def ask(workers: TikaWorkers, data: bytes) -> Document:
    return workers.submit(Kind.OFFICE, data, "").result(1_800)


@pytest.mark.parametrize("kind", KINDS)
def test_it_reads_documents_of_each_kind(kind: str, tika: TikaWorkers) -> None:
    data = KINDS[kind][1](f"zymurgy of {kind}")
    assert document.begins_as_office(data)
    assert ask(tika, data).text.split()[-3:] == ["zymurgy", "of", kind]


def test_it_finds_title_and_language(tika: TikaWorkers) -> None:
    german = "Wir haben in der Nacht lange nach den alten Zeitungen gesucht, und sie am Ende doch noch gefunden. " * 3
    found = ask(tika, b"{\\rtf1\\ansi{\\info{\\title Of beer}}\\pard %s\\par}" % german.encode())
    assert (found.title, found.language, found.is_cut) == ("Of beer", "de", False)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (made.docx("A" * 120_000_000), "the maximum length"),
        (made.docx("B" * 11_000_000), "zip bomb"),
        (made.docx("C" * 100)[:300], "Tika"),
        (made.doc("cut off")[:3_000], "Tika cannot read it: "),
        (made.docx("&x;", ENTITY.format("file:///etc/passwd")), "DOCTYPE"),
        (made.odt("&x;"), "entity"),
        (made.docx("&h;", LAUGHS), "DOCTYPE"),
        (b"<html><p>a page", "no office document, but text/html"),
        (pdf("a paper"), "no office document, but application/pdf"),
        (made.zipped({"a": "1", "b": "2"}), "no office document, but application/zip"),
        (b"", "Tika cannot read it: "),
        (b"\0" * 5_000, "no office document"),
    ],
    ids=lambda value: "" if isinstance(value, str) else f"{len(value)} bytes",
)
def test_a_hostile_document_is_named_and_costs_no_other(data: bytes, why: str, tika: TikaWorkers) -> None:
    found = ask(tika, data)
    assert (found.text, why in found.why) == ("", True), found.why
    assert ask(tika, made.rtf("after it")).text == "after it"


def test_an_entity_is_fetched_from_nowhere(tika: TikaWorkers) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/x"
        for data in (made.docx("&x;", ENTITY.format(address)), made.odt("&x;", ENTITY.format(address))):
            ask(tika, data)
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_document_that_takes_too_long_is_ended(jar: str) -> None:
    """Java has to load hundreds of classes for its first document: no less than no time."""
    with TikaWorkers(Tika(jar), 1, WorkerLimits(0, LIMITS.wall, LIMITS.memory)) as workers:
        assert ask(workers, made.docx("words")).why == "timeout: over 0 s of CPU time"


class Line:
    """A line with one imported launch: a page, a PDF, and documents of each kind."""

    def __init__(self, folder: Path) -> None:
        self.base, source = folder / "line", folder / "warcs"
        source.mkdir()
        papers = [
            response(f"{URL}{kind}", f"Content-Type: {type_}".encode(), body=make(f"zymurgy quokka{kind}"))
            for kind, (type_, make) in KINDS.items()
        ]
        page = response(URL, b"Content-Type: text/html", body=b"<p>quokkapage")
        paper = response(f"{URL}pdf", b"Content-Type: application/pdf", body=pdf("quokkapdf"))
        (source / "office.warc.gz").write_bytes(warc_gz(warcinfo(), page, paper, *papers))
        self.warcmill("init", str(self.base))
        self.launch = json.loads(self.warcmill("import", str(source), "--job", "office", "--json"))["launch"]
        for _ in range(2):  # the second publishes what the first has indexed
            self.scan()

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "LUIGI_CONFIG_PATH": str(self.base / "luigi.cfg")}
        return preloaded.run("commands.main", *words, env=environment)

    def warcmill(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def scan(self) -> None:
        self.warcmill("scan", self.launch.partition("/")[2][:4])

    def urls(self, word: str) -> list[str]:
        return [one["url"] for one in json.loads(self.run("search", word, "--json").stdout)["found"]]

    def markers(self) -> dict[str, bytes]:
        """The markers of the launch, by name."""
        found = (self.base / "state").glob("????-??/office/*/index.*")
        return {path.name: path.read_bytes() for path in found}

    def claim(self, markers: dict[str, bytes]) -> Any:
        (name,) = (name for name in markers if name.startswith("index.text.office"))
        return json.loads(markers[name].rpartition(b"\n")[0].rpartition(b"\n")[0])["claim"]


def test_switched_on_late_one_scan_finds_the_words_and_redoes_no_marker(jar: str, tmp_path: Path) -> None:
    line = Line(tmp_path)
    before = line.markers()
    (item,) = line.claim(before)["items"]
    assert item["facts"]["documents"] == {"html": 1, "office": len(KINDS), "pdf": 1}
    assert (line.urls("quokkadocx"), line.urls("quokkapage"), line.urls("quokkapdf")) == ([], [URL], [f"{URL}pdf"])
    assert (
        "[text] tika is not set: office documents are counted, and have no text" in line.run("doctor", "--json").stdout
    )

    config = line.base / "luigi.cfg"
    config.write_text(config.read_text().replace("[text]\n", f"[text]\ntika={jar}.not-there\n"))
    refused = line.run("status", "2016-10-19")
    assert (refused.returncode, f"[text] tika: is set, and {jar}.not-there" in refused.stderr) == (3, True)
    config.write_text(config.read_text().replace(f"{jar}.not-there", jar))
    assert "tika-app 3.2.2, by openjdk" in line.run("doctor", "--json").stdout
    line.scan()
    for kind in KINDS:
        assert line.urls(f"quokka{kind}") == [f"{URL}{kind}"]
    assert sorted(line.urls("zymurgy")) == sorted(f"{URL}{kind}" for kind in KINDS)
    assert line.markers() == before

    config.write_text(config.read_text().replace(f"tika={jar}\n", ""))
    line.scan()
    assert line.urls("quokkadocx") == [f"{URL}docx"], "switched off it loses nothing"
