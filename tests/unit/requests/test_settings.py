"""Settings by Scrapy Cluster's names: command line, then environment, then file, then default; and the topics."""

from __future__ import annotations

from pathlib import Path

import pytest

from warcmill.errors import BadConfig
from warcmill.requests.settings import DEFAULTS, RequestsPlace, Topics


def place(folder: Path, text: str = "", **given: object) -> RequestsPlace:
    file = folder / "localsettings.py"
    file.write_text(text)
    return RequestsPlace("ondemand", "demo", "spool", str(file), folder / "spool", given=given)


def test_the_nearest_layer_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "QUEUE_HITS = 5 * 4\nQUEUE_WINDOW = 30\nSTATS_DUMP = 10\nREDIS_PASSWORD = 'x'\n"
    monkeypatch.setenv("QUEUE_WINDOW", "15")
    monkeypatch.setenv("QUEUE_MODERATED", "False")
    found = place(tmp_path, text, STATS_DUMP=1).values()
    assert {name: found[name] for name in ("QUEUE_HITS", "QUEUE_WINDOW", "QUEUE_MODERATED", "STATS_DUMP")} == {
        "QUEUE_HITS": 20, "QUEUE_WINDOW": 15, "QUEUE_MODERATED": False, "STATS_DUMP": 1
    }  # fmt: skip
    assert found["LOG_LEVEL"] == DEFAULTS["LOG_LEVEL"]
    assert "REDIS_PASSWORD" not in found


@pytest.mark.parametrize(
    "text",
    [
        "QUEUE_HITS = 'many'",
        "QUEUE_HITS = -1",
        "QUEUE_HITS = 1e400",
        "QUEUE_WINDOW = 0.5",
        "QUEUE_WINDOW = float('nan')",
        "LOG_DIR = 3",
        "import os; os.abort()",
    ],
)
def test_a_value_that_is_none_is_refused_by_name(text: str, tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=text.partition(" ")[0] if "import" not in text else r"localsettings\.py"):
        place(tmp_path, text).values()


def test_a_settings_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="gone"):
        RequestsPlace("ondemand", "demo", "spool", str(tmp_path / "gone"), tmp_path).values()


def test_topics(tmp_path: Path) -> None:
    topics = Topics.of(place(tmp_path).values())
    assert topics.incoming == "demo.incoming"
    assert topics.outbound("testapp") == ["demo.outbound_firehose"]
    topics = Topics.of(place(tmp_path, "KAFKA_APPID_TOPICS = True\nKAFKA_TOPIC_PREFIX = 'x'").values())
    assert topics.crawled("a/b") == ["x.crawled_firehose", "x.crawled_a_b"]
    assert topics.incoming == "x.incoming"
