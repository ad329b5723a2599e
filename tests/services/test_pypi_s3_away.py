"""The archive of a package index in S3, and the server gone in the midst of a step: an outage, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from line import Line, without_index
from mirroring.mirrored import CONFIGURATION, JOB, SECONDS, asked, dumped, ended, small_index
from mirroring.package_dumps import DumpedIndex, row, state
from storing.remote_places import InS3

from servers.versitygw import ACCESS_KEY, Versitygw
from warcmill.errors import Unavailable
from warcmill.formats.pypi.data_sets import NAMES
from warcmill.layout import OutputLayout
from warcmill.pypi.update_leveldb import UpdateRoots, update
from warcmill.stores.s3.store import S3Store
from warcmill.versions.publication import Payloads


@pytest.fixture
def there(versitygw: Versitygw, tmp_path: Path) -> InS3:
    return InS3(versitygw, f"{tmp_path.parent.name}-{tmp_path.name}")


def in_s3(base: Path, there: InS3, index: str) -> Line:
    """A line that mirrors an index, with its archive in S3."""
    words = ("--endpoint", there.server.endpoint, "--access-key", ACCESS_KEY)
    words += ("--secret-key-file", str(there.server.secret_key_file), "--layout", "kind-first", "--store", there.url)
    done = subprocess.run([sys.executable, "-m", "commands.main", "init", str(base), *words], check=False)
    assert done.returncode == 0
    config = base / "luigi.cfg"
    without_index(config)
    config.write_text(config.read_text() + CONFIGURATION.format(job=JOB, index=index))
    folders = {"output": base / "output", "jobs": base / "jobs", "state": base / "state", "store": there.base}
    return Line(config, folders, OutputLayout.KIND_FIRST)  # type: ignore[arg-type]


def test_a_dump_that_loses_its_store_is_completed_by_the_next_scan(tmp_path: Path, there: InS3) -> None:
    (tmp_path / "served").mkdir()
    with small_index(tmp_path / "served") as index:
        line = in_s3(tmp_path / "line", there, index.url)
        done = line.warcmill("pypi", "trigger_full", JOB)
        assert done.returncode == 0, done.stderr
        launch = ended(line)
        day = ("--date-interval", launch.day.isoformat())
        for scan in ("output.ScanForOutputs", "files.ScanForOutputFiles"):
            assert line.luigi("--module", f"tasks.{scan.partition('.')[0]}", scan, *day).returncode == 0
        folder = there.base / f"dumps/{JOB}/v1/data_dumps/python_distribution_data/0-{index.serial}"
        process = subprocess.Popen(
            [sys.executable, "-m", "luigi", "--module", "tasks.pypi", "pypi.ScanForDistributions", *day],
            env={**os.environ, "LUIGI_CONFIG_PATH": str(line.config)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        deadline = time.monotonic() + SECONDS
        while not (folder.is_dir() and len(list(folder.iterdir())) > 20):
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline, "no dump comes"
            time.sleep(0.01)
        with there.outage():
            said = process.communicate(timeout=SECONDS + 120)[0]
            left = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".gz"}
        assert process.returncode != 0
        assert "is unavailable: " in said, said
        assert 20 <= len(left) < 256
        assert line.scan_all(launch.day.isoformat()) == 0
        assert len(dumped(line, launch).files) == 512
        assert {name: (folder / name).read_bytes() for name in left} == left
        assert len(asked(line, "provides", "alpha")["files"]) == 2
        assert not there.uploads()


@pytest.mark.parametrize("calls", range(5))
def test_an_update_that_loses_its_store_is_completed_by_the_next_one(tmp_path: Path, there: InS3, calls: int) -> None:
    """Before each opening of the store: for a dump's file, or to leave a data set there."""
    dumps = DumpedIndex(tmp_path)
    wheel = row("six", "1.17", "six")
    dumps.dump(0, 100, [wheel], [state("six", 7, wheel)])
    for path in (path for path in dumps.store.base.rglob("*") if path.is_file() and "dumps" in path.parts):
        there.write(str(path.relative_to(dumps.store.base)), path.read_bytes())
    opened = 0

    def open_store() -> S3Store:
        nonlocal opened
        opened += 1
        if opened == calls + 1:
            there.server.kill()
        return there.open()

    roots = UpdateRoots(dumps.state, open_store, dumps.index, there.url)
    try:
        with pytest.raises(Unavailable):
            update(roots, JOB, dumps.dumps)
    finally:
        there.server.start()
    assert [one.troubles for one in update(roots, JOB, dumps.dumps)] == [()] * 3
    assert all(Payloads(dumps.index, name).current() for name in NAMES)
    left = {path.rpartition("/input_lists/")[0] for path in there.files() if "/input_lists/" in path}
    assert {path.rpartition("/")[2] for path in left} == set(NAMES)
    assert not there.uploads()
