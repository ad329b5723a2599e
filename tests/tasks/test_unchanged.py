"""What was read of the configuration is kept until that changes: a key, a variable that it names, the command."""

from __future__ import annotations

import luigi
import pytest
from configured import Keys, configured
from luigi.cmdline_parser import CmdlineParser

from tasks.config import sections
from tasks.config.sections import while_unchanged
from tasks.config.settings import settings
from warcmill.errors import BadConfig


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Keys:
    """A configuration of [warcmill] alone."""
    parser = configured(monkeypatch)
    parser.add_section("warcmill")
    for key in ("output", "jobs", "state", "store"):
        parser.set("warcmill", key, f"/line/{key}")
    parser.set("warcmill", "output_layout", "kind-first")
    monkeypatch.delenv("LUIGI_CONFIG_PATH", raising=False)
    return parser


def test_it_is_read_once(config: Keys) -> None:
    assert settings() is settings()


def test_a_key_that_changes_is_read_again(config: Keys) -> None:
    before = settings()
    config.set("warcmill", "index", "/line/index")
    assert (before.index, settings().index) == ("", "/line/index")
    assert not settings().wanted()
    config.add_section("index")
    config.set("index", "since", "2016-10-19")
    assert list(settings().wanted()) == ["index"]


def test_a_variable_that_changes_is_read_again(config: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    config.set("warcmill", "store", "${ARCHIVE}/store")
    for place in ("/one", "/two"):
        monkeypatch.setenv("ARCHIVE", place)
        assert settings().store == f"{place}/store"


def test_a_key_on_the_command_line_counts_in_its_run(config: Keys) -> None:
    class Nothing(luigi.Task):
        pass

    command = ["Nothing", "--warcmill-state", "/other/state", "--module", "tasks.files"]
    for _ in range(2):
        assert settings().state == "/line/state"
        with CmdlineParser.global_instance(command):
            assert settings().state == "/other/state"


def test_what_is_wrong_is_read_again(config: Keys) -> None:
    config.set("warcmill", "output_layout", "upside-down")
    for _ in range(2):
        with pytest.raises(BadConfig, match="upside-down"):
            settings()
    config.set("warcmill", "output_layout", "job-first")
    assert settings().output_layout == "job-first"


def test_other_arguments_have_other_values(config: Keys) -> None:
    @while_unchanged
    def value(key: str) -> str:
        return sections.value("warcmill", key)

    assert (value("jobs"), value("store"), value("jobs")) == ("/line/jobs", "/line/store", "/line/jobs")
