"""A trial of a job: some of its pages, asked for as its launch would ask, in a folder beside its launches.

    {folder}/crawl/{output,jobs}/    the roots of the trial, with a frontier, books and WARCs of its own

Its papers are the job's, with smaller limits, so contact, pace, robots.txt and inside addresses are as in a launch. The
parts of pages are not asked for: at the pace of a host they would take all of its time. A page that is rendered has
them, as its browser asks. Writes to that folder alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warcmill.crawl import process
from warcmill.crawl.extract.links import LINK, REDIRECT, SUBMIT, Link
from warcmill.crawl.fetch.limits import FetchLimits
from warcmill.crawl.frontier import Lease
from warcmill.crawl.job import file, form
from warcmill.crawl.job.job import Audience, End, Fetched
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.crawl.launch.folders import Places
from warcmill.crawl.uri import Status
from warcmill.crawl.visit.spider import Spider
from warcmill.crawl.visit.visit import Visit
from warcmill.errors import BadConfig
from warcmill.layout import OutputLayout

CRAWL = "crawl"
MOST = 50  # pages
SECONDS, BYTES = 600, 200 << 20
_HOPS = frozenset([LINK, REDIRECT, SUBMIT])


def places(folder: Path) -> Places:
    """The roots of a trial in its folder."""
    return Places(folder / CRAWL / "output", folder / CRAWL / "jobs", OutputLayout.KIND_FIRST)


def papers(files: Mapping[str, bytes], name: str, pages: int) -> dict[str, bytes]:
    """The papers of a trial of so many pages, from those of its job. BadConfig for a job that begins without seeds."""
    job = file.parse(files, name)
    if job.service:
        raise BadConfig(f"job {name}", f"it crawls what its {job.service} ask for, so there are no pages to try")
    edits: dict[tuple[str, str], Any] = {
        ("", "endless"): False, ("", "recrawl"): None, ("", "scope_log"): True,
        ("limits", "bytes"): min(job.ceilings.bytes or BYTES, BYTES),
        ("limits", "documents"): min(job.ceilings.documents or pages, pages),
        ("limits", "seconds"): min(job.ceilings.seconds or SECONDS, SECONDS),
    }  # fmt: skip
    if job.renders:
        edits["render", "screenshot"] = True
    written = files[CONFIGURATION].decode("utf-8-sig")
    return {**files, CONFIGURATION: form.edited(written, edits).encode()}


def crawl(places: Places, name: str, networks: Sequence[str]) -> End:
    """Crawl the trial that is in its folder of jobs, to its end or until a signal ends it. `networks`: inside addresses
    that the engine of the job lets in. An error of a disk is Unavailable."""
    return asyncio.run(process.crawl(places, name, "", networks, spider=TrialLoop))


class TrialLoop(Spider):
    """A `Spider` whose ceiling of documents is one of pages: a redirect does not count, nor what the browser of a page
    asks for. It never begins more visits than pages are left."""

    pages = 0

    def _visit(self, lease: Lease, thread: int) -> Visit:
        visit = super()._visit(lease, thread)
        visit.audience = _PAGES_ALONE
        return visit

    def _ended(self, thread: int, task: asyncio.Task[None]) -> None:
        lease = self._visits.get(task)
        super()._ended(thread, task)
        if lease and lease.uri.status is Status.PARSED and not 300 <= (lease.uri.http_status or 0) < 400:
            self.pages += 1

    def _fetched(self) -> Fetched:
        return super()._fetched()._replace(documents=self.pages)


class _PagesAlone(Audience):
    """Who asks for pages, and for none of their parts."""

    def followed(self, answer: object, links: Sequence[Link], limits: FetchLimits) -> Sequence[Link]:  # noqa: ARG002
        return [link for link in links if link.hop in _HOPS]


_PAGES_ALONE = _PagesAlone()
