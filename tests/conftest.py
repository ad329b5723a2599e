"""What every test rests on: the same examples in each run, and nothing of who runs it or on what machine."""

from __future__ import annotations

import gc
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No run fails by luck: neither by an example that another run does not try, nor on a machine that is busy.
# `--hypothesis-profile default` looks further, with new examples each time.
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")

# What an operator's shell may hold, and what then would be tested instead of the line that a test makes.
# The last only costs time: with it, each command that a test runs compiles all its modules.
_UNSET = ("LUIGI_CONFIG_PATH", "FORCE_COLOR", "NO_COLOR", "COLUMNS", "PYTHONDONTWRITEBYTECODE")
for _name in [*os.environ]:
    if _name.lower().endswith("_proxy") or _name in _UNSET:
        del os.environ[_name]

# The folders of tests are in memory where that has room: a quarter of the tests' time is waiting for a disk to sync.
# What a kill leaves is the same there, and what a power cut leaves is replayed, not tried: tests/support/crash.
_MEMORY, _ROOM = Path("/dev/shm"), 2 << 30  # bytes: several times what the folders of all tests take at a time


def _has_room(folder: Path) -> bool:
    if not os.access(folder, os.W_OK):
        return False
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize >= _ROOM


if "TMPDIR" not in os.environ and _has_room(_MEMORY):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port at which nobody answers, and that nobody else can take meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name gzip members by their argument: a member holds its second, and the workers of one run collect in two."""
    return argname if isinstance(val, bytes) and val.startswith(b"\x1f\x8b") else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every-point", action="store_true", help="the crash sweeps at all their points; minutes of work")
    parser.addoption("--outbackcdx", metavar="URL", help="a live OutbackCDX, http://HOST:PORT, in place of its double")


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """What a test has to say is printed at the end of the run; a worker of pytest-xdist has no terminal."""
    return lambda text: record_property("told", text)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    told = [str(text) for report in reports for name, text in report.user_properties if name == "told"]
    if told:
        terminalreporter.section("what tests have found")
        terminalreporter.write_line("\n".join(text.rstrip() for text in told))


def pytest_collection_finish() -> None:
    """What collecting made stays to the end: without this, each collection of garbage would look through it again."""
    gc.enable()
    gc.collect()
    gc.freeze()


def pytest_configure() -> None:
    """A shell that runs the tests in the background has them ignore SIGINT, and so would all that they start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # until all tests are collected: hardly anything of that is garbage
