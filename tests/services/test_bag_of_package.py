"""A bag in a tar whose payload is an E-ARK package: unpacked by GNU tar, judged by tools of the standards' authors."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from packing.bag_judges import fits_profile, is_valid
from packing.packages import HOSTILE, IDENTIFIER, package
from records.warcs import WEEKLY

from servers import judges
from warcmill.base import digests
from warcmill.formats.bagit import writer
from warcmill.formats.sip import eark
from warcmill.formats.sip.tar import CHUNK, PackageDocument, TarMember, TarStream, size_of

FILES: dict[tuple[eark.Kind, str], bytes] = {
    ("warcs", WEEKLY.name): WEEKLY.read_bytes(),
    **{("warcs", name): name.encode() for name in HOSTILE},
    ("viral", "BL-VIRAL.warc.gz"): b"bad",
    ("logs", "02.logs.zip"): b"PK",
}
ABOUT = (
    ("Source-Organization", "National Library & Archive"),
    ("External-Identifier", "ark:/99999/fk4package"),
    ("External-Description", "The weekly crawl"),
    ("Bag-Group-Identifier", "weekly.20261121081735"),
    ("Bagging-Date", "2026-11-21"),
    ("Bag-Software-Agent", "Warcmill 0.9"),
    ("BagIt-Profile-Identifier", writer.PROFILE),
)


def members(about: tuple[tuple[str, str], ...], *, by_reference: bool) -> Iterator[TarMember]:
    made = package(FILES)
    everything = eark.members(made.files, eark.documents(made))
    left_out = {one.path for one in made.files if one.kind != "logs"} if by_reference else set()
    entries = [
        writer.PayloadFile(
            f"data/{IDENTIFIER}/{one.path}",
            one.size,
            one.sha512,
            f"https://store.example/{number}" if one.path in left_out else "",
        )
        for number, one in enumerate(everything)
    ]
    for tag in writer.tag_files(about, entries):
        yield TarMember(f"{IDENTIFIER}/{tag.path}", tag.size, tag.sha512, tag.chunks)
    for one in everything:
        if one.path not in left_out:
            chunks = one.chunks if isinstance(one, PackageDocument) else partial(iter, (FILES[one.kind, one.name],))
            yield TarMember(f"{IDENTIFIER}/data/{IDENTIFIER}/{one.path}", one.size, one.sha512, chunks)


def bag(folder: Path, *, by_reference: bool = False, about: tuple[tuple[str, str], ...] = ABOUT) -> Path:
    """A bag, written as a tar and unpacked by GNU tar."""
    folder.mkdir()
    listed = list(members(about, by_reference=by_reference))
    with (folder / "bag.tar").open("wb") as file:
        tar = TarStream(listed, 1795248000)
        while chunk := tar.read(CHUNK):
            file.write(chunk)
    assert (folder / "bag.tar").stat().st_size == size_of((one.name, one.size) for one in listed)
    subprocess.run(["tar", "-xf", "bag.tar"], cwd=folder, check=True)
    return folder / IDENTIFIER


def test_a_bag_by_value_passes_every_judge(tmp_path: Path) -> None:
    home = bag(tmp_path / "bag")
    assert is_valid(home)
    assert fits_profile(home)
    report = judges.validate_sip(home / "data" / IDENTIFIER, tmp_path / "report")
    assert (report.result, report.errors, report.warnings) == ("VALID", (), ("CSIPSTR13", "CSIPSTR16"))


def test_a_bag_by_reference_is_the_one_by_value_once_it_is_filled(tmp_path: Path) -> None:
    whole, home = bag(tmp_path / "whole"), bag(tmp_path / "bag", by_reference=True)
    assert not is_valid(home), "it is not complete yet"
    assert fits_profile(home)
    lines = (home / "fetch.txt").read_text().splitlines()
    assert len(lines) == len(FILES) - 1
    for line in lines:
        _, size, path = line.split(" ", 2)
        assert (whole / path).stat().st_size == int(size)
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(whole / path, home / path)
    assert is_valid(home)
    assert contents(home / "data") == contents(whole / "data")
    assert (home / "manifest-sha512.txt").read_bytes() == (whole / "manifest-sha512.txt").read_bytes()


@pytest.mark.parametrize("label", [label for label, _ in ABOUT])
def test_the_profile_asks_for_every_label(label: str, tmp_path: Path) -> None:
    home = bag(tmp_path / "bag", about=tuple(field for field in ABOUT if field[0] != label))
    assert is_valid(home)
    assert not fits_profile(home)


def test_the_judges_notice(tmp_path: Path) -> None:
    home = bag(tmp_path / "bag")
    (home / "manifest-md5.txt").touch()
    assert not fits_profile(home), "another digest is not allowed"
    (home / "manifest-md5.txt").unlink()
    with (home / "data" / IDENTIFIER / "representations/warcs/data" / WEEKLY.name).open("r+b") as warc:
        warc.write(b"\0")
    assert not is_valid(home)


def contents(folder: Path) -> dict[str, str]:
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                found[str(path.relative_to(folder))] = digests.sha512(file)[1]
    return found
