"""The dumps of a package index's job, by their markers: which generation a dump is of."""

from __future__ import annotations

from pathlib import Path

import pytest
from package_dumps import JOB, DumpedIndex

from warcmill import layout
from warcmill.markers.claim import Claim
from warcmill.model import Launch, Window
from warcmill.pypi import dumps, feed


def leave(index: DumpedIndex, launch: Launch, window: Window, generation: int, *, whole: bool = True) -> None:
    key = layout.step("dump", launch)
    facts = {**feed.serials(window), "generation": generation, "whole": whole, "lacked": [], "unreadable": []}
    index.state.publish(key, Claim(key, counts={"rows": 0, "projects": 0, "files": 0}, facts=facts))


@pytest.mark.parametrize(
    ("before", "window", "generation"),
    [
        (Window(0, 100), Window(100, 120), 3),
        (Window(0, 100), Window(0, 100), 4),
        (Window(90, 100), Window(0, 120), 4),
        (Window(0, 0), Window(0, 120), 3),
        (Window(0, 0), Window(0, 0), 3),
    ],
)
def test_a_full_crawl_begins_a_generation(tmp_path: Path, before: Window, window: Window, generation: int) -> None:
    """Not after a dump of an index that was empty: the window from 0 is then the next one."""
    index, launches = DumpedIndex(tmp_path), [Launch(JOB, f"2026112106000{at}") for at in range(3)]
    assert dumps.next_generation(window, dumps.whole_before(index.state, launches[2])) == 1
    assert dumps.newest_generation(index.state, JOB) == 0
    leave(index, launches[0], before, 3)
    leave(index, launches[1], Window(0, 400), 9, whole=False)
    assert dumps.next_generation(window, dumps.whole_before(index.state, launches[2])) == generation
    assert dumps.newest_generation(index.state, JOB) == 3
