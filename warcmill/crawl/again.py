"""When a URI is visited again, as its job says: after a visit that brought an answer, or none."""

from __future__ import annotations

import math

from warcmill.crawl import history, steady
from warcmill.crawl.job import Job
from warcmill.crawl.policies import recrawl
from warcmill.crawl.uri import Uri


def when(job: Job, uri: Uri, left: bytes) -> float:
    """The time of the next visit after one that ends now and has `left` this history; 0: there is none.

    A visit after the end of its crawl would not be made, so nothing waits for it.
    """
    if job.recrawl is None or uri.uri.startswith("data:"):
        return recrawl.NEVER
    now = steady.now()
    found = recrawl.again(job.recrawl, now, history.since(left, now))
    return found if found < job.expiry.ends.get(uri.crawl, math.inf) else recrawl.NEVER
