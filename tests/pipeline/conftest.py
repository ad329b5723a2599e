"""A line that holds the bundled launch. A module that wants it otherwise has a fixture of the same name."""

from __future__ import annotations

from pathlib import Path

import pytest
from line import Line, new_line


@pytest.fixture
def line(tmp_path: Path) -> Line:
    """Laid out, and nothing done yet."""
    return new_line(tmp_path)


@pytest.fixture
def done(line: Line) -> Line:
    """The sample in the store."""
    assert line.scan() == [0, 0]
    return line
