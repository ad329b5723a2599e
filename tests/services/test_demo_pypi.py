"""The demo of a package index, in a folder and in S3: a full crawl with a kill, its dump, answers, a day of changes,
pip before and after, all dumped anew; again is nothing new."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

DEMO = Path(__file__).parent.parent.parent / "scripts" / "demo"


def test_the_demo_answers_before_and_after_the_day_and_may_be_repeated(tmp_path: Path) -> None:
    folder = tmp_path / "a new folder"
    first, second = demo(folder), demo(folder)
    as_it_is_to_be(first)
    assert second.count("nothing is new") == 1
    for question in ("warcmill pypi provides yaml", "warcmill pypi lag"):
        assert said(second, question) == said(first, question)[-1:]


def test_the_same_in_s3(tmp_path: Path) -> None:
    as_it_is_to_be(demo(tmp_path / "a new folder", "--s3"))
    assert not (tmp_path / "a new folder" / "store").exists()
    stored = tmp_path / "a new folder/s3/buckets/archive/packages"
    assert {path.name for path in stored.iterdir()} >= {"dumps", "warcs", "logs"}
    assert {path.name for path in (stored / "dumps/packages/v2").iterdir()} == {
        "data_dumps", "depgraph", "distributions", "modules"
    }  # fmt: skip


def demo(folder: Path, *more: str) -> str:
    """Run the demo, and return what it prints."""
    done = subprocess.run([DEMO, "--pypi", *more, folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no gap" in said(done.stdout, "warcmill reconcile")[0].splitlines()
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout


def as_it_is_to_be(first: str) -> None:
    """All that a first run has to print."""
    assert "kill -KILL" in first
    before, after = said(first, "warcmill pypi provides yaml")
    assert "\npyyaml " in before
    assert "\nyamlish " not in before
    assert "\nyamlish " in after
    assert said(first, "warcmill pypi requires --reverse idna")[0].splitlines()[1].startswith("requests 2.32.3  idna ")
    then, now = said(first, "warcmill pypi show six --as-of")
    assert ("1.18.0" in then, "1.18.0" in now) == (False, True)
    assert ("yanked" in then, "yanked" in now) == (False, True)
    assert [one.splitlines()[1] for one in said(first, "pip install")] == [
        "Would install six-1.17.0",
        "ERROR: No matching distribution found for yamlish",
        "Would install six-1.18.0",
        "Would install six-1.18.0 yamlish-1.0",
        "Would install yamlish-1.1",
    ]
    assert re.search(r"^Serials \d+ to \d+: .*mills, .*sails, .*vane.* are answered at each", first, re.MULTILINE)
    assert "generation 2 is dumped" in said(first, "warcmill pypi dump_full")[0]
    begun, ended = said(first, "warcmill pypi lag")
    assert re.search(r"^waiting +\d+ files of \d+ projects: older releases", begun, re.MULTILINE)
    assert len(set(re.findall(r"\d+", ended))) == 1, "each step has come to the last serial, and nothing waits"


def said(output: str, command: str) -> list[str]:
    """The output below each run of a command."""
    return [one for one in output.split("\n$ ") if one.startswith(command)]
