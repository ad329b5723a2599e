"""One more crawl gets a due time of its own, also in the second of the last one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from commands.console.single_task import free_moment
from tasks.line import OpenRoots
from warcmill import layout
from warcmill.base import clock
from warcmill.markers.claim import Claim
from warcmill.markers.state import MarkerStore
from warcmill.stores.file import FileStore


def test_a_second_that_a_crawl_was_due_at_is_not_taken_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / layout.SENTINEL).write_text('{"roots": ["state"]}')
    state = MarkerStore(FileStore("state", tmp_path))
    state.publish(layout.due_key("news", "20261121060000"), Claim(layout.due_key("news", "20261121060000")))
    seconds = iter(["20261121060000", "20261121060000", "20261121060001"])
    with monkeypatch.context() as patched:
        patched.setattr(clock, "stamp", lambda: next(seconds))
        moment = free_moment(cast("OpenRoots", SimpleNamespace(state=state)), "news")
    assert moment == "20261121060001"
