"""A week that cron lives through: one job crawled daily, and the days on which something goes wrong."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from operating import cron, crontab
from operating.clock_of_week import SharedClock
from operating.cron import Ran
from operating.crontab import Entry
from operating.week_engines import Archive, Crawler

ROOT = Path(__file__).parents[3]
BIN = ROOT / ".venv" / "bin"
MISSED, KILLED, OUTAGE = 2, 3, 4  # days, counted from 0
TOUCHES = ("pulse checkpoint", "pulse stop")  # there is something to pack and to copy then
QUARTER = timedelta(minutes=15)
HURRY = 20  # how much faster the waits for an archive pass that is not there


@dataclass
class Week:
    """The line, its servers, their clock, and what has happened."""

    base: Path
    midnight: datetime  # before the first crawl
    clock: SharedClock
    crawler: Crawler
    archive: Archive
    days: int
    ran: list[Ran] = field(default_factory=list)
    missed: int = 0
    happened: list[str] = field(default_factory=list)

    def at(self, day: int, hour: int, minute: int) -> datetime:
        return self.midnight + timedelta(days=day, hours=hour, minutes=minute)

    def due(self, day: int) -> datetime:
        """When the crawl of a day is due: at the minute of the crontab's line that starts it."""
        return self.at(day, 6, 5)

    # What goes wrong.

    def faults(self) -> dict[datetime, Callable[[], None]]:
        return {
            self.at(KILLED, 17, 30): self.kill_engine,
            self.at(KILLED, 18, 30): self.start_engine,  # as systemd would
            self.at(OUTAGE, 11, 30): self.kill_archive,
            self.at(OUTAGE, 16, 0): self.start_archive,
        }

    def is_down(self, moment: datetime) -> bool:
        """Whether it is an hour in which cron does not run: when a crawl is due, or after the machine has died."""
        rebooted = self.crawler.takes_cron_along and self.at(KILLED, 17, 30) <= moment < self.at(KILLED, 18, 30)
        return rebooted or self.at(MISSED, 6, 0) <= moment < self.at(MISSED, 7, 0)

    def kill_engine(self) -> None:
        assert self.crawler.fetched() is not None
        self.crawler.kill()
        self.note("engine killed in the middle of a crawl")

    def start_engine(self) -> None:
        self.crawler.start()
        self.note("engine started")

    def kill_archive(self) -> None:
        self.archive.kill()
        self.note("archive away")

    def start_archive(self) -> None:
        self.archive.start()
        self.note("archive back")

    def note(self, text: str) -> None:
        self.happened.append(f"{self.clock.now:%a %H:%M} {text}")

    # The week.

    def live(self) -> None:
        """From the first start to the scan after the last stop."""
        lines, faults = crontab.entries(), self.faults()
        moment, touched = self.due(0), self.midnight
        while moment <= self.at(self.days, 6, 0):
            if moment in faults:
                self.pass_to(moment)
                faults[moment]()
            due = [line for line in lines if line.is_due(moment)]
            if self.is_down(moment):
                self.missed += len(due)
                touched = moment
            elif is_run(due, moment, touched):
                self.pass_to(moment)
                self.ran += cron.run(moment, due, self.environment, self.base)
                touched = moment if any(line.name in TOUCHES for line in due) else touched
            moment += timedelta(minutes=1)

    def pass_to(self, moment: datetime) -> None:
        """Jump, once the crawl that runs has fetched something in the time that is jumped over."""
        if self.crawler.is_up():
            self.let_it_crawl()
        self.clock.jump(moment)

    def let_it_crawl(self) -> None:
        before, deadline = self.crawler.fetched(), time.monotonic() + 300
        while before is not None:
            now = self.crawler.fetched()
            if now is None or now > before + 3:
                return
            assert time.monotonic() < deadline, "the crawl fetches nothing"
            time.sleep(0.1)

    def environment(self, line: Entry | None = None) -> dict[str, str]:
        """Cron's, with our paths in the crontab's variables, under the shared clock.

        A scan waits for an archive that does not answer, a minute each time: these waits are hurried.
        """
        paths = {"LUIGI_CONFIG_PATH": self.base / "luigi.cfg", "BIN": BIN}
        own = crontab.variables(LOG=str(self.base / "log"), **{name: str(path) for name, path in paths.items()})
        waits = line and line.name == "scan" and not self.archive.is_up()
        return {**own, **(self.clock.hurried(HURRY) if waits else self.clock.environment)}

    # Afterwards.

    def warcmill(self, *words: str) -> subprocess.CompletedProcess[str]:
        """As an operator types it."""
        command, environment = [str(BIN / "warcmill"), *words], {**self.environment(), "HOME": str(self.base)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)

    def codes(self) -> dict[str, Counter[int]]:
        """The exit codes of each line."""
        names = dict.fromkeys(one.name for one in self.ran)
        return {name: Counter(one.code for one in self.ran if one.name == name) for name in names}

    def log(self) -> str:
        return (self.base / "log").read_text("utf-8", "replace")


def is_run(due: list[Entry], moment: datetime, touched: datetime) -> bool:
    """Whether the lines of a minute are run.

    Of the lines for every few minutes only those that have something to do: in the minutes of the other lines, at the
    quarter of an hour after a checkpoint or an end, and when cron is there again. At all others they would find
    everything done: a week would be thousands of processes that do nothing.
    """
    if any(not line.is_frequent for line in due):
        return True
    return moment.minute % 15 == 0 and touched < moment <= touched + QUARTER
