"""The role of `warcmill run` that keeps a group's centre up to date with a job: until a signal.

Stands alone, as `warcmill run` begins without what this imports.
"""

from __future__ import annotations

import asyncio
import signal

from commands.console.show import err
from tasks.config import engines, groups
from warcmill.clusters.updater import Updater


def run(job: str, *, again: bool) -> int:
    """Update until a signal."""
    group, journals = groups.group_of(job), groups.journals_of(job)
    crawl = engines.running_job(job)
    try:
        resolver = groups.resolver_of(job) if group.owned else None
        asyncio.run(_run(Updater(group, journals, crawl, resolver, again=again)))
    finally:
        crawl.close()
    return 0


async def _run(updater: Updater) -> None:
    for one in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(one, updater.ended.set)
    await updater.run(err)
