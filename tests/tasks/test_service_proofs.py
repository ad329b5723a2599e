"""What doctor asks of the places of SIPs and of the minter, before a scan needs them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from packing.minters import Answer, serving

from tasks.config import proofs
from tasks.config.proofs import check_minter
from warcmill.audit.health import Level
from warcmill.audit.health_services import check_verified_at
from warcmill.stores.opening import Access


def test_a_minter_that_gives_new_arks_is_asked_twice() -> None:
    with serving() as minter:
        found = check_minter(minter.url)
        assert (found.name, found.level, found.todo) == ("minter", Level.OK, "")
        assert found.text.endswith(
            "x50000000, ark:12345/x50000001, ark:12345/x50000002, ark:12345/x50000003, which nothing uses"
        )
        assert [path.rpartition("=")[2] for path in minter.asked] == ["2", "2"]
        assert "s3cret" not in found.text


@pytest.mark.parametrize(
    ("answer", "status", "why"),
    [
        (lambda _: b"ark:12345/x1\n", 200, "expected 2 ARKs, found 1"),
        (lambda _: b"ark:12345/x1\n" * 2, 200, "expected 2 different ones, found 1"),
        (lambda _: b"ark:12345/x1\nark:12345/x2\n", 200, "expected new ones each time, found the same again"),
        (lambda _: b"one two", 200, "'one' where an ARK should be"),
        (lambda _: b"\0\xff" * 9, 200, "not text in ASCII"),
        (lambda _: b"<!DOCTYPE html><title>Log in</title>", 200, "'<!DOCTYPE' where an ARK should be"),
        (lambda _: b"", 404, "the minter answered 404"),
    ],
    ids=["wrong count", "duplicates", "the same again", "garbage", "bytes", "HTML", "404"],
)
def test_a_minter_that_cannot_be_used(answer: Answer, status: int, why: str) -> None:
    with serving() as minter:
        minter.answer, minter.status = answer, status
        found = check_minter(minter.url)
    assert (found.level, found.todo) == (Level.FAIL, "start it, or correct [package] minter")
    assert why in found.text
    assert "s3cret" not in found.text


def test_a_minter_that_is_down_or_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as minter:
        minter.drip = True
        monkeypatch.setattr(proofs, "PATIENCE", 0.2)
        assert "not complete when the time was over" in check_minter(minter.url).text
    found = check_minter(minter.url)
    assert (found.level, "the minter does not answer: ConnectionError" in found.text) == (Level.FAIL, True)


def test_the_place_where_sips_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "ingested"
    found = check_verified_at(str(place), Access())
    assert (found.name, found.level, "there is no such folder" in found.text) == ("root verified_at", Level.FAIL, True)
    assert found.todo.endswith("or correct [package] verified_at")
    place.write_bytes(b"a file")
    assert check_verified_at(str(place), Access()).level is Level.FAIL
    place.unlink()
    place.mkdir()
    (place / "a.tar").touch()
    found = check_verified_at(str(place), Access())
    assert (found.level, found.text) == (Level.OK, f"{place} is there, and can be read")
    assert [path.name for path in place.iterdir()] == ["a.tar"], "nothing is put there"
    link = tmp_path / "link"
    link.symlink_to(place)
    assert check_verified_at(str(link), Access()).level is Level.OK
    monkeypatch.setattr(os, "access", lambda *_: False)  # tests may run as root, who may do all
    assert "this user cannot read it" in check_verified_at(str(place), Access()).text
