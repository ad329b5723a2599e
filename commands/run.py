"""warcmill run: run a part of a crawl on this machine until a signal, such as a worker."""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections.abc import Callable, Mapping
from contextlib import closing
from ipaddress import ip_address
from pathlib import Path
from threading import Event
from typing import NamedTuple

from commands.console.arguments import add_settings
from tasks import logs
from tasks.config import engines
from warcmill.crawl.frontier.link import FRONTIER, read_place
from warcmill.errors import BadConfig, BadInput
from warcmill.model import parse_job

SUMMARY = "run a part of a crawl on this machine until a signal, such as a worker"
EPILOG = """\
examples:
  warcmill run worker daily --name w2 --frontier redis://redis.example:6379/0 --output /srv/w2
  warcmill run worker daily --name w2 --frontier rediss://redis.example:6380/0?prefix=library \\
    --password-file /etc/warcmill/redis --output /srv/w2
  warcmill run spider quotes.py --job quotes -a tag=humor
  warcmill run requests
  warcmill run requests --settings localsettings.py --log-level DEBUG
  warcmill run rest
  warcmill run requests rest --port 5343
  warcmill run results papers --worker shop_results:Database
  warcmill run updater web-east

'worker' joins the launches of a job whose frontier is in Redis, and crawls. The job's own
process leads: 'warcmill pulse' begins, stops and checkpoints the launch as ever, and the
workers take part in it. Nothing else is needed: the job's files are in Redis, too. WARCs
and logs are written below --output, which is the root of a [writer.NAME] of the line.

A 'spider' is one of Scrapy: a file, or a project's folder, with ':NAME' if it has several.
Its requests wait in the frontier of the job, and are made by our own crawler: so each page
is in a WARC and in the logs of a launch, which ends with the spider. 'pip install
warcmill[scrapy]' brings Scrapy.

'requests' takes what applications ask for, by Scrapy Cluster's API, feeds it to the job
of [requests], and answers. The job is an endless one: 'warcmill pulse start JOB' begins
it, a daily schedule gives each day a launch. It sends each page that was asked for to the
topic of crawled pages. Several may run; one of them sends. A worker of such a job sends
what it has crawled itself, and has a luigi.cfg with [requests] for that.

'rest' answers Scrapy Cluster's REST clients at [requests] rest_port, 5343: POST /feed a
message, POST /poll {"poll_id": UUID}, and / for its state. It listens on loopback; at another
rest_listen it wants tokens, 'Authorization: Bearer TOKEN': an operator's to feed, a reader's
to poll ('warcmill serve token add', and [requests] token_file). Several share their polls.

'requests rest' is both in one process: if one ends by an error, so does the other.

'results' hands each new result of a job's scripts to a class of yours, as pyspider's result
worker: on_result(task, result). It is imported from this folder or PYTHONPATH, and runs
outside the walls. A result is done when on_result has returned; one for which it raises is
tried four times more, for a minute and a half, and then ends the command: the next one
begins with it.

An 'updater' writes what a job of a [group.NAME] crawls into the PostgreSQL of its group, and
gives the orders that wait there to the crawl: docs/clusters.md. It runs on the machine of the
job, beside its crawl, whether that runs or not. When PostgreSQL is away it waits, and so does
the journal. --again reads all journals of the job once more, such as after its disk came back
from a copy.

SIGTERM or Ctrl-C: what is under way ends, and it leaves. A second one: at once, and others
fetch what was under way. After a kill the same command continues where it was.

exit codes: 0 ended by a signal, or the spider has ended, 1 the spider fetched nothing, or
asked for what cannot wait; on_result fails for a result; or the place in the results, or a
journal, cannot be read, 2 usage, 3 configuration: the folder, the frontier, the spider or the
class does not fit, 4 a disk, Redis, PostgreSQL or the bus does not answer, 5 another process
has this name or this folder, 130 the spider was stopped by a signal: the same command
continues. One that closes itself has ended
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The role, and what it needs."""
    roles = parser.add_subparsers(dest="role", required=True, metavar="ROLE")
    for name, role in ROLES.items():
        role.add_arguments(roles.add_parser(name, allow_abbrev=False))


def run(args: argparse.Namespace) -> int:
    """Run the role until a signal."""
    logs.configure()
    return ROLES[args.role].run(args)


def _worker_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", type=_name, metavar="JOB", help="the job whose launches it joins")
    parser.add_argument("--name", type=_name, required=True, metavar="NAME", help="its name, among the workers")
    parser.add_argument(FRONTIER, required=True, metavar="URL", help="the Redis that has the frontier of the job")
    parser.add_argument("--password-file", default="", metavar="FILE", help="the file with the password of that Redis")
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="where it writes WARCs and logs")
    parser.add_argument(
        "--exit", type=_address, metavar="ADDRESS", help="the public address by which its requests go out"
    )


def _worker(args: argparse.Namespace) -> int:
    from commands.console import requests  # a role imports what it needs, and --help nothing of it
    from warcmill.crawl.launch.worker import Worker
    from warcmill.requests.serving.service import RequestService

    place = read_place(FRONTIER, args.frontier, args.password_file)
    bus = requests.place_of_worker(args.job)
    service = None if bus is None else RequestService
    output, unserved = args.output.absolute(), requests.unserved(args.job)
    worker = Worker(output, args.name, args.job, place, args.exit or "", service=service, unserved=unserved)
    with requests.sending(worker, bus):
        asyncio.run(worker.run())
    return 0


def _spider_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spider", metavar="FILE|PROJECT[:NAME]", help="a file with a spider, or a project's folder")
    parser.add_argument("--job", type=_name, required=True, metavar="NAME", help="the job whose launch this is")
    parser.add_argument(
        "-a", action="append", default=[], dest="arguments", metavar="NAME=VALUE", help="an argument of the spider"
    )
    parser.add_argument(
        "-s", action="append", default=[], dest="settings", metavar="NAME=VALUE", help="a setting of Scrapy"
    )
    items = parser.add_mutually_exclusive_group()
    items.add_argument("-o", action="append", default=[], dest="append", metavar="FILE", help="append items to it")
    items.add_argument("-O", action="append", default=[], dest="overwrite", metavar="FILE", help="write items anew")
    parser.add_argument(FRONTIER, metavar="URL", help="work in launches of the job, whose frontier is in this Redis")
    parser.add_argument("--name", type=_name, metavar="NAME", help="its name, among the workers")
    parser.add_argument("--password-file", default="", metavar="FILE", help="the file with the password of that Redis")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="where such a worker writes WARCs and logs")


def _spider(args: argparse.Namespace) -> int:
    from commands.console import spiders

    return spiders.run(args)


def _requests_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("also", nargs="?", choices=["rest"], help="run the role 'rest' in the same process")
    _rest_arguments(parser)


def _requests(args: argparse.Namespace) -> int:
    from commands.console import requests, rest

    if args.port is not None and not args.also:
        raise BadConfig("--port", "is of the role 'rest': warcmill run requests rest --port PORT")
    return rest.run_beside_requests(args) if args.also else requests.run(args)


def _rest_arguments(parser: argparse.ArgumentParser) -> None:
    add_settings(parser)
    parser.add_argument("--port", type=_port, metavar="PORT", help="the port of 'rest', instead of rest_port")


def _rest(args: argparse.Namespace) -> int:
    from commands.console import rest

    return rest.run(args)


def _results_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", type=_name, metavar="JOB", help="the job of scripts whose results it takes")
    parser.add_argument("--worker", required=True, metavar="MODULE:CLASS", help="the class that has on_result")


def _results(args: argparse.Namespace) -> int:
    from warcmill.crawl.engine import WarcmillEngine
    from warcmill.crawl.job import file
    from warcmill.scripts.delivery import ResultDelivery, handler

    with closing(engines.engine_of(args.job)) as engine:
        places = engine.places if isinstance(engine, WarcmillEngine) else None
    own = places and file.files_in(places.job(args.job))
    if not places or not own or file.described(own, args.job).service != file.SCRIPTS:
        raise BadConfig(f"job {args.job}", "it has no scripts: 'warcmill script new JOB/NAME' makes a job that has")
    delivery, ended = ResultDelivery(places.state(args.job), args.worker, handler(args.worker)), Event()

    def end(*_: object) -> None:
        ended.set()
        for one in (signal.SIGTERM, signal.SIGINT):
            signal.signal(one, signal.SIG_DFL)  # a second one: at once

    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, end)
    delivery.run(ended)
    return 0


def _updater_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", type=_name, metavar="JOB", help="the cluster: a job of a [group.NAME]")
    parser.add_argument("--again", action="store_true", help="read all its journals once more, from the first")


def _updater(args: argparse.Namespace) -> int:
    from commands.console import updating

    return updating.run(args.job, again=args.again)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 1 to 65535")
    return int(text)


def _address(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _name(text: str) -> str:
    try:
        return parse_job(text)
    except BadInput as error:
        raise argparse.ArgumentTypeError(str(error)) from error


class CrawlRole(NamedTuple):
    """A part of a crawl that runs by itself."""

    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


ROLES: Mapping[str, CrawlRole] = {
    "worker": CrawlRole(_worker_arguments, _worker),
    "spider": CrawlRole(_spider_arguments, _spider),
    "requests": CrawlRole(_requests_arguments, _requests),
    "rest": CrawlRole(_rest_arguments, _rest),
    "results": CrawlRole(_results_arguments, _results),
    "updater": CrawlRole(_updater_arguments, _updater),
}
