"""Editions come back from the store; those that it lacks are copied each night, damaged ones are named."""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from launches.engine import Engine

from warcmill.audit.reconciliation import unkept_editions
from warcmill.backup import archive
from warcmill.backup.archive import CopyOutcome
from warcmill.errors import Unavailable
from warcmill.layout import archived_path
from warcmill.markers.editions import JobEditions
from warcmill.stores.file import FileStore

SHOP = "scripts/shop.py"


def editions_of(engine: Engine, job: str = "papers") -> JobEditions:
    return JobEditions(engine.state.store, lambda: engine.store, job)


def save(engine: Engine, number: int, job: str = "papers", text: bytes = b"") -> None:
    editions_of(engine, job).save({SHOP: text or b"%d" % number}, who="ada", why="", made_from=number - 1)


class Away(FileStore):
    """A store that goes away before anything is written to it."""

    def commit_new(self, *_: object) -> bool:
        raise Unavailable("store", "it went away")


def save_alone(engine: Engine, number: int, job: str = "papers", text: bytes = b"") -> None:
    """Save while the store goes away: it stands in the state alone."""
    alone = JobEditions(engine.state.store, lambda: Away("store", engine.folders["store"]), job)
    with pytest.raises(Unavailable, match="stands in the state"):
        alone.save({SHOP: text or b"%d" % number}, who="ada", why="", made_from=number - 1)


def test_a_lost_state_has_its_editions_again(tmp_path: Path) -> None:
    engine, other = Engine(tmp_path / "one"), Engine(tmp_path / "two")
    for number in (1, 2):
        save(engine, number)
    save(engine, 1, "other")
    done = archive.restore(other.state.store, engine.store)
    assert (len(done.copied), done.different, done.damaged) == (6, (), ())
    assert list(editions_of(other).all()) == list(editions_of(engine).all())
    assert editions_of(other).text(1, SHOP) == b"1"
    assert editions_of(other, "other").text(1, SHOP) == b"1"
    assert archive.restore(other.state.store, engine.store) == CopyOutcome((), (), ())


def test_those_that_the_store_lacks_are_copied(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    save(engine, 1)
    save_alone(engine, 2)
    save_alone(engine, 3)
    copied = tuple(archived_path(f"editions/papers/00000{number}") for number in (2, 3))
    assert archive.back_up(engine.state.store, engine.store) == CopyOutcome(copied, (), ())
    assert archive.back_up(engine.state.store, engine.store) == CopyOutcome((), (), ())
    editions_of(engine).check()


def test_damaged_ones_and_other_ones_are_named_and_hold_up_nobody(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    for job in ("bad", "good", "twice"):
        save_alone(engine, 1, job)
    engine.state.store.real("editions/bad/000001/edition.json").write_bytes(b"cut")
    engine.state.store.real("editions/9 bad job").mkdir()
    other = Engine(tmp_path / "other")
    save(other, 1, "twice", b"other")
    there = engine.folders["store"] / archived_path("editions/twice/000001")
    shutil.copytree(other.state.store.real("editions/twice/000001"), there)
    done = archive.back_up(engine.state.store, engine.store)
    assert done.copied == (archived_path("editions/good/000001"),)
    assert [error.path for error in done.damaged] == ["state:editions/bad/000001/edition.json"]
    assert done.different == ("editions/twice/000001",)


@pytest.mark.parametrize("name", ["edition.json", "shop.py"])
def test_a_damaged_one_in_the_store_is_named_and_the_rest_is_brought_back(tmp_path: Path, name: str) -> None:
    engine, other = Engine(tmp_path / "one"), Engine(tmp_path / "two")
    for number in (1, 2):
        save(engine, number)
    folder = Path(tmp_path / "one" / "store" / archived_path("editions/papers/000001"))
    (path,) = folder.glob(f"{name}*")
    path.unlink()
    path.write_bytes(b"damaged")
    (folder / "stray").write_bytes(b"")
    done = archive.restore(other.state.store, engine.store)
    wanted = {f"store:{archived_path('editions/papers/000001')}/{one}" for one in (path.name, "stray")}
    assert {error.path for error in done.damaged} == wanted
    assert len(done.copied) == 3
    assert editions_of(other).text(2, SHOP) == b"2" if name != "edition.json" else True


def test_one_that_the_store_lacks_a_day_later_is_named(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    save(engine, 1)
    for number in (2, 3):
        save_alone(engine, number)
    made = datetime.fromisoformat(editions_of(engine).read(2).time)
    assert unkept_editions(engine.store, editions_of(engine), made) == ()
    (gap,) = unkept_editions(engine.store, editions_of(engine), made + timedelta(days=2))
    assert (gap.kind, gap.name) == ("no backup", "editions/papers/000002")
    assert (gap.why, gap.todo) == (
        "it was made more than a day ago, and is in the state alone",
        f"warcmill backup {made:%Y-%m}",
    )
    assert archive.back_up(engine.state.store, engine.store).damaged == ()
    assert unkept_editions(engine.store, editions_of(engine), made + timedelta(days=2)) == ()
