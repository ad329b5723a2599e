"""What a launch visits URIs with, put together from its job."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warcmill.crawl.addresses import Judge
from warcmill.crawl.admission import Admission
from warcmill.crawl.books import Books
from warcmill.crawl.dns import Resolver, read_hosts
from warcmill.crawl.heard import Heard
from warcmill.crawl.hosts import Hosts
from warcmill.crawl.http import Fetcher
from warcmill.crawl.job import Job
from warcmill.crawl.manners import Manners
from warcmill.crawl.offers import Offers
from warcmill.crawl.robots_files import RobotsFiles


@dataclass(frozen=True, slots=True)
class Kit:
    """The parts that every visit shares."""

    job: Job
    books: Books
    fetcher: Fetcher
    admission: Admission
    manners: Manners
    offers: Offers
    heard: Heard

    def close(self) -> None:
        """Fetch no more: nothing is under way but what was fetched for others."""
        self.admission.robots.close()
        self.admission.hosts.close()
        self.fetcher.close()


def make_kit(job: Job, books: Books, heard: Heard, scratch: Path) -> Kit:
    """Put the parts of a launch together; long answers are kept in `scratch` until they are in a WARC."""
    judge = Judge(job.allow_private)
    fetcher = Fetcher(judge, job.limits, job.user_agent, scratch)
    hosts = Hosts(Resolver(job.resolve, read_hosts(), job.name_servers), judge, books, heard)
    offers, manners = Offers(job, heard), Manners(job.politeness, job.no_delay)
    robots = RobotsFiles(job, books, fetcher, hosts, offers, heard)
    admission = Admission(job, offers, hosts, robots, manners)
    return Kit(job, books, fetcher, admission, manners, offers, heard)
