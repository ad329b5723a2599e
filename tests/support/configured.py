"""The configuration of a test that runs in this process: of ours, and of Luigi's where it runs steps."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest
from luigi.configuration import LuigiConfigParser, add_config_path

from tasks.config import source
from tasks.config.folders import VARIABLE


class Keys(LuigiConfigParser):
    """Sections and keys that a test sets."""

    text = source.Configuration.text


def configured(monkeypatch: pytest.MonkeyPatch, *files: Path) -> Keys:
    """What is read, until the test ends: these files, and what is then set."""
    keys = Keys()
    keys.read(files)
    monkeypatch.setattr(LuigiConfigParser, "_instance", keys)
    monkeypatch.setattr(source, "_at", cache(lambda *_: keys))
    return keys


def read(config: Path) -> None:
    """Read a luigi.cfg, in a process of a test's own, as it is now."""
    os.environ[VARIABLE] = str(config)
    source.read_again()
    add_config_path(str(config))
