"""pywb is installed by its lock: again, after a kill, without a network. No package is fetched here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from servers import packages
from warcmill.errors import Unavailable
from warcmill.replay import pywb


@pytest.fixture
def said() -> list[str]:
    return []


def test_the_shipped_lock_is_that_of_the_tests() -> None:
    assert pywb.LOCK.read_bytes() == (packages.LOCKS / "pywb.lock").read_bytes()
    wheels, sources = (pywb.lines_of(pywb.LOCK, ["surt"], built=built) for built in (False, True))
    assert ("\npywb==2.10." in wheels, "\nsurt==" in wheels) == (True, False)
    assert [line for line in sources.splitlines() if line[0].isalnum()] == ["surt==0.3.1 \\"]


def test_what_was_not_installed_to_its_end_is_no_pywb(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/wayback").touch()
    assert pywb.program(tmp_path) is None
    (tmp_path / "installed").write_text("an older lock")
    assert pywb.program(tmp_path) == tmp_path / "bin/wayback"
    (tmp_path / "bin/wayback").unlink()
    assert pywb.program(tmp_path) is None


def test_installed_already_it_starts_nothing(tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pywb, "_run", lambda words, todo, say: said.append(words[1]))
    (tmp_path / "replay/bin").mkdir(parents=True)
    pywb.install(tmp_path / "replay", said.append)
    assert said[2:] == ["-P", "-P", "-P"]
    (tmp_path / "replay/bin/wayback").touch()
    del said[:]
    pywb.install(tmp_path / "replay", said.append)
    assert said == [f"{tmp_path}/replay/bin/wayback is installed already"]


@pytest.mark.parametrize(
    ("script", "why"),
    [("print('ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM'); sys.exit(1)", "has another hash"),
     ("print('Failed to establish a new connection'); print('ERROR: No matching'); sys.exit(1)", "does not answer"),
     ("print('ERROR: [Errno 28] No space left on device'); sys.exit(1)", "No space left on device"),
     ("sys.exit(2)", "it printed nothing")],
)  # fmt: skip
def test_why_it_failed_is_said_with_what_to_do(said: list[str], script: str, why: str) -> None:
    with pytest.raises(Unavailable) as caught:
        pywb._run([sys.executable, "-c", f"import sys; {script}"], "do this", said.append)
    assert why in str(caught.value)
    assert "do this" in str(caught.value)


def test_without_a_network_it_says_so_and_the_next_attempt_begins_again(
    tmp_path: Path, said: list[str], closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("INDEX_URL", f"http://127.0.0.1:{closed_port}/simple"),
        ("RETRIES", "0"),
        ("NO_CACHE_DIR", "1"),
    ):
        monkeypatch.setenv(f"PIP_{name}", value)
    for _ in range(2):
        with pytest.raises(Unavailable, match="the index of packages does not answer"):
            pywb.install(tmp_path / "replay", said.append)
        assert pywb.program(tmp_path / "replay") is None
    assert "GNU GPL 3" in said[0]
