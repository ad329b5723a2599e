"""The folder of a job's scripts: rows, statuses, edits, and what is not a script."""

from __future__ import annotations

from pathlib import Path

import pytest

from warcmill.errors import BadConfig, BadInput
from warcmill.scripts.folder import ROWS, ScriptFolder, ScriptStatus, forget_row, read_rows, set_row

RUNNING = ScriptStatus.RUNNING


def job(tmp_path: Path, **texts: str) -> Path:
    (tmp_path / "scripts").mkdir(exist_ok=True)
    for name, text in texts.items():
        (tmp_path / "scripts" / f"{name}.py").write_text(text)
    return tmp_path


def test_a_script_runs_as_it_was_set_running_and_is_checked_after_an_edit(tmp_path: Path) -> None:
    folder = ScriptFolder(job(tmp_path, shop="a = 1"))
    assert folder.look() == {"shop"}
    assert folder.row("shop").status is ScriptStatus.TODO
    set_row(tmp_path, "shop", {"status": RUNNING, "rate": 0.5, "group": "shops"})
    assert folder.look() == set()
    assert (folder.row("shop").status, folder.row("shop").rate, folder.row("shop").group) == (RUNNING, 0.5, "shops")
    job(tmp_path, shop="a = 2222")
    assert folder.look() == {"shop"}
    assert folder.row("shop").status is ScriptStatus.CHECKING
    set_row(tmp_path, "shop", {"rate": 2.0})
    folder.look()
    assert folder.row("shop").status is ScriptStatus.CHECKING, "another rate does not check it"
    set_row(tmp_path, "shop", {"status": ScriptStatus.DEBUG})
    folder.look()
    assert folder.row("shop").status is ScriptStatus.DEBUG
    forget_row(tmp_path, "shop")
    folder.look()
    assert (folder.all, read_rows(tmp_path)) == ({}, {})


@pytest.mark.parametrize(("key", "value"), [("rate", 0.0), ("burst", -1.0), ("rate", 1e9), ("group", "a\nb")])
def test_a_value_that_no_script_has_is_refused(key: str, value: object, tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=key):
        set_row(job(tmp_path, shop=""), "shop", {key: value})
    assert not (tmp_path / ROWS).exists()


def test_a_fault_in_the_rows_is_named_and_the_last_good_ones_count(tmp_path: Path) -> None:
    folder = ScriptFolder(job(tmp_path, shop="a = 1"))
    set_row(tmp_path, "shop", {"status": RUNNING})
    folder.look()
    for text in ("[shop", "[shop]\nrate = 'x'", "[shop]\ncolour = 1", "[shop]\nstatus = 'GONE'"):
        (tmp_path / ROWS).write_text(text)
        folder.look()
        assert folder.unfit[ROWS]
        assert folder.row("shop").status is RUNNING
    (tmp_path / ROWS).write_text("")
    folder.look()
    assert (folder.unfit, folder.row("shop").status) == ({}, ScriptStatus.TODO)


def test_files_that_are_not_scripts_are_named(tmp_path: Path) -> None:
    job(tmp_path, good="a = 1")
    (tmp_path / "scripts" / "my-shop.py").write_text("")
    (tmp_path / "scripts" / "bytes.py").write_bytes(b"\xff")
    (tmp_path / "scripts" / "long.py").write_bytes(b"#" * (1 << 20) + b"#")
    folder = ScriptFolder(tmp_path)
    folder.look()
    assert [*folder.all] == ["good"]
    assert sorted(folder.unfit) == ["bytes", "long", "my-shop"]
    with pytest.raises(BadInput):
        set_row(tmp_path, "my-shop", {})


def test_a_script_that_is_removed_while_it_is_read_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, gone = ScriptFolder(job(tmp_path, shop="a = 1", news="a = 2")), tmp_path / "scripts" / "shop.py"
    read_bytes = Path.read_bytes

    def late(path: Path) -> bytes:
        if path == gone:
            path.unlink()
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", late)
    assert folder.look() == {"news", "shop"}
    assert ([*folder.all], [*folder.texts], folder.unfit) == (["news"], ["news"], {})
    assert folder.look() == set()
