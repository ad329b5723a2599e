"""warcmill reconcile: list what the engines wrote and the archive lacks."""

from __future__ import annotations

import argparse

from commands.console import gaps
from commands.console.arguments import LAST, Interval, add_interval, add_json
from commands.console.comparison import show
from commands.console.launches import point_to, report_away, report_unreachable
from commands.console.show import as_json
from commands.console.terminal import console
from tasks.audited import audited
from tasks.line import open_line
from warcmill.audit.answers import comparison

SUMMARY = "compare disk, packages and archive, and list the gaps"
EPILOG = f"""\
examples:
  warcmill reconcile
  warcmill reconcile 2016-10
  warcmill reconcile 2016-10-01-2016-11-01
  warcmill reconcile 2016-10 --json | jq -r '.launches[].gaps[].name'

Without INTERVAL: the last {LAST} days (UTC), today included.

One row per stage. All columns count WARCs, except the last, which counts markers:
on disk; packed: the stage's logs are packed; assembled: on the stage's frozen list;
checksummed; stored; verified: the stored copy was compared (both count only files that
the store lists now with the right length; 'warcmill verify' reads them); refused: the
bytes are wrong for good; unnamed: on disk, but in no crawl log; stale: markers based on
a claim that is no longer current. The last stage of a launch also counts the WARCs that
no stage has yet.

Then the gaps: their names, why, and the command to type next, of each kind the first ten
and how many more (--json lists all); last the crawls that were due in these days, by
[job.NAME], and have no launch. First the gaps to repair,
then those to redo, then those that can only be accepted. A running launch has no gaps
for what is still to come. A finding that an operator has accepted ('warcmill accept')
is listed as accepted, and is not a gap. Of more than 500 launches, those that ended
without a gap are counted and not listed. Nothing is changed.

--json: {{"first_day", "last_day", "gaps", "of_no_launch": [{{"job", "kind", "name", "why",
"todo"}}: due crawls], "odd": [text], "bare": [text: a root that holds no launch at all,
and what is there instead], "away": [{{"what", "why", "todo"}}: roots that did not answer],
"totals": {{column: number}}, "launches": [{{"job",
"launch_id", "ended": "" while it runs, "stages": [{{"stage", "closed", column: number}}],
"gaps" and "accepted": [{{"stage": "" for the launch as a whole, "kind", "name", "why",
"todo"}}], "cut" and "history" as status has them}}]}}

exit codes: 0 no gap, 1 one or more gaps, or a root whose launches are in other places
than configured, 2 usage, 3 configuration, 4 a disk or a folder did not answer (what could
be read is reported)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """INTERVAL, --json."""
    add_interval(parser, optional=True)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Check every launch of the interval; print; the worst decides."""
    line = open_line()
    days: Interval = args.interval
    known = comparison.read(audited(line), days.first, days.end)
    point_to(line, known.discovered.launches, "reconcile")
    if args.json:
        print(as_json(known.json()))
    else:
        show(console(), days, known)
    report_unreachable(known.discovered)
    gaps.report_away(known.due)
    report_away(known.away)
    return known.exit_code
