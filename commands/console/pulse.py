"""A crawl started, checkpointed or stopped: the act's luigi task is run, unless its marker is there.

Each function prints what happened, and returns an exit code.
"""

from __future__ import annotations

from contextlib import closing

from commands.console.show import err, out
from commands.console.single_task import do, free_moment
from tasks.config import engines
from tasks.config.settings import check_hardened, settings
from tasks.line import OpenRoots, open_line
from warcmill import layout
from warcmill.base import clock
from warcmill.base.schedule import LONGEST, newest_due
from warcmill.clients.engine import JobStatus
from warcmill.errors import NotReady
from warcmill.markers.claim import Evidence
from warcmill.markers.facts.output import Assembled
from warcmill.markers.facts.pulse import Checkpointed, Launched
from warcmill.model import Key, Launch, Stage, stamp_time
from warcmill.pulse import control as steps


def _line() -> OpenRoots:
    """The line, of a luigi.cfg in which a task that fails is seen to fail."""
    settings()
    check_hardened()
    return open_line()


def start(
    job: str, due: str = "", resumed: str = "", *, again: bool = False, retries: bool = False, mends: str = ""
) -> int:
    """Launch the crawl of a due time; by default the newest. `resumed`: the checkpoint to resume, due at its own time.

    `again`: one more crawl, due now. `retries`: it asks for what the list of the job has, and for what waits. `mends`:
    the launch that it patches.
    """
    line = _line()
    engines.check_frontier(job)
    moment = due or (Stage.parse(resumed).stamp if resumed else "")
    if again:
        moment = _again(line, job)
        if not moment:
            return 1
    if not moment:
        moment = _newest(job)
        if ended := _ended(line, layout.due_key(job, moment)):
            out(f"{job}: nothing was started: {ended}; one more, now: warcmill pulse start {job} --again")
            return 1
    words = ["pulse.StartJob", "--job", job, "--due", moment]
    words += ["--checkpoint", resumed] if resumed else []
    words += ["--retries"] if retries else []
    words += ["--mends", mends] if mends else []
    what = f"the crawl due {clock.stamp_text(moment)}"

    def describe(marker: Evidence) -> str:
        return f"launch {Launched.from_claim(marker.claim).launch.id} was started for {what}"

    return do(line, layout.due_key(job, moment), words, describe)


def _ended(line: OpenRoots, due: Key) -> str:
    """That a due crawl was launched and has ended; '' if not. The engine is asked unless StopJob saw the end."""
    marker = line.state.read(due)
    if marker is None:
        return ""
    had = Launched.from_claim(marker.claim)
    got = (
        f"asked for nothing new; all of it has launch {had.launch.id}"
        if had.nothing_new
        else f"was launch {had.launch.id}"
    )
    crawl = f"the crawl due {clock.stamp_text(due['due'])} {got}"
    if line.state.holds(layout.key("pulse.StopJob", had.launch)):
        return f"{crawl}, which has ended"
    seen = _look(had.launch.job)
    return "" if seen.running and seen.launch_id == had.launch.id else f"{crawl}, which does not run ({seen.words})"


def _again(line: OpenRoots, name: str) -> str:
    """The due time of one more crawl: now, or that of a start begun and not finished; '' if it is too early."""
    if due := not_launched(line, name):
        out(f"{name}: {due}")
        return ""
    with closing(engines.engine_of(name)) as engine:
        begun, seen = steps.running(line.state, engine, name), engine.look(name)
    if begun and not begun.is_recorded:
        return begun.due
    if seen.running:
        out(f"{name}: launch {seen.launch_id} is running ({seen.words}); first run: warcmill pulse stop {name}")
        return ""
    return free_moment(line, name)


def not_launched(line: OpenRoots, name: str) -> str:
    """That the newest due crawl of a job is not launched yet, so that none more begins; '' if it is."""
    newest = _due_by_now(name)
    if not newest or line.state.holds(layout.due_key(name, newest)):
        return ""
    return f"the crawl due {clock.stamp_text(newest)} is not launched yet; next: warcmill pulse start {name}"


def _due_by_now(name: str) -> str:
    """The newest due time of a job; '' before its first, and for a job without a schedule."""
    if name not in engines.scheduled():
        return ""
    newest = newest_due(engines.schedule_of(name), stamp_time(clock.stamp()))
    return clock.digits(newest) if newest else ""


def _newest(name: str) -> str:
    """The newest due time of a job, or NotReady before its first."""
    schedule = engines.schedule_of(name)
    newest = _due_by_now(name)
    if not newest:
        first = schedule.start if not schedule.at else next(schedule.due(schedule.start, schedule.start + LONGEST))
        raise NotReady(name, f"it is first due {clock.text(first)}; --again starts it now")
    return newest


def checkpoint(job: str) -> int:
    """Take the next checkpoint of the running launch, and assemble that stage."""
    line = _line()
    seen = _look(job)
    if not seen.running:
        out(f"{job}: it is not running ({seen.words}); there is nothing to checkpoint")
        return 1
    launch = Launch.parse(job, seen.launch_id)
    number = steps.next_number(line.rootmap.alone(launch.job), launch, seen.continues)
    words = ["pulse.CheckpointJob", "--job", launch.job, "--launch-id", launch.id, "--number", str(number)]

    def describe(marker: Evidence) -> str:
        return f"launch {launch.id} has taken checkpoint {Checkpointed.from_claim(marker.claim).stage}"

    key = layout.key("pulse.CheckpointJob", launch, number=f"{number:05d}")
    if code := do(line, key, words, describe):
        return code
    return _assemble(line, launch, str(Checkpointed.from_claim(line.state.require(key).claim).stage))


def _assemble(line: OpenRoots, launch: Launch, stage: str) -> int:
    """Pack and assemble the stage that the checkpoint has sealed. If that fails, the next scan does it."""
    key = layout.step("assemble", launch, stage)
    words = [key.task, "--job", launch.job, "--launch-id", launch.id, "--stage", stage]

    def describe(marker: Evidence) -> str:
        return (
            f"stage {stage} is assembled: {Assembled.from_claim(marker.claim).numbers['lines']} lines of its crawl log"
        )

    code = do(line, key, words, describe, "tasks.output")
    if code:
        err(f"{launch.job}: the checkpoint is taken; the next scan assembles its stage")
    return code


def stop(job: str) -> int:
    """Stop the running launch, or record the end of one that has ended."""
    line = _line()
    seen = _look(job)
    if not seen.launch_id:
        out(f"{job}: it was never launched ({seen.words}); there is nothing to stop")
        return 1
    launch = Launch.parse(job, seen.launch_id)
    words = ["pulse.StopJob", "--job", launch.job, "--launch-id", launch.id]
    return do(line, layout.key("pulse.StopJob", launch), words, lambda _: f"launch {launch.id} has ended")


def _look(name: str) -> JobStatus:
    with closing(engines.engine_of(name)) as engine:
        return engine.look(name)
