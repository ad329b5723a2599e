"""`--corpus DIR`: a folder of real launches, `kind-first/` and `job-first/` as engines left them."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--corpus", type=Path, required=True, help="a folder with kind-first/ or job-first/ in it")
