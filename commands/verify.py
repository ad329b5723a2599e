"""warcmill verify: compare the stored bytes, or the copies outside, with the markers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from rich.text import Text

from commands.console.arguments import LAST, Interval, add_json, add_scope
from commands.console.launches import point_to
from commands.console.progress import bytes_done
from commands.console.show import as_json, counted, err, heading
from commands.console.terminal import console, lines
from tasks.line import OpenRoots, open_line
from warcmill.audit.fixity_audit import FixityFinding, FixityPlan, read_again, work
from warcmill.audit.survey import in_order
from warcmill.base.escapes import printable
from warcmill.errors import BadInput
from warcmill.launches.discovery import with_markers
from warcmill.model import Json, Launch

SUMMARY = "read archived files again and compare them with their markers"
EPILOG = f"""\
examples:
  warcmill verify
  warcmill verify daily 20161019234428
  warcmill verify 2016-10
  warcmill verify 2016-10 --json | jq -r '.findings[].name'
  warcmill verify --outside 2016-10

Without INTERVAL or LAUNCH: the last {LAST} days (UTC), today included.

Reads completely: every file that files.copied and files.verified name, to compare its
length and SHA-512; every log in the zips of logs; every marker. Takes as long as the
disk needs. Names a marker that leaves out a file of its stage. Files that no marker
names are not read: 'warcmill reconcile' lists what is missing. Nothing is changed.

--outside looks at what was handed over instead: each SIP where the ingesting system
puts it (read completely), its receipt at the destination, the captures at the CDX
server (of a WARC at most 1,000), the documents in Solr (counted by WARC, collection
and host; some are compared). 'warcmill status' prints when that was last done.

--json: {{"launches", "files", "zips", "bytes": numbers, "findings": [{{"job", "launch_id",
"name", "why", "todo", "unavailable": true when it could not be read}}]}}
--outside: {{"looked_at": {{"SIPs", "receipts", "captures", "documents": numbers}},
"not_set": [what is not configured], "findings" as above; job and launch_id are "" for
a place that does not answer}}

exit codes: 0 everything matches the markers, 1 something does not, 2 usage, 3 configuration,
4 something could not be read (the rest was)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """INTERVAL or JOB LAUNCH, --outside, --json."""
    add_scope(parser, optional=True)
    parser.add_argument("--outside", action="store_true", help="look again at what was handed over, not at the archive")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Read everything again; print each difference when it is found; the worst decides."""
    line, target = open_line(), console()
    if args.outside:
        from commands.console import outside  # with the clients of all that is outside

        return outside.run(line, asked(line, args.scope), _in_words(args.scope), as_answer=args.json)
    todo = [work(line.state, launch) for launch in asked(line, args.scope)]
    if isinstance(args.scope, Launch) and not any(each.zips or each.findings for each in todo):
        raise BadInput(
            str(args.scope), "it has no marker, so there is nothing to verify; warcmill status INTERVAL lists launches"
        )
    findings = []
    if isinstance(args.scope, Interval):
        if args.scope.note:  # not the days that were typed
            err(heading(args.scope, len(todo)))
        point_to(line, todo, "verify")
    with bytes_done("verifying", sum(each.size for each in todo)) as advance:
        for finding in (found for each in todo for found in read_again(line.state, line.store, each, advance)):
            findings.append(finding)
            if not args.json:
                lines(target, *_texts(finding))
    if args.json:
        print(as_json(_json(todo, findings)))
    else:
        lines(target, _verdict(todo, findings))
    if any(finding.unavailable for finding in findings):
        return 4
    return 1 if findings else 0


def _sums(todo: list[FixityPlan]) -> dict[str, int]:
    return {
        "launches": len(todo),
        "files": sum(len(each.stored) for each in todo),
        "zips": sum(len(each.zips) for each in todo),
        "bytes": sum(each.size for each in todo),
    }


def asked(line: OpenRoots, scope: Interval | Launch) -> tuple[Launch, ...]:
    """The launches to read again: those with markers. The engines' disks are not needed."""
    if isinstance(scope, Launch):
        return (scope,)
    return in_order(with_markers(line.state, scope.first, scope.end))


def _in_words(scope: Interval | Launch) -> str:
    return str(scope) if isinstance(scope, Launch) else f"{scope.first} to {scope.last}"


def _texts(finding: FixityFinding) -> Iterator[Text]:
    yield Text(printable(finding.name), style="bold red")
    yield Text(f"    {printable(finding.why)}")
    yield Text(f"    -> {printable(finding.todo)}", style="cyan")


def _verdict(todo: list[FixityPlan], findings: list[FixityFinding]) -> Text:
    sums = _sums(todo)
    launches = counted(sums["launches"], "launch", "launches")
    files = counted(sums["files"], "stored file", "stored files")
    zips = counted(sums["zips"], "zip of logs", "zips of logs")
    read = f"{launches}: {files} and {zips}, {sums['bytes']:,} bytes"
    verdict = f"{len(findings)} not as the markers record" if findings else "all as the markers record"
    return Text.assemble(f"{read}: ", (verdict, "bold red" if findings else "bold green"))


def _json(todo: list[FixityPlan], findings: list[FixityFinding]) -> dict[str, Json]:
    return {**_sums(todo), "findings": [_finding(finding) for finding in findings]}


def _finding(finding: FixityFinding) -> dict[str, Json]:
    return {
        "job": finding.launch.job,
        "launch_id": finding.launch.id,
        "name": finding.name,
        "why": finding.why,
        "todo": finding.todo,
        "unavailable": finding.unavailable,
    }
