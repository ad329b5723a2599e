"""luigi.cfg is read as Luigi reads it: the files in order, the names in values, the defaults, dashes, the errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from configparser import ConfigParser, Error
from pathlib import Path

import pytest
from luigi.configuration import LuigiConfigParser

from tasks.config import source
from tasks.config.folders import VARIABLE

TEXTS = [
    "[warcmill]\nstore=/store\nState = /a\n\n[DEFAULT]\nbase=/data\n\n[files]\nplace=%(base)s/${WORD}%%\n",
    "[engine.a]\njobs = alpha\n  beta\n; a comment\nurl: https://${HOST}:8443/\n# another\npassword=${MISSING}\n",
    "[files]\nhdfs-block-size=1\nretire=${WORD}${WORD}\nother=%(missing)s\nlast=%(base\n",
    "[warcmill]\nstore=/one\n\n[warcmill]\nstore=/two\n",
    "store=/store\n",
    "[files]\nretire\n",
]


@pytest.mark.parametrize("named", TEXTS)
@pytest.mark.parametrize("here", ["", TEXTS[0]])
def test_each_value_is_luigi_s(named: str, here: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORD", "a word")
    monkeypatch.setenv("HOST", "crawler.example")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "named.cfg"))
    (tmp_path / "named.cfg").write_text(named)
    (tmp_path / "luigi.cfg").write_text(here)
    source.read_again()
    assert ours() == luigis(tmp_path / "named.cfg")


def ours() -> object:
    """All that our reader gives, or its error."""
    try:
        keys = source.configuration()
    except Error as error:
        return str(error)
    return _all(keys, lambda section, key: keys.text(section, key) or "", lambda *key: keys.text(*key, raw=True) or "")


def luigis(config: Path) -> object:
    """All that Luigi's reader gives, or its error."""
    keys = LuigiConfigParser()
    try:
        keys.read([*LuigiConfigParser._config_paths[:4], str(config)])
    except Error as error:
        return str(error)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a key with dashes
        return _all(keys, lambda *key: keys.get(*key, ""), lambda *key: keys.get(*key, "", raw=True))


def _all(keys: ConfigParser, value: Callable[[str, str], str], raw: Callable[[str, str], str]) -> object:
    asked = [(section, key) for section in keys.sections() for key in keys.options(section)]
    asked += [("files", "hdfs_block_size"), ("files", "none"), ("none", "none")]
    return [(section, key, _or_error(value, section, key), raw(section, key)) for section, key in asked]


def _or_error(value: Callable[[str, str], str], section: str, key: str) -> str:
    try:
        return value(section, key)
    except Error as error:
        return str(error)


def test_a_file_that_was_edited_is_read_again_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "luigi.cfg"
    monkeypatch.setenv(VARIABLE, str(config))
    config.write_text("[warcmill]\nstore=/one\n")
    assert source.configuration().text("warcmill", "store") == "/one"
    config.write_text("[warcmill]\nstore=/two\n")
    assert source.configuration().text("warcmill", "store") == "/one"
    source.read_again()
    assert source.configuration().text("warcmill", "store") == "/two"
