"""The state kept safe: the markers of closed launches, in the store."""

from __future__ import annotations

import logging
from datetime import timedelta

import luigi

from tasks import logs
from tasks.settings import check_hardened
from tasks.step import Line, open_line
from warcmill import launches
from warcmill.errors import Unsettled, WarcmillError
from warcmill.model import Launch
from warcmill.steps import backup

log = logging.getLogger(__name__)


class BackupState(luigi.Task):
    """Put the markers of a day's closed launches into the store.

    Requires: nothing; a launch that is not closed yet is left for a later run.
    Output:   none in the state; state/{job}/{launch_id}/{digest}.zip in the store.
    Changes:  nothing else.
    Re-run:   safe; markers that are kept as they are cost reading them, changed ones get a zip more.
    """

    task_namespace = "state"
    date = luigi.DateParameter(description="the UTC day of the launches' ids, such as 2016-10-19")
    done = False

    def __init__(self, *args: object, **kwargs: object) -> None:
        check_hardened()
        logs.configure()
        super().__init__(*args, **kwargs)

    def complete(self) -> bool:
        return self.done

    def run(self) -> None:
        line, troubles = open_line(), []
        for launch in launches.find(line.engines, self.date, self.date + timedelta(days=1)).launches:
            try:
                _back_up(line, launch)
            except WarcmillError as error:
                log.error("%s: %s", launch, error)
                troubles.append(f"{launch}: {error}")
        if troubles:
            raise Unsettled(f"{self.task_family} {self.date}", troubles)
        self.done = True


def _back_up(line: Line, launch: Launch) -> None:
    if not backup.is_closed(line.state, launch):
        log.info("%s is not closed yet: not backed up", launch)
        return
    with line.state.scratch() as folder:
        log.info("%s: store:%s", launch, backup.back_up(line.state, line.store, launch, folder))
