"""The state kept safe: the markers of closed launches and of due crawls, in the store."""

from __future__ import annotations

import logging

import luigi
from luigi.date_interval import DateInterval

from tasks import logs
from tasks.params import DaysParameter
from tasks.settings import check_hardened
from tasks.step import Line, open_line, span
from warcmill import errors, sites
from warcmill.errors import BadInput, Unsettled, WarcmillError
from warcmill.model import Launch
from warcmill.steps import backup
from warcmill.steps.backup import DueCrawl

log = logging.getLogger(__name__)


class BackupState(luigi.Task):
    """Put the markers of the closed launches of some days, and of the crawls that were due on them, into the store.

    Requires: nothing; a launch that is not closed yet is left for a later run. The days: `date` or `date_interval`.
    Output:   none in the state; in the store state/{job}/{launch_id}/{digest}.zip, state/{job}/due.{due}/{digest}.zip.
    Changes:  nothing else.
    Re-run:   safe; markers that are kept as they are cost reading them, changed ones get a zip more.
    """

    task_namespace = "state"
    date = DaysParameter(default="", description="the UTC day of the launches' ids and of the due times: 2016-10-19")
    date_interval = DaysParameter(
        default="", description="in its place 2016, 2016-10, 2016-W43, or FIRST-END with the end not included"
    )
    done = False

    def __init__(self, *args: object, **kwargs: object) -> None:
        check_hardened()
        logs.configure()
        super().__init__(*args, **kwargs)
        if bool(self.date) == bool(self.date_interval):
            raise BadInput(str(self.task_family), "give it --date DAY or --date-interval INTERVAL, one of the two")

    def complete(self) -> bool:
        return self.done

    def run(self) -> None:
        line = open_line()
        days: DateInterval = luigi.DateIntervalParameter().parse(self.date or self.date_interval)
        log.info("%s: %s", self.task_family, span(days))
        found = sites.find(line.sites, days.date_a, days.date_b)
        due = (crawl for day in days.dates() for crawl in backup.due_crawls(line.state, day))
        kept: list[Launch | DueCrawl] = [*found.launches, *due]
        troubles = [*map(str, found.away), *(why for one in kept if (why := _trouble_with(line, one)))]
        if troubles:
            raise Unsettled(f"{self.task_family} {days}", troubles)
        self.done = True


def _trouble_with(line: Line, one: Launch | DueCrawl) -> str:
    """Back one up; why it failed, or ''. What is wrong with one does not hold up the others."""
    try:
        _back_up(line, one)
    except WarcmillError as error:
        log.error("%s: %s", one, error)
        return f"{one}: {error}"
    except Exception as fault:  # a fault in Warcmill
        log.exception("%s", one)
        return f"{one}: {errors.told(fault)}"
    return ""


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
