"""`scripts/demo --requests --services`: a Kafka, a Redis, two workers, two projects of Scrapy, and two kills."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SECONDS = 1500


def test_every_page_is_on_the_topic_and_in_a_warc_and_the_archive_reconciles(tmp_path: Path) -> None:
    command = [ROOT / "scripts" / "demo", "--requests", "--services", tmp_path / "shown"]
    env = {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=SECONDS, check=False)
    logs = "".join(path.read_text()[-2000:] for path in (tmp_path / "shown").glob("*.log"))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:] + logs
    assert done.stdout.count("kill -KILL") == 2
    books = re.search(r"'catalogue' sent (\d+) pages; 'reader' sent (\d+), handed over by it", done.stdout)
    assert books
    assert int(books[1]) >= 4
    assert int(books[2]) >= 32
    for what in (
        "asked for: 136 pages",
        "0 messages or pages whose body or record is not there", "no gap",
    ):  # fmt: skip
        assert what in done.stdout, done.stdout[-3000:]
