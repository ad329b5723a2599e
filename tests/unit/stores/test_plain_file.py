"""A disk that fails while a file is read: an outage that names the file, in whatever reader it comes to light."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from warcmill.errors import Unavailable
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore
from warcmill.stores.plain_file import Plain


class Failing:
    """The descriptor of a file on a disk that answers nothing but an error."""

    name = "/disk/name"

    def __getattr__(self, _: str) -> object:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("act", ["readall", "close"])
def test_a_failing_disk_is_an_outage(act: str) -> None:
    file = Plain(Failing(), "output:warcs/daily/a.warc.gz")  # type: ignore[arg-type]
    with pytest.raises(Unavailable, match=r"output:warcs/daily/a\.warc\.gz is unavailable: Input/output error"):
        getattr(file, act)()


def test_a_descriptor_that_turns_bad_is_an_outage_too(tmp_path: Path) -> None:
    sentinel.adopt({"store": tmp_path})
    (tmp_path / "a").write_bytes(b"x" * 100_000)
    with FileStore("store", tmp_path).open("a", 10) as file:
        assert file.read(5) == b"xxxxx"
        os.dup2(os.open(tmp_path, os.O_RDONLY), file.fileno())  # to read a folder is EISDIR
        with pytest.raises(Unavailable, match="store:a is unavailable"):
            file.read()


def test_it_reads_as_any_file(tmp_path: Path) -> None:
    sentinel.adopt({"store": tmp_path})
    (tmp_path / "a").write_bytes(b"one\ntwo\nthree")
    with FileStore("store", tmp_path).open("a") as file:
        assert file.readline() == b"one\n"
        assert file.seek(-5, os.SEEK_END) == 8
        assert file.read() == b"three"
        assert file.seek(4) == 4
        assert file.read(3) == b"two"
        assert file.name == str(tmp_path / "a")
