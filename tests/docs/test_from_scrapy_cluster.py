"""Every name in the documentation of Scrapy Cluster has its row on the page for who comes from there.

`tests/data/requests/names.txt` has these names, a line each: the kind, a tab, the name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from warcmill.cluster import compat
from warcmill.cluster.handlers import HANDLERS
from warcmill.cluster.settings import DEFAULTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "from-scrapy-cluster.md").read_text("utf-8")
NAMES = (ROOT / "tests" / "data" / "requests" / "names.txt").read_text("utf-8").splitlines()
HEADINGS = {
    "setting": "Settings", "redis key": "Redis keys", "topic": "Topics", "command": "Commands",
    "crawl field": "Fields of a crawl", "result key": "Keys of a result", "action": "Actions",
    "policy field": "Fields of a change of the policy", "stats": "Statistics", "rest": "REST", "plugin": "Plugins",
    "crawler part": "Parts of the crawler", "utility": "Utilities", "log line": "Log lines",
    "topic page": "Pages of its documentation",
}  # fmt: skip
ROW = re.compile(r"\| `([^|]+)` \| (kept|mapped|declined) \| ([^|]+) \|")
OF_SPIDERS = re.compile(r"SC_LOG")
"""Settings that a RedisSpider reads from those of its project."""


def rows() -> dict[tuple[str, str], list[str]]:
    """The verdicts of the page, by kind and name. A row that has no verdict or no text is none."""
    kinds = {heading: kind for kind, heading in HEADINGS.items()}
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for part in PAGE.partition("\n## Every name\n")[2].split("\n### ")[1:]:
        heading, _, text = part.partition("\n")
        for line in text.splitlines():
            if row := ROW.fullmatch(line):
                found[kinds[heading], row[1]].append(row[2])
    return found


def kept(kind: str) -> Iterator[str]:
    return (name for (one, name), verdicts in rows().items() if one == kind and verdicts == ["kept"])


def test_each_name_has_one_row_and_each_row_is_of_a_name() -> None:
    names = [(kind, name) for kind, name in (line.split("\t") for line in NAMES)]
    assert len(names) == len(set(names)) > 200
    found = rows()
    assert set(found) == set(names)
    assert {key: verdicts for key, verdicts in found.items() if len(verdicts) != 1} == {}


def test_kept_settings_are_those_that_are_read() -> None:
    read = {*DEFAULTS, "KAFKA_TOPIC_PREFIX", "KAFKA_INCOMING_TOPIC", "PLUGINS"}
    assert {name for name in kept("setting") if not OF_SPIDERS.match(name)} == read


def test_kept_fields_are_those_of_the_schemas() -> None:
    assert set(kept("crawl field")) == set(compat.SCRAPER["properties"])
    assert set(kept("policy field")) == set(compat.ZOOKEEPER["properties"])
    assert set(kept("stats")) == set(compat.STATS)
    assert {f"{one.name} {one.rank}" for one in HANDLERS} <= set(kept("plugin"))


def test_kept_log_lines_are_in_the_code() -> None:
    code = "".join(
        path.read_text("utf-8") for path in (*(ROOT / "warcmill/cluster").glob("*.py"), ROOT / "commands/request.py")
    )
    parts = [part.removesuffix(" Stats Dump") for name in kept("log line") for part in name.split(" ... ")]
    assert [part for part in parts if part not in code] == []
