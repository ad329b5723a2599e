"""warcmill feed check: is this feed sound, and what is in it?"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum

from commands.arguments import add_json
from commands.show import as_json, printable
from warcmill.clients import feed_source
from warcmill.errors import BadInput
from warcmill.formats.feed import Depth, Scope, Target, examine
from warcmill.model import Json
from warcmill.schedule import Frequency

SUMMARY = "check a crawl feed for faults, and count its targets"
EPILOG = """\
examples:
  warcmill feed check /srv/feeds/targets.jsonl
  warcmill feed check targets.json --json | jq -r '.faults[].where'

Reads JSON Lines, or one JSON list, a target each, and names every target that is
wrong, by its line or its place in the list. Then counts the sound ones, and their
schedules, by depth, scope and frequency. Needs no line and no configuration.

A target that needs a login (loginPageUrl, secretId) is crawled as anybody sees it:
crawls do not log in. Such targets are named too, and are no fault.

--json: {"targets", "seeds", "depths", "scopes", "frequencies", "ignore_robots",
"without_login": [id], "faults": [{"where", "why"}]}

exit codes: 0 sound, 1 there are faults, or no target, 2 usage, 4 it could not be read
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """check FILE, --json."""
    parser.add_argument("action", choices=("check",), help="what to do with it")
    parser.add_argument("file", metavar="FILE", help="a feed")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Check it, print what it holds; 1 for any fault, and for a feed of nothing."""
    targets, faults = examine(feed_source.read_file(args.file), args.file)
    if args.json:
        print(as_json({**counted(targets), "faults": [{"where": one.path, "why": one.why} for one in faults]}))
    else:
        for line in _lines(targets, faults):
            print(printable(line))
    return int(bool(faults) or not targets)


def counted(targets: list[Target]) -> dict[str, Json]:
    """How many targets there are, and of which kinds; a target counts once for each frequency it has."""
    frequencies = [one for target in targets for one in {schedule.frequency for schedule in target.schedules}]
    return {
        "targets": len(targets),
        "seeds": sum(len(target.seeds) for target in targets),
        "depths": _tally(Depth, [target.depth for target in targets]),
        "scopes": _tally(Scope, [target.scope for target in targets]),
        "frequencies": _tally(Frequency, frequencies),
        "ignore_robots": sum(target.ignore_robots for target in targets),
        "without_login": [target.id for target in targets if target.needs_login],
    }


def _tally(words: type[StrEnum], found: list[StrEnum] | list[Depth] | list[Scope] | list[Frequency]) -> dict[str, Json]:
    counts = Counter(map(str, found))
    return {str(word): counts[word] for word in words}


def _lines(targets: list[Target], faults: list[BadInput]) -> Iterator[str]:
    yield from (str(fault) for fault in faults)
    for name, value in counted(targets).items():
        if isinstance(value, dict):
            yield f"{name:<14}" + ", ".join(f"{number} {word}" for word, number in value.items())
        elif isinstance(value, list):
            yield f"{name:<14}{len(value)}" + (f": {', '.join(map(str, value))}" if value else "")
        else:
            yield f"{name:<14}{value}"
    many = "fault" if len(faults) == 1 else "faults"
    yield f"{len(faults)} {many}" if faults else "sound" if targets else "no target"
