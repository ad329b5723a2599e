"""The end of a scan, for people: the summaries of its days, and a notice. Writes summaries; sends the notice.

Luigi never runs a scan of which a step has failed, so the scan's own `run` is the wrong
place. This is registered when the scan begins to list, and runs when the process ends,
however the steps ended. It changes no exit code.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date

from luigi.date_interval import DateInterval
from luigi.interface import PidLockAlreadyTakenExit
from msgspec import Struct, field
from msgspec.structs import astuple

from tasks import health
from tasks.config import register
from tasks.config.settings import notice_channels, settings
from warcmill import errors, layout
from warcmill.audit import day_summary, gaps
from warcmill.audit.day_summary import ScannedDays
from warcmill.base import clock
from warcmill.clients import notice
from warcmill.clients.notice import Channels, Notice, Trouble
from warcmill.errors import BadConfig, Busy, NotReady, WarcmillError
from warcmill.markers.attempts import Attempts
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Key, Launch
from warcmill.stores import temporary_names

log = logging.getLogger(__name__)
_NOTIFIED, _LARGEST = "status/notified.{}.json", 1 << 26


class ScanEnding(Struct):
    """The results of a scan so far; reported when the process that made it ends."""

    scan: str
    dates: DateInterval
    channels: Channels
    launches: tuple[Launch, ...] = ()
    busy: set[date] = field(default_factory=set)
    unreadable: list[Trouble] = field(default_factory=list)
    watched: list[Trouble] = field(default_factory=list)  # what the watches over scripts have found
    starts: list[Key] = field(default_factory=list)  # steps that have no launch yet, so no summary lists them
    pid: int = field(default_factory=os.getpid)

    def report(self) -> None:
        """Rewrite the summaries, then send the notice. An error is logged and does not stop the rest."""
        if os.getpid() != self.pid:
            return  # a worker's process: its parent reports
        of_steps: list[Trouble] = []
        with self._noted("not every result of its steps is reported"):
            state = settings().open_state()
            with self._noted("not every summary of its days is written"):
                day_summary.rewrite(state, settings().rootmap(), self._scanned(), settings().wanted())
            of_steps.extend(self._troubles(state))
        self._tell()
        troubles = (*self.unreadable, *self.watched, *of_steps)
        health.note_end(self.scan, self.dates, len(troubles))
        self._notify(troubles)

    def _tell(self) -> None:
        """Tell the register. An error is only logged, and `health` has the lag: the scan does not depend on it."""
        try:
            if register.place()[0]:
                from tasks.line import open_line
                from tasks.sinks import tell_register  # it imports the clients of all servers

                tell_register(open_line(), self.launches)
        except Busy:
            log.info("%s: another scan tells the register", self.scan)
        except (WarcmillError, OSError) as error:
            log.error("%s: the register: %s", self.scan, error)
        except Exception:  # a fault in Warcmill
            log.exception("%s: the register", self.scan)

    @contextmanager
    def _noted(self, what: str) -> Iterator[None]:
        """Log an error of this part and add it to the notice, unless the scan has met the same error."""
        why = ""
        try:
            yield
        except (WarcmillError, OSError) as error:
            why = str(error)
            log.error("%s: %s: %s", self.scan, what, error)
        except Exception as fault:  # a fault in Warcmill; the notice names it
            why = errors.describe(fault)
            log.exception("%s: %s", self.scan, what)
        if why and not any(trouble.why == why for trouble in self.unreadable):
            self.unreadable.append(Trouble("", "unreadable", self.scan, why))

    def _scanned(self) -> ScannedDays:
        return ScannedDays(self.dates.date_a, self.dates.date_b, self.launches, frozenset(self.busy))

    def _notify(self, troubles: tuple[Trouble, ...]) -> None:
        """Send a notice by each channel. One that does not answer has it with the next scan, and the other no second
        time."""
        for name, channel in self.channels.each.items():
            self._notify_by(channel, f"{self.scan}.{name}", troubles)

    def _notify_by(self, channel: Channels, named_by: str, troubles: tuple[Trouble, ...]) -> None:
        """Send a notice of the troubles that began and that ended since the last one. Without the state, of all."""
        known, state = _known(named_by)
        fresh = tuple(one for one in troubles if _name(one) not in set(map(_name, known)))
        now = set(map(_name, troubles))
        gone = tuple(one for one in known if _name(one) not in now and self._was_looked_at(one))
        if not fresh and not gone:
            return
        todo, link = self._todo(troubles, fresh), self._link(fresh)
        message = Notice(self.scan, str(self.dates), temporary_names.host(), fresh, todo, gone, link)
        try:
            notice.send(channel, message)
            log.info("%s: a notice was sent: %s", message.scan, notice.subject(message))
            if state:
                unseen = (one for one in known if _name(one) not in now and one not in gone)
                _keep(state, named_by, (*troubles, *unseen))
        except WarcmillError as error:
            log.error("%s: the notice was not sent: %s", message.scan, error)
        except Exception:  # a fault in Warcmill; nothing above catches it, for the process ends
            log.exception("%s: the notice was not sent", message.scan)

    def _was_looked_at(self, trouble: Trouble) -> bool:
        """True if this scan would name a trouble that is still there: all was readable, and the launch is of its
        days."""
        _, is_of_launch, launch_id = trouble.launch.rpartition("/")
        first, end = (clock.day_digits(day) for day in (self.dates.date_a, self.dates.date_b))
        return not self.unreadable and (not is_of_launch or first <= launch_id[:8] < end)

    def _todo(self, troubles: tuple[Trouble, ...], fresh: tuple[Trouble, ...]) -> str:
        """The command that shows more: of a single start that failed, that of its due time; of one job's scripts, their
        list."""
        jobs = {one.launch for one in fresh}
        if len(jobs) == 1 and all(one in self.watched for one in fresh):
            return f"warcmill script list {jobs.pop()}"
        failed = [key for key in self.starts if any(trouble.name == layout.marker_name(key) for trouble in troubles)]
        if len(failed) == 1:
            return f"warcmill why {failed[0]['job']} {failed[0]['due']}"
        return f"warcmill reconcile {self.dates}"

    def _link(self, fresh: tuple[Trouble, ...]) -> str:
        """The page of what is troubled: of the one launch or job, else the first one; '' without [serve] url."""
        from tasks.config.serve import pages_url  # only where a notice is sent

        try:
            base = pages_url()
        except BadConfig as error:
            log.error("%s: its notice has no link: %s", self.scan, error)
            return ""
        where = {one.launch for one in fresh}
        job, _, launch_id = where.pop().partition("/") if len(where) == 1 else ("", "", "")
        path = f"launches/{job}/{launch_id}" if launch_id else f"jobs/{job}" if job else ""
        return f"{base}/{path}" if base else ""

    def _troubles(self, state: MarkerStore) -> Iterator[Trouble]:
        """The troubles in the days' summaries that concern the steps of this scan's chain."""
        yield from _of_starts(state, self.starts)
        chain = f"{self.scan.partition('.')[0]}."
        for day in sorted({launch.day for launch in self.launches}):
            document = day_summary.read(state, day)
            launches = document.get("launches")
            for launch in launches if isinstance(launches, list) else []:
                yield from _of_launch(launch, chain)
                if not document.get("away"):  # else the unreachable root is reported, once for all its launches
                    yield from self._of_error(launch)

    def _of_error(self, launch: Json) -> Iterator[Trouble]:
        """A launch that the scan could list, but its summary could not read, or only its markers."""
        why = (launch.get("error") or launch.get("away")) if isinstance(launch, dict) else None
        if isinstance(launch, dict) and why:
            name = f"{launch.get('job')}/{launch.get('launch_id')}"
            if not any(trouble.launch == name for trouble in self.unreadable):
                yield Trouble(name, "unreadable", name, str(why))


def _name(trouble: Trouble) -> tuple[str, str, str]:
    """A trouble's name: its reason may change from one scan to the next."""
    return trouble.launch, trouble.kind, trouble.name


def _known(named_by: str) -> tuple[tuple[Trouble, ...], MarkerStore | None]:
    """The troubles that the notices of a scan by a channel have named and that have not ended; and the state that has
    them, None if it is away.

    A damaged list counts as empty: the next notice names all, and replaces it.
    """
    try:
        state = settings().open_state()
        data = state.store.read(_NOTIFIED.format(named_by), _LARGEST)
    except NotReady:
        return (), settings().open_state()  # no notice was sent yet
    except (WarcmillError, OSError) as error:
        log.error("%s: the troubles that were named before are unknown: %s", named_by, error)
        return (), None
    try:
        return tuple(Trouble(*map(str, one)) for one in json.loads(data)), state
    except (ValueError, TypeError) as error:
        log.error("%s: the list of troubles that were named before is damaged: %s", named_by, error)
        return (), state


def _keep(state: MarkerStore, named_by: str, troubles: Iterable[Trouble]) -> None:
    """Keep the troubles that notices have named. It is a report, and may be deleted: then each is named once more."""
    state.store.replace(_NOTIFIED.format(named_by), json.dumps([astuple(one) for one in troubles]).encode())


def _of_starts(state: MarkerStore, starts: list[Key]) -> Iterator[Trouble]:
    """The starts that were required and did not succeed."""
    for key in starts:
        if not state.holds(key):
            attempts = Attempts(state, key).earlier()
            why = (
                gaps.why_lacking(tuple(attempts))
                if attempts
                else "it was not tried: the launch before it could not be stopped"
            )
            yield Trouble(key["job"], "failed", layout.marker_name(key), why)


def _of_launch(launch: Json, chain: str) -> Iterator[Trouble]:
    if not isinstance(launch, dict):
        return
    troubles = launch.get("troubles")
    name = f"{launch.get('job')}/{launch.get('launch_id')}"
    for trouble in troubles if isinstance(troubles, list) else []:
        if isinstance(trouble, dict) and str(trouble.get("task")).startswith(chain):
            yield Trouble(name, *(str(trouble.get(field)) for field in ("kind", "name", "why")))


@contextmanager
def report_at_exit(scan: str, dates: DateInterval) -> Iterator[ScanEnding]:
    """While a scan lists: collect what it finds, or the error it ends with, and report it when the process ends."""
    ending = ScanEnding(scan, dates, notice_channels())
    atexit.register(ending.report)
    try:
        yield ending
    except PidLockAlreadyTakenExit:
        atexit.unregister(ending.report)  # the scan that holds the lock reports
        raise
    except Exception as error:
        ending.unreadable.append(Trouble("", "unreadable", scan, errors.describe(error)))
        raise
