"""Lines are sorted by their bytes, in memory or in runs, and nothing is left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill.base.line_sort import SortedLines

LINES = st.lists(st.binary(max_size=6).map(lambda line: line.replace(b"\n", b"") + b"\n"))


@given(LINES, st.sampled_from([0, 100, 1000, 1 << 20]))
def test_any_lines(lines: list[bytes], in_memory: int) -> None:
    ordered = SortedLines(Path("/tmp"), in_memory)
    for line in lines:
        ordered.add(line)
    assert list(ordered) == sorted(lines)
    ordered.close()


def test_runs_have_no_name_and_are_closed(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    ordered = SortedLines(tmp_path, 500)
    for number in range(100):
        ordered.add(b"%d\n" % (number * 37 % 100))
    assert len(os.listdir("/proc/self/fd")) > before
    assert os.listdir(tmp_path) == []
    assert len(list(ordered)) == 100
    ordered.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_full_disk_is_the_callers(tmp_path: Path) -> None:
    ordered = SortedLines(tmp_path / "missing", 0)
    with pytest.raises(FileNotFoundError):
        ordered.add(b"x\n")
