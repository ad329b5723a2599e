"""`.ci/run`: a service test that fails is run once more, alone, and what happened is in the last lines."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
# The scripts of a project whose suites do nothing, but for its services: those run a real pytest.
SCRIPT = f"""\
#!/bin/sh
[ "$1" = services ] || exit 0
shift
[ "$1" = tests/services ] || set -- tests/services -n WORKERS "$@"
exec {shlex.quote(sys.executable)} -m pytest -q "$@"
"""
TESTS = """\
import os
import pytest
from pathlib import Path

@pytest.mark.parametrize("number", range(5))
def test_fails_beside_others(number):
    seen = Path(__file__).parent / f"seen-{number}"
    first = not seen.exists()
    seen.touch()
    assert not (first and number < FLAKY), "the server was slow"

def test_fails():
    assert not BROKEN

def test_ends_pytest():
    if ENDS:
        pytest.exit("no more", returncode=3)
"""


def run(
    folder: Path, flaky: int, *, broken: bool = False, ends: bool = False, workers: int = 0
) -> tuple[int, list[str]]:
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    for name in ("test", "packages", "editor"):
        script = folder / "scripts" / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(SCRIPT.replace("WORKERS", str(workers)))
        script.chmod(0o755)
    services = folder / "tests" / "services"
    services.mkdir(parents=True)
    (folder / "pytest.ini").touch()
    constants = f"FLAKY, BROKEN, ENDS = {flaky}, {broken}, {ends}\n"
    (services / "test_server.py").write_text(constants + TESTS)
    ran = subprocess.run(["bash", ".ci/run"], cwd=folder, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout.splitlines()


def test_two_flaky_tests_are_listed_last_and_fail_nothing(tmp_path: Path) -> None:
    code, lines = run(tmp_path, 2, workers=2)
    assert code == 0
    names = [f"tests/services/test_server.py::test_fails_beside_others[{number}]" for number in (0, 1)]
    assert lines[-2:] == [f"flaky: it failed beside others, and passed alone: {name}" for name in names]
    assert [line for line in lines if "exit 0  ./scripts/packages" in line], "the seconds of each suite"
    assert [line for line in lines if "exit 1  ./scripts/test services --durations=30" in line]


@pytest.mark.parametrize(
    ("flaky", "broken", "ends", "named"),
    [(3, False, False, 3), (0, True, False, 0), (1, True, False, 1), (1, False, True, 0)],
    ids=["three are flaky", "one fails again", "one fails again beside a flaky one", "pytest ended early"],
)
def test_the_run_fails(tmp_path: Path, flaky: int, broken: bool, ends: bool, named: int) -> None:
    code, lines = run(tmp_path, flaky, broken=broken, ends=ends)
    assert code == 1
    assert sum(line.startswith("flaky: ") for line in lines) == named


def test_all_pass(tmp_path: Path) -> None:
    code, lines = run(tmp_path, 0)
    assert code == 0
    assert sum("./scripts/test services" in line and "exit 0" in line for line in lines) == 1
    assert not [line for line in lines if line.startswith("flaky: ")]
