"""warcmill verify: are the stored bytes, now, what the markers say?"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from rich.text import Text

from commands.arguments import Interval, add_json, add_scope
from commands.progress import bytes_done
from commands.show import as_json, console, counted, lines, printable
from tasks.step import Line, open_line
from warcmill.errors import BadInput
from warcmill.model import Json, Launch
from warcmill.reread import Finding, Work, read_again, work
from warcmill.survey import in_order, with_markers

SUMMARY = "read archived files again and compare them with their markers"
EPILOG = """\
examples:
  warcmill verify daily 20161019234428
  warcmill verify 2016-10
  warcmill verify 2016-10 --json | jq -r '.findings[].name'

Reads again, now: every file that files.copied and files.verified name, its length
and its SHA-512 by reading all of it; every log in the zips of logs; every marker.
Takes as long as the disk needs for that. A marker that leaves out a file of its stage
is named. What no marker names is not looked at: 'warcmill reconcile' lists what is missing. Nothing is changed.

--json: {"launches", "files", "zips", "bytes": numbers, "findings": [{"job", "launch_id",
"name", "why", "todo", "unavailable": true when it could not be read}]}

exit codes: 0 all as the markers say, 1 something is not, 2 usage, 3 configuration,
4 something could not be read (the rest was)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """INTERVAL or JOB LAUNCH, --json."""
    add_scope(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Read everything again; print what differs as soon as it is found; the worst decides."""
    line, target = open_line(), console()
    todo = [work(line.state, launch) for launch in asked(line, args.scope)]
    if isinstance(args.scope, Launch) and not any(one.zips or one.findings for one in todo):
        raise BadInput(str(args.scope), "it has no marker, so nothing is promised of it; warcmill status INTERVAL")
    findings = []
    with bytes_done("verifying", sum(one.size for one in todo)) as advance:
        for finding in (one for each in todo for one in read_again(line.state, line.store, each, advance)):
            findings.append(finding)
            if not args.json:
                lines(target, *_texts(finding))
    if args.json:
        print(as_json(_json(todo, findings)))
    else:
        lines(target, _verdict(todo, findings))
    if any(one.unavailable for one in findings):
        return 4
    return 1 if findings else 0


def _sums(todo: list[Work]) -> dict[str, int]:
    return {
        "launches": len(todo),
        "files": sum(len(one.stored) for one in todo),
        "zips": sum(len(one.zips) for one in todo),
        "bytes": sum(one.size for one in todo),
    }


def asked(line: Line, scope: Interval | Launch) -> tuple[Launch, ...]:
    """The launches to read again: those with markers. The engines' disks are not needed."""
    if isinstance(scope, Launch):
        return (scope,)
    return in_order(with_markers(line.state, scope.first, scope.end))


def _texts(one: Finding) -> Iterator[Text]:
    yield Text(printable(one.name), style="bold red")
    yield Text(f"    {printable(one.why)}")
    yield Text(f"    -> {printable(one.todo)}", style="cyan")


def _verdict(todo: list[Work], findings: list[Finding]) -> Text:
    sums = _sums(todo)
    launches = counted(sums["launches"], "launch", "launches")
    files = counted(sums["files"], "stored file", "stored files")
    zips = counted(sums["zips"], "zip of logs", "zips of logs")
    read = f"{launches}: {files} and {zips}, {sums['bytes']:,} bytes"
    verdict = f"{len(findings)} not as the markers say" if findings else "all as the markers say"
    return Text.assemble(f"{read}: ", (verdict, "bold red" if findings else "bold green"))


def _json(todo: list[Work], findings: list[Finding]) -> dict[str, Json]:
    return {**_sums(todo), "findings": [_finding(one) for one in findings]}


def _finding(one: Finding) -> dict[str, Json]:
    return {
        "job": one.launch.job,
        "launch_id": one.launch.id,
        "name": one.name,
        "why": one.why,
        "todo": one.todo,
        "unavailable": one.unavailable,
    }
