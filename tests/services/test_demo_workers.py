"""`scripts/demo --workers 2` with a real Redis: a worker is killed, Redis is emptied, and each page is there once."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SECONDS = 1200


def test_it_ends_with_what_the_sites_log_the_books_and_a_crawler_alone_have(tmp_path: Path) -> None:
    command = [ROOT / "scripts" / "demo", "--workers", "2", tmp_path / "shown"]
    env = {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    for what in (
        "the site's own log: 2,000 pages, each once, and no host too fast",
        "$ kill -KILL ", "flushall", "job many rebuild", "job many books", "no gap",
        "many has 2,020 records, alone, without a server, 2,020; 0 differ in URI or payload digest",
    ):  # fmt: skip
        assert what in done.stdout, what
