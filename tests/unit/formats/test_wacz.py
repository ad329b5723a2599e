"""The file format of a WACZ, read back by zipfile, gzip and json."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zipfile
from pathlib import Path
from zipfile import ZipFile

import pytest
from packing.packages import HOSTILE

from warcmill.formats import wacz
from warcmill.formats.wacz import EXTRA, SEEDS, Page

LINES = [
    b'x,a)/%05d 20161019234428 {"url": "http://a.x/", "filename": "a.warc.gz"}\n' % number for number in range(2500)
]
PAGE = Page("20161019234428", "http://a.x/\u00e9")
OTHER = Page("20161019234429", "http://a.x/b", "A title", "Words of a page")


def made(warcs: dict[str, bytes], lines: list[bytes], pages: tuple[Page, ...] = ()) -> io.BytesIO:
    target = io.BytesIO()
    with wacz.writing(target) as archive:
        for name, data in warcs.items():
            with archive.warc(name, len(data)) as write:
                for at in range(0, len(data), 1000):
                    write(data[at : at + 1000])
        assert archive.index(lines) == len(lines)
        assert archive.pages(EXTRA, [OTHER], has_text=True) == 1
        assert archive.pages(SEEDS, pages) == len(pages)
        archive.finish("daily 20161019234428", "2016-10-20T00:10:00Z")
    return target


def local_extra(file: io.BytesIO, member: zipfile.ZipInfo) -> int:
    """The length of the extra field in a member's local header, APPNOTE 4.3.7."""
    file.seek(member.header_offset + 28)
    return int.from_bytes(file.read(2), "little")


def test_a_reader_of_the_central_directory_learns_where_data_begins() -> None:
    """wabac.js expects no extra field in the local header of a member that has none in the central directory."""
    file = made({"a.warc.gz": b"a" * 2500}, LINES, (PAGE,))
    with ZipFile(file) as archive:
        extras = {one.filename: (bool(one.extra), bool(local_extra(file, one))) for one in archive.infolist()}
    assert extras["indexes/index.idx"] == (True, True)
    assert [name for name, (central, local) in extras.items() if local and not central] == []


@pytest.mark.parametrize("size", [wacz._LARGE, wacz._LARGE + 1, int(zipfile.ZIP64_LIMIT / 1.05), zipfile.ZIP64_LIMIT])
def test_so_it_does_of_a_large_warc(size: int) -> None:
    """Promised lengths alone: a gigabyte is not written for it."""
    file = io.BytesIO()
    with wacz.writing(file) as archive, archive.warc("a.warc.gz", size) as write:
        write(b"a")
    with ZipFile(file) as archive:
        (one,) = archive.infolist()
        assert bool(one.extra) == bool(local_extra(file, one)) == (size > wacz._LARGE)


def test_it_holds_what_the_specification_asks_for() -> None:
    with ZipFile(made({"a.warc.gz": b"a" * 2500, "b.warc": b"b"}, LINES, (PAGE,))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [
            *("archive/a.warc.gz", "archive/b.warc", "indexes/index.cdx.gz", "indexes/index.idx"),
            *("pages/extraPages.jsonl", "pages/pages.jsonl", "datapackage.json", "datapackage-digest.json"),
        ]
        assert {one.compress_type for one in archive.infolist()} == {zipfile.ZIP_STORED}
        assert {one.date_time for one in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        package, digest = archive.read("datapackage.json"), json.loads(archive.read("datapackage-digest.json"))
        about = json.loads(package)
        assert digest == {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(package).hexdigest()}"}
        assert {one["path"] for one in about["resources"]} == set(archive.namelist()[:6])
        for one in about["resources"]:
            data = archive.read(one["path"])
            assert (one["bytes"], one["hash"]) == (len(data), f"sha256:{hashlib.sha256(data).hexdigest()}")
        assert len({one["name"] for one in about["resources"]}) == 6
        told = (about["profile"], about["wacz_version"], about["title"], about["created"])
        assert told == ("data-package", "1.1.1", "daily 20161019234428", "2016-10-20T00:10:00Z")
        header, page = map(json.loads, archive.read("pages/pages.jsonl").splitlines())
        assert header == {"format": "json-pages-1.0", "id": "pages", "title": "Pages"}
        assert (page["url"], page["ts"], len(page["id"])) == (PAGE.url, "2016-10-19T23:44:28Z", 16)
        header, page = map(json.loads, archive.read("pages/extraPages.jsonl").splitlines())
        assert header == {"format": "json-pages-1.0", "id": "extra-pages", "title": "Extra pages", "hasText": True}
        assert (page["title"], page["text"]) == (OTHER.title, OTHER.text)


def test_each_part_of_the_index_is_read_alone_where_its_summary_has_it() -> None:
    long = [b'x,b)/%s 20161019234428 {"url": "http://b.x/"}\n' % (b"u" * (600 << 10)) for _ in range(3)]
    with ZipFile(made({}, LINES + long)) as archive:
        data = archive.read("indexes/index.cdx.gz")
        meta, *entries = archive.read("indexes/index.idx").splitlines()
    assert gzip.decompress(data) == b"".join(LINES + long)
    assert json.loads(meta.removeprefix(b"!meta 0 ")) == {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}
    numbers = []
    for entry in entries:
        begin, _, text = entry.partition(b" {")
        about = json.loads(b"{" + text)
        part = data[about["offset"] : about["offset"] + about["length"]]
        assert about["digest"] == f"sha256:{hashlib.sha256(part).hexdigest()}"
        lines = gzip.decompress(part).splitlines()
        assert lines[0].startswith(begin + b" {")
        numbers.append(len(lines))
    assert numbers == [1024, 1024, 452 + 2, 1]


def test_the_same_input_gives_the_same_bytes() -> None:
    first, second = (made({"a.warc.gz": b"a"}, LINES, (PAGE,)).getvalue() for _ in range(2))
    assert first == second


def test_any_name_of_a_file_is_kept() -> None:
    warcs = {name: name.encode() for name in HOSTILE}
    with ZipFile(made(warcs, [])) as archive:
        assert {name.removeprefix("archive/"): archive.read(name) for name in archive.namelist()[: len(warcs)]} == warcs


def test_more_bytes_than_a_zip_of_old_can_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 3000)
    path = tmp_path / "a.wacz"
    path.write_bytes(made({"a.warc.gz": b"a" * 4000, "b.warc.gz": b"b"}, LINES).getvalue())
    with ZipFile(path) as archive:
        assert archive.testzip() is None
        info = archive.getinfo("archive/a.warc.gz")
        assert (info.file_size, info.extract_version, info.extra != b"") == (4000, zipfile.ZIP64_VERSION, True)
        assert archive.getinfo("archive/b.warc.gz").header_offset > 3000
