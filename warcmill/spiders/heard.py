"""The settings of a project that our fetcher hears: how often a request is retried, how long and how large an answer
may be. Pure.

A setting of the project, of its spider or of a request's `meta` comes before a key of crawl.toml, and that before
Scrapy's default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace
from scrapy import Spider
from scrapy.settings import BaseSettings

from warcmill.crawl.job.job import Job, Retries

FIRST_WAIT = 5.0
"""The seconds until a request of a spider is retried for the first time, as those who run spiders expect."""
_MAXSIZE, _TIMEOUT = "download_maxsize", "download_timeout"
_OF_META = (_MAXSIZE, _TIMEOUT, "max_retry_times", "dont_retry")
_MOST = 100  # jobs that are remembered: one has another for each part of its scope that has settings


class HeardSettings:
    """The settings of one spider, by which a job is adapted. `retries`: False if the project has switched them off."""

    def __init__(self, settings: BaseSettings, spider: Spider, *, retries: bool) -> None:
        self._settings, self._spider, self._retries = settings, spider, retries
        self._jobs: dict[int, tuple[Job, Job]] = {}

    def job(self, job: Job, meta: Mapping[str, Any]) -> Job:
        """The job for a request with this `meta`."""
        found = self._jobs.get(id(job))
        if found is None or found[0] is not job:
            if len(self._jobs) >= _MOST:
                self._jobs.clear()
            found = self._jobs[id(job)] = job, self._adapted(job, {})
        return self._adapted(job, meta) if any(key in meta for key in _OF_META) else found[1]

    def maxsize(self, meta: Mapping[str, Any]) -> int:
        """The bytes that an answer may have, by the project; 0: as many as the job lets it have."""
        own = getattr(self._spider, _MAXSIZE, None)
        usual = own if own is not None else self._own("DOWNLOAD_MAXSIZE")
        return max(0, int(meta.get(_MAXSIZE, usual) or 0))

    def loss_is_error(self, meta: Mapping[str, Any]) -> bool:
        """True if an answer that broke off does not count."""
        return bool(meta.get("download_fail_on_dataloss", self._settings.getbool("DOWNLOAD_FAIL_ON_DATALOSS")))

    def _adapted(self, job: Job, meta: Mapping[str, Any]) -> Job:
        limits, size = job.limits, self.maxsize(meta)
        if "[fetch] idle" not in job.given:  # a server that thinks for long is given up by the whole time alone
            own = getattr(self._spider, _TIMEOUT, None) or self._settings.getfloat("DOWNLOAD_TIMEOUT")
            limits = replace(limits, idle=max(limits.idle, float(meta.get(_TIMEOUT) or own)))
        if size:
            limits = replace(limits, body=min(limits.body, size))
        return replace(job, limits=limits, retries=self._retried(job, meta))

    def _retried(self, job: Job, meta: Mapping[str, Any]) -> Retries:
        retries, own = job.retries, self._own("RETRY_TIMES")
        times = retries.times if own is None else own + 1
        if (most := meta.get("max_retry_times")) is not None:
            times = int(most) + 1
        if not self._retries or meta.get("dont_retry"):
            times = 1
        statuses = retries.statuses
        if self._settings.getpriority("RETRY_HTTP_CODES") or "[retries] statuses" not in job.given:
            statuses = tuple(map(int, self._settings.getlist("RETRY_HTTP_CODES")))
        wait = retries.wait if "[retries] wait" in job.given else FIRST_WAIT
        return Retries(max(1, times), wait, statuses)

    def _own(self, name: str) -> int | None:
        """A number that the project has set."""
        return self._settings.getint(name) if self._settings.getpriority(name) else None
