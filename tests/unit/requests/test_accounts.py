"""The accounts in a file: what all accounts do, an invalid file, and what of it must not be lost."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from requesting.accounts_conformance import *  # noqa: F403 - the tests of all accounts
from requesting.accounts_conformance import KEY, message

from warcmill.errors import BadInput, Unavailable
from warcmill.requests.accounts import AccountChange, Accounts, DomainRate
from warcmill.requests.accounts.file import FileAccounts


class OfFile:
    """One file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.opened: list[FileAccounts] = []

    def open(self, clock: Callable[[], float] | None = None) -> Accounts:
        self.opened.append(FileAccounts(self.path, clock or time.time))
        return self.opened[-1]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[OfFile]:
    found = OfFile(tmp_path / "accounts")
    yield found
    for one in found.opened:
        one.close()


def test_changes_make_the_same_accounts_elsewhere_once_or_again(tmp_path: Path) -> None:
    ours, copy = FileAccounts(tmp_path / "ours"), FileAccounts(tmp_path / "copy")
    ours.stop(KEY)
    ours.expire(KEY, 1_900_000_000)
    ours.set_rate("a.example", DomainRate(5, 60, 0.5))
    ours.ban("b.example", banned=True)
    ours.put_aside(message("t@2"), KEY, stops=True, most=9)
    ours.put_aside(message("t@1"), KEY, stops=False, most=9)
    found = ours.changes()
    for change in found * 2:
        copy.make(change)
    assert copy.changes() == found
    assert (copy.stops_aside(), copy.claim_aside()) == ({KEY}, [message("t@2"), message("t@1")])
    with pytest.raises(BadInput, match="newer version"):
        copy.make(AccountChange("close", []))
    ours.close()
    copy.close()


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "accounts").write_bytes(b"x" * 5000)
    with pytest.raises(Unavailable, match="accounts"):
        FileAccounts(tmp_path / "accounts")


def test_a_file_that_somebody_reads_for_too_long_is_used_again_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warcmill.requests.accounts.file._PATIENCE", 0.2)
    accounts = FileAccounts(tmp_path / "accounts")
    accounts.stop(KEY)
    reader = sqlite3.connect(tmp_path / "accounts", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM stops").fetchall()
    with pytest.raises(Unavailable, match="locked"):
        accounts.stop(KEY._replace(crawlid="other"))
    reader.close()
    accounts.stop(KEY._replace(crawlid="third"))
    assert [accounts.is_stopped(KEY._replace(crawlid=one)) for one in ("c", "other", "third")] == [True, False, True]
    accounts.close()
