"""warcmill restore: bring back the markers of closed launches and due crawls, when the state folder is lost."""

from __future__ import annotations

import argparse

from commands.show import printable
from tasks.step import open_line
from warcmill.errors import BadInput
from warcmill.model import Launch
from warcmill.state import State
from warcmill.steps import restore
from warcmill.steps.backup import DueCrawl
from warcmill.stores import Store

SUMMARY = "bring the markers of closed launches and of due crawls back from the store"
EPILOG = """\
examples:
  warcmill restore

When the state folder is lost: make a new one ('warcmill init' with the same
folders writes its .warcmill.json), run this, then the scans. Launches that
state.BackupState has kept are known again, and nothing of them is redone; what
was not closed at the last backup is done again, and finds its files stored.
Due crawls are known again too, with their feeds: none is launched twice.

Nothing that is there is changed: a file in the state that differs from the
backup's is named, and left.

exit codes: 0 all is there, 1 a file differs or a backup is damaged (each is
named, the others are restored), 2 usage, 3 configuration, 4 a disk or server
did not answer
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(_args: argparse.Namespace) -> int:
    """Restore launch by launch; one that is damaged does not hold up the others."""
    line = open_line()
    kept = list(restore.kept(line.store))
    codes = [_one(line.state, line.store, of) for of in kept]
    launches = sum(isinstance(of, Launch) for of in kept)
    print(f"{launches} launches and {len(kept) - launches} due crawls have backups")
    return max(codes, default=0)


def _one(state: State, store: Store, of: Launch | DueCrawl) -> int:
    found, wrong = restore.newest(store, of)
    try:
        done = restore.restore(state, store, found) if found else restore.Restored((), ())
    except BadInput as error:
        done = restore.Restored((), ())
        wrong.append(error)
    for path in done.different:
        print(f"{of}: state:{printable(path)} is there and differs from the backup; left as it is")
    for fault in wrong:
        print(f"{of}: {printable(str(fault))}")
    print(f"{of}: {len(done.made)} files restored")
    return 1 if wrong or done.different else 0
