"""Completion in a real zsh and a real fish, and the manual page by the programs that show it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from commands.completion import FISH, ZSH
from commands.man import page

LAUNCHES = ("20161019234428", "20161020000000")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A line with two launches, and a shell that finds warcmill."""
    for launch_id in LAUNCHES:
        (tmp_path / "jobs" / "daily" / launch_id).mkdir(parents=True)
    (tmp_path / "luigi.cfg").write_text(f"[warcmill]\nstate={tmp_path}/state\njobs={tmp_path}/jobs\n")
    (tmp_path / "one.warc.gz").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HERE", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LUIGI_CONFIG_PATH", str(tmp_path / "luigi.cfg"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    return tmp_path


def said(*command: str) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert done.stderr == ""
    return done.stdout.splitlines()


def in_fish(line: str) -> list[str]:
    return [one.partition("\t")[0] for one in said("fish", "--no-config", "-c", f"{FISH}\ncomplete -C '{line}'")]


@pytest.mark.usefixtures("home")
def test_fish_completes() -> None:
    assert in_fish("warcmill recon") == ["reconcile"]
    assert in_fish("warcmill why daily ") == list(LAUNCHES)
    assert in_fish("warcmill status --t") == ["--trouble"]
    assert "one.warc.gz" in in_fish("warcmill check o")


SOURCED = 'autoload -U compinit; compinit -u -d "$HERE/dump"; source "$HERE/_warcmill"'
IN_FPATH = 'fpath=("$HERE" $fpath); autoload -U compinit; compinit -u -d "$HERE/dump"'


def in_zsh(home: Path, begin: str, line: str) -> str:
    """The line as zsh has it once Tab was pressed: it completes in its line editor alone, on a terminal."""
    (home / "_warcmill").write_text(ZSH)
    keys = f"{begin}\n{line}\t\x01print -r -- \x05 >got; exit\n"  # to the line's begin, and to its end
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["zsh", "-f", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as shell:
        os.close(theirs)
        os.write(ours, keys.encode())
        while _read(ours):
            pass
        shell.wait(300)
    os.close(ours)
    return (home / "got").read_text().strip()


def _read(terminal: int) -> bytes:
    """What the shell shows; nothing once it has ended."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


@pytest.mark.parametrize("begin", [SOURCED, IN_FPATH])
def test_zsh_completes(home: Path, begin: str) -> None:
    assert in_zsh(home, begin, "warcmill recon") == "warcmill reconcile"
    assert in_zsh(home, begin, f"warcmill why daily {LAUNCHES[1][:8]}") == f"warcmill why daily {LAUNCHES[1]}"
    assert in_zsh(home, begin, "warcmill check o") == "warcmill check one.warc.gz"


def test_man_shows_the_page_without_a_warning(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    (home / "warcmill.1").write_text("\n".join(page()) + "\n")
    shown = said("man", "--warnings", "-l", str(home / "warcmill.1"))
    assert "   warcmill reconcile" in shown
    assert any(line.split()[:1] == ["--trouble"] for line in shown)
