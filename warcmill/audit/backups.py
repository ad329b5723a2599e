"""Archived launches, their markers and decisions that are in no backup a day later: losing the state would lose them.

Reads only.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final

from warcmill import layout
from warcmill.audit.due_crawls import JobGap
from warcmill.audit.gaps import Gap
from warcmill.audit.survey import Survey
from warcmill.backup import backup, restore
from warcmill.base import clock
from warcmill.errors import BadInput, Foreign, NotReady
from warcmill.markers import decisions
from warcmill.markers.decisions import Decision
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch
from warcmill.stores import Store

NO_BACKUP: Final = "no backup"
PATIENCE = timedelta(days=1)  # a backup runs each night
_BACK_UP = "luigi --module tasks.state state.BackupState --date-interval"


def of_launch(state: MarkerStore, store: Store, launch: Launch, now: datetime) -> tuple[Gap, ...]:
    """The gap of a launch that was archived more than a day ago and is in no backup. Unavailable when the store is."""
    try:
        archived = backup.archived_at(state, launch)
    except (BadInput, Foreign, NotReady):
        return ()  # a marker that does not fit is a gap itself
    if not is_due(archived, now) or backup.is_kept(store, launch):
        return ()
    why = "it was archived more than a day ago, and its markers are in no backup"
    if not backup.has_any(store):
        why += "; no backup of any launch ever ran: config/crontab has the line for each night"
    return (Gap(launch, "", NO_BACKUP, str(launch), why, f"{_BACK_UP} {clock.month(launch.day)}"),)


def of_markers(store: Store, seen: Survey, now: datetime) -> tuple[Gap, ...]:
    """The gap of a launch whose newest backup has not all markers that are a day old as they are; or is damaged, and
    the only one."""
    launch = seen.launch
    newest, damaged = restore.newest(store, launch)
    if newest is None and damaged:
        todo = f"move it away, then: {_BACK_UP} {clock.month(launch.day)}"
        return (Gap(launch, "", NO_BACKUP, str(launch), f"no backup of it can be read: {damaged[0]}", todo),)
    if newest is None:
        return ()  # `of_launch` names it, once the launch is archived
    kept = {one.marker: one.claim for one in newest.kept.claim.inputs}
    due = {layout.marker_path(key): one for key, one in seen.markers.items() if is_due(one.run.finished or "", now)}
    differ = sorted(path for path, one in due.items() if kept.get(path) != one.digest)
    if not differ:
        return ()
    count = "a marker of it is" if len(differ) == 1 else f"{len(differ)} of its markers are"
    why = f"{count} newer than its newest backup, and more than a day old; first {differ[0].rpartition('/')[2]}"
    return (Gap(launch, "", NO_BACKUP, str(launch), why, f"{_BACK_UP} {clock.month(launch.day)}"),)


def is_due(time: str, now: datetime) -> bool:
    """True if what is final since a time, as evidence writes it, should be in a backup; '' is not final."""
    return bool(time) and now - datetime.fromisoformat(time) > PATIENCE


def of_decisions(store: Store, made: Sequence[Decision], now: datetime) -> tuple[JobGap, ...]:
    """A gap for each decision that is not in the store a day later: it was away when the decision was made."""
    found = list[JobGap]()
    for kind, alike in groupby(made, key=lambda decision: decision.kind):
        stored = {entry.name for entry in store.list(layout.archived_path(f"{decisions.FOLDER}/{kind}"))}
        for decision in alike:
            if decision.path.rpartition("/")[2] not in stored and is_due(decision.time, now):
                why = "it was made more than a day ago, and is in the state alone"
                found.append(JobGap("", NO_BACKUP, decision.path, why, f"{_BACK_UP} {decision.time[:7]}"))
    return tuple(found)
