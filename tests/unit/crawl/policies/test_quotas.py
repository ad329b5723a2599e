"""Quotas count what was fetched and refuse the rest; a crawl ends when it is to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from warcmill.crawl.frontier.accounts import Spending
from warcmill.crawl.frontier.database import open_database
from warcmill.crawl.policies.decision import Decision, Verdict
from warcmill.crawl.policies.quotas import By, Expiry, Quota, judge
from warcmill.crawl.uri import Uri, make
from warcmill.errors import BadConfig
from warcmill.formats.logs.crawllog import CrawlRecord

NEWS = make("https://news.example/a", source="https://news.example/", crawl="daily")
OTHER = make("https://other.example/a", source="https://news.example/", crawl="daily")


@pytest.fixture
def spending(tmp_path: Path) -> Iterator[Spending]:
    database = open_database(tmp_path / "books.sqlite")
    yield Spending(database)
    database.close()


def answer(uri: Uri, size: int, milliseconds: int, status: int = 200) -> tuple[Uri, CrawlRecord]:
    """A URI, and its line in crawl.log."""
    took = f"20261121081844000+{milliseconds}"
    line = CrawlRecord("", status, size, uri.uri, uri.hops, uri.via, "text/html", "#001", took, "", uri.source, ())
    return uri, line._replace(content_size=size)


def why(decision: Decision | None) -> str:
    assert decision is None or (decision.verdict is Verdict.REJECT and decision.policy in ("quotas", "expiry"))
    return decision.why if decision else ""


@pytest.mark.parametrize(
    ("quota", "against"),
    [
        (Quota(By.HOST, documents=2), "2 documents of host news.example were fetched"),
        (Quota(By.HOST, bytes=2_000), "2,000 bytes of host news.example were fetched"),
        (Quota(By.TARGET, seconds=3), "3 seconds of target https://news.example/ were fetched"),
        (Quota(By.CRAWL, documents=2), "2 documents of crawl daily were fetched"),
        (Quota(By.CRAWL, documents=3, bytes=2_001, seconds=4), ""),
    ],
)
def test_the_first_quota_that_is_reached_is_named(spending: Spending, quota: Quota, against: str) -> None:
    spending.add([answer(NEWS, 1_000, 1_500)])
    assert judge([quota], spending.of(NEWS), NEWS) is None
    spending.add([answer(NEWS, 1_000, 1_500)])
    assert why(judge([quota], spending.of(NEWS), NEWS)) == against


def test_a_host_has_its_own_and_a_target_shares_it_between_hosts(spending: Spending) -> None:
    quotas = [Quota(By.HOST, documents=2), Quota(By.TARGET, documents=3)]
    spending.add([answer(NEWS, 1, 100), answer(NEWS, 1, 100)])
    assert why(judge(quotas, spending.of(NEWS), NEWS))
    assert judge(quotas, spending.of(OTHER), OTHER) is None
    spending.add([answer(OTHER, 1, 100)])
    assert why(judge(quotas, spending.of(OTHER), OTHER)) == "3 documents of target https://news.example/ were fetched"


def test_what_a_fetch_needs_first_is_neither_counted_nor_refused(spending: Spending) -> None:
    robots = make("https://news.example/robots.txt", hops="LP", source=NEWS.source, crawl="daily")
    answers = [answer(robots, 1, 100), answer(NEWS, 1, 100, status=-404), answer(NEWS, 1, 100)]
    documents = [(uri, line) for uri, line in answers if line.is_document]
    assert documents == answers[2:]
    spending.add(documents)
    assert judge([Quota(By.HOST, documents=1)], spending.of(robots), robots) is None


def test_each_of_very_many_hosts_is_counted(spending: Spending) -> None:
    hosts = [Uri("k", "http://h/", f"h{number}") for number in range(60_000)]
    spending.add(answer(uri, 1, 0) for uri in hosts)
    assert why(judge([Quota(By.HOST, documents=1)], spending.of(hosts[0]), hosts[0])) == (
        "1 documents of host h0 were fetched"
    )


def test_a_crawl_whose_name_is_given_again_begins_anew(spending: Spending) -> None:
    spending.add([answer(NEWS, 1, 100)])
    spending.forget("daily")
    assert set(spending.of(NEWS)) == {By.HOST, By.TARGET}
    spending.clear()
    assert spending.of(NEWS) == {}


def test_a_quota_below_nothing_is_refused() -> None:
    with pytest.raises(BadConfig, match="quota by host"):
        Quota(By.HOST, documents=-1)


def test_a_crawl_ends_when_it_is_to_and_others_go_on() -> None:
    expiry = Expiry({"daily": 1_000.0})
    assert expiry.judge(NEWS, 999.9) is None
    assert why(expiry.judge(NEWS, 1_000.0)) == "crawl daily ended at 1970-01-01T00:16:40Z"
    assert expiry.judge(make("https://news.example/"), 2_000.0) is None
    assert why(Expiry({"": 5.0}).judge(make("https://news.example/"), 5.0)) == "the crawl ended at 1970-01-01T00:00:05Z"
