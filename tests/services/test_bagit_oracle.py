"""Our verdict on bags beside that of bagit.py 1.9.0: alike, but for the two things that it gets wrong."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from packing.bags import PAYLOAD, Files, as_folder, make, manifest, sealed, verdict

from servers import packages
from warcmill.formats.bagit.findings import BagResult

Change = Callable[[Files], Files]


def theirs(bag: Path) -> bool:
    """Whether bagit.py calls a bag valid."""
    command = [packages.bin_folder("bagit") / "bagit.py", "--validate", "--quiet", bag]
    done = subprocess.run(command, capture_output=True, timeout=300, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode == 0


def ours(bag: Path) -> bool:
    return verdict(bag).result == BagResult.VALID


def fetch(path: str) -> Change:
    """A fetch.txt that names this path, and the manifest too."""
    line = f"{hashlib.sha512(b'').hexdigest()}  {path}\n".encode()
    return lambda files: sealed(
        files
        | {"fetch.txt": f"http://x.example/y - {path}\n".encode(), "manifest-sha512.txt": manifest(PAYLOAD) + line}
    )


VALID: dict[str, Files] = {
    "1.0": make(),
    "0.97": make(version="0.97"),
    "every usual algorithm": make(algorithms=("md5", "sha1", "sha256", "sha512")),
    "names": make({"data/two  blanks": b"x", "data/caf\u00e9": b"y", "data/a\nb": b"z"}),
    "a file that fetch.txt names, and that is there": make(
        tags={"fetch.txt": b"http://x.example/y 6 data/hello.txt\n"}
    ),
    "labels that repeat": make(info=b"Contact-Name: A\nContact-Name: B\nPayload-Oxum: 12.2\n"),
}
INVALID: dict[str, Change] = {
    "a payload byte": lambda files: files | {"data/hello.txt": b"hellO\n"},
    "a tag byte": lambda files: files | {"bag-info.txt": files["bag-info.txt"] + b"A: b\n"},
    "a file too many": lambda files: files | {"data/stray": b""},
    "an absent file": lambda files: {path: data for path, data in files.items() if path != "data/hello.txt"},
    "no bagit.txt": lambda files: {path: data for path, data in files.items() if path != "bagit.txt"},
    "an oxum": lambda files: sealed(files | {"bag-info.txt": b"Payload-Oxum: 13.2\n"}),
    "a version": lambda files: sealed(
        files | {"bagit.txt": files["bagit.txt"].replace(b"1.0", b".97")}
    ),
    "a byte order mark": lambda files: sealed(files | {"bagit.txt": b"\xef\xbb\xbf" + files["bagit.txt"]}),
    "a path above": fetch("data/../../../tmp/test"),
    "an absolute path": fetch("/tmp/test"),
    "a home folder": fetch("~root/test"),
}  # fmt: skip


@pytest.mark.parametrize("name", VALID)
def test_both_call_it_valid(tmp_path: Path, name: str) -> None:
    bag = as_folder(VALID[name], tmp_path / "bag")
    assert (theirs(bag), ours(bag)) == (True, True)


@pytest.mark.parametrize("name", INVALID)
def test_both_call_it_invalid(tmp_path: Path, name: str) -> None:
    bag = as_folder(INVALID[name](make()), tmp_path / "bag")
    assert (theirs(bag), ours(bag)) == (False, False)


def test_white_space_in_bagit_txt_is_no_fault_to_bagit_py(tmp_path: Path) -> None:
    """RFC 8493, 2.1.1: one space after the colon, and the conformance suite has such a bag among the invalid ones."""
    declaration = b"BagIt-Version : 1.0\nTag-File-Character-Encoding : UTF-8\n"
    bag = as_folder(make(tags={"bagit.txt": declaration}), tmp_path / "bag")
    assert (theirs(bag), ours(bag)) == (True, False)


def test_a_percent_that_is_written_as_the_rfc_has_it_is_none_to_bagit_py(tmp_path: Path) -> None:
    """RFC 8493, 2.1.3: % in a path is written %25. bagit.py looks for a file with %25 in its name."""
    bag = as_folder(make({"data/100%.txt": b"x"}), tmp_path / "bag")
    assert (theirs(bag), ours(bag)) == (False, True)
