"""What reports have of the seeds of Heritrix launches: each a copy of the bundled one, with another list or other logs.
One scan reports on all of them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sample
from launches.bundled import copy_launch
from line import DAY, Line, line_at

from warcmill.audit import accepted_seeds
from warcmill.formats.logs.crawlcounts import Tally
from warcmill.markers import decisions
from warcmill.model import Launch

GONE = "http://gone.example/"
MANY = 100_000
LOST = "      {launch}  {seed}\n"


def of(job: str) -> Launch:
    return Launch(job, sample.LAUNCH_ID)


def seeds_of(line: Line, job: str) -> list[Path]:
    """The job's list and the launch's own."""
    folder = line.folders["jobs"] / job
    return [path for path in (folder / "seeds.txt", folder / sample.LAUNCH_ID / "seeds.txt") if path.exists()]


def folder(line: Line, kind: str, job: str) -> Path:
    return line.folders["output"] / kind / job / sample.LAUNCH_ID


def without_line_of_gone(line: Line, job: str) -> None:
    log = folder(line, "logs", job) / "crawl.log"
    log.write_text("".join(one for one in log.read_text("utf-8").splitlines(True) if "gone.example" not in one))


def ended(line: Line, job: str, status: str) -> None:
    """The crawl ended before it came to the seed that is gone."""
    without_line_of_gone(line, job)
    report = folder(line, "reports", job) / "crawl-report.txt"
    report.write_text(report.read_text().replace("Empty - Active", status))


def in_utf_16(line: Line, job: str) -> None:
    """As Windows writes it: with a mark, duplicates, and no end of its last line."""
    for path in seeds_of(line, job):
        text = path.read_text("utf-8").replace("\n", "\r\n")
        path.write_bytes(f"{text}{text}HTTP://GONE.example".encode("utf-16"))


def unread(line: Line, job: str) -> None:
    """As Heritrix leaves a launch of a list in UTF-16, which it does not read: at once EMPTY, with empty logs."""
    in_utf_16(line, job)
    (folder(line, "logs", job) / "crawl.log").write_text("")
    for warc in (*folder(line, "warcs", job).iterdir(), *folder(line, "viral", job).iterdir()):
        warc.unlink()


def without_list(line: Line, job: str) -> None:
    for path in seeds_of(line, job):
        path.unlink()


def with_many(line: Line, job: str) -> None:
    """So many seeds more, none of which has an address."""
    names = [f"http://d{number}.example/" for number in range(MANY)]
    for path in seeds_of(line, job):
        path.write_text(path.read_text("utf-8") + "\n".join(names))
    log = folder(line, "logs", job) / "crawl.log"
    (dead,) = (one for one in log.read_text("utf-8").splitlines(True) if f" {GONE} - - " in one)
    with log.open("a") as file:
        file.writelines(dead.replace(GONE, name) for name in names)


def recount(line: Line, job: str) -> None:
    """The engine counts what its log has."""
    counts = Tally()
    with (folder(line, "logs", job) / "crawl.log").open("rb") as log:
        counts.add(log)
    found = counts.counts()
    report = folder(line, "reports", job) / "crawl-report.txt"
    report.write_text(re.sub(r"(?m)^(URIs processed:) .*", rf"\1 {found.lines}", report.read_text()))
    codes = "".join(f"{number} {code}\n" for code, number in found.by_status.items() if int(code) > 0)
    report.with_name("responsecode-report.txt").write_text(f"[#urls] [rescode]\n{codes}")


def altered(line: Line, job: str) -> None:
    """What a disk that failed leaves after the engine has counted: lines, a seed and a report lost, and a line cut."""
    log = folder(line, "logs", job) / "crawl.log"
    *kept, last = (one for one in log.read_bytes().splitlines(True) if b"/odd/" not in one or b"X http" not in one)
    log.write_bytes(b"".join(kept) + last[:-40])
    (folder(line, "reports", job) / "hosts-report.txt").write_bytes(b"\0" * 99)
    for path in seeds_of(line, job):
        path.write_text(path.read_text("utf-8").replace(f"{GONE}\n", ""))


ALTERED = "altered"  # the one that its engine does not recount
JOBS: dict[str, Callable[[Line, str], None]] = {
    "stopped": lambda line, job: ended(line, job, "Finished - Ended by operator"),
    "limited": lambda line, job: ended(line, job, "Finished - Maximum number of documents limit hit"),
    "heritrix": lambda line, job: ended(line, job, "Stopping - Active"),  # after a stop, and after a limit
    "unread": unread,
    "windows": in_utf_16,
    "listless": without_list,
    "many": with_many,
    ALTERED: altered,
}


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Line:
    """All of them, reported on. Tests change the decisions alone."""
    base = tmp_path_factory.mktemp("lists")
    sample.lay_out(base / "output")
    made = line_at(base)
    for job, change in JOBS.items():
        copy_launch(made, of(job))
        for path in (made.folders["jobs"] / sample.JOB).glob("*.*"):
            (made.folders["jobs"] / job / path.name).write_bytes(path.read_bytes())
        change(made, job)
        if job != ALTERED:
            recount(made, job)
    assert made.scan() == [0, 0]
    return made


def why(line: Line, job: str) -> subprocess.CompletedProcess[str]:
    return line.warcmill("why", job, sample.LAUNCH_ID)


def report(line: Line, job: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line.warcmill("report", job, sample.LAUNCH_ID, "--seeds", "--json").stdout)
    seeds: dict[str, Any] = found["seeds"]
    return seeds


def row(line: Line, job: str, seed: str = GONE) -> dict[str, Any]:
    (found,) = (one for one in report(line, job)["seeds"] if one["seed"] == seed)
    assert isinstance(found, dict)
    return found


def test_the_bundled_launch_names_its_dead_seed(line: Line) -> None:
    told = line.warcmill("why", sample.JOB, sample.LAUNCH_ID)
    assert told.returncode == 1
    assert f"  dead seed: its host has no address\n{LOST.format(launch=of(sample.JOB), seed=GONE)}" in told.stdout
    assert f"-> warcmill accept {GONE} --launch {sample.JOB} {sample.LAUNCH_ID} --reason TEXT" in told.stdout


@pytest.mark.parametrize(("job", "end"), [("limited", "documents limit hit"), ("heritrix", "Stopping - Active")])
def test_a_seed_that_a_limit_came_before_is_untried_and_named(line: Line, job: str, end: str) -> None:
    told = why(line, job)
    assert told.returncode == 1
    assert f"  untried seed: no crawl log has a line of it\n{LOST.format(launch=of(job), seed=GONE)}" in told.stdout
    found = report(line, job)
    assert (found["end"].endswith(end), found["untried_as"], found["counts"]["untried"]) == (True, "", 1)
    assert (row(line, job)["state"], row(line, job)["code"]) == ("untried", None)


def test_what_an_operator_ended_has_untried_seeds_and_no_gap(line: Line) -> None:
    told = why(line, "stopped")
    assert (told.returncode, "nothing is missing" in told.stdout) == (0, True), told.stdout
    told = line.warcmill("report", "stopped", sample.LAUNCH_ID, "--seeds")
    assert "1 untried" in told.stdout
    assert "the crawl was ended by an operator" in told.stdout
    assert f"{GONE}: no crawl log has a line of it\n" in told.stdout


def test_a_list_in_utf_16_with_duplicates_and_without_an_end_is_read(line: Line) -> None:
    found = report(line, "windows")
    assert (found["counts"]["seeds"], found["counts"]["alive"], found["counts"]["dead"]) == (5, 4, 1)
    assert row(line, "windows")["why"] == "its host has no address"


def test_a_list_that_heritrix_did_not_read_has_every_seed_named(line: Line) -> None:
    told = why(line, "unread")
    assert told.returncode == 1
    assert "  got nothing: 0 WARCs, and of 0 lines of the crawl log none is of a page that was got" in told.stdout
    assert "  untried seed: no crawl log has a line of it\n" in told.stdout
    assert told.stdout.count(f"      {of('unread')}  http://") == 5
    assert report(line, "unread")["counts"]["untried"] == 5


def test_a_launch_without_a_list_is_named_and_accepted_with_its_absent_log(line: Line) -> None:
    told = why(line, "listless")
    assert told.returncode == 1
    assert "  no seed list: the launch has none among its logs: which seeds it lost is unknown\n" in told.stdout
    assert "  absent log: " in told.stdout
    assert "not known which seeds were not got: its list of seeds is missing" in line.warcmill("status", DAY).stdout
    assert "seeds: unknown, for the launch has no seeds.txt" in line.warcmill("report", "listless").stdout
    words = ("--launch", "listless", sample.LAUNCH_ID, "--reason", "its seeds were in its beans")
    assert line.warcmill("accept", "final/seeds.txt", *words).returncode == 0
    answer = why(line, "listless")
    assert (answer.returncode, "nothing is missing" in answer.stdout) == (0, True), answer.stdout


def test_what_differs_from_the_engine_s_reports_is_named_and_accepted(line: Line) -> None:
    answer = why(line, ALTERED)
    assert answer.returncode == 1
    for found in (
        "other count: the crawl logs have 266 lines, and crawl-report.txt counts 277 URIs; of status ",
        f"other count: seeds.txt lacks 1 of the 5 seeds in seeds-report.txt: {GONE}\n",
        "unread lines: 1 line of the crawl logs is cut or damaged, and not counted\n",
        "empty report: it is empty, and no engine leaves it so\n",
    ):
        assert f"  {found}" in answer.stdout
    names = ("count:crawl.log", "count:seeds.txt", "unread:crawl.log", "reports/hosts-report.txt")
    words = ("--launch", ALTERED, sample.LAUNCH_ID, "--reason", "its disk failed")
    assert line.warcmill("accept", *names, *words).returncode == 0
    answer = why(line, ALTERED)
    assert (answer.returncode, "nothing is missing" in answer.stdout) == (0, True), answer.stdout


def test_of_a_hundred_thousand_dead_seeds_the_first_are_printed_and_all_are_accepted_at_once(line: Line) -> None:
    command = f"warcmill report many {sample.LAUNCH_ID} --seeds"
    more = {
        ("why", "many", sample.LAUNCH_ID): f"{MANY + 1 - 10:,} more: {command}",
        ("reconcile", DAY): f"{MANY + 3 - 10:,} more: warcmill reconcile {DAY} --json",  # two of other launches
    }
    for verb, rest in more.items():
        told = line.warcmill(*verb)
        assert told.returncode == 1
        assert f"      and {rest}\n" in told.stdout
        assert told.stdout.count(f"      {of('many')}  ") == 10
    assert f"many/{sample.LAUNCH_ID}: {MANY + 1} seeds not got: " in line.warcmill("status", DAY).stdout
    text = line.warcmill("report", "many", sample.LAUNCH_ID).stdout
    assert f"{MANY + 5:,} seeds: 4 alive, {MANY + 1} dead" in text
    assert f"  and {MANY + 1 - 20} more: {command}" in text
    assert line.warcmill("report", "many", "--seeds", "--csv").stdout.count("\n") == 1 + MANY + 5
    (line.state.store.base / "decisions").mkdir(exist_ok=True)
    before = len(decisions.read(line.state.store, decisions.ACCEPTED))

    words = ("--launch", "many", sample.LAUNCH_ID, "--reason", "they are for sale")
    told = line.warcmill("accept", "--seeds", *words)
    assert told.returncode == 0, told.stderr
    assert told.stdout.count("accepted: ") == 11
    assert f"accepted: {MANY + 1 - 10} more seeds of many/{sample.LAUNCH_ID}" in told.stdout
    made = decisions.read(line.state.store, decisions.ACCEPTED)[before:]
    assert 1 < len(made) < 20, "some in one decision"
    assert sum(len(list(accepted_seeds._names(one))) for one in made) == MANY + 1
    told = why(line, "many")
    assert (told.returncode, f"accepted: {MANY + 1 - 10:,} more: {command}" in told.stdout) == (0, True)
    assert len(told.stdout.splitlines()) < 30
    assert f"  and {MANY + 1 - 10:,} more: {command}" in line.warcmill("reconcile", DAY).stdout
    told = line.warcmill("accept", "--seeds", *words)
    assert (told.returncode, told.stdout.splitlines()[0]) == (
        0, f"accepted already: {MANY + 1:,} lost seeds of many/{sample.LAUNCH_ID}",
    )  # fmt: skip
    assert len(decisions.read(line.state.store, decisions.ACCEPTED)) == before + len(made)


def test_seeds_accepted_while_the_store_is_away_are_copied_by_the_same_command(line: Line) -> None:
    store, words = line.folders["store"], ("--launch", "windows", sample.LAUNCH_ID, "--reason", "for good")
    away = store.rename(store.with_name("away"))
    told = line.warcmill("accept", "--seeds", *words)
    assert (told.returncode, "run the same command again, which only copies it" in told.stderr) == (4, True), told
    away.rename(store)
    number = decisions.read(line.state.store, decisions.ACCEPTED)[-1].number
    stored = store / f"state/_archive/decisions/accepted/{number:06}.json"
    assert not stored.exists()
    told = line.warcmill("accept", "--seeds", *words)
    assert (told.returncode, told.stdout.splitlines()[0]) == (
        0, f"accepted already: 1 lost seed of windows/{sample.LAUNCH_ID}",
    ), told.stderr  # fmt: skip
    assert stored.exists()
    assert line.warcmill("accept", "--seeds", "--launch", "weekly", sample.LAUNCH_ID).returncode == 2, "no reason"
