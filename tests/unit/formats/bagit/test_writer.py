"""formats/bagit_writer: tag files as RFC 8493 has them; bagit.py accepts the bag they make."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from pathlib import Path

import pytest
from packing.packages import HOSTILE

from warcmill.errors import BadInput
from warcmill.formats.bagit import writer
from warcmill.formats.bagit.writer import PayloadFile
from warcmill.formats.sip.tar import PackageDocument

ABOUT = [("Source-Organization", "National Library"), ("Bagging-Date", "2026-11-21"), ("External-Identifier", "x")]
CONTENTS = {"a.warc.gz": b"one", "b.warc": b"", "100%.warc": b"three", "a\nb\rc.warc": b"four"}


def entries(contents: dict[str, bytes], url: str = "") -> list[PayloadFile]:
    return [
        PayloadFile(f"data/{name}", len(data), hashlib.sha512(data).hexdigest(), url) for name, data in contents.items()
    ]


def texts(made: list[PackageDocument]) -> dict[str, str]:
    return {document.path: b"".join(document.chunks()).decode() for document in made}


def write(folder: Path, contents: dict[str, bytes]) -> None:
    for path, text in texts(writer.tag_files(ABOUT, entries(contents))).items():
        (folder / path).write_text(text, "utf-8", newline="")
    (folder / "data").mkdir()
    for name, data in contents.items():
        (folder / "data" / name).write_bytes(data)


def test_the_tag_files_of_a_bag() -> None:
    made = texts(writer.tag_files(ABOUT, entries(CONTENTS)))
    assert list(made) == ["bag-info.txt", "bagit.txt", "manifest-sha512.txt", "tagmanifest-sha512.txt"]
    assert made["bagit.txt"] == "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
    assert made["bag-info.txt"].splitlines() == [
        "Source-Organization: National Library",
        "Bagging-Date: 2026-11-21",
        "External-Identifier: x",
        "Payload-Oxum: 12.4",
        "Bag-Size: 12 bytes",
    ]
    names = [line.split("  ", 1)[1] for line in made["manifest-sha512.txt"].splitlines()]
    assert names == ["data/a.warc.gz", "data/b.warc", "data/100%25.warc", "data/a%0Ab%0Dc.warc"]
    tags = [line.split("  ", 1)[1] for line in made["tagmanifest-sha512.txt"].splitlines()]
    assert tags == ["bag-info.txt", "bagit.txt", "manifest-sha512.txt"]


def test_digests_and_sizes_are_those_of_the_bytes() -> None:
    made = writer.tag_files(ABOUT, entries(CONTENTS))
    for document in made:
        data = b"".join(document.chunks())
        assert (document.size, document.sha512) == (len(data), hashlib.sha512(data).hexdigest())
    listed = dict(reversed(line.split("  ", 1)) for line in texts(made)["tagmanifest-sha512.txt"].splitlines())
    assert listed == {document.path: document.sha512 for document in made if not document.path.startswith("tag")}


def test_files_that_lie_elsewhere_are_fetched() -> None:
    held = entries({"in.warc": b"1"})
    away = entries({"100% a\n.warc": b"234"}, "https://store.example/warcs/100%25%20a%0A.warc")
    made = texts(writer.tag_files(ABOUT, [*held, *away]))
    assert made["fetch.txt"] == "https://store.example/warcs/100%25%20a%0A.warc 3 data/100%25 a%0A.warc\n"
    assert "Payload-Oxum: 4.2\n" in made["bag-info.txt"]
    assert "fetch.txt" in made["tagmanifest-sha512.txt"]
    assert len(made["manifest-sha512.txt"].splitlines()) == 2


@pytest.mark.parametrize("space", [" ", "\n", "\t", "\u00a0", "\u2028"])
def test_a_url_with_white_space_is_refused(space: str) -> None:
    with pytest.raises(BadInput, match="white space"):
        writer.tag_files(ABOUT, entries({"a": b""}, f"https://store.example/a{space}b"))


@pytest.mark.parametrize("label", ["", "A: B", " A", "A ", "A\nB", "\u00dc"])
def test_a_label_that_is_read_otherwise_is_refused(label: str) -> None:
    with pytest.raises(BadInput, match="not a label"):
        writer.tag_files([(label, "x")], [])


def test_a_value_stays_on_its_line() -> None:
    made = texts(writer.tag_files([("Contact-Name", " a\r\n  Payload-Oxum: 1.1\u2028b\x0bc \x85")], []))
    assert made["bag-info.txt"].splitlines()[0] == "Contact-Name: a Payload-Oxum: 1.1 b c"
    assert len(made["bag-info.txt"].splitlines()) == 3


def test_a_path_outside_the_payload_is_refused() -> None:
    with pytest.raises(BadInput, match="not a path of a payload"):
        writer.tag_files([], [PayloadFile("bag-info.txt", 0, "")])


@pytest.mark.parametrize(
    ("size", "told"),
    [(999, "999 bytes"), (1000, "1.0 kB"), (1_999_999, "1.9 MB"), (12_300_000_000, "12.3 GB"), (10**16, "10.0 PB")],
)
def test_a_size_for_human_eyes(size: int, told: str) -> None:
    assert writer.readable_size(size) == told


@pytest.mark.parametrize("name", HOSTILE)
def test_a_line_has_one_meaning(name: str) -> None:
    """Read back by RFC 8493's own rule: undo %0A, %0D and %25, and nothing else."""
    made = texts(writer.tag_files([], entries({name: b""})))
    [line] = made["manifest-sha512.txt"].removesuffix("\n").split("\n")
    assert "\r" not in line
    written = line.split("  ", 1)[1]
    assert re.sub("%(0A|0D|25)", lambda found: chr(int(found[1], 16)), written) == f"data/{name}"


def test_coreutils_checks_a_manifest(tmp_path: Path) -> None:
    """A manifest without escapes is what `sha512sum` reads."""
    contents = {name: data for name, data in CONTENTS.items() if name.isprintable() and "%" not in name}
    write(tmp_path, {**contents, "caf\u00e9 + <x>.warc": b"5"})
    for manifest in ("manifest-sha512.txt", "tagmanifest-sha512.txt"):
        subprocess.run(["sha512sum", "--check", "--strict", "--quiet", manifest], cwd=tmp_path, check=True)


def test_the_profile_is_the_one_that_bags_name() -> None:
    profile = json.loads((Path(__file__).parents[4] / "config" / "bagit-profile.json").read_text())
    assert profile["BagIt-Profile-Info"]["BagIt-Profile-Identifier"] == writer.PROFILE
    assert profile["Bag-Info"]["BagIt-Profile-Identifier"]["values"] == [writer.PROFILE]
