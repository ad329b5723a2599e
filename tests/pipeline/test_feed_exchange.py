"""`warcmill feed import` and `feed export`: a job of another crawler becomes one of ours, and goes back."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import preloaded
import pytest

DATA = Path(__file__).resolve().parents[1] / "data" / "brozzler"


def feed(base: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LUIGI_CONFIG_PATH": str(base / "luigi.cfg")}
    return preloaded.run("commands.main", "feed", *words, env=environment)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    assert preloaded.run("commands.main", "init", str(tmp_path / "line"), env=dict(os.environ)).returncode == 0
    return tmp_path / "line"


def test_there_and_back(base: Path) -> None:
    file = DATA / "all.yaml"
    done = feed(base, "import", "--from", "brozzler", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "all-of-it: 4 seeds, edition 1\nnext: warcmill pulse start all-of-it\n"
    assert "jobs=all-of-it\n" in (base / "luigi.cfg").read_text()
    back = feed(base, "export", "--to", "brozzler", "all-of-it")
    assert (back.returncode, back.stdout, back.stderr) == (0, file.read_text("utf-8"), "")
    again = feed(base, "import", "--from", "brozzler", str(file))
    assert (again.returncode, again.stdout[:31]) == (0, "all-of-it: 4 seeds, edition 1\nn")


def test_a_newer_file_replaces_an_import_but_not_an_edit(base: Path, tmp_path: Path) -> None:
    newer = tmp_path / "newer.yaml"
    newer.write_bytes((DATA / "all.yaml").read_bytes() + b"- url: https://five.example.org/\n")
    for file, edition in ((DATA / "all.yaml", 1), (newer, 2)):
        assert f"edition {edition}\n" in feed(base, "import", "--from", "brozzler", str(file)).stdout
    assert (base / "jobs/all-of-it/seeds.txt").read_text().endswith("https://five.example.org/\n")
    with (base / "jobs/all-of-it/seeds.txt").open("a") as seeds:
        seeds.write("https://six.example.org/\n")
    refused = feed(base, "import", "--from", "brozzler", str(newer))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "it was edited, or made otherwise; give the file another id" in refused.stderr
    assert "https://six.example.org/\n" in feed(base, "export", "--to", "brozzler", "all-of-it").stdout


def test_what_cannot_be_kept_is_listed_and_nothing_is_written(base: Path) -> None:
    words = ("import", "--from", "brozzler", str(DATA / "lossy.yaml"))
    refused = feed(base, *words)
    assert (refused.returncode, refused.stdout) == (1, "")
    lines = refused.stderr.splitlines()
    assert len(lines) == 18
    assert all(line.startswith("not kept: ") for line in lines[:-1])
    assert lines[-1] == "nothing was written; with --lossy the rest is"
    assert not (base / "jobs/lossy").exists()
    assert "lossy" not in (base / "luigi.cfg").read_text()
    done = feed(base, *words, "--lossy")
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 17)
    with (base / "jobs/lossy/crawl.toml").open("r+") as toml:
        text = toml.read()
        toml.seek(0)
        toml.write(f"workers = 3\n{text}")
    assert feed(base, "export", "--to", "brozzler", "lossy").returncode == 1
    assert feed(base, "export", "--to", "brozzler", "lossy", "--lossy").stdout.startswith("id: lossy\n")


def test_a_job_of_another_engine_and_one_that_is_missing(base: Path) -> None:
    with (base / "luigi.cfg").open("a") as config:
        config.write("\n[engine.other]\nkind=heritrix\nurl=https://127.0.0.1:1/engine\njobs=daily\n")
    assert feed(base, "export", "--to", "brozzler", "daily").returncode == 3
    missing = feed(base, "export", "--to", "brozzler", "nothing")
    assert (missing.returncode, missing.stdout) == (3, "")
    assert "job nothing has none" in missing.stderr
