"""A new file is whole or not there, and never replaces another."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import pytest

from commands.wacz import new_file
from warcmill.errors import Conflict, Unavailable
from warcmill.stores import temporary_names


def write(path: Path, data: bytes = b"new") -> None:
    with new_file(path) as file:
        file.write(data)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_it_has_its_name_once_it_is_whole(tmp_path: Path) -> None:
    with new_file(tmp_path / "a") as file:
        file.write(b"new")
        assert "a" not in names(tmp_path)
    assert (names(tmp_path), (tmp_path / "a").read_bytes()) == (["a"], b"new")


def test_one_that_is_there_stays_also_if_it_came_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(Conflict, match="is there already"):
        write(tmp_path / "a")
    with pytest.raises(Conflict, match="is there already"), new_file(tmp_path / "b"):
        (tmp_path / "b").write_bytes(b"old")
    assert [(tmp_path / name).read_bytes() for name in names(tmp_path)] == [b"old", b"old"]


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError), new_file(tmp_path / "a") as file:
        file.writelines([b"half", "text"])  # type: ignore[list-item]
    assert names(tmp_path) == []


def test_a_missing_or_full_folder(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"none.*No such file or directory.*a was not written"):
        write(tmp_path / "none" / "a")
    with pytest.raises(Unavailable, match="No space left on device"), new_file(tmp_path / "a"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert names(tmp_path) == []


def test_what_a_killed_run_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        for name in ("a", "b"):
            (tmp_path / temporary_names.name(name)).write_bytes(b"half")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    (tmp_path / temporary_names.name("a")).write_bytes(b"of a process that runs")
    assert len(names(tmp_path)) == 3
    write(tmp_path / "a")
    kept = names(tmp_path)
    assert (len(kept), kept[-1], [name[:3] for name in kept[:2]]) == (3, "a", [".a.", ".b."])


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    write(tmp_path / "a")
    with pytest.raises(Conflict), new_file(tmp_path / "b"):
        (tmp_path / "b").write_bytes(b"old")
    assert [(tmp_path / name).read_bytes() for name in names(tmp_path)] == [b"new", b"old"]
