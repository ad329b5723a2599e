"""The recovery logs of real launches, as `warcmill job JOB load` reads them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from warcmill.crawl.books import uri_list
from warcmill.crawl.books.uri_list import ListRead


def test_every_line_of_a_real_recovery_log_is_read(pytestconfig: pytest.Config) -> None:
    found = sorted(pytestconfig.getoption("--corpus").rglob("frontier.recover.gz*"))
    logs: list[Path] = [path for path in found if path.stat().st_size and gzip.decompress(path.read_bytes())]
    assert logs
    for path in logs:
        read = ListRead()
        lines = list(uri_list.read(path, read))
        text = gzip.decompress(path.read_bytes()).decode().splitlines()
        wanted = [line for line in text if line[:2] in ("F+", "Fs", "Fd") and not line.split(" ")[1].startswith("dns:")]
        left_out = [line for line in wanted if line.split(" ")[1].endswith("/robots.txt")]
        logins = [number for number, line in enumerate(text, 1) if line[:2] in ("F+", "Fs", "Fd") and "u:p@" in line]
        assert [number for number, _ in read.bad] == logins, read.bad
        assert (read.number, len(lines)) == (len(text), len(wanted) - len(left_out) - len(logins)), path
