"""Other rules over what a launch has logged: what they leave out, what was found behind that, what they take."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from launches.engine import LAUNCH, Engine

from warcmill.errors import NotReady
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.reports.rule_trial import LaunchLogs, RuleTrial, tried

SEED = "http://a.example/"
PAPERS = {
    "crawl.toml": b"patterns = ['(?i).*\\Qcalendar\\E.*']\n", "seeds.txt": f"{SEED}\n".encode(),
    "surts.txt": b"+http://(example,a,)/\n+http://(example,b,)/\n",
}  # fmt: skip


def line(uri: str, hops: str = "L", via: str = SEED, status: int = 200, notes: tuple[str, ...] = ()) -> bytes:
    return crawllog.render(
        CrawlRecord("2016-10-19T23:44:28.003Z", status, 9, uri, hops, via, "text/html", "#001", "20161019234428000+9",
                    "sha1:X", SEED, notes)
    )  # fmt: skip


def scope_line(uri: str, policy: str = "scope", verdict: str = "REJECT") -> bytes:
    about = json.dumps({"hopPath": "L", "via": SEED, "seed": SEED, "why": "of no site of the crawl"})
    return f"2016-10-19T23:44:28.003Z 0 {policy} {verdict} {uri} {about}\n".encode()


LOG = [
    line("http://a.example/robots.txt", "P"),
    line(SEED, "", "-"),
    line("http://a.example/calendar/1"),
    line("http://a.example/notes/1", "LL", "http://a.example/calendar/1"),
    line("http://a.example/notes/2", "LLL", "http://a.example/notes/1"),
    line("http://a.example/busy", status=503, notes=("askedAgain",)),
    line("http://a.example/busy"),
    line("http://b.example/x", status=-5000),
    line("http://a.example/no", status=-9998),
    b"no line of a log\n",
]


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


def trial(engine: Engine, folder: Path, papers: dict[str, bytes] = PAPERS, most: int = 0) -> RuleTrial:
    return tried(LaunchLogs(engine.state, lambda: engine.store, folder), LAUNCH, papers, most=most)


def leave(folder: Path, scope: bytes = b"") -> Path:
    folder.mkdir()
    (folder / "crawl.log.cp00001-20161020204551").write_bytes(b"".join(LOG[:3]))
    (folder / "crawl.log").write_bytes(b"".join(LOG[3:]))
    if scope:
        (folder / "scope.log").write_bytes(scope)
    return folder


def test_the_rules_over_the_logs_of_a_launch(engine: Engine, tmp_path: Path) -> None:
    found = trial(engine, leave(tmp_path / "logs"))
    assert (found.asked, found.number_left_out, found.behind.number) == (5, 1, 2)
    assert [(rule, hits.first) for rule, hits in found.by_rule] == [("calendar", ["http://a.example/calendar/1"])]
    assert (found.refused, found.taken.first) == (1, ["http://b.example/x"])
    assert found.words == [
        "would leave out 1 of 5: 1 by calendar",
        "2 more were found on those pages alone",
        "would take 1 of 1 that were refused; links that were refused are known where scope_log is true",
    ]
    assert found.json()["left_out"] == [{"first": ["http://a.example/calendar/1"], "number": 1, "rule": "calendar"}]


def test_refused_links_are_in_the_scope_log_each_once(engine: Engine, tmp_path: Path) -> None:
    scope = b"".join([
        scope_line("http://b.example/y"), scope_line("http://b.example/y"), scope_line("http://c.example/"),
        scope_line("http://b.example/z", "quotas"), scope_line("http://b.example/w", verdict="DEFER"),
        b"cut\n", b"a b scope REJECT http://b.example/v {\n",
    ])  # fmt: skip
    found = trial(engine, leave(tmp_path / "logs", scope))
    assert (found.refused, found.taken.first) == (3, ["http://b.example/x", "http://b.example/y"])
    assert "scope_log" not in found.words[-1]


def test_who_leaves_robots_txt_aside_takes_what_it_forbade(engine: Engine, tmp_path: Path) -> None:
    papers = {**PAPERS, "crawl.toml": b"robots = 'ignore'\n"}
    assert "http://a.example/no" in trial(engine, leave(tmp_path / "logs"), papers).taken.first


def test_a_long_log_is_read_so_far(engine: Engine, tmp_path: Path) -> None:
    found = trial(engine, leave(tmp_path / "logs"), most=3)
    assert (found.asked, found.is_whole, found.words[-1]) == (2, False, "not all of its logs were read")


def test_packed_logs_are_read_and_without_any_it_is_said(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "crawl.log.gz").write_bytes(gzip.compress(b"".join(LOG)))
    assert trial(engine, folder).asked == 5
    with pytest.raises(NotReady, match="it has no crawl log"):
        trial(engine, tmp_path / "retired")


def test_an_expression_that_is_catastrophic_elsewhere_takes_its_time_once(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    long = f"http://a.example/{'a' * 2_000}"
    (folder / "crawl.log").write_bytes(b"".join(line(f"{long}{number}!") for number in range(2_000)))
    papers = {**PAPERS, "crawl.toml": b"patterns = ['(.*a+)+$', '(a|a)*b']\n"}
    assert trial(engine, folder, papers).asked == 2_000
