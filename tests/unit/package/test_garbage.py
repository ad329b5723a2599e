"""The search for garbage, off while very many objects are made."""

from __future__ import annotations

import gc

from warcmill.package import build


def test_it_is_off_meanwhile_and_as_before_afterwards() -> None:
    assert gc.isenabled()
    with build.without_garbage_search():
        with build.without_garbage_search():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
