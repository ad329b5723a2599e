"""What README's first command does, and that doing it again does nothing."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

from loopback_site import PAGES

from warcmill.formats import crawllog

DEMO = Path(__file__).parent.parent.parent / "scripts" / "demo.py"


def demo(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, DEMO, folder], capture_output=True, text=True, check=False)


def files(folder: Path) -> dict[str, bytes]:
    found = [path for path in folder.rglob("*") if path.is_file() and ".locks" not in path.parts]
    return {str(path): path.read_bytes() for path in found if not path.name.startswith("status.")}  # days' summaries


def pages(folder: Path) -> Counter[int]:
    """The pages of the site that crawl logs have, each with how often."""
    found: Counter[int] = Counter()
    for path in (folder / "output/logs/site").rglob("crawl.log*"):
        if path.suffix != ".orphan":
            with path.open("rb") as stream:
                uris = [line.uri for line in crawllog.lines(stream) if isinstance(line, crawllog.CrawlRecord)]
            ends = [uri.rpartition("/")[2] for uri in uris if uri.startswith("http:")]
            found.update(int(end or 0) for end in ends if end != "robots.txt")
    return found


def test_the_demo_reconciles_and_a_second_run_does_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "a new folder"
    first = demo(folder)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "no gap" in first.stdout
    assert "Chapter 1. Getting started The Right Way" in first.stdout, "the search has found a page"
    assert "kill -KILL" in first.stdout
    assert "warning" not in (first.stdout + first.stderr).lower()
    before = files(folder)
    stored = [path for path in before if "/store/" in path]
    assert len([path for path in stored if "weekly/" in path]) == 4  # two WARCs, the zip, the SIP
    sips = [path for path in before if "/preservation/" in path and path.endswith(".tar")]
    assert {before[sip] for sip in sips} == {before[path] for path in stored if path.endswith("/final.tar")}
    assert len(sips) == 3  # of the launch that was killed, of the one that continued it, of the bundled one
    assert pages(folder) == Counter(range(PAGES))
    markers = {Path(path).name.partition(".weekly")[0] for path in before}
    assert {"05.packaged", "06.submitted", "07.verified", "08.indexed"} <= markers
    second = demo(folder)
    assert second.returncode == 0
    assert "begins" not in second.stderr
    assert files(folder) == before


def test_the_demo_takes_one_folder(tmp_path: Path) -> None:
    wrong = subprocess.run([sys.executable, DEMO, tmp_path, "more"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "usage: scripts/demo [--engine heritrix] [FOLDER]" in wrong.stderr
