"""[package] of luigi.cfg: what it switches on, and what it refuses."""

from __future__ import annotations

from datetime import date

import pytest
from configured import Keys, configured

from tasks.config import chains
from warcmill.chain import Switch
from warcmill.errors import BadConfig
from warcmill.package.sips import Terms


@pytest.fixture
def section(monkeypatch: pytest.MonkeyPatch) -> Keys:
    """A configuration with an empty section."""
    parser = configured(monkeypatch)
    parser.read_string("[package]\n")
    return parser


def write(section: Keys, **keys: str) -> None:
    for key, value in keys.items():
        section.set("package", key, value)


def test_without_since_it_is_off_whatever_else_is_set(section: Keys) -> None:
    write(section, stages="neither", organisation="")
    assert chains.switch() is None


def test_since_and_organisation_are_enough(section: Keys) -> None:
    write(section, since="2026-11-21", organisation="National Library")
    assert chains.switch() == Switch(date(2026, 11, 21), None, final_only=True)
    assert chains.terms() == Terms("National Library")
    assert (chains.destination(), chains.verified_at()) == ("", "")


def test_every_key_is_read(section: Keys) -> None:
    write(section, since="2026-11-21", organisation="NL", jobs="daily, weekly", stages="every", form="reference")
    write(section, locate="https://archive.example/", naan="12345", shoulder="x5", agreement="SA-7")
    write(section, destination="/ingest/in/", verified_at="sftp://ingest.example/done")
    assert chains.switch() == Switch(date(2026, 11, 21), frozenset({"daily", "weekly"}))
    assert chains.terms() == Terms("NL", "reference", "https://archive.example/", "12345", "x5", "", "SA-7")
    assert (chains.destination(), chains.verified_at()) == ("/ingest/in", "sftp://ingest.example/done")


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"organisation": ""}, "organisation: is not set"),
        ({"since": "soon"}, "since: is 'soon'; a day"),
        ({"jobs": "../daily"}, "jobs: "),
        ({"stages": "all"}, "stages: is all; final or every"),
        ({"form": "zip"}, "form: is zip; value or reference"),
        ({"locate": "/srv/archive"}, "locate: is /srv/archive; a URL"),
        ({"naan": "123a5"}, "naan: is 123a5; digits and letters without vowels"),
        ({"shoulder": "x5"}, "naan: is not set, and shoulder is"),
        ({"naan": "12345", "shoulder": "x5x5x5x"}, "shoulder: is too long"),
        ({"minter": "file:///noid"}, "minter: is file:///noid; a URL"),
        ({"minter": "https://noid.example/", "naan": "12345"}, "minter: is set beside naan"),
        ({"since": "2026-11-21%"}, "since: "),
    ],
)
def test_a_wrong_value_is_refused_by_its_key(section: Keys, keys: dict[str, str], why: str) -> None:
    section.remove_section("package")
    section.add_section("package")
    for key, value in ({"since": "2026-11-21", "organisation": "NL"} | keys).items():
        section._sections["package"][key] = value  # as it would be in the file
    with pytest.raises(BadConfig) as error:
        chains.switch()
    assert f"[package] {why}" in str(error.value)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"destination": "ingest"}, "destination: is ingest; an absolute path"),
        ({"verified_at": "/done"}, "verified_at: is set without destination"),
        ({"destination": "/in", "verified_at": "ftp://x/"}, "verified_at: is ftp://x/; an absolute path"),
    ],
)
def test_a_wrong_place_is_refused_by_its_key(section: Keys, keys: dict[str, str], why: str) -> None:
    write(section, since="2026-11-21", organisation="NL", **keys)
    with pytest.raises(BadConfig) as error:
        chains.verified_at()
    assert f"[package] {why}" in str(error.value)
