"""What a launch visits URIs with, put together from its job."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from warcmill.crawl.addresses import Judge
from warcmill.crawl.admission import Admission, JudgedSums, at_lease
from warcmill.crawl.books import Books
from warcmill.crawl.dns import Resolver, read_hosts
from warcmill.crawl.extract.workers import Readers
from warcmill.crawl.heard import Heard
from warcmill.crawl.hosts import Hosts
from warcmill.crawl.http import Fetcher
from warcmill.crawl.job import Job, Live
from warcmill.crawl.manners import Manners
from warcmill.crawl.offers import Offers
from warcmill.crawl.policies.own import Own
from warcmill.crawl.robots_files import RobotsFiles


@dataclass(frozen=True, slots=True)
class Kit:
    """The parts that every visit shares."""

    live: Live
    books: Books
    fetcher: Fetcher
    admission: Admission
    manners: Manners
    offers: Offers
    heard: Heard
    readers: Readers = field(default_factory=Readers)

    @property
    def job(self) -> Job:
        """The job as it is now."""
        return self.live.job

    def close(self) -> None:
        """Fetch no more: nothing is under way but what was fetched for others."""
        self.admission.robots.close()
        self.admission.hosts.close()
        self.fetcher.close()
        self.readers.close()


def make_kit(job: Job, books: Books, heard: Heard, scratch: Path) -> Kit:
    """Put the parts of a launch together; long answers are kept in `scratch` until they are in a WARC."""
    live = Live(job)
    judge = Judge(job.allow_private)
    fetcher = Fetcher(judge, job.limits, job.user_agent, scratch)
    hosts = Hosts(Resolver(job.resolve, read_hosts(), job.name_servers), judge, books, heard)
    others = Own(job.policies, heard.policy_failed)
    offers, manners = Offers(live, heard, others), Manners(live)
    robots = RobotsFiles(live, books, fetcher, hosts, offers, heard)
    sums = JudgedSums(books.frontier.spent)
    admission = Admission(live, at_lease(live, sums, others), sums, hosts, robots, manners)
    return Kit(live, books, fetcher, admission, manners, offers, heard)
