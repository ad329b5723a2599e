"""Quotas count what was fetched and refuse the rest; a crawl ends when it is to."""

from __future__ import annotations

import pytest

from warcmill.crawl.policies.decision import Decision, Verdict
from warcmill.crawl.policies.quotas import REMEMBERED, By, Expiry, Quota, Spending, judge
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
    spending = Spending()
    spending.add(NEWS, 1_000, 1.5)
    assert judge([quota], spending, NEWS) is None
    spending.add(NEWS, 1_000, 1.5)
    assert why(judge([quota], spending, NEWS)) == against
    assert why(judge([quota], Spending.load(spending.dump()), NEWS)) == against


def test_a_host_has_its_own_and_a_target_shares_it_between_hosts() -> None:
    spending, quotas = Spending(), [Quota(By.HOST, documents=2), Quota(By.TARGET, documents=3)]
    for uri in (NEWS, NEWS):
        spending.add(uri, 1, 0.1)
    assert why(judge(quotas, spending, NEWS))
    assert judge(quotas, spending, OTHER) is None
    spending.add(OTHER, 1, 0.1)
    assert why(judge(quotas, spending, OTHER)) == "3 documents of target https://news.example/ were fetched"


def test_what_a_fetch_needs_first_is_never_refused() -> None:
    spending = Spending()
    spending.add(NEWS, 1, 0.1)
    assert judge([Quota(By.HOST, documents=1)], spending, make("https://news.example/robots.txt", hops="LP")) is None


def test_a_million_hosts_are_not_remembered() -> None:
    spending, quotas = Spending(), [Quota(By.HOST, documents=1)]
    for number in range(REMEMBERED):
        spending.add(Uri("k", "http://h/", f"h{number}"), 1, 0.0)
    assert judge(quotas, spending, Uri("k", "http://h/", "h0")) is None
    assert judge(quotas, spending, Uri("k", "http://h/", f"h{REMEMBERED - 1}"))


def test_a_quota_below_nothing_is_refused() -> None:
    with pytest.raises(BadConfig, match="quota by host"):
        Quota(By.HOST, documents=-1)


def test_a_crawl_ends_when_it_is_to_and_others_go_on() -> None:
    expiry = Expiry({"daily": 1_000.0})
    assert expiry.judge(NEWS, 999.9) is None
    assert why(expiry.judge(NEWS, 1_000.0)) == "crawl daily ended at 1970-01-01T00:16:40Z"
    assert expiry.judge(make("https://news.example/"), 2_000.0) is None
    assert why(Expiry({"": 5.0}).judge(make("https://news.example/"), 5.0)) == "the crawl ended at 1970-01-01T00:00:05Z"
