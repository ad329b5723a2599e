"""What a scan leaves for people when its process ends: the summaries of its days, and a notice.

Luigi never runs a scan of which a step has failed, so the scan's own `run` is
not the place: this is registered when the scan begins to list, and happens
when the process ends, whatever became of the steps. It changes no exit code.
"""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date

from luigi.date_interval import DateInterval
from luigi.interface import PidLockAlreadyTakenExit

from tasks.settings import notice_channels, settings
from warcmill import errors, gaps, layout, notice, summary
from warcmill.errors import WarcmillError
from warcmill.ledger import Ledger
from warcmill.model import Json, Key, Launch
from warcmill.notice import Channels, Notice, Trouble
from warcmill.state import State
from warcmill.stores import temporary
from warcmill.summary import Scanned

log = logging.getLogger(__name__)


@dataclass
class Ending:
    """What a scan has found so far; it is told at the end of the process that made it."""

    scan: str
    dates: DateInterval
    channels: Channels
    launches: tuple[Launch, ...] = ()
    busy: set[date] = field(default_factory=set)
    unreadable: list[Trouble] = field(default_factory=list)
    starts: list[Key] = field(default_factory=list)  # steps of no launch yet, which no summary tells of
    pid: int = field(default_factory=os.getpid)

    def tell(self) -> None:
        """Rewrite the summaries, send the notice. Each error is logged, and hinders nothing else."""
        if os.getpid() != self.pid:
            return  # a worker's process: its parent tells
        found: list[Trouble] = []
        with self._noted("what its steps came to is not all told"):
            state = settings().open_state()
            with self._noted("the summaries of its days are not all written"):
                summary.rewrite(state, settings().sites(), self._scanned(), settings().wanted())
            found.extend(self._troubles(state))
        self._notify((*self.unreadable, *found))

    @contextmanager
    def _noted(self, what: str) -> Iterator[None]:
        """Log an error of this part and have the notice tell it, unless the scan itself has met the same."""
        why = ""
        try:
            yield
        except (WarcmillError, OSError) as error:
            why = str(error)
            log.error("%s: %s: %s", self.scan, what, error)
        except Exception as fault:  # a fault in Warcmill, as the notice then says
            why = errors.told(fault)
            log.exception("%s: %s", self.scan, what)
        if why and not any(one.why == why for one in self.unreadable):
            self.unreadable.append(Trouble("", "unreadable", self.scan, why))

    def _scanned(self) -> Scanned:
        return Scanned(self.dates.date_a, self.dates.date_b, self.launches, frozenset(self.busy))

    def _notify(self, troubles: tuple[Trouble, ...]) -> None:
        if not troubles or not (self.channels.mail_to or self.channels.webhook):
            return
        told = Notice(self.scan, str(self.dates), temporary.host(), troubles, f"warcmill reconcile {self.dates}")
        try:
            notice.send(self.channels, told)
            log.info("%s: a notice was sent: %s", told.scan, notice.subject(told))
        except WarcmillError as error:
            log.error("%s: the notice was not sent: %s", told.scan, error)
        except Exception:  # a fault in Warcmill, and nobody above to meet it: the process ends
            log.exception("%s: the notice was not sent", told.scan)

    def _troubles(self, state: State) -> Iterator[Trouble]:
        """What the summaries of the days say of the steps of this scan's chain."""
        yield from _of_starts(state, self.starts)
        chain = f"{self.scan.partition('.')[0]}."
        for day in sorted({launch.day for launch in self.launches}):
            document = summary.read(state, day)
            launches = document.get("launches")
            for launch in launches if isinstance(launches, list) else []:
                yield from _of_launch(launch, chain)
                if not document.get("away"):  # else the root is told, in place of each launch in it
                    yield from self._of_error(launch)

    def _of_error(self, launch: Json) -> Iterator[Trouble]:
        """A launch that the scan could list, and its summary could not look at."""
        if isinstance(launch, dict) and "error" in launch:
            name = f"{launch.get('job')}/{launch.get('launch_id')}"
            if not any(one.launch == name for one in self.unreadable):
                yield Trouble(name, "unreadable", name, str(launch["error"]))


def _of_starts(state: State, starts: list[Key]) -> Iterator[Trouble]:
    """The starts that were asked for and did not come about."""
    for key in starts:
        if not state.holds(key):
            attempts = Ledger(state, key).attempts()
            why = (
                gaps.tried(tuple(attempts))
                if attempts
                else "it was not tried: the launch before it could not be stopped"
            )
            yield Trouble(key["job"], "failed", layout.marker_name(key), why)


def _of_launch(launch: Json, chain: str) -> Iterator[Trouble]:
    if not isinstance(launch, dict):
        return
    found = launch.get("troubles")
    name = f"{launch.get('job')}/{launch.get('launch_id')}"
    for one in found if isinstance(found, list) else []:
        if isinstance(one, dict) and str(one.get("task")).startswith(chain):
            yield Trouble(name, *(str(one.get(field)) for field in ("kind", "name", "why")))


@contextmanager
def told_at_the_end(scan: str, dates: DateInterval) -> Iterator[Ending]:
    """While a scan lists: what it finds, or the error that it ends with, is told when the process ends."""
    ending = Ending(scan, dates, notice_channels())
    atexit.register(ending.tell)
    try:
        yield ending
    except PidLockAlreadyTakenExit:
        atexit.unregister(ending.tell)  # the scan that holds the lock tells
        raise
    except Exception as error:
        ending.unreadable.append(Trouble("", "unreadable", scan, errors.told(error)))
        raise
