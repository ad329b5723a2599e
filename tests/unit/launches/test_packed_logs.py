"""Slices of packed logs: plain, compressed by the engine, damaged, without ends of lines, and out of reach."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from launches import chain
from launches.engine import Engine

from warcmill.errors import BadInput, NotReady
from warcmill.launches import packed_logs
from warcmill.launches.packed_logs import LogSlice
from warcmill.model import FINAL, Stage

LINES = b"".join(b"F+ http://a.example/%d\n" % number for number in range(40))
CP1 = Stage.parse("cp00001-20161020004428")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_logs, "SLICE", 200)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    made = Engine(tmp_path)
    made.logs()
    made.finish()
    return made


def packed(engine: Engine, log: str, data: bytes) -> None:
    engine.log(log, data)
    chain.assembled(engine)


def read(engine: Engine, name: str, begin: int = 0) -> LogSlice:
    found = packed_logs.read(engine.state, engine.launch, FINAL, f"logs/{name}", begin)
    assert found
    return found


def slices(engine: Engine, name: str) -> list[LogSlice]:
    """All parts of a log, one after another."""
    parts = [read(engine, name)]
    while parts[-1].after is not None:
        parts.append(read(engine, name, parts[-1].after))
    return parts


@pytest.mark.parametrize("is_gzip", [False, True])
def test_slices_are_whole_lines_and_together_the_log(engine: Engine, is_gzip: bool) -> None:
    name = "frontier.recover.gz" if is_gzip else "uri-errors.log"
    packed(engine, name, gzip.compress(LINES) if is_gzip else LINES)
    parts = slices(engine, name)
    assert len(parts) > 4
    assert all(part.data.endswith(b"\n") and len(part.data) <= 200 for part in parts)
    assert b"".join(part.data for part in parts) == LINES
    assert {part.size for part in parts} == {None if is_gzip else len(LINES)}
    assert parts[0].before is None
    assert parts[-1].last is None
    assert parts[1].before == 0
    if not is_gzip:
        assert parts[0].last == len(LINES) - 200
        assert LINES.endswith(read(engine, name, parts[0].last).data)


def test_a_log_without_ends_of_lines_or_letters_is_cut_anywhere(engine: Engine) -> None:
    packed(engine, "alerts.log", b"\xff" * 500)
    parts = slices(engine, "alerts.log")
    assert [len(part.data) for part in parts] == [200, 200, 100]
    assert parts[0].text == "\ufffd" * 200
    assert read(engine, "alerts.log", 10_000).data == b""


@pytest.mark.parametrize("data", [b"", gzip.compress(LINES)[:-20], b"no gzip", gzip.compress(LINES) + b"rest"])
def test_what_the_engine_compressed_may_be_damaged(engine: Engine, data: bytes) -> None:
    packed(engine, "frontier.recover.gz", data)
    for begin in (0, 100, 900, 5_000):
        part = read(engine, "frontier.recover.gz", begin)
        assert part.after is None or part.after > begin
        assert LINES[begin:].startswith(part.data)
    assert bool(read(engine, "frontier.recover.gz", 5_000).damaged) is bool(data)


def test_the_bytes_before_damage_are_shown(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_logs, "SLICE", 10_000)
    packed(engine, "frontier.recover.gz", gzip.compress(LINES) + b"rest")
    part = read(engine, "frontier.recover.gz")
    assert (part.data, part.after) == (LINES, None)
    assert "inflated" in part.damaged


def test_a_log_that_is_not_there_and_a_place_out_of_reach(engine: Engine) -> None:
    with pytest.raises(NotReady):
        packed_logs.read(engine.state, engine.launch, FINAL, "logs/alerts.log", 0)
    packed(engine, "alerts.log", LINES)
    for name in ("alerts.log", "logs/none.log", "../logs/alerts.log", "", "warcmill-evidence.json"):
        assert packed_logs.read(engine.state, engine.launch, FINAL, name, 0) is None
    with pytest.raises(NotReady):
        packed_logs.read(engine.state, engine.launch, CP1, "logs/alerts.log", 0)
    with pytest.raises(BadInput, match="first 1,073,741,824 bytes"):
        read(engine, "alerts.log", packed_logs.REACH + 1)
