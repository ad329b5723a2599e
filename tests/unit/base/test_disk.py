"""What a disk's refusal is called, and what to do."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from storing import nobody

from warcmill.base import disk
from warcmill.crawl import durable
from warcmill.crawl.durable import Appended
from warcmill.crawl.launch import folders
from warcmill.errors import Unavailable
from warcmill.layout import SENTINEL
from warcmill.stores.file import FileStore


@pytest.mark.parametrize(
    ("number", "todo"),
    [
        (errno.ENOSPC, "No space left on device; make room on its disk, and do the same again"),
        (errno.EDQUOT, "Disk quota exceeded; make room on its disk, and do the same again"),
        (errno.EROFS, "Read-only file system; mount its disk for writing, and do the same again"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_what_is_to_be_done_is_in_the_reason(number: int, todo: str) -> None:
    assert disk.reason(OSError(number, os.strerror(number)), Path("/a")) == todo


def test_a_disk_without_room_or_without_an_inode_is_full(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = os.statvfs(tmp_path)
    assert disk.full([tmp_path, tmp_path / "none"]) is None
    for at, number in ((4, 3), (7, 0)):  # f_bavail, f_favail: what a user may take
        figures = list(real)
        figures[at] = number
        monkeypatch.setattr(os, "statvfs", lambda _, figures=figures: os.statvfs_result(figures))
        assert disk.full([tmp_path]) == tmp_path
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert "delete files on its disk, which has no inode left" in disk.reason(full, tmp_path / "new")


def test_a_file_without_permission_names_its_owner_and_the_user_and_no_mount() -> None:
    with nobody.folder() as folder, nobody.acting():
        closed, inner = folder / "closed", folder / "shut"
        (folder / SENTINEL).write_text('{"roots": ["state"]}')
        store = FileStore("state", folder)
        for path in (folder / SENTINEL, closed):
            path.write_text("{}")
            path.chmod(0)
        inner.mkdir(mode=0o600)
        me = nobody.name()
        of_file = (
            rf"Permission denied; belongs to user {me}, mode 0000, and this is user {me}; change its owner or mode"
        )
        for act in (
            lambda: Appended(closed),
            lambda: folders.require_root(folder, "output"),
            lambda: FileStore("state", folder),
            lambda: store.open("closed"),
        ):
            with pytest.raises(Unavailable, match=of_file) as raised:
                act()
            assert "ount the disk" not in str(raised.value)
        with pytest.raises(
            Unavailable, match=rf"shut/new is .*: Permission denied; {inner} belongs to user {me}, mode"
        ):
            durable.replace(inner / "new", b"")
