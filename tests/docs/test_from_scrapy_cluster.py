"""Every name in the documentation of Scrapy Cluster has its row on the page for who comes from there.

`tests/data/requests/names.txt` has these names, a line each: the kind, a tab, the name.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.main import main
from warcmill.requests import compat
from warcmill.requests.handlers import HANDLERS
from warcmill.requests.settings import DEFAULTS

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
ROW = re.compile(r"\| (`[^|]+`) \| (kept|mapped|declined) \| ([^|]+) \|")
COMMANDS = json.loads((ROOT / "tests" / "data" / "requests" / "commands.json").read_text("utf-8"))
VERBS = {
    "kafka_monitor.py feed": ("request", "feed"), "kafka_monitor.py run": ("run", "requests"),
    "kafkadump.py dump": ("request", "dump"), "kafkadump.py list": ("request", "list"),
}  # fmt: skip
OPTIONS = {"-s": "-s", "-ll": "--log-level", "-t": "-t", "-p": "-p", "json": "JSON"}
BY_SETTING = {"-lf": "LOG_STDOUT", "-lj": "LOG_JSON"}
OF_SPIDERS = re.compile(r"SC_LOG")
"""Settings that a RedisSpider reads from those of its project."""


def rows() -> dict[tuple[str, str], list[str]]:
    """The verdicts of the page, by kind and name. A row without a verdict or a text does not count."""
    kinds = {heading: kind for kind, heading in HEADINGS.items()}
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for part in PAGE.partition("\n## Every name\n")[2].split("\n### ")[1:]:
        heading, _, text = part.partition("\n")
        for line in text.splitlines():
            if row := ROW.fullmatch(line):
                for name in row[1].strip("`").split("`, `"):
                    found[kinds[heading], name].append(row[2])
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
        path.read_text("utf-8") for path in (*(ROOT / "warcmill/requests").glob("*.py"), ROOT / "commands/request.py")
    )
    parts = [part.removesuffix(" Stats Dump") for name in kept("log line") for part in name.split(" ... ")]
    assert [part for part in parts if part not in code] == []


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_each_option_of_its_commands_is_ours_or_named_on_the_page(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`tests/data/requests/commands.json` has the options that the help of the original prints."""
    with pytest.raises(SystemExit) as ended:
        main([*VERBS[command], "--help"])
    shown = capsys.readouterr().out
    part = PAGE.partition("\n### Commands\n")[2].partition("\n### ")[0]
    row = "".join(line for line in part.splitlines() if line.startswith("| `" + command.partition(" ")[0]))
    left = [option for option in COMMANDS[command] if option not in OPTIONS]
    assert ended.value.code == 0
    assert [one for one in COMMANDS[command] if OPTIONS.get(one, "") not in shown] == []
    assert [one for one in left if f"`{one}`" not in row or BY_SETTING.get(one, "LOG_JSON") not in DEFAULTS] == []
