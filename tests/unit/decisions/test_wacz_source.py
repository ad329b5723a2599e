"""WACZ files become a launch: what is taken, what is bad and named, and what the zip may not do."""

from __future__ import annotations

import gzip
import hashlib
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZIP_BZIP2, ZIP_DEFLATED

import pytest
from packing import foreign_waczs as foreign
from records.captures import response
from records.warcs import warc_gz, warcinfo

from warcmill import layout
from warcmill.decisions import folder_import
from warcmill.decisions.folder_layouts import ImportOrder, ImportResult
from warcmill.decisions.intake import Advance
from warcmill.decisions.wacz_source import WaczFiles
from warcmill.errors import BadInput, Unavailable, WarcmillError
from warcmill.formats import foreign_wacz
from warcmill.markers.facts.operator import Imported
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

LAUNCH = Launch("old", "20161019234428")  # the date of every record


def warc(*urls: str) -> bytes:
    return warc_gz(warcinfo(), *(response(url, b"Content-Type: text/html", body=url.encode()) for url in urls))


A, B = warc("http://a.example/1", "http://a.example/2"), warc("http://b.example/")
FIRST = len(warc_gz(warcinfo()))  # where the second record of each begins
PAGES = foreign.pages(("2016-10-19T23:44:28Z", "http://a.example/1", "One"))
MEMBERS = {
    "archive/a.warc.gz": A,
    "archive/b.warc.gz": B,
    "pages/pages.jsonl": PAGES,
    "pages/extraPages.jsonl": foreign.pages(),
    "logs/crawl-20161019.log": b'{"logLevel": "info"}\n',
}


@dataclass
class Bench:
    base: Path

    @property
    def state(self) -> MarkerStore:
        return MarkerStore(FileStore("state", self.base / "state"))

    @property
    def launch(self) -> Path:
        return self.base / "imported" / str(LAUNCH)

    def wacz(
        self, members: Mapping[str, bytes] | Sequence[tuple[str, bytes]], name: str = "x.wacz", method: int = 0
    ) -> Path:
        path = self.base / name
        path.parent.mkdir(exist_ok=True)
        return foreign.write(path, members, method)

    def import_(self, *files: Path) -> ImportResult:
        @contextmanager
        def shown(_: int) -> Iterator[Advance]:
            yield lambda _: None

        root = FileStore("output", self.base / "imported")
        with closing(WaczFiles(files or (self.base / "x.wacz",))) as source:
            order = ImportOrder("old", "curator")
            return folder_import.import_folder(self.state, root, source, order, shown)

    def facts(self) -> Imported:
        return Imported.from_claim(self.state.require(layout.key("operator.Import", LAUNCH)).claim)

    def files(self, kind: str) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted((self.launch / kind).iterdir())}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    sentinel.adopt({"state": tmp_path / "state"})
    sentinel.adopt({"output": tmp_path / "imported", "jobs": tmp_path / "imported"})
    return Bench(tmp_path)


@pytest.mark.parametrize("method", [0, ZIP_DEFLATED])
def test_warcs_pages_and_logs_become_a_launch(bench: Bench, method: int) -> None:
    members = foreign.whole(MEMBERS)
    bench.wacz(members, method=method)
    bench.import_()
    assert bench.files("warcs") == {"a.warc.gz": A, "b.warc.gz": B}
    assert bench.files("logs") == {"crawl-20161019.log": MEMBERS["logs/crawl-20161019.log"]}
    assert bench.files("reports") == {
        "datapackage-digest.json": members["datapackage-digest.json"],
        "datapackage.json": members["datapackage.json"],
        "extraPages.jsonl": foreign.pages(),
        "pages.jsonl": PAGES,
    }
    facts = bench.facts()
    assert (facts.layout, facts.source, facts.missing, facts.left_out, facts.remarks) == (
        "wacz",
        str(bench.base),
        (),
        (),
        (),
    )
    assert sorted(facts.origins.values()) == ["x.wacz/archive/a.warc.gz", "x.wacz/archive/b.warc.gz"]
    assert facts.papers["reports/pages.jsonl"] == "x.wacz/pages/pages.jsonl"
    again = bench.import_()
    assert (again.claim, sorted(again.known)) == (None, sorted(facts.origins.values()))


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("archive/b.warc.gz", "its sha256 is "),
        ("pages/pages.jsonl", "its sha256 is "),
        ("logs/crawl-20161019.log", "its sha256 is "),
    ],
)
def test_a_file_of_another_digest_is_missing_and_the_rest_is_taken(bench: Bench, path: str, why: str) -> None:
    members = foreign.whole(MEMBERS)
    members[path] = members[path][:-1] + b"#"
    bench.wacz(members)
    bench.import_()
    (missing,) = bench.facts().missing
    assert missing.startswith(f"x.wacz/{path}: {why}")
    found = {*bench.files("warcs"), *bench.files("logs" if "logs" not in path else "reports"), *bench.files("reports")}
    assert path.rpartition("/")[2] not in found
    assert "a.warc.gz" in found


def test_lengths_old_packages_and_other_algorithms_are_compared_too(bench: Bench) -> None:
    def about(path: str, **more: object) -> dict[str, object]:
        return {"path": path, **more}

    resources = [
        about("archive/a.warc.gz", stats={"hash": foreign.sha256(A), "bytes": len(A)}),
        about("archive/b.warc.gz", hash=f"md5:{hashlib.md5(B).hexdigest()}", bytes=len(B) + 1),
        about("pages/pages.jsonl", hash=hashlib.sha512(b"another").hexdigest()),
        about("pages/extraPages.jsonl", hash="crc64:0011223344556677"),
        about("archive/gone.warc.gz", hash=foreign.sha256(b"")),
    ]
    bench.wacz({**MEMBERS, "datapackage.json": json.dumps({"resources": resources}).encode()})
    bench.import_()
    assert sorted(text.split(" ")[0] for text in bench.facts().missing) == [
        "x.wacz/archive/b.warc.gz:",
        "x.wacz/archive/gone.warc.gz:",
        "x.wacz/pages/pages.jsonl:",
    ]
    said = "2 of its 6 files have no digest in datapackage.json that is known, such as pages/extraPages.jsonl"
    assert bench.facts().remarks == (f"x.wacz: {said}",)
    assert f"it has {len(B)} bytes, and datapackage.json declares {len(B) + 1}" in " ".join(bench.facts().missing)


def test_a_package_that_is_missing_damaged_doubled_or_not_itself_is_named_and_its_differences_are_remarks(
    bench: Bench,
) -> None:
    whole = foreign.whole(MEMBERS)
    lying = foreign.package({**MEMBERS, "archive/a.warc.gz": b"another"})
    cases: dict[str, tuple[Mapping[str, bytes] | Sequence[tuple[str, bytes]], list[str], list[str]]] = {
        "none": (MEMBERS, [], ["none.wacz: it has no datapackage.json, so no digest was compared"]),
        "bad": (
            {**MEMBERS, "datapackage.json": b"{"},
            ["bad.wacz/datapackage.json: it is not the JSON of a data package, so no digest was compared"],
            [],
        ),
        "two": (
            [*whole.items(), ("datapackage.json", lying)],
            [
                "two.wacz/(2)/datapackage.json: one of 2 of this name; none is believed",
                "two.wacz/datapackage.json: one of 2 of this name; none is believed",
            ],
            [],
        ),
        "unfit": (
            {**whole, "datapackage.json": lying},
            ["unfit.wacz/datapackage.json: its sha256 is "],
            ["unfit.wacz/archive/a.warc.gz: it has "],
        ),
    }
    for name, (members, missing, remarks) in cases.items():
        path = bench.wacz(members, f"{name}.wacz")
        source = WaczFiles([path])
        for entry in source.find().warcs:
            with source.open(entry.path) as stream:
                assert stream.read() in (A, B)
                assert stream.read(1) == b""
        found = source.find()
        noted = [*found.remarks, *found.compare({}, bench.base)]
        assert [text[: len(start)] for text, start in zip(sorted(found.missing), missing, strict=True)] == missing
        assert [text[: len(start)] for text, start in zip(noted, remarks, strict=True)] == remarks
        source.close()


def test_names_are_labels_never_places(bench: Bench) -> None:
    names = [
        "../../../up.warc.gz",
        "/etc/absolute.warc.gz",
        "archive\\back\\slash.warc.gz",
        "one/same.warc.gz",
        "two/same.warc.gz",
        "archive/Case.warc.gz",
        "archive/case.warc.gz",
    ]
    members = [(name, warc(f"http://{number}.example/")) for number, name in enumerate(names)]
    members += [
        ("archive/a.warc.gz", A),
        ("archive/a.warc.gz", B),
        ("logs/crawl.log.cp00001-20161020204551", b"x"),
        ("logs/frontier.lck", b"x"),
        ("logs/deep/crawl.log", b"y"),
        ("logs/crawl.log", b"z"),
        ("archive/.hidden.warc.gz", A),
        ("archive/folder/", b""),
    ]
    bench.wacz(members)
    bench.import_()
    names_of = {origin: file.name for file, origin in bench.facts().origins.items()}
    assert {"up.warc.gz", "absolute.warc.gz", "slash.warc.gz", "same.warc.gz"} <= {*names_of.values()}
    assert {"Case.warc.gz", "case.warc.gz", "a.warc.gz"} <= {*names_of.values()}
    assert names_of["x.wacz/(2)/archive/a.warc.gz"] != names_of["x.wacz/archive/a.warc.gz"]
    assert names_of["x.wacz/two/same.warc.gz"].endswith("-same.warc.gz")
    assert len(bench.files("warcs")) == 9
    logs = bench.files("logs")
    assert {"crawl.log.cp00001-20161020204551.log", "frontier.lck.log", "crawl.log"} <= logs.keys()
    assert sorted(logs.values()) == [b"x", b"x", b"y", b"z"]
    assert not [path for path in bench.base.rglob("*up.warc*") if path.parent.name != "warcs"]
    remarks = " ".join(bench.facts().remarks)
    assert "x.wacz/../../../up.warc.gz: its path leads out of the WACZ; it is taken by its name alone" in remarks


def changed(data: bytes, at: int, form: str, value: int) -> bytes:
    return data[:at] + struct.pack(form, value) + data[at + struct.calcsize(form) :]


def of_directory(data: bytes, name: str) -> int:
    """Where the entry of a member begins in the list of members, APPNOTE 4.3.12."""
    return data.rindex(name.encode()) - 46


def test_what_cannot_be_unpacked_is_missing_by_name(bench: Bench) -> None:
    path = bench.wacz(
        {**MEMBERS, "archive/c.warc": b"\0" * (40 << 20), "archive/d.warc.zst": b"x"}, method=ZIP_DEFLATED
    )
    data = path.read_bytes()
    data = changed(data, of_directory(data, "archive/b.warc.gz") + 8, "<H", 1)  # its flags say that it is encrypted
    path.write_bytes(data)
    bench.wacz({"archive/e.warc.gz": B, "archive/inner.wacz": b"x"}, "y.wacz", ZIP_BZIP2)
    bench.import_(path, bench.base / "y.wacz")
    missing = dict(text.split(": ", 1) for text in bench.facts().missing)
    assert missing.pop("x.wacz/archive/b.warc.gz").startswith("encrypted, so it cannot be read")
    assert missing.pop("x.wacz/archive/c.warc").endswith(
        "bytes that claim to unpack to 41,943,040, so they are not unpacked"
    )
    assert missing.pop("y.wacz/archive/e.warc.gz").startswith("packed by a method that is not read")
    assert missing.pop("y.wacz/archive/inner.wacz").startswith("packed once more in the WACZ")
    assert missing.pop("x.wacz/archive/d.warc.zst").startswith("packed once more in the WACZ")
    assert not missing
    assert bench.files("warcs") == {"a.warc.gz": A}


def test_a_damaged_member_is_missing_and_a_damaged_record_is_not(bench: Bench) -> None:
    damaged = A[: FIRST + 60] + b"#" + A[FIRST + 61 :]
    path = bench.wacz(foreign.whole({**MEMBERS, "archive/a.warc.gz": damaged}))
    data = path.read_bytes()
    at = data.index(B) + 50
    path.write_bytes(data[:at] + b"#" + data[at + 1 :])
    result = bench.import_()
    assert result.claim
    (item,) = result.claim.items
    assert (str(item.outcome), item.offset, item.file.name) == ("refused", FIRST, "a.warc.gz")
    (missing,) = bench.facts().missing
    assert missing.startswith("x.wacz/archive/b.warc.gz: damaged in the zip (Bad CRC-32")


def test_a_lying_index_is_named_in_one_line(bench: Bench) -> None:
    def line(name: str, offset: int, url: str) -> bytes:
        about = {"url": url, "filename": name, "offset": str(offset), "length": "9"}
        return f"example,a)/ 20161019234428 {json.dumps(about)}\n".encode()

    right = line("a.warc.gz", FIRST, "http://a.example/1") + line("b.warc.gz", FIRST, "http://b.example/")
    wrong = [
        line("a.warc.gz", FIRST, "http://other.example/"),
        line("a.warc.gz", 1, "http://a.example/1"),
        line("a.warc.gz", len(A) + 5, "http://a.example/3"),
        line("a.warc.gz", -5, "http://a.example/4"),
        line("a.warc.gz", 1 << 70, "http://a.example/4"),
        line("none.warc.gz", 0, "http://c.example/"),
    ]
    lying = right + b"".join(wrong) + b'!meta 0 {"format": "x"}\nno line\n'
    members = {"indexes/index.cdx": right, "indexes/index.cdx.gz": gzip.compress(lying, mtime=0)}
    bench.wacz(foreign.whole({**MEMBERS, **members}))
    bench.import_()
    (remark,) = bench.facts().remarks
    said = (
        "6 of its 9 lines name records that the WARCs do not have, such as a.warc.gz at offset -1, http://a.example/4"
    )
    end = "; the line makes its own index"
    assert remark == f"x.wacz/indexes/index.cdx.gz: {said} and 1 of its 9 lines cannot be read{end}"


def test_an_index_that_unpacks_without_end_is_not_read_to_its_end(bench: Bench) -> None:
    bomb = gzip.compress(b"\0" * (40 << 20), mtime=0)
    bench.wacz(foreign.whole({**MEMBERS, "indexes/index.cdx.gz": bomb}))
    bench.import_()
    (remark,) = bench.facts().remarks
    assert "it cannot be read (it is longer than an index of these WARCs can be)" in remark


def test_what_is_no_whole_wacz_is_refused_with_what_to_do(bench: Bench) -> None:
    whole = bench.wacz(foreign.whole(MEMBERS)).read_bytes()
    multi = foreign.package({"one.wacz": b"1", "two.wacz": b"2"}, profile="multi-wacz-package")
    cases = {
        "cut": (whole[: len(whole) // 2], "not a whole zip"),
        "empty": (b"", "not a whole zip"),
        "json": (multi, "a list of other WACZ files; get the WACZ itself again, whole"),
        "multi": (
            bench.wacz({"datapackage.json": multi, "one.wacz": b"1", "two.wacz": b"2"}, "m.wacz").read_bytes(),
            "a multi-WACZ, which only lists other WACZ files (one.wacz, two.wacz); unpack it, and import these by name",
        ),
        "long": (changed(whole, len(whole) - 10, "<I", 1 << 30), "not a whole zip"),
    }
    for name, (data, why) in cases.items():
        path = bench.base / f"{name}.wacz"
        path.write_bytes(data)
        with pytest.raises(BadInput, match=why.replace("(", r"\(").replace(")", r"\)")):
            bench.import_(path)
    assert not bench.launch.exists()
    bench.import_(bench.base / "cut.wacz", bench.base / "x.wacz")
    assert len(bench.files("warcs")) == 2
    assert [text.partition(":")[0] for text in bench.facts().missing] == ["cut.wacz"]


def test_without_a_warc_that_is_as_declared_there_is_no_launch(bench: Bench) -> None:
    bench.wacz({"pages/pages.jsonl": PAGES})
    with pytest.raises(BadInput, match="there is no WARC in it"):
        bench.import_()
    members = foreign.whole({"archive/a.warc.gz": A})
    bench.wacz({**members, "archive/a.warc.gz": B})
    with pytest.raises(BadInput, match=r"no WARC in it can be taken; x\.wacz/archive/a\.warc\.gz: it has "):
        bench.import_()
    assert not bench.launch.exists()
    assert [path.name for path in (bench.base / "imported").iterdir() if path.name.startswith(".import")] == []


def test_members_that_lie_on_each_other_are_no_zip(bench: Bench) -> None:
    data = bench.wacz({f"archive/{number}.warc": A for number in range(9)}).read_bytes()
    at = of_directory(data, "archive/0.warc") + 20
    path = bench.base / "x.wacz"
    path.write_bytes(changed(changed(data, at, "<I", len(data)), at + 4, "<I", len(data)))
    with pytest.raises(BadInput, match=r"not a whole zip \(its members overlap\)"):
        bench.import_()


def test_no_change_of_a_byte_gives_another_error_than_ours(bench: Bench) -> None:
    path = bench.wacz(foreign.whole({"archive/a.warc.gz": A, "pages/pages.jsonl": PAGES}), method=ZIP_DEFLATED)
    data = path.read_bytes()
    begin, outages = data.index(b"PK\1\2"), list[int]()
    for at in [*range(30), *range(begin, len(data))]:
        path.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        try:
            with closing(WaczFiles([path])) as source:
                for entry in source.find().warcs:
                    with source.open(entry.path) as stream:
                        stream.read()
                        stream.read(1)
        except Unavailable:
            outages.append(at)
        except WarcmillError:
            continue
    assert not outages


def test_a_list_of_members_without_end_is_not_read(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.wacz(foreign.whole(MEMBERS))
    monkeypatch.setattr(foreign_wacz, "_DIRECTORY", 100)
    with pytest.raises(BadInput, match="a list of members of"):
        bench.import_()
