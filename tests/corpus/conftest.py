"""`--corpus DIR`: a folder of real launches, `kind-first/` and `job-first/` as engines left them."""

from __future__ import annotations

from pathlib import Path

import pytest
from launches.corpus import Corpus, copy, work

from warcmill.layout import OutputLayout


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--corpus", type=Path, required=True, help="a folder with kind-first/ or job-first/ in it")


@pytest.fixture(scope="session")
def corpora(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Corpus]:
    folder: Path = request.config.getoption("--corpus")
    found = [Corpus(tmp_path_factory.mktemp(str(one)), one) for one in OutputLayout if (folder / str(one)).is_dir()]
    assert found, f"{folder} holds neither kind-first/ nor job-first/"
    for corpus in found:
        copy(folder / str(corpus.layout), corpus.base / "engine")
        work(corpus)
    return found
