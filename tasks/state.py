"""The state kept safe: the markers of closed launches and of due crawls, in the store."""

from __future__ import annotations

import logging
from datetime import timedelta

import luigi

from tasks import logs
from tasks.settings import check_hardened
from tasks.step import Line, open_line
from warcmill import errors, sites
from warcmill.errors import Unsettled, WarcmillError
from warcmill.model import Launch
from warcmill.steps import backup
from warcmill.steps.backup import DueCrawl

log = logging.getLogger(__name__)


class BackupState(luigi.Task):
    """Put the markers of a day's closed launches, and of the crawls that were due on it, into the store.

    Requires: nothing; a launch that is not closed yet is left for a later run.
    Output:   none in the state; in the store state/{job}/{launch_id}/{digest}.zip, state/{job}/due.{due}/{digest}.zip.
    Changes:  nothing else.
    Re-run:   safe; markers that are kept as they are cost reading them, changed ones get a zip more.
    """

    task_namespace = "state"
    date = luigi.DateParameter(description="the UTC day of the launches' ids and of the due times, such as 2016-10-19")
    done = False

    def __init__(self, *args: object, **kwargs: object) -> None:
        check_hardened()
        logs.configure()
        super().__init__(*args, **kwargs)

    def complete(self) -> bool:
        return self.done

    def run(self) -> None:
        line = open_line()
        found = sites.find(line.sites, self.date, self.date + timedelta(days=1))
        troubles = [str(error) for error in found.away]
        kept: list[Launch | DueCrawl] = [*found.launches, *backup.due_crawls(line.state, self.date)]
        for one in kept:
            try:
                _back_up(line, one)
            except WarcmillError as error:
                log.error("%s: %s", one, error)
                troubles.append(f"{one}: {error}")
            except Exception as fault:  # a fault in Warcmill: one odd launch does not hold up the others
                log.exception("%s", one)
                troubles.append(f"{one}: {errors.told(fault)}")
        if troubles:
            raise Unsettled(f"{self.task_family} {self.date}", troubles)
        self.done = True


def _back_up(line: Line, one: Launch | DueCrawl) -> None:
    with line.state.scratch() as folder:
        if isinstance(one, DueCrawl):
            path = backup.back_up_due(line.state, line.store, one, folder)
        elif backup.is_closed(line.state, one):
            path = backup.back_up(line.state, line.store, one, folder)
        else:
            log.info("%s is not closed yet: not backed up", one)
            return
    log.info("%s: store:%s", one, path)
