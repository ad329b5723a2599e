"""The role of `warcmill run` that crawls by a spider of Scrapy: its words, and the launch that it is. Writes the files
of the job if there are none, and luigi.cfg when no engine lists the job yet."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from commands.console import requests
from commands.console.crawl import answers, left_at, name_left_out, name_refusals
from commands.console.luigi_cfg import engine_for, list_job
from commands.console.show import err, out
from tasks.config import folders
from warcmill.base import clock
from warcmill.crawl import durable
from warcmill.crawl.engine import WarcmillEngine
from warcmill.crawl.frontier.link import FRONTIER, read_place
from warcmill.crawl.job import file
from warcmill.crawl.job.job import End
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.crawl.launch import checkpoint as checkpoints
from warcmill.crawl.launch import job_log, reports
from warcmill.crawl.launch.folders import CHECKPOINTS, Places
from warcmill.errors import BadConfig, BadInput, Busy, NotReady
from warcmill.formats.seeds import SEED_LIST

if TYPE_CHECKING:
    from warcmill.spiders.process import SpiderEnd
    from warcmill.spiders.project import ScrapyProject

INTERRUPTED = 130


def run(args: argparse.Namespace) -> int:
    """Make a launch of the job, until the spider ends."""
    try:
        from warcmill.spiders import process  # of an extra
    except ImportError as error:
        raise BadConfig("run spider", f"{error.name} is missing; pip install 'warcmill[scrapy]'") from error

    if args.frontier:
        return _work(args)
    config = folders.find()
    if config is None:
        raise BadConfig("luigi.cfg", "there is no archive here; 'warcmill init FOLDER' makes one")
    os.environ[folders.VARIABLE] = str(config)
    found = _found(args)
    list_job(config, args.job)
    with closing(engine_for(args.job)) as engine:
        if (engine.places.job(args.job) / CONFIGURATION).exists():
            _complete(engine.places.job(args.job), process.files())
        else:
            engine.configure(args.job, process.files(), Path(os.devnull))
        checkpoint = _continued(engine, args.job)
        follows = "" if checkpoint else engine.follows(args.job)
        done = process.run(engine.places, args.job, found, checkpoint, engine.allow_private, follows)
        return _reported(engine, args.job, done)


def _work(args: argparse.Namespace) -> int:
    """Work in the launches of the job; another process leads them."""
    from warcmill.spiders import process  # of an extra

    if not (args.name and args.output):
        raise BadConfig(FRONTIER, "a worker has a --name, and an --output of its own")
    found = _found(args)
    place = read_place(FRONTIER, args.frontier, args.password_file)
    bus = requests.place_of_worker(args.job)
    done = process.work(
        args.output.absolute(), args.name, args.job, place, found, unserved="" if bus else requests.unserved(args.job),
        beside=partial(requests.sending, place=bus),
    )  # fmt: skip
    _name_unarchived(args.job, done)
    return _told_refused(args.job, done.refused)


def _found(args: argparse.Namespace) -> ScrapyProject:
    from warcmill.spiders import project  # of an extra

    said = project.CommandLine(args.arguments, args.settings, args.append, args.overwrite)
    return project.find(args.spider, said)


def _complete(folder: Path, written: Mapping[str, bytes]) -> None:
    """Add the files without which a job cannot begin whose crawl.toml somebody has written: the spider has its URIs."""
    files = file.files_in(folder)
    if file.lacks_seeds(files):
        for name, text in {**written, SEED_LIST: b""}.items():
            if name not in files:
                durable.replace(folder / name, text)


def _continued(engine: WarcmillEngine, job: str) -> str:
    """The checkpoint to continue from; '' to begin afresh. A launch whose process died is put in order first."""
    seen = engine.look(job)
    if seen.running:
        raise Busy(f"job {job}, launch {seen.launch_id},")
    if seen.died:
        engine.stop(job)
    if found := left_at(engine, job, job_log.last(engine.places.job(job))):
        out(f"{job}: continues from {found}")
    return found


def _name_unarchived(job: str, done: SpiderEnd) -> None:
    """Name the middlewares whose answers are in no WARC."""
    for name, number in done.unarchived.items():
        err(f"{job}: {number} answered by {name}, not archived")


def _told_refused(job: str, refused: int) -> int:
    """Name the requests that were refused, and return the exit code."""
    if refused:
        err(f"{job}: {refused} requests could not wait, so they were not made; uri-errors.log names each")
    return int(bool(refused))


def _refused(places: Places, job: str, launch: str) -> int:
    """The requests that a launch, and those that it continues, have refused: they are one crawl."""
    number = 0
    while launch:
        own = places.job(job) / launch
        number += sum(cut.number for cut in reports.bounds_of(reports.read(own)) if cut.bound == "waits")
        before = checkpoints.continued_from(own)
        try:
            launch = checkpoints.named(places.job(job) / CHECKPOINTS, job, before).launch.id if before else ""
        except (BadInput, NotReady):
            launch = ""
    return number


def _reported(engine: WarcmillEngine, job: str, done: SpiderEnd) -> int:
    launch = engine.look(job).launch_id
    result = reports.read(engine.places.job(job) / launch)
    out(f"{job}: launch {launch}: {answers(result, each=True)}")
    name_left_out(result)
    out(f"next: warcmill scan {clock.stamp_text(launch)[:10]}")
    if result.get("failed_first") and result.get("documents"):  # else they are of an earlier launch
        err(f"{job}: {result['failed']} got no answer, first {result['failed_first']}")
    _name_unarchived(job, done)
    lost = _told_refused(job, _refused(engine.places, job, launch))
    if done.end is End.STOPPED:
        out(f"{job}: stopped, with a checkpoint; the same command continues from there")
        return INTERRUPTED
    if done.closed_by:
        out(f"{job}: the spider has closed itself, by {done.closed_by}; the next run begins anew")
    elif not result.get("documents"):
        name_refusals(job, result)
        return 1
    return lost
