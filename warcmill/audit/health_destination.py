"""Check where SIPs go: the destination is there, can be written, and its watched folder is on the same disk; the
folder where they are read again is there, and can be read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from warcmill.audit.health import MOST_ENTRIES, Check, Level, check_remote, check_roots
from warcmill.errors import BadConfig, Unavailable
from warcmill.layout import INGEST, RECEIPTS, STAGING
from warcmill.model import Root
from warcmill.stores.opening import Access, is_remote, open_other

_TODO = "make it reachable, or correct [package] destination; a new one: warcmill init --adopt package"
_VERIFIED_AT: Root = "verified_at"


def check_destination(place: str, access: Access) -> Iterator[Check]:
    """Check a destination, a folder or a URL."""
    if is_remote(place):
        checks = [check_remote("destination", place, access)]
    else:
        checks = [*check_roots({"destination": Path(place)}, retire=False), *_folders(Path(place))]
    for check in checks:
        is_lost = (check.name, check.level) == ("root destination", Level.FAIL)
        yield replace(check, todo=_TODO) if is_lost else check


def check_verified_at(place: str, access: Access) -> Check:
    """Check that the folder or URL where the ingesting system puts SIPs is there, and can be read."""
    name = f"root {_VERIFIED_AT}"
    try:
        _list(place, access)
    except (Unavailable, BadConfig) as error:
        todo = "make it reachable, and let this user read it; or correct [package] verified_at"
        return Check(name, Level.FAIL, str(error), todo)
    return Check(name, Level.OK, f"{place} is there, and can be read")


def _list(place: str, access: Access) -> None:
    """List the folder, or Unavailable. A remote store lists nothing for one that is not there."""
    store = open_other(_VERIFIED_AT, place, access)
    there = store.stat("") if is_remote(place) else None
    if is_remote(place) and (there is None or there.kind == "file"):
        raise Unavailable(place, "there is no such folder")
    list(islice(store.list(""), MOST_ENTRIES))
    if not is_remote(place) and not os.access(place, os.R_OK | os.X_OK):
        raise Unavailable(place, "this user cannot read it")


def _folders(base: Path) -> Iterator[Check]:
    """The folders that are there already: a SIP is renamed from one into another, which needs one disk."""
    for folder in (base / name for name in (INGEST, STAGING, RECEIPTS)):
        if not folder.is_dir():
            continue  # made with the first SIP
        if not os.access(folder, os.W_OK | os.X_OK):
            todo = "let this user write there, too"
            yield Check("submission", Level.FAIL, f"{folder} cannot be written", todo)
        elif folder.stat().st_dev != base.stat().st_dev:
            todo = "use one disk: a SIP is renamed into the watched folder, so that it is never seen half-copied"
            yield Check("submission", Level.FAIL, f"{folder} is on another disk than {base}", todo)
