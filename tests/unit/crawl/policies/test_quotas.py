"""Quotas count what was fetched and refuse the rest; a crawl ends when it is to."""

from __future__ import annotations

import pytest

from warcmill.crawl.policies.decision import Decision, Verdict
from warcmill.crawl.policies.quotas import REMEMBERED, By, Expiry, Quota, Quotas
from warcmill.crawl.uri import Uri, make
from warcmill.errors import BadConfig

NEWS = make("https://news.example/a", source="https://news.example/", crawl="daily")
OTHER = make("https://other.example/a", source="https://news.example/", crawl="daily")


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
def test_the_first_quota_that_is_reached_is_named(quota: Quota, against: str) -> None:
    quotas = Quotas([quota])
    quotas.fetched(NEWS, 1_000, 1.5)
    assert quotas.judge(NEWS) is None
    quotas.fetched(NEWS, 1_000, 1.5)
    assert why(quotas.judge(NEWS)) == against


def test_a_host_has_its_own_and_a_target_shares_it_between_hosts() -> None:
    quotas = Quotas([Quota(By.HOST, documents=2), Quota(By.TARGET, documents=3)])
    for uri in (NEWS, NEWS):
        quotas.fetched(uri, 1, 0.1)
    assert why(quotas.judge(NEWS))
    assert quotas.judge(OTHER) is None
    quotas.fetched(OTHER, 1, 0.1)
    assert why(quotas.judge(OTHER)) == "3 documents of target https://news.example/ were fetched"


def test_what_a_fetch_needs_first_is_never_refused() -> None:
    quotas = Quotas([Quota(By.HOST, documents=1)])
    quotas.fetched(NEWS, 1, 0.1)
    assert quotas.judge(make("https://news.example/robots.txt", hops="LP")) is None


def test_a_million_hosts_are_not_remembered() -> None:
    quotas = Quotas([Quota(By.HOST, documents=1)])
    first = Uri("k", "http://h/", "h0")
    for number in range(REMEMBERED + 1):
        quotas.fetched(Uri("k", "http://h/", f"h{number}"), 1, 0.0)
    assert quotas.judge(first) is None
    assert quotas.judge(Uri("k", "http://h/", f"h{REMEMBERED}"))


def test_a_quota_below_nothing_is_refused() -> None:
    with pytest.raises(BadConfig, match="quota by host"):
        Quota(By.HOST, documents=-1)


def test_a_crawl_ends_when_it_is_to_and_others_go_on() -> None:
    expiry = Expiry({"daily": 1_000.0})
    assert expiry.judge(NEWS, 999.9) is None
    assert why(expiry.judge(NEWS, 1_000.0)) == "crawl daily ended at 1970-01-01T00:16:40Z"
    assert expiry.judge(make("https://news.example/"), 2_000.0) is None
    assert why(Expiry({"": 5.0}).judge(make("https://news.example/"), 5.0)) == "the crawl ended at 1970-01-01T00:00:05Z"
