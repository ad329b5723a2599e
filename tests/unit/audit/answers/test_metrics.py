"""The metrics: what each says of an answer, that nothing is made up, and that no site chooses a label."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from launches.engine import Engine

from warcmill import __version__
from warcmill.audit import day_summary
from warcmill.audit.answers import health, metrics
from warcmill.audit.day_summary import DaySummary
from warcmill.model import Json

HEALTH: dict[str, Json] = {
    "written": "2026-11-26T13:00:00Z",
    "well": False,
    "asked": [
        {"kind": "engine", "name": "first", "answered": True, "text": "<b>Heritrix</b>"},
        {"kind": "root", "name": "output [engine.second]", "answered": False, "why": "it is away"},
    ],
    "roots": [
        {"root": "store", "bytes_free": 1 << 40, "bytes": 1 << 42, "level": "ok"},
        {"root": "output [engine.second]", "bytes_free": None, "bytes": None, "level": "fail"},
    ],
    "crawls": [{"job": "daily", "engine": "first", "done": 12, "queued": 3, "per_minute": 60, "said": ["<script>"]}],
    "scans": [{"name": "files.ScanForOutputFiles", "ended": "2026-11-26T12:00:00Z", "troubles": 2}],
    "backup": {"ended": "2026-11-26T02:10:00Z"},
    "launches": {"done": 4, "in_trouble": 1},
    "gaps": {"dead seed": 3},
    "files": {"copy": {"warcs": 5, "bytes": 5000}},
    "backlog": {"verify": {"launches": 1, "warcs": 2, "bytes": 200}},
}
SAID = f"""\
warcmill_build_info{{version="{__version__}"}} 1
warcmill_up{{kind="engine",name="first"}} 1
warcmill_up{{kind="root",name="output [engine.second]"}} 0
warcmill_free_bytes{{root="store"}} 1099511627776
warcmill_size_bytes{{root="store"}} 4398046511104
warcmill_crawl_done{{job="daily"}} 12
warcmill_crawl_queued{{job="daily"}} 3
warcmill_crawl_per_minute{{job="daily"}} 60
warcmill_health_written_timestamp_seconds 1795698000
warcmill_scan_end_timestamp_seconds{{scan="files.ScanForOutputFiles"}} 1795694400
warcmill_scan_troubles{{scan="files.ScanForOutputFiles"}} 2
warcmill_backup_end_timestamp_seconds 1795659000
warcmill_launches{{state="done"}} 4
warcmill_launches{{state="in_trouble"}} 1
warcmill_gaps{{kind="dead seed"}} 3
warcmill_warcs{{step="copy"}} 5
warcmill_warc_bytes{{step="copy"}} 5000
warcmill_backlog{{step="verify"}} 1
warcmill_newest_warc_timestamp_seconds 7
"""


def values(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))


def test_each_figure_of_the_answer_is_a_metric() -> None:
    text = metrics.text(HEALTH, 7)
    assert values(text) == SAID
    named = re.findall(r"^(\w+)", SAID, re.MULTILINE)
    for what in ("HELP", "TYPE"):
        assert re.findall(rf"^# {what} (\w+) ", text, re.MULTILINE) == list(dict.fromkeys(named))


@pytest.mark.parametrize(
    "damaged",
    [
        {},
        {"written": "yesterday", "asked": {}, "roots": None, "launches": [], "gaps": 7, "files": {"copy": 1}},
        {"written": None, "asked": [7, {}], "scans": [{"name": None, "ended": "?"}], "backup": {"ended": ""}},
        {"crawls": [{"job": "daily", "done": "many", "queued": None}], "backlog": {"copy": {"launches": "x"}}},
        {"written": "99999-01-01T00:00:00Z", "launches": {"done": 1.5}},
    ],
)
def test_what_is_not_known_is_absent(damaged: dict[str, Json]) -> None:
    assert values(metrics.text(damaged)) == f'warcmill_build_info{{version="{__version__}"}} 1\n'


@pytest.mark.parametrize(
    "word", ["<b>", 'x"} 1', "a\nb", "\\", "http://a.example/", "a/b", "", "ä", "\u202e", "x" * 101]
)
def test_a_word_that_is_none_of_ours_is_no_label(word: str) -> None:
    found = metrics.text({"gaps": {word: 1}, "crawls": [{"job": word, "done": 1}], "launches": {"done": 1}})
    assert values(found).splitlines()[1:] == ['warcmill_launches{state="done"} 1']


def launch(name: str, warcs: int, *stages: str) -> dict[str, Json]:
    return {"job": "daily", "launch_id": name, "warcs": warcs, "stages": {stage: {} for stage in stages}}


def test_the_newest_warc_is_that_of_a_checkpoint_or_of_a_launch() -> None:
    day = datetime(2026, 11, 21).date()
    one, other = launch("20261121081844", 2, "cp00001-20261121081902", "final"), launch("20261121100000", 0)
    found = [DaySummary(day, (one, other)), DaySummary(day, why="it is cut")]
    assert datetime.fromtimestamp(metrics.newest_warc(found), UTC).isoformat() == "2026-11-21T08:19:02+00:00"
    assert metrics.newest_warc([]) == 0
    assert metrics.newest_warc([DaySummary(day, (launch("20269999999999", 1, "cp00001-x"),))]) == 0


def test_an_answer_that_is_absent_or_torn_leaves_what_is_known(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    today = datetime.now(UTC).date()
    stamp = f"{today:%Y%m%d}081844"
    summary = {"day": str(today), "launches": [launch(stamp, 1)]}
    engine.state.store.replace(day_summary.path(today), json.dumps(summary).encode())
    whole = json.dumps(HEALTH).encode()
    for torn in (None, b"", whole[: len(whole) // 2], b"[]", b"\xff"):
        if torn is not None:
            engine.state.store.replace(health.PATH, torn)
        assert [line.split("{")[0].split(" ")[0] for line in values(metrics.read(engine.state)).splitlines()] == [
            "warcmill_build_info",
            "warcmill_newest_warc_timestamp_seconds",
        ]
    engine.state.store.replace(health.PATH, whole)
    assert values(metrics.read(engine.state)).startswith(SAID[: SAID.index("warcmill_newest")])


def test_an_answer_of_last_year_says_so(tmp_path: Path) -> None:
    """Its age grows: the time is the answer's, not that of its file, nor of the question."""
    engine = Engine(tmp_path)
    then = datetime.now(UTC).replace(microsecond=0) - timedelta(days=365)
    old = HEALTH | {"written": f"{then:%Y-%m-%dT%H:%M:%SZ}"}
    engine.state.store.replace(health.PATH, json.dumps(old).encode())
    assert f"warcmill_health_written_timestamp_seconds {int(then.timestamp())}\n" in metrics.read(engine.state)
