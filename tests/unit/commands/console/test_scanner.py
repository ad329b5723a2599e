"""A luigi's output, as `warcmill scan` shows it: no line, however it came about, may stop the reading of its pipe."""

from __future__ import annotations

import json

import pytest

from commands.console.scanner import ScanProgress
from tasks.logs import MARK


def event(**members: str | int) -> bytes:
    return f"{MARK}{json.dumps(members)}\n".encode()


def test_a_line_that_two_processes_wrote_into_is_shown_and_those_after_it_count(
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = event(kind="done", step="Copy daily/20161019234428 final", task="files.Copy")
    lines = [done[:30] + done, b"\x1e[1]\n", b"\x1e\n", b"\xff: an error\n", done]
    with ScanProgress("files.ScanForOutputFiles").following(lines):
        pass
    shown = capsys.readouterr().err
    assert "\\xff: an error\n" in shown
    assert shown.endswith("files.ScanForOutputFiles: 1 done (Copy 1)\n")
