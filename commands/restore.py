"""warcmill restore: bring back the markers of archived launches and due crawls when the state folder is lost."""

from __future__ import annotations

import argparse
from pathlib import Path

from commands.console.show import counted, out
from tasks.config.settings import settings
from tasks.line import open_line
from warcmill.backup import archive, restore
from warcmill.backup.backup import DueCrawl
from warcmill.errors import BadInput, Unavailable
from warcmill.layout import SENTINEL
from warcmill.markers import decisions, editions
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch
from warcmill.stores import Store, sentinel

SUMMARY = "bring the markers of archived launches and of due crawls back from the store"
EPILOG = """\
examples:
  warcmill restore --new-state
  warcmill restore

If the state folder is lost: --new-state creates a new one at the path in luigi.cfg,
then restores; after that run the scans. Use it only if the folder is gone for good, not
if its disk is just not mounted. A folder with anything but a state in it is refused.
Without --new-state the state folder must exist.

Decisions, such as what is hidden in an index, are brought back first, then the lists of
index versions and the editions of jobs, then all else. No index is published while a decision is missing.
Launches that state.BackupState has backed up are known again, and nothing of them is
redone. What was not archived at the last backup is done again, and finds its files
stored. Due crawls are known again, with their feeds: none is launched twice. Tokens of
the pages are in no backup: make new ones, by 'warcmill serve token add'.

Existing files are never changed: a file in the state that differs from the backup is
named and left as it is.

exit codes: 0 everything is restored, 1 a file differs, a backup is damaged, or there is
something else among the backups (each is named, the others are restored), 2 usage,
3 configuration, 4 a disk or server did not answer
"""


_AGAIN = {
    kind: f": two {kind} have one number; move this one out of the state, restore again, then {act} it again"
    for kind, act in ((decisions.FOLDER, "decide"), (editions.FOLDER, "save"))
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--new-state."""
    parser.add_argument(
        "--new-state",
        action="store_true",
        help="first create the state folder that luigi.cfg names, if the old one is lost",
    )


def run(args: argparse.Namespace) -> int:
    """Restore launch by launch; a damaged backup does not hold up the others."""
    if args.new_state:
        _make_state(Path(settings().state))
    line = open_line()
    codes = [_restore_archive(line.state, line.store)]  # first: what is hidden must be, before anything is published
    kept, strays = restore.kept(line.store)
    for stray in strays:
        out(str(stray))
    codes += [_restore_one(line.state, line.store, item) for item in kept]
    launches = sum(isinstance(item, Launch) for item in kept)
    due = counted(len(kept) - launches, "due crawl", "due crawls")
    out(f"{counted(launches, 'launch', 'launches')} and {due} have backups")
    return max(codes, default=0) or int(bool(strays))


def _make_state(folder: Path) -> None:
    """Create the state folder, or keep the one that exists: the same command resumes a restore that was stopped."""
    existed = (folder / SENTINEL).exists()
    try:
        sentinel.adopt({"state": folder})
    except OSError as error:
        raise Unavailable(f"root 'state' ({folder})", f"it cannot be created: {error.strerror or error}") from error
    out(f"state: {folder} " + ("exists already" if existed else "is created"))


def _restore_archive(state: MarkerStore, store: Store) -> int:
    """The lists of index versions, decisions and editions: nothing is printed where there never were any."""
    done = archive.restore(state.store, store)
    for path in done.different:
        out(f"state:{path} differs from the backup; left as it is{_AGAIN.get(path.partition('/')[0], '')}")
    for fault in done.damaged:
        out(str(fault))
    if done.copied:
        out(f"versions, decisions and editions: {counted(len(done.copied), 'file', 'files')} restored")
    return 1 if done.different or done.damaged else 0


def _restore_one(state: MarkerStore, store: Store, item: Launch | DueCrawl) -> int:
    backup, faults = restore.newest(store, item)
    try:
        done = restore.restore(state, store, backup) if backup else restore.Restored((), ())
    except BadInput as error:
        done = restore.Restored((), ())
        faults.append(error)
    for path in done.different:
        out(f"{item}: state:{path} differs from the backup; left as it is")
    for fault in faults:
        out(f"{item}: {fault}")
    out(f"{item}: {len(done.restored)} files restored")
    return 1 if faults or done.different else 0
