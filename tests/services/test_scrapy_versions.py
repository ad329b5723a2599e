"""Spiders on the minors of Scrapy before that of the lock: each as its plain Scrapy has them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from requesting.scrapy_runs import (
    HERE,
    PROJECTS,
    SPIDERS,
    by_plain_scrapy,
    items,
    line_for,
    pages,
    responses,
    run_spider,
    site,
)
from sites import several_hosts

from servers import packages

JOB = "spiders"


@pytest.mark.parametrize("version", ["2.17", "2.18"])
def test_a_project_yields_the_same_on_an_older_minor(version: str, tmp_path: Path) -> None:
    libraries = packages.libraries(f"scrapy-{version}")
    words = [sys.executable, "-c", "import scrapy; print(scrapy.__version__)"]
    env = {"PYTHONPATH": str(libraries)}
    assert subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout.startswith(version)
    with several_hosts.serve(site()) as port:
        for spider, (what, path) in PROJECTS.items():
            url, folder = f"http://{HERE}:{port}{path}", tmp_path / spider
            folder.mkdir()
            wanted = by_plain_scrapy(spider, url, folder, libraries)
            line = line_for(folder / "line", JOB)
            words = [str(SPIDERS / what), "-a", f"url={url}", "--job", JOB]
            done = run_spider(line, *words, folder=folder / "ours", libraries=libraries)
            assert done.returncode == 0, done.stdout + done.stderr
            assert items(folder / "ours") == wanted != []
            answered = sum(number for (_, status), number in pages(line, JOB).items() if status > 0)
            assert sum(responses(line, JOB).values()) == answered
