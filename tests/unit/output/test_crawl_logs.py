"""Rotated crawl logs: every line counts, whatever its log is called, and what does not count is named."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from launches import chain
from launches.engine import LAUNCH, Engine, line_of
from sample import SAMPLE

from warcmill import layout
from warcmill.audit.reconciliation import report
from warcmill.markers.claim import Claim
from warcmill.model import FINAL, Stage

CP1 = Stage.parse("cp00001-20161020000000")
REAL = (SAMPLE / "logs/weekly/20261121081735/crawl.log").read_bytes().splitlines(keepends=True)
WARCS = [f"BL-20161019234430000-0000{serial}-1~crawler~8443.warc.gz" for serial in range(3)]


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    made = Engine(tmp_path)
    made.logs()
    made.finish()
    return made


def wrote(engine: Engine, name: str, *lines: bytes) -> None:
    data = b"".join(lines)
    engine.log(name, gzip.compress(data) if name.endswith(".gz") or ".gz.cp" in name else data)


def facts(claim: Claim, *names: str) -> dict[str, Any]:
    return {name: claim.facts.get(name) for name in names}


def one_line(warc: str, offset: int = 0, uri: str = "http://a.example/") -> bytes:
    return f"{line_of(uri, warc, offset)}\n".encode()


@pytest.mark.parametrize(
    "rotated", ["crawl.log.20261121081800", "crawl.log.20261121081800.gz", "crawl.log.1", "crawl.log.001.gz"]
)
def test_a_real_log_that_was_split_counts_as_the_whole_one(tmp_path: Path, rotated: str) -> None:
    """277 lines, the first 240 rotated away: 37 were counted, and a named WARC was called unnamed."""
    found = []
    for place, (first, last) in {"whole": (b"", b"".join(REAL)), "split": (REAL[:240], REAL[240:])}.items():
        engine = Engine(tmp_path / place)
        engine.logs()
        wrote(engine, "crawl.log", *([last] if place == "whole" else last))
        if first:
            wrote(engine, rotated, *first)
        for name in {name for line in REAL for name in [_warc(line)] if name}:
            engine.warc(name, b"")
        engine.finish()
        found.append(chain.assembled(engine))
    whole, split = found
    assert split.counts == whole.counts
    assert split.counts["lines"] == 277
    assert split.items == whole.items
    assert split.facts == whole.facts
    assert split.facts["unnamed"] == []


def _warc(line: bytes) -> str:
    _, _, rest = line.partition(b'"warcFilename":"')
    return rest.partition(b'"')[0].decode()


def test_membership_and_offsets_come_from_all_of_them(engine: Engine) -> None:
    wrote(engine, "crawl.log.20161019235000", one_line(WARCS[0], 5), one_line(WARCS[1], 9))
    wrote(engine, "crawl.log.2.gz", one_line(WARCS[1], 30))
    wrote(engine, "crawl.log", one_line(WARCS[1], 20))
    for name in WARCS:
        engine.warc(name, b"")
    claim = chain.assembled(engine)
    assert {item.file.name: item.facts.get("offset") for item in claim.items} == {
        WARCS[0]: 5,
        WARCS[1]: 30,
        WARCS[2]: None,
    }
    assert claim.counts["lines"] == 4
    assert claim.facts["unnamed"] == [f"warcs/daily/{LAUNCH.id}/{WARCS[2]}"]
    assert "uncounted_log" not in claim.facts


def test_rotated_logs_of_a_checkpoint_are_its_own(engine: Engine) -> None:
    engine.logs(stage=str(CP1))
    wrote(engine, f"crawl.log.20161019235000.{CP1}", one_line(WARCS[0]))
    wrote(engine, f"crawl.log.7.gz.{CP1}", one_line(WARCS[1]))
    wrote(engine, "crawl.log.3", one_line(WARCS[2]))
    for name in WARCS:
        engine.warc(name, b"")
    first, final = chain.assembled(engine, CP1), chain.assembled(engine)
    assert [item.file.name for item in first.items] == WARCS[:2]
    assert [item.file.name for item in final.items] == WARCS[2:]
    assert (first.counts["lines"], final.counts["lines"]) == (2, 1)


def test_any_other_crawl_log_is_packed_and_named_and_not_counted(engine: Engine) -> None:
    others = ["crawl.log.old", "crawl.log.1234", "crawl.log.1.bz2", "crawl.log.cp00001-20169920000000", "crawl.log~"]
    for name in others:
        wrote(engine, name, one_line(WARCS[0]))
    claim = chain.assembled(engine)
    assert claim.counts["lines"] == 0
    named = [f"logs/daily/{LAUNCH.id}/{name}" for name in sorted(others)]
    assert claim.facts["uncounted_log"] == named
    packed = engine.state.require(layout.key("output.PackageLogs", LAUNCH, stage=FINAL)).claim
    assert {f"logs/{layout.stored_name(name)}" for name in others} <= {item.facts["member"] for item in packed.items}
    found = report(engine.state, engine.rootmap, engine.store, LAUNCH, {}).gaps
    assert [gap.name for gap in found if gap.kind == "uncounted log"] == named


@pytest.mark.parametrize("harm", ["cut", "altered", "no gzip"])
def test_a_compressed_log_that_is_damaged_counts_as_far_as_it_goes_and_is_named(engine: Engine, harm: str) -> None:
    data = bytearray(gzip.compress(b"".join(one_line(WARCS[0], uri=f"http://{n * n}.example/") for n in range(9_000))))
    harmed = {"cut": data[: len(data) // 2], "altered": data[:-4] + b"\0\0\0\1", "no gzip": bytearray(b"plain\n")}
    engine.log("crawl.log.1.gz", bytes(harmed[harm]))
    wrote(engine, "crawl.log", one_line(WARCS[1]))
    engine.warc(WARCS[0], b"")
    claim = chain.assembled(engine)
    assert claim.facts["uncounted_log"] == [f"logs/daily/{LAUNCH.id}/crawl.log.1.gz"]
    assert claim.counts["lines"] > 1 or harm == "no gzip"
    assert (claim.facts["unnamed"] == []) is (harm != "no gzip")


def test_a_log_that_is_there_plain_and_compressed_counts_once(engine: Engine) -> None:
    """As a kill leaves it in the midst of compressing."""
    wrote(engine, "crawl.log.1", one_line(WARCS[0]))
    wrote(engine, "crawl.log.1.gz", one_line(WARCS[0]))
    claim = chain.assembled(engine)
    assert claim.counts["lines"] == 1
    assert claim.facts["uncounted_log"] == [f"logs/daily/{LAUNCH.id}/crawl.log.1.gz"]


def test_they_are_read_in_the_order_in_which_they_were_written() -> None:
    names = ["crawl.log.20161019235000.gz", "crawl.log.20161020000000", "crawl.log.12", "crawl.log.3.gz", "crawl.log"]
    shuffled = sorted(names)
    assert sorted(shuffled, key=lambda name: layout.crawl_log_order(name) or ()) == names


def test_a_crawl_log_that_is_compressed_alone_is_not_absent(engine: Engine) -> None:
    logs = engine.folders["output"] / engine.layout.folder("logs", LAUNCH)
    (logs / "crawl.log").unlink()
    wrote(engine, "crawl.log.gz", one_line(WARCS[0]))
    claim = chain.assembled(engine)
    packed = engine.state.require(layout.key("output.PackageLogs", LAUNCH, stage=FINAL)).claim
    assert (packed.facts["absent"], claim.counts["lines"]) == ([], 1)
