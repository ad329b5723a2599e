"""warcmill feed check: is this feed sound, and what is in it?"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator

from commands.arguments import add_json
from commands.printing import out
from commands.show import as_json
from warcmill.clients import feed_source
from warcmill.errors import BadInput
from warcmill.formats.feed import Depth, Feed, Scope, Target, read
from warcmill.model import Json
from warcmill.schedule import NAMED

SUMMARY = "check a crawl feed for faults, and count its targets"
EPILOG = """\
examples:
  warcmill feed check /srv/feeds/targets.jsonl
  warcmill feed check targets.json --json | jq -r '.faults[].where'

Reads JSON Lines, or one JSON list, a target each, and names every target that is
wrong, by its line or its place in the list. Such a target is left out of a crawl.
Then counts the sound ones, and their schedules, by depth, scope and frequency.
Needs no line and no configuration.

Notes are no faults: a seed without a scheme, which is crawled by https and http; a
schedule passed over, for its frequency is none that Warcmill crawls by.

A target that needs a login (loginPageUrl, secretId) is crawled as anybody sees it:
crawls do not log in. Such targets are named too, and are no fault.

--json: {"targets", "seeds", "depths", "scopes", "frequencies", "ignore_robots",
"refresh", "without_login": [id], "faults": [{"where", "why"}], "notes": [{"where", "why"}]}

exit codes: 0 sound, 1 there are faults, or no target, 2 usage, 4 it could not be read
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """check FILE, --json."""
    parser.add_argument("action", choices=("check",), help="what to do with it")
    parser.add_argument("file", metavar="FILE", help="a feed")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Check it, print what it holds; 1 for any fault, and for a feed of nothing."""
    found = read(feed_source.read_file(args.file), args.file)
    if args.json:
        print(as_json({**counted(found.targets), "faults": _json(found.faults), "notes": _json(found.notes)}))
    else:
        for line in _lines(found):
            out(line)
    return int(bool(found.faults) or not found.targets)


def _json(some: list[BadInput]) -> list[Json]:
    return [{"where": one.path, "why": one.why} for one in some]


def counted(targets: list[Target]) -> dict[str, Json]:
    """How many targets there are, and of which kinds; a target counts once for each frequency it has."""
    frequencies = [one for target in targets for one in {schedule.frequency for schedule in target.schedules}]
    return {
        "targets": len(targets),
        "seeds": sum(len(target.seeds) for target in targets),
        "depths": _tally(Depth, (target.depth for target in targets)),
        "scopes": _tally(Scope, (target.scope for target in targets)),
        "frequencies": _tally(NAMED, frequencies),
        "refresh": sum(any(one.refresh for one in target.schedules) for target in targets),
        "ignore_robots": sum(target.ignore_robots for target in targets),
        "without_login": [target.id for target in targets if target.needs_login],
    }


def _tally(words: Iterable[str], found: Iterable[object]) -> dict[str, Json]:
    """How often each word is found: the known ones first, then others that are there."""
    counts = Counter(map(str, found))
    known = [str(word) for word in words]
    return {word: counts[word] for word in [*known, *sorted(set(counts) - set(known))]}


def _lines(found: Feed) -> Iterator[str]:
    yield from (str(fault) for fault in found.faults)
    yield from (f"note: {note}" for note in found.notes)
    for name, value in counted(found.targets).items():
        if isinstance(value, dict):
            yield f"{name:<14}" + ", ".join(f"{number} {word}" for word, number in value.items())
        elif isinstance(value, list):
            yield f"{name:<14}{len(value)}" + (f": {', '.join(map(str, value))}" if value else "")
        else:
            yield f"{name:<14}{value}"
    faults = len(found.faults)
    yield f"{faults} {'fault' if faults == 1 else 'faults'}" if faults else "sound" if found.targets else "no target"
