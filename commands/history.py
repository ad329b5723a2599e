"""warcmill history: list who did what and when: actions from pages, editions of jobs, decisions."""

from __future__ import annotations

import argparse
from datetime import date
from itertools import islice

from commands.console.arguments import DAYS, add_json, interval
from commands.console.show import as_json, err, out, write_rows
from tasks.line import open_line
from warcmill.web.history import COLUMNS, DeedFilter, deeds

SUMMARY = "list who did what and when: actions from pages, editions of jobs, decisions"
EPILOG = """\
examples:
  warcmill history
  warcmill history 2016-10 --who anna
  warcmill history --what hide --limit 0
  warcmill history --job daily --what edition --csv

The newest first. --what is a kind (action, edition, access, accepted, documents, generations)
or a word: that of an action (start, scan, hide ...), hide or unhide. Actions are verbs that
pages started. What a verb of a terminal rules is here as its decision or edition; what it
states of one launch (close, accept) is in the launch's marker: warcmill why JOB LAUNCH.

--json: {"deeds": [{"about", "end", "id", "job", "kind", "time", "what", "who", "why"}]};
end is how an action ended. --csv: the same columns without id

exit codes: 0 listed, also if nobody did such a thing, 2 usage, 3 configuration,
4 the state did not answer
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[INTERVAL] --who NAME --what WORD --job JOB --limit N, --json or --csv."""
    parser.add_argument("interval", type=interval, metavar="INTERVAL", nargs="?", help=f"{DAYS} (default: all)")
    parser.add_argument("--who", default="", metavar="NAME", help="of the token, the proxy's user or the system's")
    parser.add_argument("--what", default="", metavar="WORD", help="a kind, or the word of an action")
    parser.add_argument("--job", default="", metavar="JOB", help="what was done to this job")
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="at most so many; 0: all; by default 100")
    add_json(parser)
    parser.add_argument("--csv", action="store_true", help="rows for a spreadsheet")


def run(args: argparse.Namespace) -> int:
    """List the deeds that fit."""
    if args.json and args.csv:
        err("warcmill history: --json or --csv, not both")
        return 2
    days = (_begin(args.interval.first), _begin(args.interval.end)) if args.interval else ("", "")
    found = deeds(open_line().state.store, DeedFilter(args.who, args.what, args.job, *days))
    listed = list(islice(found, args.limit if args.limit > 0 else None))
    if args.json:
        print(as_json({"deeds": [one.json() for one in listed]}))
    elif args.csv:
        write_rows(COLUMNS, (one.row() for one in listed))
    else:
        for one in listed:
            out("  ".join(filter(None, (one.time, one.who or "-", one.what or one.kind, one.job, one.about, one.why))))
    return 0


def _begin(day: date) -> str:
    return f"{day}T00:00:00Z"
