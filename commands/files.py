"""warcmill files: every WARC of some days or of a launch, with what each step has come to for it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from rich.text import Text

from commands.arguments import Interval, add_json, add_scope
from commands.printing import in_words
from commands.show import as_json, console, lines, printable, styled, tell_away
from tasks.step import Line, open_line
from warcmill import chain, survey
from warcmill.errors import Unavailable, WarcmillError
from warcmill.inventory import FileState, inventory, steps
from warcmill.model import Json, Launch
from warcmill.sites import Found

SUMMARY = "list every WARC with its state in each step"
EPILOG = f"""\
examples:
  warcmill files 2016-10-19
  warcmill files daily 20161019234428
  warcmill files 2016-10 --lacking verify
  warcmill files 2016-10 --json | jq -r '.files[] | select(.steps.checksum == "refused") | .path'

A line a file: its state in {in_words(steps())};
its bytes; its path. With the WARCs stand what else is stored: the zip of a stage's
logs, and what was salvaged of an .open WARC. --lacking STEP: only files for which
that step has not been done.

States: ok, refused, lacking, failed, settled (done for this file, while others of
its stage are not), - (a step that this file does not go through).

--json: {{"files": [{{"job", "launch_id", "stage": "" when no stage has it, "root", "path",
"size", "on_disk", "stored": path in the store or "", "steps": {{step: state}}, "why"}}],
"errors": [{{"job", "launch_id", "error"}}]}}

exit codes: 0 listed, 1 --lacking found some, 2 usage, 3 configuration, 4 a disk or a
folder did not answer (what could be read is listed)
"""
SIGNS = {"ok": ("✔", "green"), "refused": ("!", "bold magenta"), "lacking": ("○", "cyan"), "-": ("-", "dim")}
SIGNS |= {"failed": ("✘", "bold red"), "settled": ("◐", "yellow")}


@dataclass(frozen=True, slots=True)
class Listed:
    """One launch's files, or why they could not be listed."""

    launch: Launch
    files: tuple[FileState, ...]
    error: str = ""
    unavailable: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """INTERVAL or JOB LAUNCH, --lacking, --json."""
    add_scope(parser)
    words = steps()
    parser.add_argument("--lacking", choices=words, metavar="STEP", help=f"only files that lack it: {', '.join(words)}")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """List the files of each launch; print."""
    line = open_line()
    asked = launches_of(line, args.scope)
    found = [listed(line, launch, args.lacking) for launch in asked.launches]
    if args.json:
        print(as_json(_json(found)))
    else:
        lines(console(), *_texts(found))
    if tell_away(asked) or any(one.unavailable for one in found):
        return 4
    return 1 if args.lacking and any(one.files for one in found) else 0


def launches_of(line: Line, scope: Interval | Launch) -> Found:
    """The launches that an interval, or a launch, names; BadInput when there is no such launch."""
    if isinstance(scope, Launch):
        return Found((survey.need(line.state, line.engines(scope.job), scope, line.settings.wanted()).launch,), ())
    return survey.find(line.state, line.sites, scope.first, scope.end)


def listed(line: Line, launch: Launch, lacking: str | None) -> Listed:
    """The files of a launch, or those that lack a step."""
    try:
        files = inventory(survey.survey(line.state, line.engines(launch.job), launch, line.settings.wanted()))
        return Listed(launch, tuple(one for one in files if lacking is None or one.lacks(lacking)))
    except WarcmillError as error:
        return Listed(launch, (), str(error), isinstance(error, Unavailable))


def _texts(found: list[Listed]) -> Iterator[Text | str]:
    legend = (Text.assemble((sign, style), f" {word}") for word, (sign, style) in SIGNS.items() if word != "-")
    met = {step for one in found for file in one.files for step in file.steps}
    always = chain.unswitched(chain.ROWS)
    columns = [row for row in chain.of_files(chain.ROWS) if row in always or row.word in met]
    heads = " ".join(row.files for row in columns)
    yield Text.assemble((f"  {heads}           bytes  file", "bold"), "\n  ", Text("   ").join(legend))
    for one in found:
        if one.error:
            yield styled(f"{one.launch}: {one.error}", "bold red")
        for stage, files in groupby(one.files, key=lambda file: file.stage):
            yield Text(f"{one.launch} {stage or '(no stage yet)'}", style="bold")
            yield from (_line(file, [row.word for row in columns]) for file in files)
    number = sum(len(one.files) for one in found)
    yield Text("no file" if number == 0 else "1 file" if number == 1 else f"{number} files", style="bold")


def _line(file: FileState, columns: list[str]) -> Text:
    signs = [part for step in columns for part in (" ", SIGNS[file.steps.get(step, "-")], "  ")]
    gone = "" if file.on_disk or file.file.root == "store" else " (not on disk)"
    why = f"  {file.why}" if file.why else ""
    text = printable(f"{file.file.root}:{file.file.path}")
    return Text.assemble("  ", *signs, f"{file.file.size:>15,}  ", text, (gone, "dim"), (printable(why), "yellow"))


def _json(found: list[Listed]) -> dict[str, Json]:
    return {
        "files": [_file(one.launch, file) for one in found for file in one.files],
        "errors": [
            {"job": one.launch.job, "launch_id": one.launch.id, "error": one.error} for one in found if one.error
        ],
    }


def _file(launch: Launch, file: FileState) -> dict[str, Json]:
    return {
        "job": launch.job,
        "launch_id": launch.id,
        "stage": file.stage,
        "root": file.file.root,
        "path": file.file.path,
        "size": file.file.size,
        "on_disk": file.on_disk,
        "stored": file.stored,
        "steps": dict(file.steps),
        "why": file.why,
    }
