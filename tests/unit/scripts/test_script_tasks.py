"""Twenty thousand tasks of 200 scripts: `benchmarks/script_tasks.py` looks at three million."""

from __future__ import annotations

import pytest

from benchmarks import script_tasks


def test_each_look_at_many_tasks_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    assert script_tasks.main(["--tasks", "20000"]) == 0, capsys.readouterr().out
