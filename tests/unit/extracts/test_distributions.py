"""The extract of a package index's answers: pages, files, ends of files, and answers that are wrong."""

from __future__ import annotations

import gzip
import hashlib
import io
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from mirroring import index_answers as index
from mirroring.index_answers import file, file_url, page, page_url, refused
from records.captures import response
from records.warcs import chunked, warc_gz

from warcmill.errors import BadInput, NotReady
from warcmill.extracts import distributions
from warcmill.extracts.distributions import FACTS, FactTally, IndexAnswer
from warcmill.extracts.extracts import Extracts
from warcmill.formats.pypi.simple_page import MEDIA_TYPE
from warcmill.formats.warc import gate
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

WHEEL = "alpha-1.0-py3-none-any.whl"
JSON = b"Content-Type: " + MEDIA_TYPE.encode()


@pytest.fixture
def extracts(tmp_path: Path) -> Extracts:
    sentinel.adopt({"index": tmp_path / "index", "store": tmp_path / "store"})
    return Extracts(FileStore("index", tmp_path / "index"))


def made(extracts: Extracts, *records: bytes) -> tuple[list[IndexAnswer], FactTally]:
    """The answers in the extract of a WARC with these records."""
    return made_of(extracts, warc_gz(*records))


def made_of(extracts: Extracts, data: bytes) -> tuple[list[IndexAnswer], FactTally]:
    """The answers in the extract of a WARC."""
    digest = hashlib.sha512(data).hexdigest()
    store = FileStore("store", extracts.folder.parent / "store")
    store.commit_new(f"{digest[:9]}.warc.gz", io.BytesIO(data), len(data), digest)
    distributions.make(extracts, store, f"{digest[:9]}.warc.gz", digest)
    return [*distributions.answers(extracts, digest)], distributions.tally(extracts, digest)


def test_the_sound_answers_of_a_damaged_warc_are_taken_and_its_bad_records_counted(extracts: Extracts) -> None:
    content, damaged = index.wheel("alpha", "1.0", "beta>=1"), bytearray(warc_gz(refused(page_url("beta"), 404)))
    damaged[-8] ^= 0xFF
    whole = warc_gz(page("Alpha", 7, {WHEEL: content})), warc_gz(file(WHEEL, content))
    answers, tally = made_of(extracts, whole[0] + damaged + whole[1])
    assert [bool(answer.page) for answer in answers] == [True, False]
    assert [answer.offset for answer in answers] == [0, len(whole[0]) + len(damaged)]
    assert tally == FactTally(pages=1, files=1, without_facts=0, other=0, bad=1)


def test_pages_and_files(extracts: Extracts) -> None:
    content, source = index.wheel("alpha", "1.0", "beta>=1"), index.sdist("alpha", "1.0")
    (a_page, a_wheel, an_sdist, gone), tally = made(
        extracts,
        page("Alpha", 7, {WHEEL: content, "alpha-1.0.tar.gz": source}, yanked="broken", size=5),
        file(WHEEL, content),
        file("alpha-1.0.tar.gz", source),
        refused(page_url("beta"), 404),
    )
    assert tally == FactTally(pages=1, files=2, without_facts=0, other=1)
    assert a_page.page
    assert a_page.page.page
    assert (a_page.page.page.project, a_page.page.page.serial, a_page.page.page.unfit) == ("alpha", 7, 0)
    listed = a_page.page.page.files[0]
    assert (listed.filename, listed.url, listed.yanked) == (WHEEL, file_url(WHEEL), "broken")
    assert a_wheel.file
    assert a_wheel.file.sha256 == listed.sha256 == hashlib.sha256(content).hexdigest()
    assert (a_wheel.file.facts.requires_dist, a_wheel.file.facts.modules) == (("beta>=1",), ("alpha",))
    assert an_sdist.file
    assert an_sdist.file.facts.modules == ("alpha",)
    assert (gone.status, gone.page, gone.file) == (404, None, None)


def test_the_end_of_a_wheel_has_its_facts_and_no_digest(extracts: Extracts) -> None:
    content = index.wheel("alpha", "1.0", "beta", padding=200_000)
    (tail, early), tally = made(
        extracts, file(WHEEL, content, len(content) - 65536), file(WHEEL, content, len(content) - 30)
    )
    assert tail.file
    assert (tail.file.sha256, tail.file.size, tail.file.fault) == (None, len(content), "")
    assert tail.file.facts.requires_dist == ("beta",)
    assert early.file
    assert early.file.fault.startswith(f"the answer begins at byte {len(content) - 30}, and the file is needed from ")
    assert tally.without_facts == 1


def test_codings_are_undone_but_a_file_is_never_unpacked(extracts: Extracts) -> None:
    source = index.sdist("alpha", "1.0")
    body = b'{"name": "alpha", "files": []}'
    answers, _ = made(
        extracts,
        response(page_url("alpha"), JSON, b"Content-Encoding: gzip", body=gzip.compress(body)),
        response(file_url("alpha-1.0.tar.gz"), b"Content-Encoding: gzip", body=source),
        response(file_url("alpha-1.0.tar.gz"), b"Transfer-Encoding: chunked", body=chunked(source)),
    )
    assert answers[0].page
    assert answers[0].page.page
    for answer in answers[1:]:
        assert answer.file
        assert answer.file.sha256 == hashlib.sha256(source).hexdigest()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"<html>", "the page is no JSON: "),
        (b"[" * 100_000, "the page is no JSON: "),
        (b"[]", "the page has no name of a project"),
        (b'{"name": "../x", "files": []}', "the page has no name of a project"),
        (b'{"name": "alpha", "files": {}}', "the page has no name of a project"),
    ],
)
def test_a_page_that_is_none_has_a_reason(extracts: Extracts, body: bytes, why: str) -> None:
    (answer,), tally = made(extracts, response(page_url("alpha"), JSON, body=body))
    assert answer.page
    assert answer.page.page is None
    assert answer.page.why.startswith(why)
    assert tally.without_facts == 1


def test_html_for_json_is_neither_a_page_nor_a_file(extracts: Extracts) -> None:
    (answer,), _ = made(extracts, response(page_url("alpha"), b"Content-Type: text/html", body=b"<html>"))
    assert (answer.page, answer.file, answer.status, answer.media_type) == (None, None, 200, "text/html")


def test_files_that_are_not_as_the_standard_has_them_are_left_out(extracts: Extracts) -> None:
    bad = b'1, {}, {"filename": "a/b", "url": "x"}, {"filename": "x\\u0000", "url": "x"}, {"filename": "a", "url": 1}'
    bad += b', {"filename": "alpha-1.zip", "url": "http://[", "hashes": 1}'
    good = b'{"filename": "alpha-2.zip", "url": "f", "size": -1}'
    body = b'{"meta": {"_last-serial": "7"}, "name": "alpha", "files": [' + bad + b", " + good + b"]}"
    (answer,), _ = made(extracts, response(page_url("alpha"), JSON, body=body))
    assert answer.page
    read = answer.page.page
    assert read
    assert (read.serial, read.unfit, [one.filename for one in read.files]) == (None, 6, ["alpha-2.zip"])
    assert read.files[0].sha256 is read.files[0].size is None


def test_records_that_are_cut_are_a_fault_of_the_answer(extracts: Extracts) -> None:
    content = index.wheel("alpha", "1.0")
    part = b"Content-Range: bytes 0-9/99"
    (cut, middle), _ = made(
        extracts,
        response(file_url(WHEEL), body=content[:50], WARC_Truncated="length"),
        response(file_url(WHEEL), part, body=content[:10], status=b"HTTP/1.1 206 Partial Content"),
    )
    assert cut.file
    assert (cut.file.fault, cut.file.sha256) == ("the record is cut: length", None)
    assert middle.file
    assert middle.file.fault == "the answer is a part of the file, and not its end"


def test_a_large_file_takes_no_memory(extracts: Extracts) -> None:
    content = index.wheel("alpha", "1.0", padding=80 << 20)
    record = file(WHEEL, content)
    tracemalloc.start()
    try:
        hearer = distributions.DistributionHearer(extracts)
        data = io.BytesIO(record)
        before = tracemalloc.get_traced_memory()[0]
        verdict = gate.examine(data, "a.warc", hearers=[hearer])
        assert verdict.ok
        assert tracemalloc.get_traced_memory()[1] - before < 24 << 20
    finally:
        tracemalloc.stop()
        hearer.close()


def test_an_extract_that_is_missing_or_damaged(extracts: Extracts) -> None:
    with pytest.raises(NotReady):
        distributions.tally(extracts, "0" * 128)
    for content in (b"", b"{}\n", b' {"pages": 1, "files": 0, "without_facts": 0, "other": 0}\n', b' {"pages": 0}\n'):
        extracts.leave(FACTS, "0" * 128, [content])
        with pytest.raises(BadInput):
            distributions.tally(extracts, "0" * 128)
        extracts.remove(FACTS, "0" * 128)


def test_the_metadata_beside_a_wheel_is_a_file_of_its_own(extracts: Extracts) -> None:
    paper = b"Metadata-Version: 2.1\nName: Alpha\nVersion: 1.0\nRequires-Dist: beta>=1\n\nAbout it.\n"
    name = f"{WHEEL}.metadata"
    (beside, part, other), tally = made(
        extracts, file(name, paper), file(name, paper, begin=20), file("alpha-1.0.tar.gz.metadata", paper)
    )
    assert tally == FactTally(pages=0, files=2, without_facts=1, other=1)
    assert beside.file
    assert beside.file.sha256 == hashlib.sha256(paper).hexdigest()
    assert (beside.file.filename, beside.file.facts.requires_dist, beside.file.facts.modules) == (
        name, ("beta>=1",), None
    )  # fmt: skip
    assert part.file
    assert part.file.fault == "status 206"
    assert other.file is None


def test_the_end_of_a_wheel_that_lacks_its_metadata_has_its_modules(extracts: Extracts) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("alpha-1.0.dist-info/METADATA", "Name: alpha\n")
        archive.writestr("alpha/__init__.py", bytes(9_000))
    content = stream.getvalue()
    (answer,), tally = made(extracts, file(WHEEL, content, begin=5_000))
    assert answer.file
    assert answer.file.fault.endswith("and the file is needed from 0 on")
    assert answer.file.facts.modules == ("alpha",)
    assert tally.without_facts == 0
