"""warcmill wacz as an operator types it, on the bundled launch."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import preloaded
import pytest
import sample
from line import Line, new_line
from records.warcs import WEEKLY

NAMES = (sample.JOB, sample.LAUNCH_ID)


@pytest.fixture(scope="module")
def made(finished: Line, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The WACZ of the bundled launch."""
    path = tmp_path_factory.mktemp("made") / "weekly.wacz"
    done = finished.warcmill("wacz", *NAMES, "-o", str(path))
    first, *left_out = done.stdout.splitlines()
    size = f"{path.stat().st_size:,}"
    assert (done.returncode, done.stderr) == (0, "")
    assert first == f"{path}: 1 WARC, 268 captures, 4 pages of seeds and 195 more, {size} bytes"
    assert [line.partition("BL-VIRAL")[0] for line in left_out] == ["  left out: "]
    assert left_out[0].endswith(": from the engine's viral writer")
    return path


def test_it_holds_the_launch_and_is_the_same_again(finished: Line, made: Path, tmp_path: Path) -> None:
    with ZipFile(made) as archive:
        assert archive.read(f"archive/{WEEKLY.name}") == WEEKLY.read_bytes()
    again = tmp_path / "again.wacz"
    assert finished.warcmill("wacz", *NAMES, "-o", str(again)).returncode == 0
    assert again.read_bytes() == made.read_bytes()
    assert finished.warcmill("wacz", *NAMES, "final", "-o", str(tmp_path / "final.wacz")).returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((*NAMES, "-o", "MADE"), 1, "is there already and was left as it is"),
        ((*NAMES, "-o", "MADE/none.wacz"), 4, "Not a directory"),
        ((*NAMES, "-o", "/none/none.wacz"), 4, "No such file or directory"),
        ((sample.JOB, "20261121081736", "-o", "x.wacz"), 1, f"did you mean '{sample.LAUNCH_ID}'?"),
        ((*NAMES, "cp00001-20261121090000", "-o", "x.wacz"), 1, "no such stage; those of the launch: final"),
        ((sample.JOB, "final"), 2, "LAUNCH"),
    ],
)
def test_what_it_refuses(finished: Line, made: Path, words: tuple[str, ...], code: int, message: str) -> None:
    before = made.read_bytes()
    done = finished.warcmill("wacz", *(word.replace("MADE", str(made)) for word in words))
    assert (done.returncode, done.stdout, message in done.stderr) == (code, "", True), done.stderr
    assert ([one.name for one in made.parent.iterdir()], made.read_bytes()) == ([made.name], before)


def test_without_words_it_takes_the_newest_launch_and_names_the_file_after_it(finished: Line, tmp_path: Path) -> None:
    env = {**os.environ, "LUIGI_CONFIG_PATH": str(finished.config)}

    def wacz(*words: str) -> tuple[int, str]:
        done = preloaded.run("commands.main", "wacz", *words, env=env, folder=tmp_path)
        return done.returncode, done.stdout.partition(":")[0] or done.stderr

    name = f"{sample.JOB}-{sample.LAUNCH_ID}.wacz"
    assert wacz() == (0, name)
    code, message = wacz(sample.JOB)
    assert (code, message.startswith(f"warcmill: {name}: is there already and was left as it is")) == (1, True)
    assert wacz(*NAMES, "final") == (0, f"{sample.JOB}-{sample.LAUNCH_ID}-final.wacz")
    assert wacz("other")[0] == 1
    assert len(list(tmp_path.iterdir())) == 2


def test_a_disk_that_is_full_gets_no_file(finished: Line, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "commands.main", "wacz", *NAMES, "-o", str(tmp_path / "x.wacz")]
    done = subprocess.run(
        command,
        env={"LUIGI_CONFIG_PATH": str(finished.config)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "File too large" in done.stderr) == (4, True), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_launch_that_is_not_verified_names_the_scan(tmp_path: Path) -> None:
    line = new_line(tmp_path / "line")
    line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", "2026-11-21")
    done = line.warcmill("wacz", *NAMES, "-o", str(tmp_path / "x.wacz"))
    assert (done.returncode, "run: warcmill scan 2026-11-21" in done.stderr) == (1, True)
    assert not (tmp_path / "x.wacz").exists()
