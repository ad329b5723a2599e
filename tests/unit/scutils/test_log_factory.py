"""The log of a process: its lines, its levels, its callbacks, and its file that several processes share."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from warcmill.scutils.log_factory import LogFactory, LogObject

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
WRITER = """
import sys
from warcmill.scutils.log_factory import LogFactory
log = LogFactory.get_instance(json=True, stdout=False, dir=sys.argv[1], bytes=4000, backups=500)
for number in range(200):
    log.info("line", {"who": sys.argv[2], "number": number})
"""


@pytest.fixture(autouse=True)
def no_log_is_left() -> Iterator[None]:
    yield
    LogFactory._instance = None
    for name in ("scrapy-cluster", "a test", "logger1"):
        logging.getLogger(name).handlers.clear()


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [re.sub(r"^[\d-]{10} [\d:]{8},\d{3} ", "", line) for line in capsys.readouterr().out.splitlines()]


def say_all(log: LogObject) -> None:
    """The lines of the documented example."""
    log.debug("debug output 1")
    log.warn("warn output", extra={"key": "value", "key2": "value2"})
    log.warning("warn output 2")
    log.critical("critical fault, closing")
    log.info("Info output closing.", extra={"sum": 4})
    log.error("Final var value", extra={"value": 2})


def test_a_log_writes_text_to_stdout_and_its_first_line_names_where(capsys: pytest.CaptureFixture[str]) -> None:
    say_all(LogFactory.get_instance(level="DEBUG"))
    assert lines(capsys) == [
        "[scrapy-cluster] DEBUG: Logging to stdout",
        "[scrapy-cluster] DEBUG: debug output 1",
        "[scrapy-cluster] WARNING: warn output",
        "[scrapy-cluster] WARNING: warn output 2",
        "[scrapy-cluster] CRITICAL: critical fault, closing",
        "[scrapy-cluster] INFO: Info output closing.",
        "[scrapy-cluster] ERROR: Final var value",
    ]


def test_fields_are_added_to_a_text_where_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    say_all(LogFactory.get_instance(include_extra=True))
    assert lines(capsys) == [
        "[scrapy-cluster] WARNING: warn output {'key': 'value', 'key2': 'value2'}",
        "[scrapy-cluster] WARNING: warn output 2",
        "[scrapy-cluster] CRITICAL: critical fault, closing",
        "[scrapy-cluster] INFO: Info output closing. {'sum': 4}",
        "[scrapy-cluster] ERROR: Final var value {'value': 2}",
    ]


def test_json_lines_have_message_fields_level_time_and_name(capsys: pytest.CaptureFixture[str]) -> None:
    say_all(LogFactory.get_instance(json=True))
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line.pop("timestamp")) for line in printed)
    assert printed[0] == {
        "message": "warn output",
        "key": "value",
        "key2": "value2",
        "level": "WARNING",
        "logger": "scrapy-cluster",
    }
    assert [line["level"] for line in printed] == ["WARNING", "WARNING", "CRITICAL", "INFO", "ERROR"]


def test_the_first_call_makes_the_log_and_later_ones_change_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    first = LogFactory.get_instance(json=True, name="logger1", level="DEBUG")
    assert LogFactory.get_instance(name="newlogger", json=False) is first
    assert first.name == "logger1"
    assert json.loads(capsys.readouterr().out)["message"] == "Logging to stdout"


@pytest.mark.parametrize("number", range(len(LEVELS)))
def test_a_level_writes_itself_and_what_is_graver(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    log = LogObject(name="a test", level=LEVELS[number])
    capsys.readouterr()
    for level in LEVELS:
        getattr(log, level.lower())(level)
    assert [line.rpartition(" ")[2] for line in lines(capsys)] == list(LEVELS[number:])


def test_an_unknown_level_is_debug_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    LogObject(name="a test", level="LOUD")
    assert lines(capsys)[0] == "[a test] WARNING: Unknown log level 'LOUD', defaulting to DEBUG"


def test_what_comes_from_outside_cannot_change_a_terminal_or_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    LogObject(name="a test").info("\x1b[31m %s %d\x07", {"n": 1})
    assert lines(capsys) == ["[a test] INFO: \\x1b[31m %s %d\\x07"]


def test_values_that_json_does_not_know_and_fields_with_our_names(capsys: pytest.CaptureFixture[str]) -> None:
    LogObject(name="a test", json=True).info("m", {"path": Path("/x"), "level": "mine", "bad": "\ud800"})
    line = json.loads(capsys.readouterr().out)
    assert (line["path"], line["level"], line["bad"]) == ("/x", "mine", "\ud800")


@pytest.mark.parametrize(
    ("expression", "called"),
    [
        ("INFO", ["INFO"]),
        ("=INFO", ["INFO"]),
        ("<=INFO", ["DEBUG", "INFO"]),
        ("<INFO", ["DEBUG"]),
        (">=WARNING", ["WARNING", "ERROR", "CRITICAL"]),
        (">WARN", ["ERROR", "CRITICAL"]),
        ("WARN", ["WARNING"]),
        ("*", list(LEVELS)),
    ],
)
def test_a_callback_is_called_for_the_levels_of_its_expression(expression: str, called: list[str]) -> None:
    log, heard = LogObject(name="a test", level="DEBUG"), []
    log.register_callback(expression, lambda message, extra: heard.append(message))
    for level in LEVELS:
        getattr(log, level.lower())(level)
    assert heard == called


def test_a_callback_is_not_called_for_a_line_that_is_not_written() -> None:
    log, heard = LogObject(name="a test", level="INFO"), []
    log.register_callback("*", lambda message, extra: heard.append((message, extra)))
    log.debug("no callback")
    log.info("check callback")
    assert heard == [("check callback", {})]


@pytest.mark.parametrize(
    ("criteria", "fits"), [({}, True), ({"a": 1}, True), ({"a": 2}, False), ({"d": 1}, False), ({"c": [3]}, True)]
)
def test_criteria_are_a_part_of_the_fields(criteria: Mapping[str, Any], fits: bool) -> None:
    log, heard = LogObject(name="a test"), []
    log.register_callback(">=INFO", lambda message, extra: heard.append(extra), criteria)
    given = {"a": 1, "b": 2, "c": [3]}
    log.info("x", extra=given)
    assert heard == ([given] if fits else [])
    assert given == {"a": 1, "b": 2, "c": [3]}


def test_an_expression_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="'LOUD' is not a level"):
        LogObject(name="a test").register_callback("LOUD", print)


def test_a_file_is_rotated_at_its_size_and_so_many_are_kept(tmp_path: Path) -> None:
    log = LogObject(name="a test", stdout=False, dir=str(tmp_path / "logs"), file="x.log", bytes=1000, backups=2)
    for number in range(100):
        log.info(f"line {number:03}")
    kept = {path.name: path.read_text() for path in (tmp_path / "logs").iterdir() if path.suffix != ".lock"}
    assert kept.keys() == {"x.log", "x.log.1", "x.log.2"}
    assert all(len(text) <= 1000 for text in kept.values())
    numbers = re.findall(r"line (\d+)", kept["x.log.2"] + kept["x.log.1"] + kept["x.log"])
    assert numbers == [f"{number:03}" for number in range(100 - len(numbers), 100)]


def test_a_line_longer_than_a_file_is_written_whole(tmp_path: Path) -> None:
    log = LogObject(name="a test", stdout=False, dir=str(tmp_path), bytes=10, backups=1)
    log.info("x" * 100)
    log.info("y" * 100)
    assert (tmp_path / "main.log").read_text().endswith("y" * 100 + "\n")
    assert (tmp_path / "main.log.1").read_text().endswith("x" * 100 + "\n")


def test_several_processes_write_one_file_and_no_line_is_lost_or_torn(tmp_path: Path) -> None:
    names = ("a", "b", "c")
    running = [subprocess.Popen([sys.executable, "-c", WRITER, tmp_path, name]) for name in names]
    assert [process.wait() for process in running] == [0, 0, 0]
    found = [
        json.loads(line)
        for path in tmp_path.glob("main.log*")
        if path.suffix != ".lock"
        for line in path.read_text().splitlines()
    ]
    assert sorted((line["who"], line["number"]) for line in found) == [(w, n) for w in names for n in range(200)]


def test_a_full_disk_loses_lines_and_not_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = LogObject(name="a test", stdout=False, dir=str(tmp_path))
    (tmp_path / "main.log").unlink(missing_ok=True)
    (tmp_path / "main.log").symlink_to("/dev/full")
    log.info("lost")
    assert "No space left on device" in capsys.readouterr().err
