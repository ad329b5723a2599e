"""The job of a request has the retries and limits of the project, else those of crawl.toml, else Scrapy's."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Spider
from scrapy.settings import Settings

from warcmill.crawl.fetch.limits import FetchLimits
from warcmill.crawl.job.job import Job, Live, Retries
from warcmill.spiders.heard import FIRST_WAIT, HeardSettings

SCRAPY_CODES = (500, 502, 503, 504, 522, 524, 408, 429)
PLAIN = Job("mills", ())
SET = Job(
    "mills", (), retries=Retries(5, 60.0, (503,)), limits=FetchLimits(idle=7.0, body=1000),
    given=frozenset(["[retries] times", "[retries] wait", "[retries] statuses", "[fetch] idle", "[fetch] body"]),
)  # fmt: skip


class Mills(Spider):
    name = "mills"


def heard(settings: dict[str, Any], *, retries: bool = True) -> HeardSettings:
    return HeardSettings(Settings(settings), Mills(), retries=retries)


@pytest.mark.parametrize(
    ("job", "settings", "meta", "wanted"),
    [
        (PLAIN, {}, {}, Retries(3, FIRST_WAIT, SCRAPY_CODES)),
        (SET, {}, {}, Retries(5, 60.0, (503,))),
        (SET, {"RETRY_TIMES": 1, "RETRY_HTTP_CODES": [403, "500"]}, {}, Retries(2, 60.0, (403, 500))),
        (PLAIN, {"RETRY_TIMES": 1}, {"max_retry_times": 4}, Retries(5, FIRST_WAIT, SCRAPY_CODES)),
        (PLAIN, {}, {"dont_retry": True}, Retries(1, FIRST_WAIT, SCRAPY_CODES)),
    ],
)
def test_the_most_particular_setting_of_retries_counts(
    job: Job, settings: dict[str, Any], meta: dict[str, Any], wanted: Retries
) -> None:
    assert heard(settings).job(job, meta).retries == wanted


def test_an_answer_that_broke_off_counts_where_its_request_says_so() -> None:
    assert heard({}).loss_is_error({})
    assert not heard({}).loss_is_error({"download_fail_on_dataloss": False})
    assert not heard({"DOWNLOAD_FAIL_ON_DATALOSS": False}).loss_is_error({})


def test_a_project_without_retries_has_none() -> None:
    assert heard({}, retries=False).job(SET, {"max_retry_times": 3}).retries.times == 1


@pytest.mark.parametrize(
    ("job", "settings", "meta", "wanted"),
    [
        (PLAIN, {}, {}, (180.0, 1 << 30)),
        (PLAIN, {"DOWNLOAD_TIMEOUT": 40, "DOWNLOAD_MAXSIZE": 5000}, {}, (40.0, 5000)),
        (PLAIN, {"DOWNLOAD_TIMEOUT": 40}, {"download_timeout": 90, "download_maxsize": 70}, (90.0, 70)),
        (PLAIN, {"DOWNLOAD_TIMEOUT": 2}, {"download_maxsize": 0}, (20.0, 1 << 30)),
        (SET, {"DOWNLOAD_MAXSIZE": 5000}, {}, (7.0, 1000)),
    ],
)
def test_limits_are_those_of_the_project_within_those_of_the_job(
    job: Job, settings: dict[str, Any], meta: dict[str, Any], wanted: tuple[float, int]
) -> None:
    limits = heard(settings).job(job, meta).limits
    assert (limits.idle, limits.body) == wanted


def test_an_adapted_job_is_made_once_for_all_plain_requests() -> None:
    settings = heard({})
    assert settings.job(PLAIN, {"depth": 1}) is settings.job(PLAIN, {})
    assert settings.job(SET, {}) is not settings.job(PLAIN, {})


def test_a_robots_txt_is_retried_after_the_wait_that_crawl_toml_sets_or_that_of_spiders() -> None:
    for job, wait in ((PLAIN, FIRST_WAIT), (SET, 60.0)):
        live = Live(job)
        live.wait = FIRST_WAIT
        assert (live.retries.wait, live.retries.times) == (wait, job.retries.times)
