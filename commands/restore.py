"""warcmill restore: bring back the markers of closed launches, when the state folder is lost."""

from __future__ import annotations

import argparse

from commands.show import printable
from tasks.step import open_line
from warcmill.errors import BadInput
from warcmill.model import Launch
from warcmill.state import State
from warcmill.steps import restore
from warcmill.stores import Store

SUMMARY = "bring closed launches' markers back from the store"
EPILOG = """\
examples:
  warcmill restore

When the state folder is lost: make a new one ('warcmill init' with the same
folders writes its .warcmill.json), run this, then the scans. Launches that
state.BackupState has kept are known again, and nothing of them is redone; what
was not closed at the last backup is done again, and finds its files stored.

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
    codes = [_launch(line.state, line.store, launch) for launch in restore.launches(line.store)]
    print(f"{len(codes)} launches have backups")
    return max(codes, default=0)


def _launch(state: State, store: Store, launch: Launch) -> int:
    found, wrong = restore.newest(store, launch)
    try:
        done = restore.restore(state, store, found) if found else restore.Restored((), ())
    except BadInput as error:
        done = restore.Restored((), ())
        wrong.append(error)
    for path in done.different:
        print(f"{launch}: state:{printable(path)} is there and differs from the backup; left as it is")
    for fault in wrong:
        print(f"{launch}: {printable(str(fault))}")
    print(f"{launch}: {len(done.made)} files restored")
    return 1 if wrong or done.different else 0
