"""Switches of steps that not every launch goes through, and the clamd of [viruses]: wrong keys are named."""

from __future__ import annotations

from datetime import date

import pytest
from configured import Keys, configured

from tasks.config import chains
from warcmill.chain import Switch
from warcmill.errors import BadConfig
from warcmill.files.virus_scan import ClamdLimits

MIB = 1 << 20


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Keys:
    """A configuration of [viruses] alone."""
    parser = configured(monkeypatch)
    parser.add_section("viruses")
    return parser


def test_a_section_without_since_switches_nothing_on(config: Keys) -> None:
    assert chains.wanted() == {}
    config.set("viruses", "clamd", "/run/clamd.sock")
    assert chains.wanted() == {}


def test_since_and_jobs(config: Keys) -> None:
    config.set("viruses", "since", "2016-10-19")
    assert chains.wanted() == {"viruses": Switch(date(2016, 10, 19))}
    config.set("viruses", "jobs", "daily, weekly")
    assert chains.wanted() == {"viruses": Switch(date(2016, 10, 19), frozenset({"daily", "weekly"}))}


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("since", "yesterday", r"\[viruses\] since: is 'yesterday'; a day such as"),
        ("jobs", "daily", r"\[viruses\] jobs: is set without since"),
    ],
)
def test_a_wrong_switch_is_named(key: str, value: str, why: str, config: Keys) -> None:
    config.set("viruses", key, value)
    with pytest.raises(BadConfig, match=why):
        chains.wanted()


def test_the_scanner_and_its_limits(config: Keys) -> None:
    config.set("viruses", "clamd", "scan.example:3310")
    assert chains.scanner().limits == ClamdLimits(100 * MIB, 100 * MIB), "as clamd's own defaults"
    config.set("viruses", "max_file_size", str(MIB))
    found = chains.scanner()
    assert (found.limits.why_not(MIB), found.limits.why_not(MIB + 1)) == ("", "over MaxFileSize")
    assert found.limits.why_not(100 * MIB + 1) == "over StreamMaxLength"
    assert str(found.clamd) == "clamd at scan.example:3310"


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("clamd", "", r"\[viruses\] clamd: is not set"),
        ("clamd", "clamd.sock", "neither the absolute path of a socket nor host:port"),
        ("stream_max_length", "0", r"\[viruses\] stream_max_length: is 0; bytes"),
        ("max_file_size", "100M", r"\[viruses\] max_file_size"),
    ],
)
def test_a_wrong_scanner_is_named(key: str, value: str, why: str, config: Keys) -> None:
    config.set("viruses", "clamd", "/run/clamd.sock")
    config.set("viruses", key, value)
    with pytest.raises(BadConfig, match=why):
        chains.scanner()
