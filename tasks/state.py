"""Back up the state: put the markers of archived launches and of due crawls into the store."""

from __future__ import annotations

import logging

import luigi
from luigi.date_interval import DateInterval

from tasks import health, logs
from tasks.config.settings import check_hardened
from tasks.line import OpenRoots, open_line
from tasks.params import DaysParameter
from tasks.step import span
from warcmill import errors
from warcmill.backup import archive, backup
from warcmill.backup.backup import DueCrawl
from warcmill.errors import BadInput, Unsettled, WarcmillError
from warcmill.launches import discovery
from warcmill.model import Launch

log = logging.getLogger(__name__)


class BackupState(luigi.Task):
    """Put the markers of the archived launches of some days, and of the crawls due on those days, into the store.

    And, whatever the days, the lists of index versions, and what is hidden in an index.

    Requires: nothing; a launch that is not archived yet is left for a later run. Days: `date` or `date_interval`.
    Output:   none in the state; in the store state/{job}/{launch_id}/{digest}.zip, state/{job}/due.{due}/{digest}.zip,
              and state/_archive/.
    Changes:  nothing else.
    Re-run:   safe; unchanged markers are only read, changed ones add one more zip.
    """

    task_namespace = "state"
    date = DaysParameter(default="", description="the UTC day of the launches' ids and of the due times: 2016-10-19")
    date_interval = DaysParameter(
        default="", description="instead of date: 2016, 2016-10, 2016-W43, or FIRST-END with the end not included"
    )
    done = False

    def __init__(self, *args: object, **kwargs: object) -> None:
        check_hardened()
        logs.configure()
        super().__init__(*args, **kwargs)
        if bool(self.date) == bool(self.date_interval):
            raise BadInput(str(self.task_family), "give either --date DAY or --date-interval INTERVAL")

    def complete(self) -> bool:
        return self.done

    def run(self) -> None:
        line = open_line()
        days: DateInterval = luigi.DateIntervalParameter().parse(self.date or self.date_interval)
        log.info("%s: %s", self.task_family, span(days))
        discovered = discovery.find(line.rootmap, days.date_a, days.date_b)
        due = (crawl for day in days.dates() for crawl in backup.due_crawls(line.state, day))
        kept: list[Launch | DueCrawl] = [*discovered.launches, *due]
        troubles = [*map(str, discovered.unreachable), *(why for item in kept if (why := _trouble_with(line, item)))]
        troubles += _archive(line)
        if troubles:
            raise Unsettled(f"{self.task_family} {days}", troubles)
        health.note_end(str(self.task_family), days)
        self.done = True


def _archive(line: OpenRoots) -> list[str]:
    """Back up what is of no launch: lists of index versions, decisions; return what went wrong."""
    done = archive.back_up(line.state.store, line.store)
    for path in done.copied:
        log.info("store:%s", path)
    differs = (f"state:{path} is not what store:{archive.FOLDER}/{path} is" for path in done.different)
    troubles = [*differs, *map(str, done.damaged)]
    for trouble in troubles:
        log.error("%s", trouble)
    return troubles


def _trouble_with(line: OpenRoots, item: Launch | DueCrawl) -> str:
    """Back up one launch or due crawl; return why it failed, or ''. A failure does not hold up the others."""
    try:
        _back_up(line, item)
    except WarcmillError as error:
        log.error("%s: %s", item, error)
        return f"{item}: {error}"
    except Exception as fault:  # a fault in Warcmill
        log.exception("%s", item)
        return f"{item}: {errors.describe(fault)}"
    return ""


def _back_up(line: OpenRoots, item: Launch | DueCrawl) -> None:
    with line.state.scratch() as folder:
        if isinstance(item, DueCrawl):
            path = backup.back_up_due(line.state, line.store, item, folder)
        elif backup.is_archived(line.state, item):
            path = backup.back_up(line.state, line.store, item, folder)
        else:
            log.info("%s is not archived yet: not backed up", item)
            return
    log.info("%s: store:%s", item, path)
