"""The built-in crawler as an `Engine` of the line. There is no daemon: `start` leaves a process that crawls one launch.

A job runs while its lock is held. Its control socket has its state, its job.log has what happened before.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import cast

from warcmill import __version__
from warcmill.base import disk
from warcmill.base.escapes import printable
from warcmill.clients.engine import CrawlProgress, JobStatus
from warcmill.crawl import durable
from warcmill.crawl.control import control
from warcmill.crawl.frontier.link import examined
from warcmill.crawl.job import file
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.crawl.launch import checkpoint as continues
from warcmill.crawl.launch import checkpoint as restore
from warcmill.crawl.launch import folders as launch_folders
from warcmill.crawl.launch import folders as lock
from warcmill.crawl.launch import job_log
from warcmill.crawl.launch.folders import CHECKPOINTS, CONTROL, OWNED, Places
from warcmill.crawl.launch.job_log import Word
from warcmill.crawl.launch.repair import put_in_order
from warcmill.errors import BadConfig, BadInput, Conflict, NotReady, Unavailable
from warcmill.formats.seeds import SEED_LIST
from warcmill.model import Json, Launch, parse_job

log = logging.getLogger(__name__)
POLL = 0.05  # seconds
START_SECONDS, STOP_SECONDS = 120.0, 600.0
CHECKPOINT_SECONDS = 600.0
OUTPUT = "process.log"
PROCESS = "warcmill.crawl.process"
TAIL = 2000  # characters of what a process printed


class WarcmillEngine:
    """An `Engine` over the jobs of some roots. `allow_private`: networks that each of its jobs may dial, too.
    `processes`: the module that crawls a job of a service, and words for it, by the service's name."""

    kind = "warcmill"

    def __init__(
        self,
        places: Places,
        allow_private: Sequence[str] = (),
        processes: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        self.places, self.allow_private, self._processes = places, tuple(allow_private), processes

    def close(self) -> None:
        """Nothing is kept open."""

    def about(self) -> str:
        """Its version, its number of jobs, and the Redis of their frontiers. BadConfig for one that does not fit."""
        self.places.require()
        jobs = [path for path in self.places.jobs.iterdir() if (path / CONFIGURATION).exists()]
        where = f", frontiers in {examined(self.places.frontier)}" if self.places.frontier else ""
        return f"Warcmill's crawler {__version__}, {len(jobs)} jobs{where}"

    def look(self, job: str) -> JobStatus:
        """The job's current status."""
        last = job_log.last(self.places.job(parse_job(job)))
        holder = lock.holder(self.places.state(job))
        if holder and holder.launch:
            words = self._state(job).get("state", "it does not answer yet")
            return JobStatus(True, holder.launch, str(words), self._continues(job, holder.launch))
        if holder:
            return JobStatus(True, last.launch if last else "", "it is being started, or put in order")
        if last is None:
            return JobStatus(False, "", "it was never launched")
        if last.ended:
            return JobStatus(False, last.launch, last.word)
        code, said = self._reason(job, last)
        why = f" ({said})" if said else ""
        words = f"its process died in {last.word}{why}; the next start or stop puts it in order"
        return JobStatus(False, last.launch, words, died=True, code=code)

    def progress(self, job: str) -> CrawlProgress | None:
        """The job's figures; None if there is no such job."""
        if not (self.places.job(parse_job(job)) / CONFIGURATION).exists():
            return None
        seen, state = self.look(job), self._state(job)
        done, queued, size, seconds = (_number(state, name) for name in ("done", "queued", "bytes", "seconds"))
        per_minute, kib = done * 60 // max(1, seconds), size // 1024 // max(1, seconds)
        alerts = self._alerts(job, seen.launch_id)
        return CrawlProgress(seen.running, seen.launch_id, seen.words, done, queued, per_minute, kib, alerts)

    def configure(self, job: str, files: Mapping[str, bytes], seed_list: Path | None = None) -> None:
        """Write the files of a job, and copy a list of further seeds; BadConfig if it could not be crawled by them."""
        parsed = file.parse({**files, **({SEED_LIST: b""} if seed_list else {})}, parse_job(job))
        self.check_service(job, parsed.service)
        self.places.require()
        durable.make_folder(self.places.job(job))
        if seed_list:
            durable.copy(seed_list, self.places.job(job) / SEED_LIST)
        else:
            (self.places.job(job) / SEED_LIST).unlink(missing_ok=True)
        for name in launch_folders.PAPERS:
            path = self.places.job(job) / name
            if name in files:
                durable.replace(path, files[name])
            else:
                path.unlink(missing_ok=True)

    def check_frontier(self, job: str) -> None:
        """BadConfig for a job whose frontier cannot be in the Redis that this engine names."""
        if self.places.frontier:
            self.check_service(job, file.described(file.files_in(self.places.job(parse_job(job))), job).service)

    def check_service(self, job: str, service: str) -> None:
        """BadConfig for a service of a job whose frontier cannot be in the Redis that this engine names."""
        if service == file.SCRIPTS and self.places.frontier:
            why = (
                "a job of scripts runs on one machine, and has a frontier of its own; its engine names one in Redis."
                " List it in the jobs of an engine without the key frontier"
            )
            raise BadConfig(f"job {job}", why)

    def resumable(self, job: str, checkpoints: Sequence[str]) -> str:
        """The first of these checkpoints that is whole; '' if there is none. Those passed over are logged."""
        for name in checkpoints:
            try:
                self._refuse_another_scope(job, name)
            except (BadInput, NotReady, Conflict) as error:
                log.warning("%s; this checkpoint is passed over", error)
            else:
                return name
        return ""

    def _refuse_another_scope(self, job: str, checkpoint: str) -> None:
        """Conflict if a job has other seeds or another scope than a checkpoint: what waits there is not asked for any
        more. NotReady, BadInput where it is not whole."""
        folder = self.places.job(parse_job(job))
        if unlike := restore.unlike(restore.named(folder / CHECKPOINTS, job, checkpoint), folder):
            raise Conflict(f"{job} {checkpoint}", f"it cannot be continued: it has {unlike} than the job has now")

    def checkpoints(self, job: str) -> tuple[int, int]:
        """The number of the job's checkpoints, and their size in bytes: nothing deletes them."""
        folders = list(restore.folders(self.places.job(parse_job(job)) / CHECKPOINTS))
        return len(folders), sum(path.stat().st_size for folder in folders for path in folder.iterdir())

    def follows(self, job: str) -> str:
        """The job's newest launch, if it is endless, or its files have URIs visited again: what waits there keeps its
        time. Else ''."""
        found = file.described(file.files_in(self.places.job(parse_job(job))), job)
        if not (found.endless or found.visits_again):
            return ""
        last = job_log.last(self.places.job(job))
        return last.launch if last and self.places.database(job).exists() else ""

    def is_endless(self, job: str) -> bool:
        """True if its files say `endless`."""
        return file.described(file.files_in(self.places.job(parse_job(job))), job).endless

    def start(self, job: str, checkpoint: str = "", follows: str = "") -> str:
        """Launch the job: fresh, from a checkpoint, or with what waits in its newest launch. Wait until it crawls, and
        return the launch id.

        Conflict if it runs already, has another newest launch, or other seeds or another scope than the checkpoint;
        BadConfig, with nothing done, if its files have a fault.
        """
        service = file.read(self.places.job(parse_job(job)), job).service
        self.check_service(job, service)
        seen = self.look(job)
        if seen.running:
            raise Conflict(job, f"launch {seen.launch_id} is running ({seen.words})")
        if follows and follows != seen.launch_id:
            raise Conflict(job, f"its newest launch is {seen.launch_id or 'none'}, so {follows} cannot be followed")
        if checkpoint:
            self._refuse_another_scope(job, checkpoint)
        self.places.require()
        durable.make_folder(self.places.state(job))
        output = self.places.state(job) / OUTPUT
        pid = _detached(self._words(job, checkpoint, follows, service), output)
        return self._until_it_crawls(job, seen.launch_id, pid, output)

    def proceed(self, job: str) -> None:
        """A launch of this engine crawls as soon as it starts. A launch that a person paused stays paused."""

    def checkpoint(self, job: str) -> str:
        """Take a checkpoint, wait until it is complete, and return its name. NotReady if the job does not run."""
        found = control.ask(self._socket(job), "checkpoint", CHECKPOINT_SECONDS)
        return str(cast("dict[str, Json]", found)["checkpoint"])

    def stop(self, job: str) -> None:
        """End the launch, with a checkpoint, and wait until its files are closed. One that died is repaired."""
        deadline, asked = time.monotonic() + STOP_SECONDS, False
        while lock.holder(self.places.state(parse_job(job))):
            with suppress(NotReady):  # it does not listen yet, or ends just now
                asked = asked or control.ask(self._socket(job), "stop") == {}
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"the crawl of {job}", f"it was asked to stop, and still runs after {STOP_SECONDS:.0f} s"
                )
            time.sleep(POLL)
        last = job_log.last(self.places.job(job))
        if last and not last.ended:
            with lock.held(self.places.state(job)):
                asyncio.run(put_in_order(self.places, job))

    def state(self, job: str) -> Mapping[str, Json]:
        """The state of a job that runs, from its control socket; empty for one that does not."""
        return self._state(job)

    def _words(self, job: str, checkpoint: str, follows: str, service: str) -> list[str]:
        places = self.places
        roots = [str(places.output), str(places.jobs), str(places.layout)]
        frontier = places.frontier.words if places.frontier else ()
        return [
            sys.executable, "-P", "-m", *self._processes.get(service, (PROCESS,)), *frontier, *roots, job, checkpoint,
            follows, *self.allow_private, *([OWNED] if job in places.owned else []),
        ]  # fmt: skip

    def _until_it_crawls(self, job: str, before: str, pid: int, output: Path) -> str:
        deadline = time.monotonic() + START_SECONDS
        while True:
            ended, code = os.waitpid(pid, os.WNOHANG)
            last = job_log.last(self.places.job(job))
            if last and last.launch > before and last.word not in (Word.PREPARING, Word.PAUSED):
                return last.launch
            if ended:
                code = os.waitstatus_to_exitcode(code)
                said = output.read_text("utf-8", "replace")[-TAIL:].strip()
                raise NotReady(f"the crawl of {job}", f"its process ended with {code}: {said or 'it said nothing'}")
            if time.monotonic() > deadline:
                raise Unavailable(f"the crawl of {job}", f"process {pid} began nothing in {START_SECONDS:.0f} s")
            time.sleep(POLL)

    def _reason(self, job: str, last: job_log.Last) -> tuple[int, str]:
        """The exit code of a process that died, 0 if that is not known, and why. A full disk may have taken neither."""
        if last.why:
            return last.code, printable(last.why)
        if full := disk.full(self.places.roots):
            return Unavailable.exit_code, str(Unavailable(str(full), "its disk is full; make room on it"))
        return 0, self._said(job)

    def _said(self, job: str) -> str:
        """The last line that its process has written, such as why it ended."""
        output = self.places.state(job) / OUTPUT
        lines = output.read_text("utf-8", "replace")[-TAIL:].splitlines() if output.exists() else []
        return printable(lines[-1]) if lines else ""

    def _socket(self, job: str) -> Path:
        return self.places.state(job) / CONTROL

    def _state(self, job: str) -> Mapping[str, Json]:
        try:
            return cast("dict[str, Json]", control.ask(self._socket(job), "state", 10.0))
        except (NotReady, Unavailable, BadInput):  # it has not begun to listen, or has ended meanwhile
            return {}

    def _continues(self, job: str, launch: str) -> str:
        return continues.continued_from(self.places.job(job) / launch)

    def _alerts(self, job: str, launch: str) -> int:
        """The number of lines in alerts.log."""
        if not launch:
            return 0
        log = self.places.folders(Launch.parse(job, launch)).logs / "alerts.log"
        return log.read_bytes().count(b"\n") if log.exists() else 0


def _detached(words: list[str], output: Path) -> int:
    """Begin a process of its own session, which outlives this one, and holds no signal back; what it prints is in
    `output`."""
    how = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    streams = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(output), how, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    try:
        return os.posix_spawn(words[0], words, os.environ, file_actions=streams, setsid=True, setsigmask=())
    except OSError as error:  # its words name Python, whatever it was
        raise durable.failed(output, error) from error


def _number(state: Mapping[str, Json], name: str) -> int:
    value = state.get(name, 0)
    return value if isinstance(value, int) else 0
