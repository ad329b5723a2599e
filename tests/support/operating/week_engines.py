"""The engines that a week can be crawled by, and archives that it is stored in: each is killed, and comes back."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from storing.remote_places import InHdfs

from servers import hdfs as hdfs_server
from servers import heritrix as heritrix_server
from servers import process
from servers.hdfs import Hdfs
from servers.heritrix import HeritrixServer as Server
from warcmill.clients.heritrix.rest import Heritrix
from warcmill.clients.heritrix.xml import JobState
from warcmill.crawl.engine import WarcmillEngine
from warcmill.crawl.launch import folders
from warcmill.layout import SENTINEL

JOB = "daily"  # the crontab's examples are of this job


class Crawler(Protocol):
    """An engine. `takes_cron_along`: it dies with the whole machine, so cron runs nothing meanwhile."""

    takes_cron_along: bool

    @property
    def jobs(self) -> Path: ...
    def kill(self) -> None: ...
    def start(self) -> None: ...
    def is_up(self) -> bool: ...

    def fetched(self) -> int | None:
        """How much the job's crawl has fetched; None when it does not run."""
        ...


class Archive(Protocol):
    """A store."""

    @property
    def url(self) -> str: ...
    def kill(self) -> None: ...
    def start(self) -> None: ...
    def is_up(self) -> bool: ...
    def files(self) -> Mapping[str, bytes]: ...


@dataclass
class OfHeritrix:
    """Heritrix, which is a server of its own."""

    server: Server
    client: Heritrix
    takes_cron_along: bool = False

    @property
    def jobs(self) -> Path:
        return self.server.jobs

    def kill(self) -> None:
        self.server.kill()

    def start(self) -> None:
        self.server.start()

    def is_up(self) -> bool:
        return process.running(self.server.folder, heritrix_server.NAME) is not None

    def fetched(self) -> int | None:
        found = self.client.job(JOB)
        return found.downloaded if found and found.state is JobState.RUNNING else None


@dataclass
class OfOurOwn:
    """The built-in crawler: a process for each launch, which nothing but cron begins again after a reboot."""

    engine: WarcmillEngine
    takes_cron_along: bool = True

    @property
    def jobs(self) -> Path:
        return self.engine.places.jobs

    def kill(self) -> None:
        found = self._holder()
        assert found
        os.kill(found.pid, signal.SIGKILL)
        deadline = time.monotonic() + 300
        while self._holder():
            assert time.monotonic() < deadline, "it does not die"
            time.sleep(0.05)

    def start(self) -> None:
        """The machine is up again: the rest is cron's."""

    def is_up(self) -> bool:
        return True

    def fetched(self) -> int | None:
        found = self.engine.progress(JOB)
        return found.done if found and found.running else None

    def _holder(self) -> folders.Holder | None:
        return folders.holder(self.engine.places.state(JOB))


@dataclass
class OfHdfs:
    """HDFS; an outage is a NameNode that is gone."""

    server: Hdfs
    name: str

    @property
    def url(self) -> str:
        return f"webhdfs://{self.server.namenode_http}/{self.name}?user={self.server.user}"

    def kill(self) -> None:
        self.server.kill_namenode()

    def start(self) -> None:
        self.server.start_namenode()
        self.server.wait_ready()

    def is_up(self) -> bool:
        return process.running(self.server.folder, hdfs_server.NAMENODE) is not None

    def files(self) -> Mapping[str, bytes]:
        return InHdfs(self.server, self.name).files()


@dataclass
class OnADisk:
    """A folder; an outage is a disk that is not mounted."""

    folder: Path

    @property
    def url(self) -> str:
        return str(self.folder)

    @property
    def _away(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}-away")

    def kill(self) -> None:
        self.folder.rename(self._away)
        self.folder.mkdir()  # the mount point

    def start(self) -> None:
        self.folder.rmdir()  # nobody has written beside the disk
        self._away.rename(self.folder)

    def is_up(self) -> bool:
        return not self._away.exists()

    def files(self) -> Mapping[str, bytes]:
        found = (path for path in self.folder.rglob("*") if path.is_file() and path.name != SENTINEL)
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in found}
