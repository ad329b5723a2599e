"""warcmill request: what Scrapy Cluster's command line does: feed, dump, list; push a policy, test, migrate."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from commands.console.arguments import add_settings
from commands.console.requests import home_of, place_of
from commands.console.show import err, out
from tasks.config.engines import running_job
from warcmill.base import disk
from warcmill.clients.bus import Bus, TopicReader
from warcmill.errors import BadInput, NotReady, Unavailable, WarcmillError
from warcmill.requests.accounts import HOME, NO_HOME
from warcmill.requests.compat import KAFKA, REDIS, REST
from warcmill.requests.migration import (
    MigratedMessages,
    open_redis,
    policy_messages,
    queued_messages,
    read_zookeeper,
)
from warcmill.requests.monitor import log_of
from warcmill.requests.sender import DAMAGED, damaged_lines
from warcmill.requests.settings import RequestsPlace, Topics

SUMMARY = "ask for pages by Scrapy Cluster's API, and see what comes back"
EPILOG = """\
examples:
  warcmill request feed '{"url": "https://example.org/", "appid": "testapp", "crawlid": "c1"}'
  warcmill request feed '{"action": "info", "appid": "testapp", "spiderid": "link", "uuid": "u1"}'
  warcmill request dump -t demo.crawled_firehose -p
  warcmill request list
  warcmill request policy rates.yml
  warcmill request test
  warcmill request migrate --from redis://old.example:6379/0 --zookeeper old.example:2181 --dry-run

feed sends a message to the topic of incoming requests, which 'warcmill run requests' reads.
dump prints each message that comes to a topic from now on, a line of JSON each; with -p in
several lines. list prints the topics.

policy makes rates and bans those of a file as Scrapy Cluster's file_pusher.py takes it:

  domains:
    example.org: {hits: 60, window: 60, scale: 0.5}
  blacklist: [example.com]

test tries a running deployment part by part, a line each.

migrate sends what a Scrapy Cluster of 1.0 to 1.2 has in its Redis: requests that wait, and
crawls that were stopped; with --zookeeper its rates and bans. It changes nothing there; stop
that cluster first, and run it once: a second time all is asked for again.

exit codes: 0 done, 1 the message is not JSON, or a part of the deployment does not answer,
2 usage, 3 configuration, or a Kafka that does not take us, 4 the bus, the Redis or ZooKeeper
does not answer
"""
_TOGETHER = 500  # messages of one append
_TEST_SECONDS = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The action, and what it needs."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name in _ACTIONS:
        add_settings(actions.add_parser(name, allow_abbrev=False))
    actions.choices["feed"].add_argument("json", metavar="JSON", help="the message")
    dump = actions.choices["dump"]
    dump.add_argument("-t", "--topic", required=True, metavar="TOPIC", help="the topic, such as demo.crawled_firehose")
    dump.add_argument("-p", "--pretty", action="store_true", help="each message in several lines")
    actions.choices["policy"].add_argument("file", metavar="FILE", help="rates and bans, in YAML")
    migrate = actions.choices["migrate"]
    migrate.add_argument("--from", dest="redis", required=True, metavar="URL", help="redis://HOST:PORT/DATABASE")
    migrate.add_argument("--password-file", default="", metavar="FILE", help="the file with the password of that Redis")
    migrate.add_argument("--zookeeper", default="", metavar="HOST:PORT", help="the ZooKeeper that has rates and bans")
    migrate.add_argument("--dry-run", action="store_true", help="count, and send nothing")


def run(args: argparse.Namespace) -> int:
    """Do one action."""
    return _ACTIONS[args.action](place_of(args), args)


def _feed(place: RequestsPlace, args: argparse.Namespace) -> int:
    values = place.values()
    log, topic = log_of(values)(KAFKA), Topics.of(values).incoming
    try:
        message = json.loads(args.json)
        data = json.dumps(message).encode()
    except (ValueError, RecursionError):
        log.info("JSON failed to parse")
        return 1
    if log.json:
        log.info(f"Feeding JSON into {topic}\n", extra={"value": message})
    else:
        log.info(f"Feeding JSON into {topic}\n{json.dumps(message, indent=4)}")
    with _opened(place) as bus:
        bus.append(topic, [data])
    log.info("Successfully fed item to Kafka")
    return 0


def _dump(place: RequestsPlace, args: argparse.Namespace) -> int:
    with _opened(place) as bus:
        reader = bus.reader(args.topic, None, from_end=True)
        try:
            signal.signal(signal.SIGTERM, _interrupt)
            err(f"reading {args.topic} from now on; Ctrl-C ends it")
            _print(reader, pretty=args.pretty)
        except KeyboardInterrupt:
            return 0
        finally:
            reader.close()


def _print(reader: TopicReader, *, pretty: bool) -> NoReturn:
    while True:
        for message in reader.read(100, 1.0):
            text = message.value.decode("utf-8", "backslashreplace")
            try:
                found = json.loads(text)
            except (ValueError, RecursionError):
                out(text)
                continue
            print(json.dumps(found, indent=4 if pretty else None, sort_keys=True))
        sys.stdout.flush()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _list(place: RequestsPlace, _: argparse.Namespace) -> int:
    with _opened(place) as bus:
        out(*bus.topics())
    return 0


def _policy(place: RequestsPlace, args: argparse.Namespace) -> int:
    text = _read(args.file)
    accounts = place.open_accounts()
    try:
        messages = [*policy_messages(text, args.file, accounts.policy())]
    finally:
        accounts.close()
    with _opened(place) as bus:
        _send(bus, place, messages)
    out(f"{len(messages)} changes are sent; each is answered on the outbound topic")
    return 0


def _migrate(place: RequestsPlace, args: argparse.Namespace) -> int:
    counts = MigratedMessages()
    policy = [*policy_messages(read_zookeeper(args.zookeeper), args.zookeeper)] if args.zookeeper else []
    counts.policy = len(policy)
    client = open_redis(args.redis, _read(args.password_file).decode().strip() if args.password_file else "")
    messages = _all(policy, queued_messages(client, counts))
    try:
        if args.dry_run:
            for _ in messages:
                pass
        else:
            with _opened(place) as bus:
                _send(bus, place, messages)
    finally:
        client.close()
    verb = "would be sent" if args.dry_run else "are sent"
    out(f"{counts.requests} requests, {counts.stopped} stopped crawls, {counts.policy} rates and bans {verb}")
    if counts.unread:
        out(f"{counts.unread} items are left out; the first: {counts.why}")
    return 1 if counts.unread else 0


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise Unavailable(path, disk.reason(error, Path(path))) from error


def _all(first: Iterable[dict[str, Any]], then: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield from first
    yield from then


def _send(bus: Bus, place: RequestsPlace, messages: Iterable[dict[str, Any]]) -> None:
    topic, left = Topics.of(place.values()).incoming, iter(messages)
    while some := [json.dumps(message).encode() for message in islice(left, _TOGETHER)]:
        bus.append(topic, some)


def _test(place: RequestsPlace, _: argparse.Namespace) -> int:
    """Try each part; print a line for it."""
    parts: dict[str, Callable[[RequestsPlace], str]] = {
        "settings": _try_settings, "bus": _try_bus, "monitors": _try_monitors, "crawler": _try_crawler,
        "results": _try_results, "rest": _try_rest,
    }  # fmt: skip
    failed = 0
    for name, attempt in parts.items():
        try:
            out(f"{name}: {attempt(place)}")
        except WarcmillError as error:
            failed += 1
            out(f"{name}: fails: {error}")
    return 1 if failed else 0


def _try_settings(place: RequestsPlace) -> str:
    return f"ok, {len(place.values())} of them"


def _try_bus(place: RequestsPlace) -> str:
    """Send a message to a topic that nobody else reads, and read it."""
    topic, message = f"{place.prefix}.incoming_test", uuid.uuid4().hex.encode()
    with _opened(place) as bus:
        reader = bus.reader(topic, None, from_end=True)
        try:
            bus.append(topic, [message])
            found = [one.value for one in reader.read(100, _TEST_SECONDS)]
        finally:
            reader.close()
    if message not in found:
        raise Unavailable(place.bus, f"a message to {topic} did not come back within {_TEST_SECONDS:.0f} s")
    return f"ok, a message went through {topic}"


def _try_monitors(place: RequestsPlace) -> str:
    alive = _alive(place, KAFKA) and _alive(place, REDIS)
    if not alive:
        raise NotReady("requests", "none takes them; start: warcmill run requests")
    return f"ok, {alive} alive"


def _try_crawler(place: RequestsPlace) -> str:
    home_of(place)  # one that serves no requests is refused
    with closing(running_job(place.job)) as crawl:
        state = crawl.ask("state")
    if not isinstance(state, dict):
        raise BadInput(place.job, "its control socket does not answer with a state")
    return f"ok, launch {state['launch']} of {place.job}: {state['state']}"


def _try_results(place: RequestsPlace) -> str:
    if found := damaged_lines(place):
        lines = "1 line was" if len(found) == 1 else f"{len(found)} lines were"
        why = f"{lines} damaged, and not sent; look, then remove {DAMAGED} of the state"
        raise BadInput(found[0], why)
    if place.redis and not _alive(place, HOME):
        raise NotReady("results", NO_HOME)
    return "ok, none was damaged"


def _try_rest(place: RequestsPlace) -> str:
    alive = _alive(place, REST)
    if not alive:
        return "not running; start it, if you want it: warcmill run rest"
    return f"ok, {alive} alive"


def _alive(place: RequestsPlace, role: str) -> int:
    accounts = place.open_accounts()
    try:
        return sum(map(len, accounts.lives(role).values()))
    finally:
        accounts.close()


@contextmanager
def _opened(place: RequestsPlace) -> Iterator[Bus]:
    bus = place.open_bus()
    try:
        yield bus
    finally:
        bus.close()


_ACTIONS: dict[str, Callable[[RequestsPlace, argparse.Namespace], int]] = {
    "feed": _feed, "dump": _dump, "list": _list, "policy": _policy, "test": _test, "migrate": _migrate,
}  # fmt: skip
