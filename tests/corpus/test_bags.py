"""The conformance suite of the Library of Congress, which lies beside the corpus: the verdict on each of its bags."""

from __future__ import annotations

import tarfile
import unicodedata
from pathlib import Path

import pytest
from packing.bags import verdict

from warcmill.formats.bagit.findings import BagResult

# What a file system has lost of them: the suite allows either verdict for these.
LOST = {
    "duplicate-file-with-different-case": "data/HELLO.txt",
    "same-filename-listed-twice-with-different-normalization": unicodedata.normalize("NFD", "data/N\u00fa\u00f1ez"),
    "special-system-files": "data/.DS_Store",
}


@pytest.fixture
def suite(pytestconfig: pytest.Config) -> Path:
    corpus: Path = pytestconfig.getoption("--corpus")
    return corpus.parent / "bagit-conformance"


def test_the_verdict_on_every_bag_of_the_conformance_suite(suite: Path, tmp_path: Path) -> None:
    found = sorted(suite.glob("v*/*/*/"))
    assert len(found) == 41
    for bag in found:
        archive = tmp_path / "bag.tar"
        with tarfile.open(archive, "w") as tar:
            tar.add(bag, bag.name)
        for where in (bag, archive):
            judged = verdict(where)
            if bag.parent.name == "warning":
                lost = LOST.get(bag.name)
                assert judged.warnings or lost, where
                assert (judged.result == BagResult.VALID) == (lost is None), where
                assert all(fault.path in (lost, "bag-info.txt") for fault in judged.faults), where
            else:
                assert (judged.result == BagResult.VALID) == (bag.parent.name == "valid"), where
