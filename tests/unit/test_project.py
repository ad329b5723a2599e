"""The project's frame: the lock fits setup.cfg, and the scripts find a Python or say what is missing."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent.parent
LOCKS = ("requirements.lock", "requirements-source.lock")
LOCK = "".join((ROOT / name).read_text("utf-8") for name in LOCKS)
PINNED = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", LOCK, re.MULTILINE))


def requirements() -> list[Requirement]:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", "utf-8")
    wanted = config["options"]["install_requires"] + config["options.extras_require"]["dev"]
    return [Requirement(line) for line in wanted.splitlines() if line and not line.startswith("#")]


def test_the_lock_pins_all_that_setup_cfg_wants_within_its_ranges() -> None:
    assert len(requirements()) >= 12
    for wanted in requirements():
        assert wanted.specifier.contains(PINNED[wanted.name]), f"{wanted}: run scripts/lock"


def test_every_package_of_the_lock_has_hashes() -> None:
    packages = re.split(r"^(?=[a-z])", LOCK, flags=re.MULTILINE)[1:]
    assert len(packages) == len(PINNED)
    for package in packages:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", package), package.splitlines()[0]


def test_source_packages_are_built_after_the_wheels_and_with_nothing_that_is_not_locked() -> None:
    wheels, source = ((ROOT / name).read_text("utf-8") for name in LOCKS)
    assert re.findall(r"^([a-z]+)==", source, re.MULTILINE) == ["docopt", "hdfs"]
    assert "setuptools==" in wheels
    script = (ROOT / "scripts" / "setup").read_text("utf-8")
    first = script.index("install --require-hashes --only-binary :all: -r requirements.lock")
    assert first < script.index("install --require-hashes --no-build-isolation -r requirements-source.lock")


def test_the_scripts_can_be_run() -> None:
    for name in ("setup", "test", "check", "demo", "bench", "lock", "services"):
        assert os.access(ROOT / "scripts" / name, os.X_OK), f"scripts/{name} is not executable"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def a_clone(tmp_path: Path, *pythons: tuple[str, str]) -> subprocess.CompletedProcess[str]:
    """Run scripts/setup where the only programs are the shell's few and these Pythons: name, and what it runs."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for tool in ("sh", "dirname", "cksum", "cat"):
        (bin_folder / tool).symlink_to(str(shutil.which(tool)))
    for name, body in pythons:
        (bin_folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (bin_folder / name).chmod(0o755)
    project = tmp_path / "a project"
    (project / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "setup", project / "scripts")
    for name in LOCKS:
        shutil.copy(ROOT / name, project)
    return subprocess.run(
        ["sh", str(project / "scripts" / "setup")],
        cwd=tmp_path,
        env={"PATH": str(bin_folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_a_python_that_fits_set_up_says_what_to_do(tmp_path: Path) -> None:
    done = a_clone(tmp_path, ("python3", "exit 1"))
    assert done.returncode == 1
    assert "found no Python 3.11, 3.12 or 3.13" in done.stderr
    assert "WARCMILL_PYTHON=" in done.stderr


def test_a_python3_that_does_not_fit_is_passed_over(tmp_path: Path) -> None:
    """An old or too new `python3` comes first on many machines; here the one that fits then fails to make .venv."""
    real = f'case "$1" in -m) echo "asked: $*" >&2; exit 3;; esac; exec {sys.executable} "$@"'
    done = a_clone(tmp_path, ("python3", "exit 1"), ("python3.12", real))
    assert done.returncode == 3
    assert "asked: -m venv --clear .venv" in done.stderr
    assert not (tmp_path / "a project" / ".venv" / "stamp").exists(), "a set-up that failed must begin again"


def test_a_wheel_holds_all_that_the_line_needs(tmp_path: Path) -> None:
    """Installed without the clone beside it, in an environment of its own that has only our dependencies besides."""
    project, made = tmp_path / "project", tmp_path / "venv"
    shutil.copytree(ROOT, project, symlinks=True, ignore=shutil.ignore_patterns(".*", "tests", "demo*", "*.egg-info"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    run(*pip, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", tmp_path, project)
    run(sys.executable, "-m", "venv", "--without-pip", made)
    (wheel,) = tmp_path.glob("*.whl")
    run(*pip, "--python", made / "bin" / "python", "install", "--no-deps", "--no-index", wheel)
    (packages,) = made.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    shutil.rmtree(project)
    line = {"LUIGI_CONFIG_PATH": str(tmp_path / "line" / "luigi.cfg")}
    run(made / "bin" / "warcmill", "init", tmp_path / "line", cwd=tmp_path)
    assert "[retcode]" in (tmp_path / "line" / "luigi.cfg").read_text()
    run(made / "bin" / "warcmill", "doctor", cwd=tmp_path, env=line)
    scan = ["-m", "luigi", "--module", "tasks.output", "output.ScanForOutputs", "--date-interval", "2016-10-19"]
    run(made / "bin" / "python", *scan, cwd=tmp_path, env=line)
    shipped = run(made / "bin" / "python", "-c", "from tasks import feeds; print(feeds.SHIPPED)", cwd=tmp_path).strip()
    assert Path(shipped).is_relative_to(made)
    assert Path(shipped).read_bytes() == (ROOT / "config" / "heritrix" / "profile.cxml").read_bytes()


def run(*command: str | Path, **more: Any) -> str:
    """What a command says; it must end with 0."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
