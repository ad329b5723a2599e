"""warcmill files: list every WARC of some days or of a launch, with its state in each step."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import groupby

from rich.text import Text

from commands.console.arguments import LAST, Interval, add_json, add_scope
from commands.console.launches import point_to, report_away, report_unreachable
from commands.console.show import as_json, heading, in_words
from commands.console.terminal import console, lines, styled
from tasks.audited import audited
from tasks.line import open_line
from warcmill import chain
from warcmill.audit.answers import files
from warcmill.audit.answers.files import LaunchFiles
from warcmill.audit.answers.line import AuditedLine, each_once
from warcmill.audit.inventory import MARKS, NEVER, FileState, steps
from warcmill.audit.progress_grid import STYLES
from warcmill.base.escapes import printable
from warcmill.launches.discovery import Discovery
from warcmill.model import Launch

SUMMARY = "list every WARC with its state in each step"
EPILOG = f"""\
examples:
  warcmill files
  warcmill files 2016-10-19
  warcmill files daily 20161019234428
  warcmill files 2016-10 --lacking verify
  warcmill files 2016-10 --json | jq -r '.files[] | select(.steps.checksum == "refused") | .path'

Without INTERVAL: the last {LAST} days (UTC), today included.

Prints one line per file: its state in {in_words(steps())};
its size in bytes; its path. Besides WARCs it lists what else is stored: the zip of a
stage's logs, and what was salvaged from an .open WARC. --lacking STEP lists only files
for which that step is not done.

States: done, refused, waiting, failed, partial (done for this file, not yet for others
of its stage), not due (this file does not go through this step). In --json they are ok,
refused, lacking, failed, settled, -.

--json: {{"files": [{{"job", "launch_id", "stage": "" when no stage has it, "root", "path",
"size", "on_disk": null if unknown, "stored": path in the store or "", "steps": {{step: state}}, "why"}}],
"errors": [{{"job", "launch_id", "error"}}], "away": [{{"what", "why", "todo"}}: roots that
did not answer; of launches there only the files of their markers are listed]}}

exit codes: 0 listed, 1 --lacking listed some, 2 usage, 3 configuration, 4 a disk or a
folder did not answer (what could be read is listed)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """INTERVAL or JOB LAUNCH, --lacking, --json."""
    add_scope(parser, optional=True)
    words = steps()
    parser.add_argument("--lacking", choices=words, metavar="STEP", help=f"only files that lack it: {', '.join(words)}")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """List the files of each launch; print."""
    line = open_line()
    known = audited(line)
    asked = launches_of(known, args.scope)
    point_to(line, asked.launches, "files")
    results = [files.read(known, launch, args.lacking) for launch in asked.launches]
    away = each_once((*asked.unreachable, *known.away()))
    if args.json:
        print(as_json(files.answer(results, away)))
    else:
        if isinstance(args.scope, Interval):
            lines(console(), heading(args.scope, len(results)))
        lines(console(), *_texts(results))
    report_unreachable(asked)
    of_launches = (error for result in results for error in result.away)
    if report_away(each_once((*away, *of_launches))) or any(result.unavailable for result in results):
        return 4
    return 1 if args.lacking and any(result.files for result in results) else 0


def launches_of(line: AuditedLine, scope: Interval | Launch) -> Discovery:
    """The launches of an interval, or one launch; BadInput if there is no such launch."""
    if isinstance(scope, Launch):
        return files.one(line, scope)
    return line.discover(scope.first, scope.end)


def _texts(results: list[LaunchFiles]) -> Iterator[Text | str]:
    legend = (Text.assemble((mark.shape, STYLES[mark]), f" {mark}") for mark in MARKS.values())
    in_use = {step for result in results for file in result.files for step in file.steps}
    always = chain.unswitched(chain.ROWS)
    columns = [row for row in chain.of_files(chain.ROWS) if row in always or row.word in in_use]
    heads = " ".join(row.files for row in columns)
    yield Text.assemble((f"  {heads}           bytes  file", "bold"), "\n  ", Text("   ").join(legend))
    for result in results:
        if result.error:
            yield styled(f"{result.launch}: {result.error}", "bold red")
        for stage, alike in groupby(result.files, key=lambda file: file.stage):
            yield Text(f"{result.launch} {stage or '(no stage yet)'}", style="bold")
            yield from (_line(file, [row.word for row in columns]) for file in alike)
    number = sum(len(result.files) for result in results)
    yield Text("no file" if number == 0 else "1 file" if number == 1 else f"{number} files", style="bold")


def _line(file: FileState, columns: list[str]) -> Text:
    marks = [MARKS[file.steps.get(step, NEVER)] for step in columns]
    signs = [part for mark in marks for part in (" ", (mark.shape, STYLES[mark]), "  ")]
    gone = "" if file.on_disk is not False or file.file.root == "store" else " (not on disk)"
    why = f"  {file.why}" if file.why else ""
    text = printable(f"{file.file.root}:{file.file.path}")
    return Text.assemble("  ", *signs, f"{file.file.size:>15,}  ", text, (gone, "dim"), (printable(why), "yellow"))
