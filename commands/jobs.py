"""warcmill jobs: list all jobs at a glance, what is due, and how long the disks last. Reads the state."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime

from rich.text import Text

from commands.console.arguments import add_json
from commands.console.show import as_json, out
from commands.console.terminal import console, lines, styled
from tasks.audited import audited
from tasks.line import open_line
from warcmill.audit.answers import job_list
from warcmill.audit.answers.attention import DUE_DAYS
from warcmill.audit.answers.job_list import DiskRoom, ListedJob
from warcmill.audit.progress_grid import STYLES

SUMMARY = "list all jobs: the newest launch of each, when it is due, and what needs a person"
EPILOG = f"""\
examples:
  warcmill jobs
  warcmill jobs news --tag daily
  warcmill jobs --due
  warcmill jobs --json | jq -r '.jobs[] | select(.newest.seeds_not_got > 0) | .job'

WORDS: only jobs that have each of them in their name, title, tags or owner. A line a job: its
name and title, the newest launch with the URLs that it got and did not get, and the bytes of
its WARCs; when it is due next, in UTC and by the clocks of its time zone; the seeds that were
not got, the findings that need a person, and the crawls of the last {DUE_DAYS} days that never ran.
Last come the disks into which WARCs are written, and how long they last at the pace of the
launches of the last {job_list.PACE_DAYS} days, as far as scans have seen them; no step that removes WARCs is
counted. Nothing is said of that where there are no launches of more than a day.

--due prints what is due in the next {job_list.DAYS} days instead, by day, in UTC. Reads the state alone: disks
are as 'warcmill health' saw them last.

--json: {{"jobs": [{{"job", "title", "tags", "owner", "wrong": why its papers cannot be read,
"engine", "kind", "driven", "frequency", "zone", "next_due", "next_due_there", "owed":
[{{"job", "kind", "name", "why", "todo"}}], "newest": null or {{"launch_id", "state", "ended",
"got", "not_got", "bytes": null where no marker has it, "seeds_not_got", "findings",
"error"}}, "older_findings", "past": [{{"launch_id", "state", "bytes"}}], "crawl"}}],
"deleted": [job], "disks": [{{"roots", "bytes_free", "asked", "first_day", "launches",
"bytes_a_day", "days": null without a pace}}], "wrong": [section of luigi.cfg and its fault]}}
--due: {{"days": [{{"day", "due": [{{"job", "title", "first", "there", "times"}}]}}]}}

exit codes: 0 listed, 2 usage, 3 configuration, 4 the state does not answer
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[WORDS], --tag, --due, --json."""
    parser.add_argument("words", nargs="*", metavar="WORDS", help="only jobs that have them")
    parser.add_argument("--tag", default="", metavar="WORD", help="only jobs with this tag")
    parser.add_argument("--due", action="store_true", help="what is due in the next weeks, by day")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Read; print."""
    found = job_list.read(audited(open_line()).state_alone())
    chosen = found.chosen(" ".join(args.words), args.tag)
    if args.due:
        days = job_list.calendar(chosen, datetime.now(UTC).replace(microsecond=0))
        if args.json:
            print(as_json(job_list.calendar_json(days)))
        for day, due in () if args.json else days.items():
            out(f"{day} {day:%a}{'' if due else ': nothing'}")
            out(*(f"  {one.first:%H:%M}  {one.job}{_aside(one.title)}{one.in_words}" for one in due))
        return 0
    if args.json:
        print(as_json(found.json(chosen)))
        return 0
    for one in chosen:
        lines(console(), *_job(one))
    if not chosen:
        number = len(found.jobs) - len(found.deleted)
        out(f"none of {number:,} jobs" if number else "there is no job; 'warcmill crawl URL' makes one")
    out(*(f"{error}" for error in found.wrong), *map(_disk, found.disks))
    return 0


def _job(one: ListedJob) -> Iterator[Text]:
    newest, due = one.newest, one.next_due
    tags = f" [{', '.join(one.about.tags)}]" if one.about.tags else ""
    yield styled(f"{one.job}{_aside(one.about.title)}{tags}")
    if newest:
        text = f"{newest.launch.id} {newest.mark}{_aside(newest.in_words)}"
        yield Text.assemble((f"  {newest.mark.shape} ", STYLES[newest.mark]), styled(text))
    when = f"{due.date()} {due:%H:%M} UTC{_aside(one.next_there)}" if due else "never" if one.schedule else "by hand"
    yield styled(f"    next due: {when}")
    for text in (*one.needs, one.about.wrong):
        if text:
            yield styled(f"    {text}", "red")


def _disk(one: DiskRoom) -> str:
    return f"disk of {' and '.join(one.roots)}: {one.free:,} bytes free at {one.asked}; {one.in_words}"


def _aside(text: str) -> str:
    return f", {text}" if text else ""
