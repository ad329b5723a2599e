"""Editions: who saves what, made from which; in the state and the store; what an outage, a loss or two at once do."""

from __future__ import annotations

import json
import multiprocessing
import shutil
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from warcmill.errors import BadInput, Conflict, NewerEdition, NotReady, Unavailable
from warcmill.formats.seal import seal
from warcmill.layout import archived_path
from warcmill.markers import editions
from warcmill.markers.editions import HEAD, Edition, JobEditions, PaperPlace
from warcmill.stores import Store, sentinel
from warcmill.stores.file import FileStore

SHOP, NEWS = "scripts/shop.py", "scripts/news.py"
FIRST = "editions/papers/000001"


class Line:
    """A state and a store that can be away."""

    def __init__(self, base: Path) -> None:
        self.base = base
        sentinel.adopt({"state": base / "state", "store": base / "store"})
        self.state = FileStore("state", base / "state")
        self.editions = JobEditions(self.state, self.open_store, "papers")

    def open_store(self) -> Store:
        return FileStore("store", self.base / "store")

    def save(
        self, made_from: int, changes: dict[str, bytes | None] | None = None, *, who: str = "ada", **texts: bytes
    ) -> Edition:
        named = {f"scripts/{name}.py": data for name, data in texts.items()}
        return self.editions.save({**named, **(changes or {})}, who=who, why="", made_from=made_from)

    def away(self, *, is_away: bool = True) -> None:
        here, there = self.base / "store", self.base / "elsewhere"
        (here if is_away else there).rename(there if is_away else here)

    def files(self, root: str = "state") -> dict[str, bytes]:
        top = self.base / root / (archived_path("editions") if root == "store" else "editions")
        return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}

    def write(self, path: str, data: bytes) -> None:
        place = self.base / "state" / path
        place.unlink(missing_ok=True)
        place.write_bytes(data)


@pytest.fixture
def line(tmp_path: Path) -> Line:
    return Line(tmp_path)


def test_each_save_is_an_edition_with_its_papers_and_the_store_has_the_same_bytes(line: Line) -> None:
    assert line.editions.newest() is None
    first = line.editions.save({SHOP: b"1", NEWS: b"n", "crawl.toml": b"c"}, who="ada", why="to begin", made_from=0)
    second = line.save(1, who="bob", shop=b"2")
    third = line.save(2, {NEWS: None})
    assert [one.number for one in line.editions.all()] == [3, 2, 1]
    assert line.editions.read(1) == first
    assert (first.who, first.why, first.made_from, first.changed) == ("ada", "to begin", 0, ["crawl.toml", NEWS, SHOP])
    assert (second.who, second.made_from, second.changed) == ("bob", 1, [SHOP])
    assert line.editions.newest() == third
    assert (third.changed, sorted(third.papers)) == ([NEWS], ["crawl.toml", SHOP])
    assert [line.editions.text(number, SHOP) for number in (1, 2, 3)] == [b"1", b"2", b"2"]
    assert len(line.files()) == 3 + 4, "only what is new in an edition is kept with it"
    assert line.files() == line.files("store")
    assert [one.number for one in line.editions.of(SHOP)] == [2, 1]
    assert [one.number for one in line.editions.of(NEWS)] == [3, 1]
    assert list(line.editions.of("scripts/none.py")) == []


def test_of_two_who_save_the_second_sees_who_was_first_and_nothing_is_written(line: Line) -> None:
    line.save(0, shop=b"1", news=b"n")
    line.save(1, who="bob", shop=b"bob's")
    line.save(2, who="cyd", news=b"cyd's")
    before = line.files(), line.files("store")
    with pytest.raises(
        NewerEdition, match=r"papers/scripts/shop.py: bob has saved it meanwhile, as edition 2"
    ) as raised:
        line.save(1, shop=b"ada's")
    assert (raised.value.number, raised.value.who, raised.value.exit_code) == (2, "bob", 1)
    assert (line.files(), line.files("store")) == before
    assert line.editions.text(3, SHOP) == b"bob's"
    assert line.save(2, shop=b"both").number == 4, "made from the one that she has seen; another paper disturbs nobody"
    assert line.save(1, shop=b"both").number == 4, "the same text is no conflict, and no edition"


@pytest.mark.parametrize("made_from", [0, 1])
def test_a_new_paper_of_a_name_that_somebody_else_took_and_one_that_was_removed(line: Line, made_from: int) -> None:
    line.save(0, news=b"n")
    line.save(made_from, shop=b"1")
    with pytest.raises(NewerEdition):
        line.save(made_from, shop=b"2")
    line.save(2, {SHOP: None}, who="bob")
    with pytest.raises(NewerEdition, match="bob has saved it meanwhile, as edition 3"):
        line.save(2, shop=b"2")
    assert line.save(3, shop=b"2").number == 4


def test_an_edition_that_is_not_there(line: Line) -> None:
    line.save(0, shop=b"1")
    with pytest.raises(NotReady, match="edition 7 of papers is not ready: there is none; the newest is 1"):
        line.save(7, shop=b"2")
    with pytest.raises(NotReady, match="edition 1 has no such paper"):
        line.editions.text(1, NEWS)


def test_the_store_away_makes_none(line: Line) -> None:
    line.save(0, shop=b"1")
    line.away()
    before = line.files()
    with pytest.raises(Unavailable):
        line.save(1, shop=b"2")
    assert line.files() == before
    assert line.editions.text(1, SHOP) == b"1"


def test_a_store_that_goes_away_meanwhile_leaves_it_in_the_state_and_says_so(line: Line) -> None:
    line.save(0, shop=b"1")

    class Away(FileStore):
        def commit_new(self, *_: object) -> bool:
            raise Unavailable("store", "it went away")

    gone = JobEditions(line.state, lambda: Away("store", line.base / "store"), "papers")
    with pytest.raises(
        Unavailable, match=r"Edition 2 of papers stands in the state \(editions/papers/\).*'warcmill backup' copies"
    ):
        gone.save({SHOP: b"2"}, who="ada", why="", made_from=1)
    assert line.editions.text(2, SHOP) == b"2"
    assert line.editions.copy() == [2]
    assert line.files() == line.files("store")
    assert line.editions.copy() == []


def test_a_kill_before_its_head_leaves_none_and_its_number_is_given_again(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    line.save(0, shop=b"1")
    whole = editions._committed

    def killed(store: Store, path: str, data: bytes) -> bool:
        return 1 / 0 if path.endswith(HEAD) else whole(store, path, data)  # type: ignore[return-value]

    with monkeypatch.context() as patch:
        patch.setattr(editions, "_committed", killed)
        with pytest.raises(ZeroDivisionError):
            line.save(1, shop=b"killed")
    assert line.editions.newest() == line.editions.read(1)
    assert line.save(1, who="bob", shop=b"2").number == 2
    assert line.editions.text(2, SHOP) == b"2"


def test_a_kill_while_it_is_copied_is_mended_by_the_next_save(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = editions._committed

    def killed(store: Store, path: str, data: bytes) -> bool:
        if store.root == "store" and path.endswith(HEAD):
            raise KeyboardInterrupt
        return whole(store, path, data)

    with monkeypatch.context() as patch:
        patch.setattr(editions, "_committed", killed)
        with pytest.raises(KeyboardInterrupt):
            line.save(0, shop=b"1")
    assert list(line.files("store")) != []
    assert line.save(1, shop=b"2").number == 2
    assert line.files() == line.files("store")


def test_a_lost_state_makes_none_before_it_is_restored(line: Line) -> None:
    line.save(0, shop=b"1")
    line.save(1, shop=b"2")
    shutil.rmtree(line.base / "state" / "editions")
    with pytest.raises(Conflict, match=r"000001: the state lacks this edition and 1 more: run 'warcmill restore'"):
        line.save(0, shop=b"3")
    assert line.editions.newest() is None


def test_two_of_one_number_are_named_and_neither_is_touched(line: Line) -> None:
    line.save(0, shop=b"1")
    before = line.files("store")
    shutil.rmtree(line.base / "state" / "editions")
    line.away()
    sentinel.adopt({"store": line.base / "store"})
    line.save(0, shop=b"other")
    shutil.rmtree(line.base / "store")
    line.away(is_away=False)
    with pytest.raises(Conflict, match="the store has another edition of this number: move this folder out"):
        line.save(1, shop=b"3")
    assert line.files("store") == before


def sealed(**fields: object) -> bytes:
    edition = {
        "job": "papers", "made_from": 0, "number": 1, "papers": {}, "schema": 1, "time": "", "who": "", "why": "",
        **fields,
    }  # fmt: skip
    return seal(f"{json.dumps(edition)}\n".encode())


def place(name: str, sha256: str = "ab" * 32, number: int = 1) -> bytes:
    return sealed(papers={name: {"number": number, "sha256": sha256}})


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "cut or altered; move it out of the state, then bring it back from the store: 'warcmill restore'"),
        (sealed()[:-5], "cut or altered"),
        (sealed(number=2), "it is edition 2 of papers"),
        (sealed(job="other"), "it is edition 1 of other"),
        (sealed(schema=2, papers=[]), "it is of schema 2, this Warcmill reads 1: run a newer Warcmill"),
        (sealed(papers=[]), "no edition: Expected `object`"),
        (seal(b"[" * 100_000 + b"\n"), "no edition"),
        (seal(b"\xff\n"), "no edition"),
        (place("../../etc/passwd"), "it cannot have a paper '../../etc/passwd'"),
        (place("scripts/../crawl.toml"), "it cannot have a paper"),
        (place("/etc/passwd"), "it cannot have a paper"),
        (place("scripts/.hidden"), "it cannot have a paper"),
        (place("a\n"), "it cannot have a paper"),
        (place(SHOP, "../" * 22), "it cannot have a paper"),
        (place(SHOP, number=2), "it cannot have a paper 'scripts/shop.py' of edition 2"),
        (place(SHOP, number=-1), "it cannot have a paper"),
    ],
)
def test_a_damaged_or_hostile_edition_is_named(line: Line, data: bytes, why: str) -> None:
    line.save(0, shop=b"1")
    line.write(f"{FIRST}/{HEAD}", data)
    for act in (line.editions.newest, lambda: line.editions.text(1, SHOP), lambda: line.save(1, shop=b"2")):
        with pytest.raises(BadInput) as raised:
            act()
        assert why in raised.value.why
        assert raised.value.path == f"state:{FIRST}/{HEAD}"


def test_damaged_or_missing_bytes_of_a_paper_are_named(line: Line) -> None:
    line.save(0, shop=b"1")
    digest = line.editions.read(1).digest(SHOP)
    path = f"{FIRST}/shop.py.{digest}"
    line.write(path, b"2")
    with pytest.raises(BadInput, match=r"its bytes are not those that its name says; move it out of the state"):
        line.editions.text(1, SHOP)
    (line.base / "state" / path).unlink()
    with pytest.raises(BadInput, match=r"it is missing, and edition 1 has it: bring it back"):
        line.editions.text(1, SHOP)


@pytest.mark.parametrize("lost", [FIRST, f"{FIRST}/{HEAD}"])
def test_a_missing_number_is_named(line: Line, lost: str) -> None:
    for number in range(3):
        line.save(number, shop=b"%d" % number)
    place = line.base / "state" / lost
    (shutil.rmtree if place.is_dir() else Path.unlink)(place)
    with pytest.raises(BadInput, match=r"000001.*: it is missing, and edition 3 is there: bring it back"):
        line.editions.read(1)
    with pytest.raises(BadInput, match="it is missing"):
        list(line.editions.all())


@pytest.mark.parametrize(
    "name", ["../x", "scripts/../x.py", "/x", "", ".", "scripts/", "a/b", "a\0", "a\n", "é.py", "x" * 99]
)
def test_a_hostile_name_is_refused(line: Line, name: str) -> None:
    with pytest.raises(BadInput, match="a paper cannot have this name"):
        line.save(0, {name: b"1"})
    assert line.files() == {}


def test_what_is_too_large_is_refused(line: Line) -> None:
    with pytest.raises(BadInput, match="a paper has at most"):
        line.save(0, {"seeds.txt": b"x" * (editions.LARGEST_PAPER + 1)})
    with pytest.raises(BadInput, match="at most 2000"):
        line.editions.save({SHOP: b"1"}, who="ada", why="x" * 2001, made_from=0)
    with pytest.raises(BadInput, match="more than an edition can list"):
        line.save(0, {f"scripts/s{number:060}.py": b"" for number in range(8000)})
    assert line.editions.newest() is None


def _saver(base: Path, barrier: Barrier, name: str, results: Callable[[object], None], times: int) -> None:
    state = FileStore("state", base / "state")
    mine = JobEditions(state, lambda: FileStore("store", base / "store"), "papers")
    barrier.wait()
    for number in range(times):
        try:
            results(
                mine.save(
                    {name: f"{multiprocessing.current_process().pid} {number}".encode()}, who=name, why="", made_from=1
                ).number
            )
        except NewerEdition as error:
            results(error.number)
            return


def test_two_processes_that_save_one_paper_at_once_one_wins_and_the_other_is_told(line: Line) -> None:
    line.save(0, shop=b"1", news=b"n")
    for _ in range(5):
        last = line.editions.newest()
        assert last
        found = _race(line, [SHOP, SHOP], times=1)
        assert len(found) == 2
        newest = line.editions.newest()
        assert newest
        assert found.count(newest.number) == 2, "the winner's number, and the one that the other was told"
        shutil.rmtree(line.base / "state" / "editions")
        shutil.rmtree(line.base / "store" / archived_path("editions"))
        line.save(0, shop=b"1", news=b"n")


def test_two_processes_that_save_different_papers_disturb_nobody(line: Line) -> None:
    line.save(0, shop=b"1", news=b"n")
    assert sorted(_race(line, [SHOP, NEWS], times=1)) == [2, 3]
    assert {one.who for one in line.editions.all()} == {"ada", SHOP, NEWS}
    assert line.files() == line.files("store")


def _race(line: Line, names: list[str], times: int) -> list[int]:
    context = multiprocessing.get_context("fork")
    barrier, queue = context.Barrier(len(names)), context.Queue()
    saving = [context.Process(target=_saver, args=(line.base, barrier, name, queue.put, times)) for name in names]
    for one in saving:
        one.start()
    found = [queue.get(timeout=60) for _ in saving]
    for one in saving:
        one.join(60)
        assert one.exitcode == 0
    return found


def test_an_edition_reads_as_it_was_written() -> None:
    edition = Edition("papers", 2, "2026-11-29T10:00:00Z", "é\x1b", "why\n", 1, {SHOP: PaperPlace("", 2)})
    assert editions._decoded(edition.encode(), "x", "papers", 2) == edition
    assert (edition.papers, edition.changed, edition.digest(SHOP)) == ({}, [SHOP], "")
