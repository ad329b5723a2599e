"""A line that holds the bundled launch. A module that wants it otherwise has a fixture of the same name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from line import Line, line_at, new_line


@pytest.fixture
def line(tmp_path: Path) -> Line:
    """Laid out, and nothing done yet."""
    return new_line(tmp_path)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Line:
    """The sample in the store, built once. Nobody changes it."""
    line = new_line(tmp_path_factory.mktemp("finished"))
    assert line.scan() == [0, 0]
    return line


@pytest.fixture
def done(finished: Line, tmp_path: Path) -> Line:
    """The sample in the store: a copy of `finished`, whose luigi.cfg names its own folders."""
    shutil.copytree(finished.config.parent, tmp_path, symlinks=True, dirs_exist_ok=True)
    return line_at(tmp_path)
