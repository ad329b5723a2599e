"""The line over every launch of a corpus, held to tests/data/expected.json.

The corpus is copied first. A launch that is expected to be `closed` is closed
by `warcmill close`; all else is what cron runs: the two scans, then reconcile.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from launches.corpus import EXPECTED, Corpus

from warcmill import layout
from warcmill.launches import holdings
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch, Outcome, Stage

Told = dict[str, Any]


@pytest.fixture(scope="session")
def told(corpora: list[Corpus]) -> dict[str, Told]:
    return {str(launch): _tell(corpus, launch) for corpus in corpora for launch in corpus.launches()}


def _tell(corpus: Corpus, launch: Launch) -> Told:
    state = corpus.state
    ended = state.read(layout.key("output.CheckJobStopped", launch))
    stages = {str(stage): _tell_stage(state, launch, stage) for stage in sorted(state.stages(launch))}
    return {"ended": ended.claim.facts["how"] if ended else "running", "stages": stages}


def _tell_stage(state: MarkerStore, launch: Launch, stage: Stage) -> Told:
    assembled = state.require(layout.key("output.AssembleOutput", launch, stage=stage)).claim
    checked = state.require(layout.key("files.Checksum", launch, stage=stage)).claim
    state.require(layout.key("files.Verify", launch, stage=stage))
    items = {item.file.path: item for item in (*assembled.items, *checked.items)}.values()
    return {
        "lines": assembled.counts["lines"],
        "warcs": len(assembled.items),
        "bytes": sum(item.file.size for item in assembled.items),
        "refused": {item.file.name: item.offset for item in items if item.outcome is Outcome.REFUSED},
        "unnamed": assembled.facts["unnamed"],
        "absent": assembled.facts["absent"],
    }


def test_every_launch_ends_as_expected(told: dict[str, Told]) -> None:
    assert told == {name: EXPECTED.get(name) for name in told}


def test_no_expected_launch_is_missing(told: dict[str, Told]) -> None:
    assert sorted(set(EXPECTED) - set(told)) == []


HELD = {  # of every stage whose holdings are not simply its whole WARCs
    ("crashed/20261121083734", "final"): ["salvaged", "cut", "whole"],
    ("daily/20261121081844", "cp00002-20261121081921"): ["whole", "viral"],
    ("daily/20261121082027", "final"): ["whole", "viral"],
    ("weekly/20261121081735", "final"): ["whole", "viral"],
}


def test_each_warc_is_held_once(corpora: list[Corpus]) -> None:
    for corpus in corpora:
        for launch in corpus.launches():
            names = [one.name for stage in corpus.state.stages(launch) for one in _held(corpus, launch, stage)]
            assert len(names) == len(set(names)), launch


def _held(corpus: Corpus, launch: Launch, stage: Stage) -> tuple[holdings.Holding, ...]:
    found = holdings.of_stage(corpus.state, launch, stage)
    warcs = EXPECTED[str(launch)]["stages"][str(stage)]["warcs"]
    words = [str(one.word) for one in found.holdings]
    assert words == HELD.get((str(launch), str(stage)), ["whole"] * warcs), (launch, stage)
    for file in (*(one.stored for one in found.holdings), *found.logs):
        data = (corpus.base / "line" / "store" / file.path).read_bytes()
        assert (len(data), hashlib.sha512(data).hexdigest()) == (file.size, file.sha512), file.path
    assert (len(found.logs), found.unstored) == (1, ())
    return found.holdings


def test_reconcile_exits_1_where_something_is_to_be_looked_at(corpora: list[Corpus], told: dict[str, Told]) -> None:
    for corpus in corpora:
        for day in sorted({launch.day for launch in corpus.launches()}):
            found = corpus.run("commands.main", "reconcile", day.isoformat(), "--json")
            of_day = [one for one in corpus.launches() if one.day == day]
            odd = [str(one) for one in of_day if _is_odd(told[str(one)]) or _lacks_a_log(corpus.state, one)]
            gaps = [gap for one in json.loads(found.stdout)["launches"] for gap in one["gaps"]]
            lost = [gap for gap in gaps if gap["kind"] in ("dead seed", "untried seed")]
            assert found.returncode == (1 if odd or lost else 0), found.stdout + found.stderr


def _is_odd(launch: Told) -> bool:
    return any(stage[what] for stage in launch["stages"].values() for what in ("refused", "unnamed", "absent"))


def _lacks_a_log(state: MarkerStore, launch: Launch) -> bool:
    packed = [state.read(layout.key("output.PackageLogs", launch, stage=stage)) for stage in state.stages(launch)]
    return any(one and one.claim.facts["absent"] for one in packed)


@pytest.fixture(autouse=True, scope="session")
def _nothing_is_lost(corpora: list[Corpus], request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    folder: Path = request.config.getoption("--corpus")
    for corpus in corpora:
        source = folder / str(corpus.layout)
        for path in source.rglob("*"):
            if path.is_file() and not path.is_symlink():
                assert (corpus.base / "engine" / path.relative_to(source)).read_bytes() == path.read_bytes(), path
