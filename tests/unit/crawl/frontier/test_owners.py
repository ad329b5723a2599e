"""The hosts that a crawl may ask: what it was told stays, and it is alone when nobody tells it more."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from warcmill.crawl.policies.owners import HostOwner, Owners
from warcmill.errors import BadInput

TOLD = [HostOwner("a.example", "+"), HostOwner("b.example", "-"), HostOwner("c.example", "!", "rule 2\nforbids it")]


def told(found: Owners) -> list[bool]:
    return [found.is_ours(f"http://{name}.example/x") for name in "abc"]


def test_until_it_is_told_no_host_is_surely_its_own_and_what_it_is_told_stays(tmp_path: Path) -> None:
    owners = Owners(tmp_path / "owners")
    assert told(owners) == [False, False, False]
    assert owners.is_ours("data:,x")
    owners.tell(7, TOLD)
    owners.tell(8, [HostOwner("a.example", "-"), HostOwner("b.example", "+")])
    for again in (owners, Owners(tmp_path / "owners"), Owners(tmp_path / "owners")):
        assert told(again) == [False, True, False]
        assert again.edition == 8
        assert again.forbids("https://c.example:8443/") == "rule 2 forbids it"
    owners.tell(3, TOLD[:1], anew=True)
    again = Owners(tmp_path / "owners")
    assert (told(again), again.edition, again.forbids("http://c.example/")) == ([True, False, False], 3, "")


def test_a_kill_while_it_is_told_leaves_the_edition_before_so_that_it_is_told_once_more(tmp_path: Path) -> None:
    path = tmp_path / "owners"
    owners = Owners(path)
    owners.tell(7, TOLD)
    before = path.read_bytes()
    owners.tell(9, [HostOwner("b.example", "+")])
    whole = path.read_bytes()
    for length in range(len(before), len(whole)):
        path.write_bytes(whole[:length])
        again = Owners(path)
        assert again.edition == 7, length
        again.tell(9, [HostOwner("b.example", "+")])
        assert (told(Owners(path)), Owners(path).edition) == ([True, True, False], 9)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "owners").write_text("7\nnonsense\n7\n")
    with pytest.raises(BadInput, match="Move it away"):
        Owners(tmp_path / "owners")


def test_one_that_hears_nothing_for_so_long_is_alone_also_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "owners"
    owners = Owners(path)
    owners.hear(3600)
    assert not owners.is_alone
    os.utime(path, (time.time() - 4000,) * 2)
    again = Owners(path)
    assert again.is_alone
    again.hear(3600)
    assert not again.is_alone


def test_one_whose_clock_was_set_back_is_alone_until_it_hears_again(tmp_path: Path) -> None:
    """It cannot know for how long it heard nothing."""
    path = tmp_path / "owners"
    Owners(path).hear(3600)
    for ahead, is_alone in ((30, False), (300, True), (86_400, True)):
        os.utime(path, (time.time() + ahead,) * 2)
        assert Owners(path).is_alone is is_alone
    owners = Owners(path)
    owners.hear(3600)
    assert not owners.is_alone
