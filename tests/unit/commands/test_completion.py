"""Tab completion: what the next word may be, from the parsers and from the disk; in a real bash, too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands.completion import BASH
from commands.console.candidates import ArchiveNames, candidates
from commands.console.parser import arguments, nested, parser_of
from commands.main import VERBS
from warcmill import layout
from warcmill.model import FINAL, Launch, Stage

ALL = [verb for group in VERBS.values() for verb in group]
RUNS = Launch("daily", "20161020000000")
DONE = Launch("daily", "20161019234428")
CP1 = Stage(1, "20161020010000")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A launch with markers, one that runs and has none yet, and a job of another engine."""
    for stage in (CP1, FINAL):
        marker = tmp_path / "state" / layout.marker_path(layout.key("files.Checksum", DONE, stage=stage))
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
    for folder in (f"jobs/{RUNS}", "jobs/latest", "jobs/.hidden", "second/events/20161101000000"):
        (tmp_path / folder).mkdir(parents=True)
    path = tmp_path / "luigi.cfg"
    path.write_text(
        f"[warcmill]\nstate=${{HERE}}/state\njobs={tmp_path}/jobs\n[engine.second]\njob_files={tmp_path}/second\n"
        "[engine.far]\njob_files=sftp://crawl@engine1/jobs\n"
    )
    monkeypatch.setenv("HERE", str(tmp_path))
    monkeypatch.setenv("LUIGI_CONFIG_PATH", str(path))
    return path


def of(*words: str) -> list[str]:
    return candidates(list(words), ALL, ArchiveNames())


def test_verbs_options_and_choices_come_from_the_parsers() -> None:
    assert of("re") == ["report", "reconcile", "render", "request", "redo", "restore"]
    assert {*ALL} <= {*of("")}
    assert of("status", "--t") == ["--trouble"]
    assert of("init", "--layout", "") == ["kind-first", "job-first"]
    assert of("files", "--lacking", "re") == ["read-back", "retire"]
    assert {"start", "stop"} <= {*of("pulse", "st")}
    assert "--due" in of("pulse", "start", "--")
    assert of("completion", "") == ["bash", "fish", "zsh"]
    assert of("nonsense", "") == of("check", "") == of("redo", "daily", "--reason", "") == []


@pytest.mark.usefixtures("config")
def test_jobs_launches_and_stages_come_from_the_disk() -> None:
    assert of("why", "") == ["daily", "events"]
    assert of("why", "daily", "2016") == [DONE.id, RUNS.id]
    assert of("why", "daily", DONE.id, "") == [str(CP1), "final"]
    assert of("redo", "daily", DONE.id, "ch") == ["checksum"]
    assert of("redo", "--downstream", "daily", DONE.id, "checksum", "f") == ["final"]
    assert of("accept", "NAME", "--launch", "daily", "") == [DONE.id, RUNS.id]
    assert of("status", "--job", "e") == ["events"]
    assert of("pulse", "stop", "d") == ["daily"]
    assert of("status", "") == ["2016-10"]
    assert of("files", "") == ["2016-10", "daily", "events"]
    assert of("files", "daily", "") == [DONE.id, RUNS.id]


@pytest.mark.parametrize("text", ["[warcmill", "[warcmill]\nstate=/nowhere\njobs=sftp://x/y\n", "\xff"])
def test_without_a_configuration_that_can_be_read_nothing_is_offered(config: Path, text: str) -> None:
    config.write_bytes(text.encode("latin-1"))
    assert of("why", "") == of("why", "../..", "") == of("why", "daily", "x", "c") == []


def test_known_names_cost_neither_luigi_nor_a_table() -> None:
    code = "import sys, commands.console.candidates; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"luigi", "rich", "paramiko", "requests"}.isdisjoint(loaded)


@pytest.mark.parametrize("verb", ALL)
def test_every_argument_can_be_completed_or_is_free(verb: str) -> None:
    """A metavar that is new must be looked at: is it a name that is known?"""
    free = {"FILE", "FOLDER", "DIR", "DIR|URL", "URL", "NAME", "TEXT", "TIME", "SECTION", "NUMBER", "DAYS", "ARK"}
    free |= {
        "SHA512",
        "NETWORK",
        "ADDRESS",
        "SURT",
        "PLACE",
        "GROUP",
        "JSON",
        "PORT",
        "WORKER",
        "TOPIC",
        "HOST:PORT",
        "FILE|FOLDER",
        "FILE|PROJECT[:NAME]",
        "NAME=VALUE",
        "HOST=ADDRESS",
        "JOB/NAME",
        "TASKID",
        "JOB[/NAME]",
        "WORD",
        "WORDS",
        "ID",
        "FIELD",
        "TYPE",
        "HOST",
        "DAY",
        "WHEN",
        "OLD",
        "NEW",
        "N",
        "MARKER",
        "ZONE",
        "URL|JOB",
        "FREQUENCY",
        "MODULE:CLASS",
    }
    known = {"JOB", "LAUNCH", "STAGE", "STEP", "INTERVAL", "WHAT", "JOB LAUNCH"}
    parser = parser_of(verb)
    for action in (one for each in (parser, *nested(parser).values()) for one in arguments(each)):
        metavar = " ".join(action.metavar) if isinstance(action.metavar, tuple) else action.metavar
        assert action.nargs == 0 or action.choices is not None or metavar in free | known, metavar


def in_bash(line: str, folder: Path) -> list[str]:
    """What bash offers for a line that is being typed."""
    script = f"""{BASH}
COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_warcmill; printf '%s\\n' "${{COMPREPLY[@]}}"; complete -p warcmill"""
    here = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", script], cwd=folder, env=here, capture_output=True, text=True, check=True
    )
    *offered, registered = done.stdout.splitlines()
    assert registered == "complete -o default -F _warcmill warcmill"
    return [one for one in offered if one]


@pytest.mark.usefixtures("config")
def test_bash_completes(tmp_path: Path) -> None:
    assert in_bash("warcmill recon", tmp_path) == ["reconcile"]
    assert in_bash("warcmill why daily ''", tmp_path) == [DONE.id, RUNS.id]
    assert in_bash("warcmill check ''", tmp_path) == [], "files, by bash itself"
