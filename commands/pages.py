"""warcmill pages: list what a launch asked for: pages that it got, URLs that it did not get, and what changed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator

from commands.console.arguments import add_json, add_launch
from commands.console.launches import launch_of
from commands.console.show import as_json, counted, err, out, write_rows
from tasks.audited import audited
from tasks.config.settings import NO_INDEX
from tasks.line import OpenRoots, open_line
from warcmill.audit.answers import explanation
from warcmill.errors import BadConfig, NotReady
from warcmill.model import Json, Launch
from warcmill.reports import pages
from warcmill.reports.pages import CHANGES, ChangedUrl, LaunchPages, ListedSite, ListedUrl, ListFilter
from warcmill.reports.sentence import sentence
from warcmill.stores.opening import open_folder

SUMMARY = "list the pages of a launch, what it did not get and why, and what changed"
EPILOG = """\
examples:
  warcmill pages daily
  warcmill pages daily 20161019234428 --words 'annual report'
  warcmill pages daily --host www.example.org --type application/pdf
  warcmill pages daily --all --csv > urls.csv
  warcmill pages daily --not-got
  warcmill pages daily --not-got --why 'its server answered 404 (Not Found)'
  warcmill pages daily --changed new
  warcmill pages daily --sites

Each URL that the launch asked for is in the list once, with its last answer: got or not got,
so the sums add up. Pages are what a person reads and what did not come as a part of a page;
--all lists pictures, styles and scripts too. Titles are those of the index of text. Without
LAUNCH: the newest of the job; without JOB: the newest of all. --changed compares with the
launch of the job before it: new, changed, gone (404 or 410 now) or not visited. --sites
lists the hosts, each with its sums.

The list is made from the stored logs and from the extracts of text when it is first asked
for, and again when there is more; it is kept in the index root. --made-only uses the list
that is there, however old.

--json: {"job", "launch_id", "made", "before": the launch that it is compared with, "lacking":
what is not in the list, "sums": {"asked", "got", "not_got", "pages", "hosts", "sites": hosts with
a page, "why": {reason: number}, "changes": {kind: number}}, "urls": [{"url", "got", "status", "type", "size", "time",
"title", "via", "hops", "why"}]}; with --changed "urls": [{"url", "change", "why"}]; with
--sites "urls": [{"host", "pages", "got", "not_got"}].
--csv: the same columns. Both list every row, unless --limit is given.

exit codes: 0 listed, 1 no such launch, or none of its stages is verified yet, 2 usage,
3 configuration, 4 a root or the store did not answer
"""
SHOWN = 50  # rows for a person
_COLUMNS = ("url", "got", "status", "type", "size", "time", "title", "via", "hops", "why")
_SITE = ("host", "pages", "got", "not_got")
_Row = ListedUrl | ChangedUrl | ListedSite


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[JOB [LAUNCH]], what is wanted of the list, --limit, --json or --csv."""
    add_launch(parser, optional=True)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--all", action="store_true", help="all that was got, also parts of pages")
    what.add_argument("--not-got", action="store_true", help="what was not got, with the reason")
    what.add_argument("--changed", nargs="?", const="", choices=("", *CHANGES), metavar="KIND",
                      help=f"what changed since the launch before: {', '.join(CHANGES)}")  # fmt: skip
    what.add_argument("--sites", action="store_true", help="the hosts, each with its sums")
    parser.add_argument("--words", default="", metavar="WORDS", help="that are in the title or in the URL")
    parser.add_argument("--host", default="", metavar="HOST", help="of one host")
    parser.add_argument("--type", default="", metavar="TYPE", help="of a media type")
    parser.add_argument(
        "--status", type=int, metavar="NUMBER", help="with a status of HTTP, or a code below zero of the crawler"
    )
    parser.add_argument("--why", default="", metavar="TEXT", help="that were not got for this reason")
    parser.add_argument("--limit", type=int, metavar="N", help=f"so many; {SHOWN} for a person, else all")
    parser.add_argument("--made-only", action="store_true", help="make no list anew")
    add_json(parser)
    parser.add_argument("--csv", action="store_true", help="rows for a spreadsheet")


def run(args: argparse.Namespace) -> int:
    """Make the list where it is missing or old; print what is wanted of it."""
    if args.json and args.csv:
        err("warcmill pages: --json or --csv, not both")
        return 2
    line = open_line()
    if not line.settings.index:
        raise BadConfig("[warcmill] index", f"is not set, {NO_INDEX}")
    launch, index = launch_of(line, args, in_state=True), open_folder("index", line.settings.index)
    if not args.made_only:
        pages.make(line.state, line.store, index, launch)
    with pages.opened(line.state, index, launch) as listed:
        if listed is None:
            raise NotReady(
                f"the list of pages of {launch}", f"it is not made yet: warcmill pages {launch.job} {launch.id}"
            )
        rows = _rows(listed, args)
        if args.json:
            _print_json(launch, listed, rows)
        elif args.csv:
            heads = _SITE if args.sites else ("url", "change", "why") if args.changed is not None else _COLUMNS
            write_rows(heads, ([one.json()[name] for name in heads] for one in rows))
        else:
            _print(line, launch, listed, rows, args)
    return 0


def _filter(args: argparse.Namespace) -> ListFilter:
    only_pages = not (args.all or args.not_got)
    return ListFilter(not args.not_got, only_pages, args.host, args.status, args.type, args.why, args.words)


def _rows(listed: LaunchPages, args: argparse.Namespace) -> Iterator[_Row]:
    """The rows that are wanted, read some at a time."""
    left = args.limit if args.limit is not None else sys.maxsize if args.json or args.csv else SHOWN
    after, wanted = 0, _filter(args)
    while left > 0:
        most = min(left, pages.MOST)
        some: list[ListedUrl] | list[ChangedUrl] | list[ListedSite]
        if args.sites:
            some = listed.sites(after, most)
        else:
            is_changed = args.changed is not None
            some = listed.changes(args.changed, after, most) if is_changed else listed.rows(wanted, after, most)
        yield from some
        left -= len(some)
        if len(some) < most:
            return
        after = some[-1].id


def _print_json(launch: Launch, listed: LaunchPages, rows: Iterator[_Row]) -> None:
    head: dict[str, Json] = {
        "before": listed.before, "job": launch.job, "lacking": [*listed.lacking], "launch_id": launch.id,
        "made": listed.made, "sums": listed.sums().json(),
    }  # fmt: skip
    sys.stdout.write(f'{as_json(head).rstrip().removesuffix("}").rstrip()},\n "urls": [')
    for number, one in enumerate(rows):
        sys.stdout.write(f"{',' if number else ''}\n  {json.dumps(one.json(), sort_keys=True)}")
    print("\n ]\n}")


def _print(
    line: OpenRoots, launch: Launch, listed: LaunchPages, rows: Iterator[_Row], args: argparse.Namespace
) -> None:
    sums, known = listed.sums(), explanation.read(audited(line).state_alone(), launch)
    out(f"{launch}: {sentence(sums, known.seen.ended, known.seen.cut, len(known.gaps))}")
    hosts = counted(sums.hosts, "host", "hosts")
    out(f"{sums.asked:,} asked = {sums.got:,} got + {sums.not_got:,} not got, of {hosts}")
    for why, number in sums.whys.items():
        out(f"  {number:>9,}  {why}")
    for one in listed.lacking:
        err(f"not in the list: {one}")
    if listed.before:
        changes = ", ".join(f"{number:,} {kind}" for kind, number in sums.changes.items())
        out(f"beside launch {listed.before}: {changes}")
    last = 0
    for number, row in enumerate(rows, 1):
        last = number
        if isinstance(row, ListedSite):
            numbers = f"{row.got + row.not_got:>9,} asked = {row.got:>9,} got + {row.not_got:>9,} not got"
            out(f"{row.pages:>9,} pages  {numbers}  {row.host}")
        elif isinstance(row, ChangedUrl):
            out(f"{row.kind:<11}  {row.url}{f': {row.why}' if row.why else ''}")
        else:
            title, why = f"  {row.title}" if row.title else "", f": {row.why}" if row.why else ""
            out(f"{row.status or '':>5}  {row.url}{title}{why}")
    if last == (args.limit or SHOWN):
        err(f"the first {last:,}; --limit N shows more, --csv all")
