"""pywb ends with the process that started it, whenever that is killed."""

from __future__ import annotations

import subprocess
from pathlib import Path

from warcmill.replay.pywb import Pywb, ReplaySources


def test_a_pywb_whose_parent_is_gone_before_it_begins_does_not_begin(tmp_path: Path) -> None:
    program, begun = tmp_path / "wayback", tmp_path / "begun"
    program.write_text(f"#!/bin/sh\necho begun > {begun}\n")
    program.chmod(0o755)
    words = Pywb(program, ReplaySources("", ""), 1, "s", tmp_path / "warcmill.css").words()
    subprocess.run(["/bin/sh", "-c", '"$@"; :', "sh", *words], check=True)
    assert not begun.exists()
    subprocess.run(words, check=True)
    assert begun.exists()
