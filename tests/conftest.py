"""What every test rests on: the same examples in each run, and nothing of who runs it or on what machine."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# No run fails by luck: neither by an example that another run does not try, nor on a machine that is busy.
# `--hypothesis-profile default` looks further, with new examples each time.
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")

# What an operator's shell may hold, and what then would be tested instead of the line that a test makes.
for _name in [*os.environ]:
    if _name.lower().endswith("_proxy") or _name in ("LUIGI_CONFIG_PATH", "FORCE_COLOR", "NO_COLOR", "COLUMNS"):
        del os.environ[_name]


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port at which nobody answers, and that nobody else can take meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def pytest_configure() -> None:
    """A shell that runs the tests in the background has them ignore SIGINT, and so would all that they start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
