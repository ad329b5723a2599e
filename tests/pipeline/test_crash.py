"""Killed, out of disk, or with an error, at every call: the next run makes it good, and nothing was ever false."""

from __future__ import annotations

from collections.abc import Callable

import preloaded
import pytest


@pytest.mark.parametrize(
    "words",
    [
        ["line"],  # first, as it takes longest: another worker tries the rest meanwhile
        ["init"],
        ["close"],
        ["accept"],
        ["redo"],
        ["index"],
        ["index-late"],
        ["text"],
        ["documents"],
        ["fold"],
        ["text-fold"],
        ["sink"],
        ["solr"],
        ["retire"],
        ["package"],
        ["pypi"],
        ["submit"],
        ["import"],
        ["import-wacz"],
        ["import-line", "--kind", "kill", "--kind", "kill-half"],
        ["dead", "--kind", "kill", "--kind", "kill-half"],
    ],
    ids=lambda words: words[0],
)
def test_no_call_can_fail_so_that_something_is_lost_doubled_or_false(
    words: list[str], pytestconfig: pytest.Config, tell: Callable[[str], None]
) -> None:
    """A sample stands for all points, which are many: `scripts/test sweep` tries them.

    Of the line it has each way to go wrong; of the others, which take as long together, only kills.
    """
    is_sample = not pytestconfig.getoption("--every-point")
    kinds = [] if words == ["line"] else ["--kind", "kill"]
    more = ["--sample", *kinds] if is_sample else []
    done = preloaded.run("crash.sweep", *words, *more, env=preloaded.of_harness())
    tell(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", violations: 0" in done.stdout
    assert ("a fixed sample of" in done.stdout) == is_sample
