"""The project's frame: the lock fits setup.cfg, and the scripts find a Python or report what is missing."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("commands", "targets", "tasks", "warcmill")
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
        assert wanted.specifier.contains(PINNED[canonicalize_name(wanted.name)]), f"{wanted}: run scripts/lock"


@pytest.mark.parametrize("extra", ["dask", "spark"])
def test_the_lock_of_a_cluster_fits_its_extra(extra: str) -> None:
    """They are not in `.venv`: pyspark alone has 450 MB."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", "utf-8")
    lock = (ROOT / "config" / "oracles" / f"{extra}.lock").read_text("utf-8")
    pinned = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", lock, re.MULTILINE))
    (wanted,) = map(Requirement, config["options.extras_require"][extra].strip().splitlines())
    assert wanted.specifier.contains(pinned[wanted.name])
    assert lock.count("--hash=sha256:") >= len(pinned)


def test_the_minors_of_scrapy_that_are_tried_are_those_of_its_extra() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", "utf-8")
    (wanted,) = map(Requirement, config["options.extras_require"]["scrapy"].strip().splitlines())
    locks = [path.read_text("utf-8") for path in sorted((ROOT / "config" / "oracles").glob("scrapy-*.lock"))]
    older = [version for lock in locks for version in re.findall(r"^scrapy==(\S+)", lock, re.MULTILINE)]
    minors = [version.rpartition(".")[0] for version in (*older, PINNED["scrapy"])]
    assert minors == ["2.17", "2.18", "2.19"]
    assert all(wanted.specifier.contains(version) for version in (*older, PINNED["scrapy"]))


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


def test_the_lock_of_the_editor_has_hashes_and_no_address_and_its_bundle_is_of_it() -> None:
    """`scripts/editor --check` compares the bytes; it needs npm."""
    text = (ROOT / "warcmill" / "web" / "editor" / "package-lock.json").read_text("utf-8")
    packages = {name: one for name, one in json.loads(text)["packages"].items() if name}
    assert "://" not in text
    assert all(one["integrity"].startswith("sha512-") for one in packages.values())
    head = (ROOT / "warcmill" / "web" / "static" / "editor.js").read_text("utf-8").partition("*/")[0]
    bundled = re.findall(r"((?:@[\w-]+/)?[\w-]+) (\d+\.\d+\.\d+)", head)
    assert ("@codemirror/view", packages["node_modules/@codemirror/view"]["version"]) in bundled
    assert all(packages[f"node_modules/{name}"]["version"] == version for name, version in bundled)
    assert all(packages[f"node_modules/{name}"]["license"] == "MIT" for name, _ in bundled)
    assert "Permission is hereby granted, free of charge" in head


def test_the_scripts_can_be_run() -> None:
    for name in ("setup", "test", "check", "demo", "bench", "lock", "services", "editor"):
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


def test_without_a_python_that_fits_set_up_explains_what_to_do(tmp_path: Path) -> None:
    done = a_clone(tmp_path, ("python3", "exit 1"))
    assert done.returncode == 1
    assert "found no Python 3.11, 3.12 or 3.13" in done.stderr
    assert "WARCMILL_PYTHON=" in done.stderr


def test_a_python3_that_does_not_fit_is_skipped(tmp_path: Path) -> None:
    """An old or too new `python3` comes first on many machines; here the one that fits then fails to make .venv."""
    real = f'case "$1" in -m) echo "asked: $*" >&2; exit 3;; esac; exec "{sys.executable}" "$@"'
    done = a_clone(tmp_path, ("python3", "exit 1"), ("python3.12", real))
    assert done.returncode == 3
    assert "asked: -m venv --clear .venv" in done.stderr
    assert not (tmp_path / "a project" / ".venv" / "stamp").exists(), "a set-up that failed must begin again"


def test_a_link_to_the_environment_of_another_folder_is_refused_and_that_one_is_kept(tmp_path: Path) -> None:
    others = tmp_path / "others" / "kept"
    others.parent.mkdir()
    others.write_text("a package")
    (tmp_path / "a project").mkdir()
    (tmp_path / "a project" / ".venv").symlink_to(others.parent)
    done = a_clone(tmp_path, ("python3", f'exec "{sys.executable}" "$@"'))
    assert (done.returncode, ".venv is a link" in done.stderr, others.exists()) == (1, True, True), done.stderr


PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the project, which is gone by now."""
    folder = tmp_path_factory.mktemp("wheel")
    project = folder / "project"
    shutil.copytree(ROOT, project, symlinks=True, ignore=shutil.ignore_patterns(".*", "tests", "demo*", "*.egg-info"))
    run(*PIP, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", folder, project)
    shutil.rmtree(project)
    (made,) = folder.glob("*.whl")
    return made


def test_a_wheel_holds_every_module_and_what_is_beside_them(wheel: Path) -> None:
    """Those of tasks/ below it too, and the word that the library has types."""
    modules = {path for folder in PACKAGES for path in (ROOT / folder).rglob("*.py")}
    schemas = {f"warcmill/formats/schemas/{path.name}" for path in (ROOT / "warcmill/formats/schemas").iterdir()}
    beside = {"warcmill/py.typed", "warcmill/extracts/TikaWorker.java", "commands/luigi.cfg", "tasks/profile.cxml"}
    beside.add("warcmill/replay/pywb.lock")
    for folder in (
        "warcmill/replay/pages", "warcmill/web/static", "warcmill/web/templates", "warcmill/crawl/frontier/lua"
    ):  # fmt: skip
        beside |= {f"{folder}/{path.name}" for path in (ROOT / folder).iterdir() if path.is_file()}
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == {path.relative_to(ROOT).as_posix() for path in modules} | beside | schemas


def test_the_metadata_is_true(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(archive.read(name))
    assert metadata["License-Expression"] == "Apache-2.0"
    pythons = re.findall(r"Programming Language :: Python :: 3\.(\d+)", "\n".join(metadata.get_all("Classifier", [])))
    assert [f"3.{minor}" in SpecifierSet(metadata["Requires-Python"]) for minor in range(9, 16)] == [
        str(minor) in pythons for minor in range(9, 16)
    ]
    assert metadata.get_all("Project-URL", []) + metadata.get_all("Home-page", []) == []


def test_a_wheel_holds_all_that_the_line_needs(wheel: Path, tmp_path: Path) -> None:
    """Installed without the clone beside it, in an environment of its own that has only our dependencies besides."""
    made = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", made)
    run(*PIP, "--python", made / "bin" / "python", "install", "--no-deps", "--no-index", "--no-compile", wheel)
    (packages,) = made.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    line = {"LUIGI_CONFIG_PATH": str(tmp_path / "line" / "luigi.cfg")}
    run(made / "bin" / "warcmill", "init", tmp_path / "line", cwd=tmp_path)
    assert "[retcode]" in (tmp_path / "line" / "luigi.cfg").read_text()
    run(made / "bin" / "warcmill", "doctor", cwd=tmp_path, env=line)
    scan = ["-m", "luigi", "--module", "tasks.output", "output.ScanForOutputs", "--date-interval", "2016-10-19"]
    run(made / "bin" / "python", *scan, cwd=tmp_path, env=line)
    shipped = run(
        made / "bin" / "python", "-c", "from tasks.config import feed; print(feed.SHIPPED)", cwd=tmp_path
    ).strip()
    assert Path(shipped).is_relative_to(made)
    assert Path(shipped).read_bytes() == (ROOT / "config" / "heritrix" / "profile.cxml").read_bytes()


def run(*command: str | Path, **more: Any) -> str:
    """What a command says; it must end with 0."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
