"""An endless job whose frontier is in a real Redis: its days, and a kill in between."""

from __future__ import annotations

from pathlib import Path

import pytest
from crawls import endless_job

from servers.redis import RedisServer


def test_each_day_of_an_endless_job_carries_on_what_redis_has(redis: RedisServer, tmp_path: Path) -> None:
    with endless_job.endless_job(tmp_path, f"{redis.url}?prefix=days") as job:
        endless_job.have_days(job)


@pytest.mark.parametrize("word", endless_job.KILLED_AT)
def test_a_kill_between_two_days_loses_nothing_of_redis(redis: RedisServer, tmp_path: Path, word: str) -> None:
    with endless_job.endless_job(tmp_path, f"{redis.url}?prefix={word}") as job:
        endless_job.lose_nothing_by_a_kill(job, word)


def test_a_day_whose_crawler_is_killed_at_its_start_is_continued_in_redis(redis: RedisServer, tmp_path: Path) -> None:
    with endless_job.endless_job(tmp_path, f"{redis.url}?prefix=killed") as job:
        endless_job.lose_nothing_by_a_killed_crawler(job)
