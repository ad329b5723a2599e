"""A crawl that runs without its terminal, found again: who comes next sees it, watches it on, and brings it in.

The job's folder has a note of the launches that a `warcmill crawl` began and nobody has brought into the archive yet.
Reads what the crawl reports of itself; writes the note; asks on the terminal.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from commands.console.show import err
from warcmill.base import clock
from warcmill.crawl import durable
from warcmill.crawl.engine import WarcmillEngine
from warcmill.crawl.launch import job_log
from warcmill.errors import Busy
from warcmill.model import Launch

NOTE = "asked.json"


class AskedFor(Struct, frozen=True):
    """Launches that were begun and are not brought in. `unseen`: nobody has seen the end of the last one."""

    launches: tuple[str, ...] = ()
    unseen: bool = False

    def days(self, launch: Launch) -> str:
        """The days from the first of them to a launch, as a scan takes them."""
        first = min((Launch(launch.job, one).day for one in self.launches), default=launch.day)
        return str(launch.day) if first >= launch.day else f"{first}-{_day_after(launch)}"


def _day_after(launch: Launch) -> str:
    return str(launch.day.fromordinal(launch.day.toordinal() + 1))


def asked_for(engine: WarcmillEngine, name: str) -> AskedFor:
    """The note of a job; empty if it is missing or cannot be read, as a scan finds the launches without it."""
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(_note(engine, name).read_bytes(), type=AskedFor)
    return AskedFor()


def begun(engine: WarcmillEngine, name: str, launch: str) -> None:
    """Note a launch that was begun to be brought in."""
    known = [one for one in asked_for(engine, name).launches if one != launch]
    _write(engine, name, AskedFor((*known, launch), unseen=True))


def seen(engine: WarcmillEngine, name: str) -> None:
    """Note that somebody has seen the end of the last one."""
    if (known := asked_for(engine, name)).launches:
        _write(engine, name, AskedFor(known.launches))


def brought_in(engine: WarcmillEngine, name: str) -> None:
    """Drop the note: a scan has had them all."""
    with suppress(OSError):  # a scan of too many days does no harm
        _note(engine, name).unlink(missing_ok=True)


def ended_unseen(engine: WarcmillEngine, name: str) -> bool:
    """True if the newest launch of a job has ended with nothing left to fetch, and nobody was there."""
    asked = asked_for(engine, name)
    last = job_log.last(engine.places.job(name)) if asked.unseen and asked.launches else None
    return bool(last and last.ended and last.empty and last.launch == asked.launches[-1])


def greet(name: str, launch: str, so_far: str, *, runs: bool) -> None:
    """Report a crawl that runs: since when, and how far it is; or that it has ended unseen. Busy off a terminal for
    one that runs, with what watches and what stops it."""
    if not runs:
        err(f"{name}: launch {launch} has ended while nobody watched; it is brought in now, and nothing is begun")
        return
    what = f"launch {launch} runs since {clock.stamp_text(launch)}" if launch else "it is being started"
    figures = f" ({so_far})" if so_far else ""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        todo = f"watch it: warcmill job {name} watch; stop it: warcmill pulse stop {name}"
        raise Busy(f"job {name}: {what}{figures}; it", todo)
    err(f"{name}: {what}{figures}", f"{name}: attached; Ctrl-C asks whether to leave it or to stop it")


def is_to_stop(name: str) -> bool:
    """Ask whether to stop the crawl, or to leave it running; Ctrl-C and an end of the input leave it."""
    with suppress(KeyboardInterrupt, EOFError):
        while (answer := _answer(f"{name}: leave it running, or stop it? [leave/stop] ")) not in ("l", "leave", ""):
            if answer in ("s", "stop"):
                return True
    err(f"{name}: it runs on; the same command finds it again, and 'warcmill pulse stop {name}' ends it")
    return False


def _answer(question: str) -> str:
    sys.stderr.write(f"\r\x1b[K{question}")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer:
        raise EOFError
    return answer.strip().lower()


def _note(engine: WarcmillEngine, name: str) -> Path:
    return engine.places.state(name) / NOTE


def _write(engine: WarcmillEngine, name: str, note: AskedFor) -> None:
    durable.replace(_note(engine, name), msgspec.json.encode(note))
