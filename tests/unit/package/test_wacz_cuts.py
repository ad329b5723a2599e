"""Damaged WARCs in a WACZ of an archive with a hidden list: each sound and odd record but the hidden ones."""

from __future__ import annotations

import gzip
import io
import json
from collections import defaultdict
from pathlib import Path
from zipfile import ZipFile

import pytest
from indexing.indexed import Archive
from records import damaged
from records.damaged import DamagedFile

from warcmill.formats.warc import gate
from warcmill.package.wacz import WaczSources, contents, write
from warcmill.package.wacz_cuts import Cuts, _Left
from warcmill.versions import hidden_list

HIDDEN = damaged.url(3)  # it is whole in each file
FILES = {one.name: one for one in damaged.corpus() if one.name.endswith((".warc", ".warc.gz"))}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], list[tuple[str, str]]]:
    """The members of the WACZ, and what is reported as left out of it."""
    archive = Archive(tmp_path_factory.mktemp("archive"))
    launch = archive.add("20161020000000", {name: one.data for name, one in FILES.items()})
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,damaged)/3", "asked for", hides=True)
    target = io.BytesIO()
    sources = WaczSources(archive.state, archive.store, None, archive.base)
    written = write(sources, contents(archive.state, launch, None), target, lambda _: None)
    with ZipFile(target) as opened:
        return {name: opened.read(name) for name in opened.namelist()}, written.left_out


def test_every_readable_page_is_in_it_and_the_hidden_one_is_not(
    made: tuple[dict[str, bytes], list[tuple[str, str]]],
) -> None:
    members, _ = made
    found = defaultdict[str, set[str]](set)
    for line in gzip.decompress(members["indexes/index.cdx.gz"]).splitlines():
        fields = json.loads(line[line.index(b"{") :])
        begin, length = int(fields["offset"]), int(fields["length"])
        raw = members[f"archive/{fields['filename']}"][begin : begin + length]
        record = gzip.decompress(raw) if fields["filename"].endswith(".gz") else raw
        assert f"WARC-Target-URI: {fields['url']}\r\n".encode() in record
        found[fields["filename"]].add(fields["url"])
    assert dict(found) == {name: {*one.found} - {HIDDEN} for name, one in FILES.items()}


@pytest.mark.parametrize("name", FILES)
def test_what_is_left_has_no_bad_record(made: tuple[dict[str, bytes], list[tuple[str, str]]], name: str) -> None:
    data = made[0][f"archive/{name}"]
    verdict = gate.examine(io.BytesIO(data), name, again=lambda: io.BytesIO(data))
    assert verdict.ok or (verdict.rest and not verdict.rest.bad_records)
    whole = gzip.decompress(data) if name.endswith(".gz") else data
    assert HIDDEN.encode() not in whole


def test_bad_records_are_named_where_they_begin(made: tuple[dict[str, bytes], list[tuple[str, str]]]) -> None:
    left_out = defaultdict[str, list[str]](list)
    for name, why in made[1]:
        left_out[name].append(why)
    assert left_out.keys() == {name for name, one in FILES.items() if one.bad}
    for name, whys in left_out.items():
        bad: DamagedFile = FILES[name]
        (why,) = whys
        assert f"the first at offset {bad.bad[0]}: " in why
        assert "left out, as hidden captures cannot be found in them" in why


class OnePage:
    """A choice of one URL."""

    def has(self, url: str) -> bool:
        return url == HIDDEN

    def may_be_in(self, warc: str) -> bool:
        return warc != min(FILES)

    def meet(self, key: str) -> bool:
        return key.endswith(")/3")


def test_of_damaged_warcs_a_chosen_page_alone_is_left(tmp_path: Path) -> None:
    archive, target = Archive(tmp_path), io.BytesIO()
    launch = archive.add("20161020000000", {name: one.data for name, one in FILES.items()})
    sources, what = WaczSources(archive.state, archive.store, None, archive.base), contents(archive.state, launch, None)
    done: list[int] = []
    written = write(sources, what, target, done.append, choice=OnePage())
    with ZipFile(target) as opened:
        lines = gzip.decompress(opened.read("indexes/index.cdx.gz")).splitlines()
        names = {name.removeprefix("archive/") for name in opened.namelist() if name.startswith("archive/")}
        pages = opened.read("pages/pages.jsonl").splitlines()[1:]
        for name in names:
            data = opened.read(f"archive/{name}")
            verdict = gate.examine(io.BytesIO(data), name, again=lambda data=data: io.BytesIO(data))
            assert verdict.ok or (verdict.rest and not verdict.rest.bad_records)
    urls = [json.loads(line[line.index(b"{") :]) for line in lines]
    assert {(one["filename"], one["url"]) for one in urls} == {(name, HIDDEN) for name in FILES if name != min(FILES)}
    assert (names, written.warcs) == ({*FILES} - {min(FILES)}, len(FILES) - 1)
    assert {json.loads(one)["url"] for one in pages} == {HIDDEN}
    assert sum(done) == what.size


def test_what_is_left_is_a_file_of_its_own(tmp_path: Path) -> None:
    data, ranges = bytes(range(200)), [(0, 3), (10, 20), (20, 25), (190, 200)]
    (tmp_path / "x").write_bytes(data)
    kept = data[3:10] + data[25:190]
    with (tmp_path / "x").open("rb") as file:
        left = _Left(file, Cuts(ranges), len(data))
        assert left.seek(0, io.SEEK_END) == len(kept)
        for place in range(len(kept) + 3):
            left.seek(place)
            read = b"".join(iter(lambda: left.read(7), b""))
            assert read == kept[place:]
