"""Decisions: numbered, sealed, in the state and the store; what an outage, a loss or two makers at once do."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from hashlib import sha512
from pathlib import Path

import pytest

from warcmill.errors import BadInput, Conflict, Unavailable
from warcmill.layout import archived_path
from warcmill.markers import decisions
from warcmill.markers.decisions import ACCEPTED, DOCUMENTS, RecordedDecision
from warcmill.model import Root
from warcmill.stores import Store, sentinel
from warcmill.stores.file import FileStore

SEED = {"job": "daily", "kind": "seed", "name": "http://a.example/", "reason": "gone for good"}
FIRST, SECOND = "decisions/accepted/000001.json", "decisions/accepted/000002.json"


class Line:
    """A state and a store that can be away."""

    def __init__(self, base: Path) -> None:
        self.base, self.opened = base, 0
        self.state = self.folder("state")
        self.store = self.folder("store")

    def folder(self, root: Root) -> FileStore:
        sentinel.adopt({root: self.base / root})
        return FileStore(root, self.base / root)

    def open_store(self) -> Store:
        self.opened += 1
        return FileStore("store", self.base / "store")

    def make(
        self, name: str = "http://a.example/", unless: Callable[..., RecordedDecision | None] = lambda _: None
    ) -> RecordedDecision:
        return decisions.make(self.state, self.open_store, ACCEPTED, {**SEED, "name": name}, unless=unless)

    def names(self) -> list[object]:
        return [one.facts["name"] for one in decisions.read(self.state, ACCEPTED)]

    def stored(self, path: str) -> bytes | None:
        found = self.base / "store" / archived_path(path)
        return found.read_bytes() if found.exists() else None

    def away(self, *, is_away: bool = True) -> None:
        here, there = self.base / "store", self.base / "elsewhere"
        (here if is_away else there).rename(there if is_away else here)

    def lose(self, *paths: str) -> None:
        for path in paths:
            (self.base / "state" / path).unlink()

    def write(self, path: str, data: bytes) -> None:
        place = self.base / "state" / path
        place.unlink(missing_ok=True)
        place.write_bytes(data)


@pytest.fixture
def line(tmp_path: Path) -> Line:
    return Line(tmp_path)


def test_a_decision_is_numbered_read_again_and_in_the_store_with_its_bytes(line: Line) -> None:
    made = [line.make("a"), line.make("b")]
    assert [one.number for one in made] == [1, 2]
    assert decisions.read(line.state, ACCEPTED) == made
    assert made[1].facts == {**SEED, "name": "b"}
    data = (line.base / "state" / SECOND).read_bytes()
    assert data == made[1].encode() == line.stored(SECOND)
    assert decisions.read(line.state, "access") == []


def test_one_that_rules_the_same_is_not_made_twice(line: Line) -> None:
    first = line.make()
    assert line.make(unless=lambda known: known[0]) == first
    assert line.names() == [SEED["name"]]


def test_the_store_away_leaves_it_in_the_state_and_the_same_again_copies_it_alone(line: Line) -> None:
    line.away()
    with pytest.raises(Unavailable) as raised:
        line.make()
    assert raised.value.exit_code == 4
    told = str(raised.value)
    assert "Decision 1 stands in the state (decisions/accepted/) and counts from the next scan on" in told
    assert "not safe until the store has it: run the same command again, which only copies it" in told
    line.away(is_away=False)
    assert line.stored(FIRST) is None
    assert line.make(unless=lambda known: known[0] if known else None).number == 1
    assert line.names() == [SEED["name"]]
    assert line.stored(FIRST) == (line.base / "state" / FIRST).read_bytes()


def test_a_killed_maker_s_decision_is_copied_by_the_next_one(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(decisions, "copy", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            line.make("a")
    assert line.stored(FIRST) is None
    assert line.make("b").number == 2
    assert line.stored(FIRST)
    assert line.stored(SECOND)


def test_two_at_once_get_two_numbers(line: Line) -> None:
    def meanwhile(known: list[RecordedDecision]) -> None:
        if len(known) == 1:
            line.make("other")

    line.make("first")
    assert line.make("late", unless=meanwhile).number == 3
    assert line.names() == ["first", "other", "late"]


def test_a_lost_state_makes_none_before_it_is_restored(line: Line) -> None:
    line.make("a")
    line.make("b")
    line.lose(FIRST, SECOND)
    with pytest.raises(
        Conflict, match=r"000001.json: the state lacks this decision and 1 more: run 'warcmill restore'"
    ):
        line.make("c")
    assert decisions.read(line.state, ACCEPTED) == []


def test_two_of_one_number_are_named_and_neither_is_touched(line: Line) -> None:
    line.make("a")
    kept = line.stored(FIRST)
    line.lose(FIRST)
    line.away()
    with pytest.raises(Unavailable):
        line.make("b")
    line.away(is_away=False)
    for _ in range(2):
        with pytest.raises(Conflict, match=r"state:decisions/accepted/000001.json: the store has another decision"):
            line.make("c")
    assert line.names() == ["b"]
    assert line.stored(FIRST) == kept


def test_another_one_taken_the_number_in_the_store_meanwhile(line: Line) -> None:
    line.away()
    with pytest.raises(Unavailable):
        line.make("a")
    line.away(is_away=False)
    data = RecordedDecision(ACCEPTED, 1, "2016-10-21T03:00:07Z", SEED).encode()
    store = line.open_store()

    class Late(FileStore):
        def list(self, folder: str):  # type: ignore[no-untyped-def]
            yield from ()
            store.commit_new(archived_path(FIRST), io.BytesIO(data), len(data), sha512(data).hexdigest())

    with pytest.raises(Conflict, match="the store has another decision of this number"):
        decisions.copy(line.state, lambda: Late("store", line.base / "store"), ACCEPTED)
    assert line.stored(FIRST) == data


SOUND = RecordedDecision(ACCEPTED, 1, "2016-10-21T03:00:07Z", SEED).encode()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (SOUND[:-5], "cut or altered; move it out of the state, then bring it back from the store: 'warcmill restore'"),
        (b"", "cut or altered"),
        (
            RecordedDecision(ACCEPTED, 2, "2016-10-21T03:00:07Z", SEED).encode(),
            "it is decision 2; move it out of the state",
        ),
        (RecordedDecision(ACCEPTED, 1, "2016-10-21T03:00:07Z", {}).encode().replace(b"1", b"2"), "cut or altered"),
    ],
)
def test_a_damaged_one_is_named(line: Line, data: bytes, why: str) -> None:
    line.make()
    line.write(FIRST, data)
    with pytest.raises(BadInput, match=why) as raised:
        line.make("b")
    assert raised.value.path == f"state:{FIRST}"
    assert not (line.base / "state" / SECOND).exists()


@pytest.mark.parametrize("body", [b"[]\n", b"1\n", b'{"number": 1}\n', b"\xff\n", b"[" * 100_000])
def test_what_is_sealed_and_no_decision_is_named(line: Line, body: bytes) -> None:
    line.make()
    line.write(FIRST, decisions.seal(body))
    with pytest.raises(BadInput, match=r"no decision: .*move it out of the state"):
        decisions.read(line.state, ACCEPTED)


def test_another_schema_is_named(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(decisions, "SCHEMA", 2)
        line.make()
    with pytest.raises(BadInput, match="it is of schema 2, this Warcmill reads 1: run a newer Warcmill"):
        decisions.read(line.state, ACCEPTED)


def test_a_gap_is_named(line: Line) -> None:
    line.make("a")
    line.make("b")
    line.lose(FIRST)
    with pytest.raises(BadInput, match=r"000001.json: it is missing, and decision 2 is there: bring it back"):
        decisions.read(line.state, ACCEPTED)


def test_compare_names_what_differs_below_the_newest(line: Line) -> None:
    for name in "abc":
        line.make(name)
    decisions.compare(line.state, line.store, ACCEPTED)
    line.write(FIRST, SOUND)
    with pytest.raises(Conflict, match=r"000001.json: the store has another decision of this number"):
        decisions.compare(line.state, line.store, ACCEPTED)


def test_of_a_kind_that_only_accepts_the_others_count_and_each_damaged_or_missing_one_is_named(line: Line) -> None:
    for name in "abcdef":
        line.make(name)
    line.write(SECOND, b"cut short")
    line.lose("decisions/accepted/000004.json", "decisions/accepted/000005.json")
    found, wrong = decisions.readable(line.state, ACCEPTED)
    assert [one.facts["name"] for one in found] == ["a", "c", "f"]
    assert [error.path for error in wrong] == [f"state:{SECOND}", "state:decisions/accepted/000004.json"]
    assert wrong[1].why.startswith("decisions 4 to 5 are missing, and decision 6 is there: bring it back")


def test_many_at_once_are_made_once_each_and_read_once(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    line.make("a")
    wanted = [{**SEED, "name": name} for name in ("a", *map(str, range(500)), "7")]
    calls = {"read": 0, "names": 0, "list": 0}
    for module, name in ((decisions, "read"), (FileStore, "names"), (FileStore, "list")):
        whole = getattr(module, name)

        def counted(*args: object, name: str = name, whole: Callable[..., object] = whole, **more: object) -> object:
            calls[name] += 1
            return whole(*args, **more)

        monkeypatch.setattr(module, name, counted)
    decisions.make_all(line.state, line.open_store, ACCEPTED, wanted)
    assert (calls["read"], calls["names"] < 10, calls["list"] < 10) == (1, True, True), calls
    assert line.names() == ["a", *map(str, range(500))]
    decisions.make_all(line.state, line.open_store, ACCEPTED, wanted)
    assert len(line.names()) == 501
    assert line.stored("decisions/accepted/000501.json")


def test_another_maker_between_two_of_many_loses_none(line: Line) -> None:
    def wanted() -> Iterator[dict[str, str]]:
        yield {**SEED, "name": "a"}
        line.make("other")
        yield {**SEED, "name": "b"}
        yield {**SEED, "name": "other"}

    decisions.make_all(line.state, line.open_store, ACCEPTED, wanted())
    assert line.names() == ["a", "other", "b"]


def test_with_a_damaged_one_many_are_refused_and_none_is_made(line: Line) -> None:
    line.make("a")
    line.write(FIRST, b"cut short")
    with pytest.raises(BadInput, match="cut or altered"):
        decisions.make_all(line.state, line.open_store, ACCEPTED, [{**SEED, "name": "b"}])
    assert not (line.base / "state" / SECOND).exists()


def decide(line: Line, after: int, name: str = "a", **more: Callable[..., RecordedDecision | None]) -> RecordedDecision:
    return decisions.make(line.state, line.open_store, DOCUMENTS, {"name": name}, after=after, **more)


def of_documents(line: Line, root: str) -> list[str]:
    folder = line.base / root / ("decisions/documents" if root == "state" else archived_path("decisions/documents"))
    return sorted(path.name[:6] for path in folder.glob("*.json"))


def test_a_long_kind_is_read_after_a_number_and_its_folder_in_the_store_is_never_listed(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        assert decide(line, number).number == number + 1
    listed, read = list[str](), list[str]()
    whole, one = FileStore.list, FileStore.read
    monkeypatch.setattr(FileStore, "list", lambda self, folder: listed.append(folder) or whole(self, folder))
    monkeypatch.setattr(FileStore, "read", lambda self, path, most: read.append(path) or one(self, path, most))
    seen: list[int] = []
    made = decide(line, 3, "b", unless=lambda known: seen.extend(each.number for each in known))
    assert (made.number, seen, listed) == (6, [4, 5], [])
    assert {path[-11:-5] for path in read} == {"000004", "000005", "000006"}
    assert of_documents(line, "store") == of_documents(line, "state") == [f"{number:06}" for number in range(1, 7)]
    assert [each.number for each in decisions.read(line.state, DOCUMENTS, after=4)] == [5, 6]


def test_those_that_the_store_lacks_are_copied_in_their_order(line: Line) -> None:
    decide(line, 0)
    line.away()
    for after in (1, 1, 2):
        with pytest.raises(Unavailable, match="stands in the state"):
            decide(line, after)
    line.away(is_away=False)
    assert of_documents(line, "store") == ["000001"]
    decisions.copy_last(line.state, line.open_store, DOCUMENTS, 3)
    assert of_documents(line, "store") == ["000001", "000002", "000003"]
    assert decide(line, 3).number == 5
    assert len(of_documents(line, "store")) == 5


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_lost_one_of_a_long_kind_is_named_whatever_is_read(line: Line, lost: int) -> None:
    for number in range(3):
        decide(line, number)
    line.lose(f"decisions/documents/{lost:06}.json")
    with pytest.raises(BadInput, match=rf"{lost:06}\.json: it is missing"):
        decide(line, 3)
    if lost == 3:
        with pytest.raises(Conflict, match="the state lacks this decision: run 'warcmill restore'"):
            decide(line, 2)


def test_another_one_of_the_last_number_in_the_store_is_refused(line: Line) -> None:
    for number in range(2):
        decide(line, number)
    place = line.base / "store" / archived_path("decisions/documents/000002.json")
    place.unlink()
    place.write_bytes(b"another")
    with pytest.raises(Conflict, match="the store has another decision of this number"):
        decide(line, 2)


def test_half_written_files_of_dead_makers_are_swept(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    decide(line, 0)
    half = line.base / "state" / "decisions/documents" / ".000002.json.host.boot.1.00000000.tmp"
    half.write_bytes(b"half")
    monkeypatch.setattr(decisions, "is_dead", lambda name: name == half.name)
    monkeypatch.setattr("warcmill.stores.temporary_names.is_dead", lambda name: name == half.name)
    assert decide(line, 1).number == 2
    assert not half.exists()
