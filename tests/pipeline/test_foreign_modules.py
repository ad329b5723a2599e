"""Commands typed in a folder whose files have the names of our modules, or of libraries: none is imported."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from loopback_site import windmills

ROOT = Path(__file__).parents[2]
SITE = "http://windmills.example"
# Of ours, of the libraries, of Python's own; `warc` and `ran` are of nobody.
NAMES = ("commands", "targets", "tasks", "warcmill", "luigi", "msgspec", "rich", "lxml", "json", "signal", "sqlite3")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with such files: each leaves the file `ran` when it is imported."""
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('{name} ')\n")
    return tmp_path


def typed(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command as the shell finds it: a Python of its own."""
    env = {name: value for name, value in os.environ.items() if name not in ("LUIGI_CONFIG_PATH", "PYTHONPATH")}
    program = Path(sys.executable).with_name("warcmill")
    return subprocess.run([program, *words], cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_no_file_of_the_current_folder_is_imported(folder: Path) -> None:
    with windmills() as port:
        private = ("--allow-private", "127.0.0.0/8", "--no-delay", "--resolve", "windmills.example=127.0.0.1")
        crawled = typed(folder, "crawl", f"{SITE}:{port}/", "--limit", "3", *private)
        again = typed(folder, "pulse", "start", "windmills-example", "--again")
        typed(folder, "pulse", "stop", "windmills-example")
        rest = [typed(folder, *words) for words in (("doctor",), ("scan",), ("search", "windmill"), ("wacz",))]
    assert not (folder / "ran").exists(), (folder / "ran").read_text()
    told = "".join(one.stdout + one.stderr for one in (crawled, again, *rest))
    assert "Traceback" not in told, told
    assert "were archived" in told or "document" in crawled.stdout, told


@pytest.mark.parametrize("room", ["commands", "tasks", "warcmill"])
def test_each_python_that_we_start_leaves_the_current_folder_out(room: str) -> None:
    """`-m` puts the current folder first on the path of modules; `-P` keeps it off."""
    for path in (ROOT / room).rglob("*.py"):
        for words in re.findall(r'[^\[(]*"-[mc]"', path.read_text("utf-8")):
            assert not re.search("executable|bin/python", words) or '"-P"' in words, path
