"""warcmill restore: bring back the markers of closed launches and due crawls, when the state folder is lost."""

from __future__ import annotations

import argparse
from pathlib import Path

from commands.printing import out
from commands.show import counted
from tasks.settings import settings
from tasks.step import open_line
from warcmill import roots
from warcmill.errors import BadInput, Unavailable
from warcmill.layout import SENTINEL
from warcmill.model import Launch
from warcmill.state import State
from warcmill.steps import restore
from warcmill.steps.backup import DueCrawl
from warcmill.stores import Store

SUMMARY = "bring the markers of closed launches and of due crawls back from the store"
EPILOG = """\
examples:
  warcmill restore --new-state
  warcmill restore

When the state folder is lost: --new-state makes a new one where luigi.cfg says,
whatever else luigi.cfg says, and restores; then run the scans. Use it when the
folder is gone for good, not when its disk is only not mounted. A folder that
holds anything but a state is refused. Without --new-state it must be there.

Launches that state.BackupState has kept are known again, and nothing of them is
redone; what was not closed at the last backup is done again, and finds its files
stored. Due crawls are known again too, with their feeds: none is launched twice.

Nothing that is there is changed: a file in the state that differs from the
backup's is named, and left.

exit codes: 0 all is there, 1 a file differs, a backup is damaged, or something
that is no backup lies between them (each is named, the others are restored),
2 usage, 3 configuration, 4 a disk or server did not answer
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--new-state."""
    parser.add_argument(
        "--new-state", action="store_true", help="first make the state folder that luigi.cfg names: the old one is lost"
    )


def run(args: argparse.Namespace) -> int:
    """Restore launch by launch; one that is damaged does not hold up the others."""
    if args.new_state:
        _make_state(Path(settings().state))
    line = open_line()
    kept, strays = restore.kept(line.store)
    for stray in strays:
        out(str(stray))
    codes = [_one(line.state, line.store, of) for of in kept]
    launches = sum(isinstance(of, Launch) for of in kept)
    due = counted(len(kept) - launches, "due crawl", "due crawls")
    out(f"{counted(launches, 'launch', 'launches')} and {due} have backups")
    return max(codes, default=0) or int(bool(strays))


def _make_state(folder: Path) -> None:
    """A new state folder, or the one that is there: a restore that was stopped is started again by the same command."""
    was_there = (folder / SENTINEL).exists()
    try:
        roots.adopt({"state": folder})
    except OSError as error:
        raise Unavailable(f"root 'state' ({folder})", f"it cannot be made: {error.strerror or error}") from error
    out(f"state: {folder} " + ("is there already" if was_there else "is made"))


def _one(state: State, store: Store, of: Launch | DueCrawl) -> int:
    found, wrong = restore.newest(store, of)
    try:
        done = restore.restore(state, store, found) if found else restore.Restored((), ())
    except BadInput as error:
        done = restore.Restored((), ())
        wrong.append(error)
    for path in done.different:
        out(f"{of}: state:{path} is there and differs from the backup; left as it is")
    for fault in wrong:
        out(f"{of}: {fault}")
    out(f"{of}: {len(done.made)} files restored")
    return 1 if wrong or done.different else 0
