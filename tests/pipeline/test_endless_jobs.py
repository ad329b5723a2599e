"""`endless = true`: a launch waits for more, a schedule cuts it into days, and a kill in between loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from crawls import endless_job


def test_each_day_of_an_endless_job_is_a_launch_that_carries_on_and_an_idle_one_reports_zero(tmp_path: Path) -> None:
    with endless_job.endless_job(tmp_path) as job:
        endless_job.have_days(job)


@pytest.mark.parametrize("word", endless_job.KILLED_AT)
def test_a_kill_between_the_stop_of_a_day_and_the_start_of_the_next_loses_nothing(tmp_path: Path, word: str) -> None:
    with endless_job.endless_job(tmp_path) as job:
        endless_job.lose_nothing_by_a_kill(job, word)


def test_a_day_whose_crawler_is_killed_at_its_start_is_continued(tmp_path: Path) -> None:
    with endless_job.endless_job(tmp_path) as job:
        endless_job.lose_nothing_by_a_killed_crawler(job)
