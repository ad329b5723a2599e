"""The demo of a package index: a full crawl with a kill, its dump, answers, a day of changes; again is nothing new."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

DEMO = Path(__file__).parent.parent.parent / "scripts" / "demo"


def test_the_demo_answers_before_and_after_the_day_and_may_be_repeated(tmp_path: Path) -> None:
    printed = []
    for _ in range(2):
        run = subprocess.run([DEMO, "--pypi", tmp_path / "new"], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        assert "no gap" in run.stdout
        printed.append(run.stdout)
    first, second = printed
    before, after = said(first, "provides yaml")
    assert "\npyyaml " in before
    assert "\nyamlish " not in before
    assert "\nyamlish " in after
    assert said(first, "show six --as-of")[0].count("1.18.0") == 0
    assert "1.18.0" in said(first, "show six\n")[0]
    assert len(set(re.findall(r"\d+", said(first, "lag")[0]))) == 1, "each step has come to the last serial"
    assert second.count("nothing is new") == 2
    for question in ("provides yaml", "show six\n", "lag"):
        assert said(second, question) == said(first, question)[-1:]


def said(output: str, question: str) -> list[str]:
    """What is printed below each `warcmill pypi QUESTION`."""
    parts = output.split("\n$ ")
    return [one for one in parts if f"{one}\n".startswith(f"warcmill pypi {question}")]
