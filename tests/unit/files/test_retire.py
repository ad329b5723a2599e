"""Retire removes what is proven safe, that alone, and knows after a kill what it had removed."""

from __future__ import annotations

from pathlib import Path

import pytest
from launches.chain import assembled, items, step, upto
from launches.engine import LAUNCH, Engine, line_of
from records.warcs import http, record, sha1, warc_gz, warcinfo

from warcmill import layout
from warcmill.errors import Unsettled
from warcmill.files import retire
from warcmill.markers.attempts import Attempts
from warcmill.model import FINAL
from warcmill.stores import Stat
from warcmill.stores.file import FileStore

GOOD = warc_gz(warcinfo(), record("response", http(b"one"), payload=sha1(b"one")))
NAMES = ("a.warc.gz", "b.warc.gz", "bad.warc.gz", "o.warc.gz.open")


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    engine = Engine(tmp_path)
    engine.logs(*(line_of("http://a/", name.removesuffix(".open"), 0) for name in NAMES))
    for name in NAMES:
        engine.warc(name, GOOD if name != "bad.warc.gz" else GOOD[:-1])
    engine.finish()
    assembled(engine)
    upto(engine, "ReadBack")
    return engine


def left(engine: Engine) -> list[str]:
    return sorted(path.name for path in (engine.folders["output"] / engine.layout.folder("warcs", LAUNCH)).iterdir())


def stored(engine: Engine, name: str) -> Path:
    return engine.folders["store"] / "warcs" / LAUNCH.job / LAUNCH.id / name


def source(engine: Engine, name: str) -> Path:
    return engine.folders["output"] / engine.layout.folder("warcs", LAUNCH) / name


def everything_else(engine: Engine) -> set[str]:
    folders = [engine.folders[root] for root in ("output", "jobs", "state", "store")]
    paths = {str(path) for folder in folders for path in folder.rglob("*") if path.is_file()}
    return {path for path in paths if "/attempts/" not in path and not path.startswith(str(source(engine, "")))}


def test_ok_files_go_and_refused_ones_the_logs_and_all_else_stay(engine: Engine) -> None:
    before = everything_else(engine)
    claim = step(engine, "Retire")
    assert left(engine) == ["bad.warc.gz"]
    assert everything_else(engine) == before
    assert {name: str(item.outcome) for name, item in items(claim).items()} == {
        "a.warc.gz": "ok", "b.warc.gz": "ok", "bad.warc.gz": "refused", "o.warc.gz.open": "ok"
    }  # fmt: skip
    assert (claim.counts["files"], claim.counts["ok"], claim.counts["refused"]) == (4, 3, 1)
    assert step(engine, "Retire") == claim


def test_a_file_whose_bytes_are_no_longer_those_stored_stays(engine: Engine) -> None:
    source(engine, "a.warc.gz").write_bytes(GOOD[:-1] + b"x")
    source(engine, "b.warc.gz").write_bytes(GOOD + b"x")
    with pytest.raises(Unsettled, match="2 item"):
        step(engine, "Retire")
    assert left(engine) == ["a.warc.gz", "b.warc.gz", "bad.warc.gz"]


def test_a_file_whose_copy_is_gone_or_short_stays(engine: Engine) -> None:
    stored(engine, "a.warc.gz").unlink()
    stored(engine, "b.warc.gz").write_bytes(b"short")
    with pytest.raises(Unsettled, match="2 item"):
        step(engine, "Retire")
    assert left(engine) == ["a.warc.gz", "b.warc.gz", "bad.warc.gz"]


def test_a_file_that_another_removed_is_no_work_of_ours(engine: Engine) -> None:
    source(engine, "a.warc.gz").unlink()
    with pytest.raises(Unsettled, match=r"a\.warc\.gz: expected a file of \d+ bytes, found nothing"):
        step(engine, "Retire")


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it."""


@pytest.mark.parametrize("when", ["before", "after"])
def test_after_a_kill_around_the_removal_a_re_run_ends_the_same(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    remove = FileStore.remove

    def killed(self: FileStore, path: str, only: Stat) -> None:
        if path.endswith("b.warc.gz"):
            if when == "after":
                remove(self, path, only)
            raise Killed
        remove(self, path, only)

    monkeypatch.setattr(FileStore, "remove", killed)
    with pytest.raises(Killed):
        step(engine, "Retire")
    monkeypatch.undo()
    assert ("b.warc.gz" in left(engine)) is (when == "before")
    claim = step(engine, "Retire")
    assert left(engine) == ["bad.warc.gz"]
    assert claim.counts["ok"] == 3


def test_an_intent_alone_removes_nothing_unread(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a kill between intent and act, another file under the name stays."""
    attempts = Attempts(engine.state, layout.key("files.Retire", LAUNCH, stage=FINAL))
    (path,) = (item.file.path for item in upto(engine, "ReadBack").items if item.file.name == "a.warc.gz")
    attempts.append({"retiring": path})
    source(engine, "a.warc.gz").write_bytes(b"something new")
    with pytest.raises(Unsettled, match="1 item"):
        step(engine, "Retire")
    assert left(engine) == ["a.warc.gz", "bad.warc.gz"]


def test_an_output_root_that_is_gone_retires_nothing(engine: Engine) -> None:
    state, engines, store = engine.state, engine.roots, engine.store
    hidden = engine.base / "hidden"
    engine.folders["output"].rename(hidden)
    engine.folders["output"].mkdir()
    with pytest.raises(Unsettled, match=r"3 item.*Mount the disk"):
        retire.retire(state, engines, store, LAUNCH, FINAL)
    engine.folders["output"].rmdir()
    hidden.rename(engine.folders["output"])
    assert left(engine) == sorted(NAMES)
    assert step(engine, "Retire").counts["ok"] == 3
