"""The frontier of a job as a whole, for `warcmill job`: dump and load it. Talks to Redis, and to a crawl."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from commands.console.show import as_json, out
from tasks.config import engines
from warcmill.crawl.engine import WarcmillEngine
from warcmill.crawl.launch import intake
from warcmill.crawl.launch.folders import Places
from warcmill.errors import BadConfig
from warcmill.model import Json

MOST_SHOWN = 100  # bad lines


def add_arguments(choices: Mapping[str, argparse.ArgumentParser]) -> None:
    """The arguments of each action."""
    choices["dump"].add_argument("file", type=Path, metavar="FILE", help="a new file; packed when its name ends .gz")
    choices["load"].add_argument(
        "file", type=Path, metavar="FILE", help="a dump, a list of URLs, or a frontier.recover.gz"
    )
    choices["load"].add_argument("--dry-run", action="store_true", help="read it, and load nothing")


def _places(job: str) -> Places:
    engine = engines.engine_of(job)
    engine.close()
    if not isinstance(engine, WarcmillEngine):
        raise BadConfig("kind", f"job {job} is crawled by {engine.kind}; only the built-in crawler has such a frontier")
    return engine.places


def _dump(args: argparse.Namespace) -> int:
    counts = intake.dump_to(_places(args.job), args.job, args.file)
    text = f"{args.file}: {counts['waiting']:,} URIs wait, {counts['visited']:,} were visited"
    _show(args, {"file": str(args.file), **counts}, text)
    return 0


def _load(args: argparse.Namespace) -> int:
    read, answers = intake.load(_places(args.job), args.job, args.file, args.dry_run)
    lines = [f"{args.file}, line {number}: {why}" for number, why in read.bad[:MOST_SHOWN]]
    lines += [f"... and {len(read.bad) - MOST_SHOWN:,} more"] if len(read.bad) > MOST_SHOWN else []
    lines += [f"{number:,} lines are left out: {why}" for why, number in sorted(read.left_out.items())]
    if args.dry_run:
        lines += [f"{read.waiting:,} URIs to load, {read.visited:,} visited, {len(read.bad):,} bad lines; nothing done"]
    else:
        words = ("new", "seen", "refused", "visited")
        lines += [", ".join(f"{answers[word]:,} {word}" for word in words) + f", {len(read.bad):,} bad lines"]
    found: dict[str, Json] = {
        "lines": read.number, "waiting": read.waiting, "visited": read.visited,
        "bad": [{"line": number, "why": why} for number, why in read.bad], "left_out": dict(read.left_out),
        "answers": dict(answers),
    }  # fmt: skip
    _show(args, found, *lines)
    return int(bool(read.bad or answers["refused"]))


def _show(args: argparse.Namespace, document: Mapping[str, Json], *lines: str) -> None:
    if args.json:
        print(as_json(dict(document)))
    else:
        out(*lines)


ACTIONS: Mapping[str, Callable[[argparse.Namespace], int]] = {"dump": _dump, "load": _load}
"""Each action, which returns the exit code."""
