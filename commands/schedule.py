"""warcmill schedule: have a job crawled daily, weekly, ..., and have cron or systemd run the archive."""

from __future__ import annotations

import argparse
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from commands import crawl_config, timers
from commands.arguments import job as job_name
from commands.printing import err, out
from tasks.config import engines
from tasks.config import feed as feeds
from tasks.config.folders import config_file
from tasks.config.settings import check_hardened
from warcmill.base import clock
from warcmill.base.schedule import NAMED, Frequency, newest_due
from warcmill.crawl.engine import WarcmillEngine
from warcmill.crawl.uri import canonical
from warcmill.errors import BadConfig, BadInput, NotReady
from warcmill.model import stamp_time

SUMMARY = "have a job crawled daily, weekly, ..., and the archive run by cron or systemd"
EPILOG = """\
examples:
  warcmill schedule https://www.example.org/ daily
  warcmill schedule https://www.example.org/ daily --install
  warcmill schedule news every 6 hours
  warcmill schedule news --remove

Writes [job.NAME] into the luigi.cfg of the archive: the job is due now, and then once a
period; its other lines and comments stay as they are. A URL names the job as 'warcmill
crawl URL' does. The job has to be one that was crawled here, or that an engine lists.

Then prints what has to run for it: a start of due crawls, a scan and a backup of the
state. With --install it installs that for this user: timers of systemd, where the user
has a running one, else lines of the crontab. Installed once, it is for all jobs of the
archive. Called twice, it changes nothing.

--remove takes the job's [job.NAME] away, and with the last one what was installed.

FREQUENCY: hourly, daily, weekly, monthly, quarterly, sixmonthly, annual, or every N hours.

exit codes: 0 done, or done already, 1 the job was never crawled here, 2 usage,
3 configuration, 4 luigi.cfg, the crontab or systemd could not be changed
"""


@dataclass(frozen=True, slots=True)
class Target:
    """What was typed: a job, or a URL that names one."""

    job: str
    url: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """URL|JOB FREQUENCY [--install] | URL|JOB --remove."""
    parser.usage = "%(prog)s [--install] (URL | JOB) FREQUENCY, or %(prog)s --remove (URL | JOB)"
    parser.add_argument("target", type=_target, metavar="URL|JOB", help="the job, or the URL that it is named after")
    parser.add_argument("frequency", nargs="*", metavar="FREQUENCY", help=f"{', '.join(NAMED).lower()}, every N hours")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--install", action="store_true", help="install the timers, or the lines of the crontab")
    how.add_argument("--remove", action="store_true", help="schedule the job no longer")


def run(args: argparse.Namespace) -> int:
    """Edit luigi.cfg, then print or install what runs it."""
    target: Target = args.target
    check_hardened()
    config = Path(config_file()).absolute()
    if args.remove:
        if args.frequency:
            return _usage("--remove takes no FREQUENCY")
        return _remove(config, target.job)
    try:
        frequency = Frequency.parse(" ".join(args.frequency))
    except ValueError as error:
        return _usage(f"FREQUENCY: {str(error).lower()}")
    _check_job(target)
    _write(config, target.job, frequency)
    _timers(config, install=args.install)
    return 0


def _target(text: str) -> Target:
    """A URL has a dot, a colon or a slash, and no job's name has."""
    if not any(char in text for char in ".:/"):
        return Target(job_name(text))
    try:
        url = canonical(text if "://" in text else f"https://{text}")
    except BadInput as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return Target(crawl_config.job_of(url), url)


def _usage(why: str) -> int:
    err(f"warcmill schedule: {why}")
    return 2


def _check_job(target: Target) -> None:
    """Refuse a job that no start could launch: it would only leave gaps."""
    job = target.job
    first = f"warcmill crawl {target.url}" if target.url else f"warcmill crawl URL --job {job}"
    if not engines.section_of(job):
        raise NotReady(f"job {job}", f"no engine crawls it; crawl it once, which also shows that it works: {first}")
    with closing(engines.engine_of(job)) as engine:
        if isinstance(engine, WarcmillEngine) and not feeds.is_fed(job) and engine.progress(job) is None:
            raise NotReady(f"job {job}", f"it has no crawl.toml; crawl it once: {first}")


def _write(config: Path, job: str, frequency: Frequency) -> None:
    now, section = stamp_time(clock.stamp()).replace(second=0), f"job.{job}"
    start, text = now, config.read_text("utf-8")
    if job in engines.scheduled():
        before = engines.schedule_of(job)
        if f"[{section}]" not in text:
            raise BadConfig(f"[{section}]", f"is not in {config}, but in another file that Luigi reads; edit it there")
        if before.frequency == frequency:
            out(f"{job}: crawled {str(frequency).lower()} already, since {clock.text(before.start)}")
            return
        start = newest_due(before, now) or before.start  # what is past is not owed by the new frequency
    keys = {"frequency": str(frequency).lower(), "start": clock.text(start)}
    crawl_config.edit(config, lambda text: crawl_config.scheduled(text, job, frequency, keys["start"]), {section: keys})
    out(f"{job}: crawled {keys['frequency']}, first due {keys['start']}: [{section}] of {config}")


def _timers(config: Path, *, install: bool) -> None:
    way = timers.here(config)
    if way.are_there():
        out(f"{way.name}: runs this archive already")
    elif install:
        way.install()
        out(f"{way.name}: runs this archive now: it starts due crawls, scans, and backs the state up")
        if way.name == timers.Systemd.name:
            out("To have it run while you are not logged in: loginctl enable-linger")
    else:
        out(f"Nothing runs it yet. --install adds this to your {way.name}:", "", *way.text.splitlines())


def _remove(config: Path, job: str) -> int:
    section, known = f"job.{job}", engines.scheduled()
    if job in known:
        if not crawl_config.edit(config, lambda text: crawl_config.unscheduled(text, job), {section: None}):
            raise BadConfig(f"[{section}]", f"is not in {config}, but in another file that Luigi reads; edit it there")
        out(f"{job}: no longer scheduled; what is archived stays")
    else:
        out(f"{job}: it is not scheduled")
    if others := [name for name in known if name != job]:
        out(f"What runs the archive stays, for: {', '.join(others)}")
        return 0
    for name in timers.remove_all(config):
        out(f"{name}: no longer runs this archive")
    return 0
