"""warcmill feed check: check a feed, and show its content."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator

from commands.console.arguments import add_json
from commands.console.show import as_json, out
from warcmill.base.schedule import NAMED
from warcmill.clients import feed_source
from warcmill.errors import BadInput
from warcmill.formats.feed import Depth, Feed, Target, TargetScope, read
from warcmill.model import Json

SUMMARY = "check a crawl feed for faults, and count its targets"
EPILOG = """\
examples:
  warcmill feed check /srv/feeds/targets.jsonl
  warcmill feed check targets.json --json | jq -r '.faults[].where'

Reads JSON Lines, or one JSON list, of targets. Names every faulty target by its line or
its place in the list; a crawl leaves such targets out. Then counts the sound targets, and
their schedules, by depth, scope and frequency. Needs no line and no configuration.

Notes are not faults: a seed without a scheme is crawled by https and by http; a
schedule with a frequency that Warcmill does not have is skipped.

A target that needs a login (loginPageUrl, secretId) is crawled as anyone sees it:
crawls do not log in. Such targets are named, and are not a fault.

--json: {"targets", "seeds", "depths", "scopes", "frequencies", "ignore_robots",
"refresh", "without_login": [id], "faults": [{"where", "why"}], "notes": [{"where", "why"}]}

exit codes: 0 sound, 1 faults, or no targets, 2 usage, 4 it could not be read
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """check FILE, --json."""
    parser.add_argument("action", choices=("check",), help="what to do with it")
    parser.add_argument("file", metavar="FILE", help="a feed")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Check the feed and print what it contains. Exit 1 for any fault, and for a feed without targets."""
    feed = read(feed_source.read_file(args.file), args.file)
    if args.json:
        print(as_json({**counted(feed.targets), "faults": _json(feed.left_out), "notes": _json(feed.notes)}))
    else:
        for line in _lines(feed):
            out(line)
    return int(bool(feed.left_out) or not feed.targets)


def _json(faults: list[BadInput]) -> list[Json]:
    return [{"where": fault.path, "why": fault.why} for fault in faults]


def counted(targets: list[Target]) -> dict[str, Json]:
    """The number of targets by kind. A target counts once for each of its frequencies."""
    by_target = ({schedule.frequency for schedule in target.schedules} for target in targets)
    frequencies = [frequency for of_target in by_target for frequency in of_target]
    return {
        "targets": len(targets),
        "seeds": sum(len(target.seeds) for target in targets),
        "depths": _tally(Depth, (target.depth for target in targets)),
        "scopes": _tally(TargetScope, (target.scope for target in targets)),
        "frequencies": _tally(NAMED, frequencies),
        "refresh": sum(any(schedule.refresh for schedule in target.schedules) for target in targets),
        "ignore_robots": sum(target.ignore_robots for target in targets),
        "without_login": [target.id for target in targets if target.needs_login],
    }


def _tally(words: Iterable[str], values: Iterable[object]) -> dict[str, Json]:
    """The number of times that each word occurs: the known words first, then others."""
    counts = Counter(map(str, values))
    known = [str(word) for word in words]
    return {word: counts[word] for word in [*known, *sorted(set(counts) - set(known))]}


def _lines(feed: Feed) -> Iterator[str]:
    yield from (str(fault) for fault in feed.left_out)
    yield from (f"note: {note}" for note in feed.notes)
    for name, value in counted(feed.targets).items():
        if isinstance(value, dict):
            yield f"{name:<14}" + ", ".join(f"{number} {word}" for word, number in value.items())
        elif isinstance(value, list):
            yield f"{name:<14}{len(value)}" + (f": {', '.join(map(str, value))}" if value else "")
        else:
            yield f"{name:<14}{value}"
    faults = len(feed.left_out)
    yield f"{faults} {'fault' if faults == 1 else 'faults'}" if faults else "sound" if feed.targets else "no target"
