"""The leader of a launch that has workers: the job's own process. It publishes the launch, and gives them orders.

A worker that is silent, or does not do an order in time, holds nothing up: alerts.log names it, and its slice
belongs to the next stage.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress

from warcmill.crawl.frontier.crew import Crew, Order, WorkerSigns
from warcmill.crawl.job.job import Job
from warcmill.crawl.launch.folders import PAPERS, LaunchFolders
from warcmill.errors import Unavailable
from warcmill.formats.seeds import SEED_LIST
from warcmill.model import Launch

CHECKPOINT_WAIT, POLL = 120.0, 0.1  # seconds
NETWORKS = "allow_private"


class Leader:
    """Leads the workers of a launch. `alert` hears of those that are silent."""

    def __init__(self, crew: Crew, launch: Launch, files: Mapping[str, bytes], alert: Callable[[str], None]) -> None:
        self._crew, self._launch, self._files, self._alert = crew, launch, files, alert

    async def begin(self) -> None:
        """Publish the launch: workers join it."""
        await self._crew.publish(self._launch.id, self._files, is_new=True)

    async def renew(self) -> None:
        """Publish it once more: a Redis that was emptied has lost it."""
        with suppress(Unavailable):
            await self._crew.publish(self._launch.id, self._files, is_new=False)

    async def order(self, kind: Order, stage: str = "") -> None:
        """Give an order, and go on at once."""
        with suppress(Unavailable):  # who is not reached is named by `done`
            await self._crew.order(self._launch.id, kind, stage)

    async def done(self) -> None:
        """Wait until all have done the order, or were waited for."""
        waited_for, late = dict[str, WorkerSigns](), dict[str, WorkerSigns]()
        try:
            async with asyncio.timeout(CHECKPOINT_WAIT):
                while True:
                    workers = await self._crew.workers()
                    waited_for |= {one.name: one for one in workers if one.is_alive}
                    late = {one.name: one for one in workers if one.name in waited_for and not one.done}
                    if not any(one.is_alive for one in late.values()):
                        break
                    await asyncio.sleep(POLL)
        except TimeoutError:
            pass
        except Unavailable as error:
            self._alert(f"{error}. Workers were not waited for: what they have belongs to the next stage")
        for name, one in late.items():
            host = one.about.get("host", "")
            self._alert(f"worker {name} on {host} is silent: what it has belongs to the next stage")

    def close(self) -> None:
        """Close the link to Redis."""
        self._crew.close()


def files_of(folders: LaunchFolders, job: Job) -> dict[str, bytes]:
    """Return what a worker needs of a launch: its papers, and the networks that it may connect to. Of seeds.jsonl only
    the name counts."""
    papers = {name: (folders.own / name).read_bytes() for name in PAPERS if (folders.own / name).exists()}
    listed = {SEED_LIST: b""} if (folders.own / SEED_LIST).exists() else {}
    return {**papers, **listed, NETWORKS: json.dumps(job.allow_private).encode()}
