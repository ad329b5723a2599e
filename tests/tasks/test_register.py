"""[register] url from the command line, on the sample: told once of each change, and delaying nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import preloaded
import pytest
from line import without_dead_seed, without_index
from sample import JOB, LAUNCH_ID, lay_out
from sites import register as registers
from sites.register import Register

from commands.main import main

DAY = ("--date-interval", "2026-11-21")
PATH = f"/{JOB}/{LAUNCH_ID}"


@pytest.fixture
def register() -> Iterator[Register]:
    with registers.serving() as made:
        yield made


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, register: Register) -> Path:
    """A new line around the sample, with a register; its folder."""
    crawl, base = without_dead_seed(lay_out(tmp_path / "crawl")), tmp_path / "line"
    assert main(["init", str(base), "--output", str(crawl), "--jobs", str(crawl / "jobs")]) == 0
    without_index(base / "luigi.cfg")
    monkeypatch.setenv("LUIGI_CONFIG_PATH", str(base / "luigi.cfg"))
    (base / "token").write_text("a-token\n")
    with (base / "luigi.cfg").open("a") as file:
        file.write(f"\n[register]\nurl={register.url}\ntoken_file={base / 'token'}\n")
    return base


def luigi(module: str, task: str) -> str:
    """What a scan that succeeds prints."""
    done = preloaded.run("luigi", "--module", f"tasks.{module}", f"{module}.{task}", *DAY, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def health() -> dict[str, Any]:
    done = preloaded.run("commands.main", "health", "--json", env=os.environ)
    (found,) = [one for one in json.loads(done.stdout)["asked"] if one["name"] == "register"]
    return dict(found)


STORED = {("closed", "stored", "verified"), ("closed", "stored", "verified", "viral")}


def states(register: Register) -> dict[str, list[str]]:
    return {Path(one["path"]).name: one["states"] for one in register.has[PATH]["files"]}


def test_each_change_is_told_once(line: Path, register: Register) -> None:
    luigi("output", "ScanForOutputs")
    assert {*map(tuple, states(register).values())} == {("closed",)}
    luigi("files", "ScanForOutputFiles")
    told = register.has[PATH]
    assert (told["job"], told["launch_id"], told["ended"]) == (JOB, LAUNCH_ID, "finished")
    assert {*map(tuple, states(register).values())} == STORED
    for one in told["files"]:
        assert (line / "store" / one["stored"]).stat().st_size == one["size"]
        assert len(one["sha512"]) == 128
        assert one["state"] == one["states"][-1]
    puts = [*register.puts]
    assert puts == [(PATH, "Bearer a-token")] * 2
    luigi("files", "ScanForOutputFiles")
    luigi("reports", "ScanForReports")
    assert register.puts == puts  # a report changes no state
    assert health()["answered"], health()


def test_indexed_packaged_and_refused(line: Path, register: Register) -> None:
    (warc,) = (line.parent / "crawl/warcs").rglob("BL-2*.warc.gz")
    with warc.open("ab") as file:
        file.write(b"no WARC")
    luigi("output", "ScanForOutputs")
    luigi("files", "ScanForOutputFiles")
    with (line / "luigi.cfg").open("a") as file:
        file.write("\n[index]\nsince=2026-11-01\n[package]\nsince=2026-11-01\norganisation=Example\n")
    luigi("index", "ScanForIndexing")
    luigi("package", "ScanForPackages")
    found = states(register)
    assert found.pop(warc.name) == ["closed", "stored", "indexed", "packaged", "refused"]
    assert sorted(found.values()) == [
        ["closed", "stored", "verified", "packaged"], ["closed", "stored", "verified", "packaged", "viral"],
    ]  # fmt: skip
    assert [one["state"] for one in register.has[PATH]["files"] if one["why"]] == ["refused"]


@pytest.mark.parametrize("fault", ["killed before", "html", "redirect", "error", "killed after"])
def test_one_that_is_away_delays_nothing_and_is_told_later(line: Path, register: Register, fault: str) -> None:
    register.fault = fault
    assert "the register" in luigi("output", "ScanForOutputs")
    luigi("files", "ScanForOutputFiles")
    assert len(register.puts) == 1  # within the minute it is left alone
    found = health()
    assert not found["answered"]
    assert f"the register {register.url} is unavailable: it is behind by 1, since 20" in found["why"]
    register.fault = ""
    (folder,) = (line / "state/status").glob("register-*")
    (folder / "away").unlink()
    luigi("files", "ScanForOutputFiles")
    assert {*map(tuple, states(register).values())} == STORED
    assert health()["text"] == f"{register.url}: it has the state of every launch"
    assert [path.name for path in folder.iterdir()] == [f"{JOB}.{LAUNCH_ID}"]


def test_what_it_refuses_waits_alone(line: Path, register: Register) -> None:
    register.fault = "refuse"
    assert f"refuses {JOB}/{LAUNCH_ID} with 422" in luigi("output", "ScanForOutputs")
    assert "behind by 1" in health()["why"]


def test_a_wrong_section_stops_no_scan(line: Path, register: Register) -> None:
    text = (line / "luigi.cfg").read_text()
    (line / "luigi.cfg").write_text(text.replace("[register]\nurl=", "[register]\nurl=ftp"))
    assert "[register] url: is not a URL" in luigi("output", "ScanForOutputs")
    assert register.puts == []
