"""The papers of a job for verbs: opened, or looked at first.

Stands alone, as verbs of several rooms save papers.
"""

from __future__ import annotations

from contextlib import closing

from commands.console.luigi_cfg import engine_for
from commands.console.show import err
from tasks.line import open_line, papers_of
from warcmill.errors import BadInput, Conflict, Unavailable
from warcmill.markers.papers import JobPapers


def open_papers(job: str) -> JobPapers:
    """The papers of a job, and its editions. Unavailable without the disks of the crawls: nothing is written beside
    them."""
    with closing(engine_for(job)) as engine:
        engine.places.require()
        return papers_of(open_line(), engine.places.job(job), job)


def look_at(job: str) -> None:
    """Make an edition of what was edited by hand. If that cannot be, a message says so: an outage of the store keeps
    nobody from looking."""
    try:
        open_papers(job).settle()
    except (BadInput, Conflict, Unavailable) as error:
        err(f"{job}: what was edited by hand, if anything, is not kept as an edition yet: {error}")
