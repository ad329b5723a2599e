"""Very many hosts and very many links take bounded memory, and nothing is missing without a word.

`python -m benchmarks.crowd` does the same with a million of each.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import crowd

LINKS, HOSTS, SAMPLE = 300_000, 10_000, 200


def test_very_many_hosts_whose_addresses_are_kept_for_no_time(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    hosts = HOSTS if pytestconfig.getoption("--every-point") else SAMPLE
    found = crowd.crawl(tmp_path, "hosts", hosts)
    assert found.documents == hosts + crowd.pages(hosts)
    assert found.log.count(" dns:h") == hosts, "each host was asked for once: its TTL of 0 is taken for seconds"
    assert found.memory < crowd.MEMORY


def test_a_page_of_very_many_links_is_kept_and_the_log_says_what_was_left_out(tmp_path: Path) -> None:
    found = crowd.crawl(tmp_path, "links", LINKS)
    page = next(line for line in found.log.splitlines() if line.split()[3].endswith("/links/0"))
    assert page.split()[1] == "200"
    assert page.split()[11] == "linksTrunc"
    assert found.memory < crowd.MEMORY
