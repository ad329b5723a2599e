"""`warcmill feed` on the targets of a job's feed: listed, added, edited, paused, imported, exported, undone."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import preloaded
import pytest

FIRST = '{"id": 7, "title": "Things", "seeds": ["things.example"], "odd": 1.10, "owner": "Ann"}\n'


def feed(base: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LUIGI_CONFIG_PATH": str(base / "luigi.cfg")}
    done = preloaded.run("commands.main", "feed", *words, env=environment)
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = tmp_path / "line"
    assert preloaded.run("commands.main", "init", str(base), env=dict(os.environ)).returncode == 0
    (base / "feed.jsonl").write_text(FIRST + "broken\n")
    with (base / "luigi.cfg").open("a") as config:
        config.write(
            "[engine.crawl]\nkind=warcmill\njobs=daily, alone\n[job.daily]\nfrequency=daily\nstart=2026-11-21\n"
        )
        config.write(f"[feed]\njobs=daily\nsource={base}/feed.jsonl\ncontact=https://archive.example/\n")
    return base


def test_targets_are_added_edited_paused_and_undone(base: Path) -> None:
    schedule = ("--schedule", "monthly from 2026-12-01")
    done = feed(base, "add", "daily", "--url", "https://www.example.org/", "--title", "New", *schedule)
    assert (done.returncode, done.stdout) == (0, "the feed of daily: edition 2: target 8\n")
    assert feed(base, "pause", "daily", "7", "8").stdout == "the feed of daily: edition 3: target 7, 8\n"
    assert feed(base, "edit", "daily", "8", "--title", "N", "--why", "short").stdout.endswith("edition 4: target 8\n")
    assert feed(base, "edit", "daily", "8", "--title", "N").stdout == "the feed of daily: nothing has changed\n"
    assert json.loads(feed(base, "resume", "daily", "7", "--json").stdout) == {
        "changed": True, "edition": 5, "job": "daily", "targets": ["7"],
    }  # fmt: skip
    first, broken, added = (base / "feed.jsonl").read_text().splitlines(keepends=True)
    assert (first.replace(" ", ""), broken) == (FIRST.replace(" ", ""), "broken\n")
    assert (json.loads(added)["paused"], json.loads(added)["title"]) == (True, "N")
    found = json.loads(feed(base, "targets", "daily", "--json").stdout)
    assert [(one["id"], one["paused"], one["owner"]) for one in found["targets"]] == [
        ("7", False, "Ann"),
        ("8", True, ""),
    ]
    assert [one["where"] for one in found["faults"]] == ["line 2"]
    listed = feed(base, "targets", "daily", "--paused")
    assert listed.stdout.splitlines()[0] == "8  N  paused"
    assert "line 2: is no JSON" in listed.stderr
    assert [line.split("  ")[-1] for line in feed(base, "history", "daily").stdout.splitlines()][:2] == [
        "target 7 resumed", "short",
    ]  # fmt: skip
    assert feed(base, "undo", "daily", "--edition", "1").returncode == 0
    assert (base / "feed.jsonl").read_text() == FIRST + "broken\n"


def test_an_import_names_what_it_refuses_and_a_dry_run_writes_nothing(base: Path, tmp_path: Path) -> None:
    table = tmp_path / "targets.csv"
    table.write_bytes("id\ttitle\turls\n7\tThe things\t\n9\tA\thttp://a.example/\n9\tB\tftp://b/\n".encode("utf-16"))
    words = ("import", "--from", "w3act", "--job", "daily", str(table))
    done = feed(base, *words, "--dry-run")
    assert (done.returncode, done.stdout) == (1, "1 new, 1 changed, 0 the same, 1 refused; nothing is written\n")
    assert "line 4: 9\\tB\\tftp://b/: line 3 has this target, 9, already" in done.stderr
    assert (base / "feed.jsonl").read_text() == FIRST + "broken\n"
    assert json.loads(feed(base, *words, "--json").stdout)["edition"] == 2
    out = feed(base, "export", "--to", "csv", "daily")
    assert "9,A,http://a.example/," in out.stdout
    table.write_text(out.stdout)
    assert feed(base, *words).stdout == "0 new, 0 changed, 2 the same, 0 refused; edition 2\n"
    assert feed(base, "export", "--to", "jsonl", "daily").stdout == (base / "feed.jsonl").read_text()


def test_what_cannot_be_edited_says_why(base: Path) -> None:
    for words, code, why in (
        (("edit", "daily", "5", "--title", "x"), 1, "the feed of daily has no target of this id"),
        (("add", "daily", "--url", "javascript:alert(1)"), 1, "javascript: is not fetched"),
        (("add", "daily", "--url", "http://a.example/", "--schedule", "now and then"), 1, "is not one of hourly"),
        (("targets", "alone"), 1, "it crawls no feed"),
        (("import", "--from", "w3act", str(base / "feed.jsonl")), 1, "--job: is missing"),
    ):
        done = feed(base, *words)
        assert (done.returncode, why in done.stderr) == (code, True), done.stderr
    assert (base / "feed.jsonl").read_text() == FIRST + "broken\n"
    config = base / "luigi.cfg"
    config.write_text(
        config.read_text().replace(f"source={base}/feed.jsonl", "source=https://curators.example/?secret=1")
    )
    done = feed(base, "pause", "daily", "7")
    assert (done.returncode, "another program's" in done.stderr, "secret" in done.stderr) == (3, True, False)
