"""Settings files are read as Python would, and nothing in them is executed."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from warcmill.scutils.settings_wrapper import SettingsError, SettingsWrapper, read_settings, str2bool

FAMILY = """
NAME='Bill'
FAMILY = {
    'Friends': ['Joe', 'Mark'],
    'Sister': 'Kathy'
}
"""
# The shapes that the files of a deployment in containers have.
DEPLOYED = """from __future__ import absolute_import
'''A docstring.'''
import os
def str2bool(v):
    return str(v).lower() in ('true', '1') if type(v) == str else bool(v)

REDIS_HOST = os.getenv('REDIS_HOST', 'redis')
REDIS_PORT = int(os.getenv('REDIS_PORT', 6379))
REDIS_PASSWORD = os.getenv('REDIS_PASSWORD', None)
KAFKA_HOSTS = [x.strip() for x in os.getenv('KAFKA_HOSTS', 'kafka:9092').split(',')]
KAFKA_APPID_TOPICS = str2bool(os.getenv('KAFKA_APPID_TOPICS', False))
LOG_MAX_BYTES = 10 * 1024 * 1024
SLEEP_TIME = 0.01
PREFIX = 'demo'
INCOMING = PREFIX + '.incoming'
IP_ADDR_REGEX = '([0-9]{1,3})'
STATS_TIMES = ['SECONDS_15_MINUTE', ]
PLUGINS = {
    'plugins.scraper_handler.ScraperHandler': 100,
    'plugins.action_handler.ActionHandler': None,
}
"""


def test_the_documented_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("settings.py").write_text(FAMILY)
    Path("joe_settings.py").write_text("NAME='Joe'\nFAMILY={\n  'Sister':'Kim'\n}\nHOUSE=True\n")
    Path("ben_settings.py").write_text("NAME='Ben'\n")
    wrapper = SettingsWrapper()
    with caplog.at_level(logging.INFO):
        bill = wrapper.load(default="settings.py")
    assert caplog.messages == ["No override settings found"]
    assert bill == {"NAME": "Bill", "FAMILY": {"Sister": "Kathy", "Friends": ["Joe", "Mark"]}}
    joe = wrapper.load(default="settings.py", local="joe_settings.py")
    assert joe == {"HOUSE": True, "NAME": "Joe", "FAMILY": {"Sister": "Kim", "Friends": ["Joe", "Mark"]}}
    assert wrapper.settings() is joe
    assert wrapper.load(local="ben_settings.py")["NAME"] == "Ben"


def test_without_files_there_are_no_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    with caplog.at_level(logging.INFO):
        assert SettingsWrapper().load(default="nobodys.py", local="nobodys.py") == {}
    assert caplog.messages == ["No default settings found", "No override settings found"]


def test_a_file_is_found_in_pythons_path_also_by_the_name_of_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "crawling").mkdir()
    (tmp_path / "crawling" / "settings.py").write_text("A = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert SettingsWrapper().load(default="crawling.settings", local="nobodys.py") == {"A": 1}


def test_a_text_has_settings_as_a_file() -> None:
    wrapper = SettingsWrapper()
    assert wrapper.load_from_string("NAME='stuff'\nTYPE=['item']\n") == {"NAME": "stuff", "TYPE": ["item"]}
    assert wrapper.settings()["NAME"] == "stuff"
    assert SettingsWrapper().settings() == {}, "one wrapper's settings are not another's"


def test_a_deployed_file_takes_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_HOSTS", "a:1, b:2")
    monkeypatch.setenv("KAFKA_APPID_TOPICS", "True")
    monkeypatch.setenv("REDIS_PORT", "6390")
    monkeypatch.delenv("REDIS_HOST", raising=False)
    monkeypatch.delenv("REDIS_PASSWORD", raising=False)
    settings = read_settings(DEPLOYED, "settings.py")
    assert settings == {
        "REDIS_HOST": "redis",
        "REDIS_PORT": 6390,
        "REDIS_PASSWORD": None,
        "KAFKA_HOSTS": ["a:1", "b:2"],
        "KAFKA_APPID_TOPICS": True,
        "LOG_MAX_BYTES": 10485760,
        "SLEEP_TIME": 0.01,
        "PREFIX": "demo",
        "INCOMING": "demo.incoming",
        "IP_ADDR_REGEX": "([0-9]{1,3})",
        "STATS_TIMES": ["SECONDS_15_MINUTE"],
        "PLUGINS": {"plugins.scraper_handler.ScraperHandler": 100, "plugins.action_handler.ActionHandler": None},
    }


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("A = 1\nimport subprocess\n", 2, "is not read"),
        ("from os import system\n", 1, "is not read"),
        ("A = __import__('os').system('touch gone')\n", 1, "a call that is not made"),
        ("A = open('/etc/passwd').read()\n", 1, "a call that is not made"),
        ("A = os.system('x')\n", 1, "a call that is not made"),
        ("def f():\n    pass\n", 1, "is not read"),
        ("A = (1).__class__\n", 1, "is not read"),
        ("A = 'x'.format(1)\n", 1, "a call that is not made"),
        ("A = f'{1}'\n", 1, "is not read"),
        ("A = [x for x in [1] if x]\n", 1, "is not read"),
        ("A = [[y for y in x] for x in [[1]]]\n", 1, "something else than one list"),
        ("A = [x for x in 'abc']\n", 1, "something else than one list"),
        ("A = lambda: 1\n", 1, "is not read"),
        ("A = UNKNOWN\n", 1, "is not read"),
        ("A['k'] = 1\n", 1, "is not a name to assign to"),
        ("A += 1\n", 1, "is not read"),
        ("A = int('x')\n", 1, "invalid literal"),
        ("A = 1 / 0\n", 1, "division by zero"),
        ("A = {[]: 1}\n", 1, "unhashable"),
        ("A = 9 ** 9 ** 9\n", 1, "a power this large"),
        ("A = 2 ** 64 * 2 ** 60 ** 2\n", 1, "a power this large"),
        ("A = 'a' * 10 ** 9\n", 1, "not arithmetic"),
        ("A = '%1000000000d' % 1\n", 1, "not arithmetic"),
        ("A = 'a' + 1\n", 1, "not arithmetic"),
        ("A = {**{}}\n", 1, "takes in another one"),
        ("A = (\n", 1, "correct the line"),
        ("A = 1\n" + "(" * 10_000, 2, "correct the line"),
    ],
)
def test_anything_else_is_refused_with_its_line(text: str, line: int, why: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read_settings(text, "my.py")
    assert str(refused.value).startswith((f"my.py:{line}: ", "my.py: nested too deep"))
    assert why in str(refused.value) or "nested too deep" in str(refused.value)


@pytest.mark.parametrize("text", ["[" * 90 + "]" * 90, "-" * 50_000 + "1", "1+" * 50_000 + "1"])
def test_a_value_nested_too_deep_ends_in_an_error_not_in_a_crash(text: str) -> None:
    try:
        read_settings(f"A = {text}", "my.py")
    except SettingsError as refused:
        assert "my.py" in str(refused)  # noqa: PT017 some are read: only a crash would be wrong


def test_doubling_a_text_ends(tmp_path: Path) -> None:
    lines = ["A = 'aaaaaaaaaa'", *(["A = A + A"] * 40)]
    with pytest.raises(SettingsError, match="this long"):
        read_settings("\n".join(lines), "my.py")


def test_a_file_that_is_too_large_or_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "large.py").write_text("#" * 2_000_000)
    (tmp_path / "latin.py").write_bytes(b"A = '\xe9'\n")
    (tmp_path / "nul.py").write_bytes(b"A = 1\0\n")
    for name, why in (("large.py", "more than"), ("latin.py", "byte 5 is not UTF-8"), ("nul.py", "null")):
        with pytest.raises(SettingsError, match=why):
            SettingsWrapper().load(default=str(tmp_path / name))


@pytest.mark.parametrize(
    ("value", "true"), [("True", True), ("1", True), ("yes", False), ("", False), (1, True), (None, False)]
)
def test_a_text_is_true_as_there(value: object, true: bool) -> None:
    assert str2bool(value) is true
