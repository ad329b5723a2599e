"""Wheels whose METADATA an index has beside them: their requirements come from there, and modules once a Python tag."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from line import Line
from mirroring.mirrored import JOB, asked, dumped, ended, mirroring, rows

from servers import distributions, pins
from servers.package_index import PackageIndex
from servers.package_site import metadata_in
from warcmill.model import Launch

PLATFORMS = ("macosx_11_0_arm64", "manylinux2014_x86_64", "win_amd64")
LONG = random.Random(7).randbytes(90_000)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[PackageIndex]:
    found = PackageIndex(tmp_path / "index", pins.free(pins.PACKAGE_INDEX))
    with found.running():
        yield found


@pytest.fixture
def line(tmp_path: Path, index: PackageIndex) -> Iterator[Line]:
    with mirroring(tmp_path, index) as made:
        yield made


def brought(line: Line, *, code: int = 0) -> Launch:
    """Crawl all, and bring the launch through the line, to its dump."""
    done = line.warcmill("pypi", "trigger_full", JOB)
    assert done.returncode == 0, done.stderr
    launch = ended(line)
    assert line.scan_all(launch.day.isoformat()) == code
    return launch


def parts_of(index: PackageIndex) -> dict[str, list[str]]:
    """The ranges that were asked for of each file, '' for the whole."""
    found: dict[str, list[str]] = {}
    for one in index.requests():
        if one.path.startswith("/packages/"):
            found.setdefault(one.path.rpartition("/")[2], []).append(one.range)
    return found


def upload(index: PackageIndex, folder: Path, name: str, tag: str = "py3-none-any", **more: str) -> str:
    """Upload a wheel that is longer than what is asked for of it; it has a module of its own for each platform."""
    files = {f"{name}/__init__.py": LONG, f"{name}/on_{tag.rpartition('-')[2]}.py": b""}
    path = distributions.wheel(folder, name, "1.0", files, ["six"], tag=tag)
    index.upload(path, **more)  # type: ignore[arg-type]
    return path.name


def test_requirements_come_from_beside_a_wheel_and_modules_once_a_python_tag(
    line: Line, index: PackageIndex, tmp_path: Path
) -> None:
    names = [upload(index, tmp_path, "plats", f"cp311-cp311-{platform}") for platform in PLATFORMS]
    other = upload(index, tmp_path, "plats", f"cp312-cp312-{PLATFORMS[0]}")
    plain = upload(index, tmp_path, "plain", core="")
    launch = brought(line)
    tail = ["bytes=-65536"]
    assert parts_of(index) == {
        **{f"{name}.metadata": [""] for name in (*names, other)}, names[0]: tail, other: tail, plain: tail,
    }  # fmt: skip
    assert not dumped(line, launch).lacked
    found = {row["filename"]: row for row in rows(line, launch, "python_distribution_data")}
    assert all(row["requires_dist"] == ["six"] for row in found.values())
    assert {name: row.get("modules_of") for name, row in found.items()} == {
        names[0]: None, names[1]: names[0], names[2]: names[0], other: None, plain: None,
    }  # fmt: skip
    assert found[names[2]]["modules"] == ["plats", "plats.on_macosx_11_0_arm64"]
    given = {one["filename"]: one.get("modules_of") for one in asked(line, "provides", "plats")["files"]}
    assert given == {names[0]: None, names[1]: names[0], names[2]: names[0], other: None}
    assert f"{names[1]}  from serial 7 on  modules of {names[0]}\n" in line.warcmill("pypi", "show", "plats").stdout


def test_another_metadata_than_the_page_lists_is_a_finding_and_the_end_of_its_wheel_is_read(
    line: Line, index: PackageIndex, tmp_path: Path
) -> None:
    wrong = [upload(index, tmp_path, "wrong", f"cp311-cp311-{one}", core="0" * 64) for one in PLATFORMS[:2]]
    gone = upload(index, tmp_path, "gone")
    project = index.project("gone")
    assert project
    index.fail(f"/packages/{project.files[gone].place}/{gone}.metadata", 404)
    launch = brought(line, code=1)
    assert parts_of(index) == {
        **{f"{name}.metadata": [""] for name in (*wrong, gone)},
        wrong[0]: ["bytes=-65536", "bytes=-65537"], wrong[1]: ["bytes=-65537"], gone: ["bytes=-65536", "bytes=-65537"],
    }  # fmt: skip
    assert not dumped(line, launch).lacked
    found = rows(line, launch, "python_distribution_data")
    assert len(found) == 3
    assert all(row["requires_dist"] == ["six"] and "modules_of" not in row for row in found)
    listed = line.warcmill("reconcile", launch.day.isoformat()).stdout
    assert listed.count("other metadata: the METADATA beside it: ") == 3
    assert f"the METADATA beside it: its SHA-256 is {beside(tmp_path / wrong[0])}, and its page has" in listed
    words = ("--launch", JOB, launch.id, "--reason", "the index lacks it")
    done = line.warcmill("accept", f"metadata:gone/{gone}", *words)
    assert done.returncode == 0, done.stderr


def beside(wheel: Path) -> str:
    """The digest of the METADATA that an index has beside a wheel."""
    return hashlib.sha256(metadata_in(str(wheel))).hexdigest()
