"""warcmill redo: have a step, and all that depends on it, done again."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from commands.console.arguments import add_launch, reason, stage
from commands.console.person import person
from commands.console.show import err, in_words, out
from tasks.line import OpenRoots, open_line
from warcmill import chain, layout
from warcmill.audit import remedies
from warcmill.audit.survey import did_you_mean_launch
from warcmill.base.escapes import did_you_mean
from warcmill.decisions import redo
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Key, Launch, Stage


def _words(scope: str) -> list[str]:
    """The words of the steps of one scope: launch or stage."""
    return [row.word for row in chain.ROWS if row.word and row.scope == scope]


def _one_by_one() -> list[str]:
    return [row.word for row in redo.repeatable()]


SUMMARY = "have a step, and all that depends on it, done again"
EPILOG = f"""\
examples:
  warcmill redo daily 20161019234428 checksum final --downstream
  warcmill redo daily 20161019234428 checksum final --downstream --file BL-20161019234428123-00000.warc.gz
  warcmill redo daily 20161019234428 stop --downstream --reason "it was closed too early"

STEP is one of: {", ".join(_words("launch"))} (of the launch),
{", ".join(_words("stage"))} (of a stage);
or a marker's name, as 'reconcile' prints it. Nothing is deleted: the markers and the
attempts at these steps move to aside/ in the launch's state folder, where a journal
keeps the reason. Files in the archive stay where they are.

--file redoes one file, in {in_words(_one_by_one(), "or")} and the steps after it: results
for the stage's other files stay, and those files are not read again.

Refused, with nothing moved: if other markers depend on this one, unless --downstream
moves them too; if one of them records an act outside the state (WARCs retired, a crawl
stopped), unless --also names it; if a file that a step would read again is gone; if the
stored zip of logs differs from the one that would be packed now: the store replaces
nothing, so move it away by hand first.

exit codes: 0 moved, 1 refused, or there is no such marker, 2 usage,
3 configuration, 4 a root is unavailable
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """JOB LAUNCH STEP [STAGE] [--downstream] [--also NAME]... [--file NAME] [--reason TEXT]."""
    add_launch(parser)
    parser.add_argument("step", metavar="STEP", help="a step, or a marker's name")
    parser.add_argument("stage", nargs="?", type=stage, metavar="STAGE", help="final, or a checkpoint")
    parser.add_argument("--downstream", action="store_true", help="also move all markers that depend on it")
    parser.add_argument(
        "--also", action="append", default=[], metavar="NAME", help="a marker of an outward act that may move too"
    )
    parser.add_argument("--file", metavar="NAME", help="only this file of the stage: its path or its name")
    parser.add_argument("--reason", type=reason, metavar="TEXT", help="kept in aside/")


def run(args: argparse.Namespace) -> int:
    """Follow the lineage of the marker; refuse, or move it aside."""
    launch = Launch(args.job, args.launch_id)
    key = _key(launch, args.step, args.stage)
    if key is None:
        return 2
    if args.file and chain.by_task(chain.ROWS)[key.task] not in redo.repeatable():
        err(f"warcmill redo: --file is for {in_words(_one_by_one())} of a stage")
        return 2
    line = open_line()
    markers = redo.markers(line.state, launch)
    below = redo.descendants(markers, key)
    if key not in markers and not below:
        hint = _known_instead(line, launch, args.step, markers)
        err(f"warcmill redo: there is no {layout.marker_path(key)}, so there is nothing to redo{hint}")
        return 1
    roots = redo.Roots(line.state, line.roots_of(launch.job), line.store)
    file = _file(markers, key, args.file) if args.file else None
    if args.file and file is None:
        return 1
    if refusals := list(_refusals(roots, markers, key, below, args)):
        err("warcmill redo: refused, nothing was moved", *(f"  {why}" for why in refusals))
        return 1
    kept = _forget(line.state, key, file) if file else []
    for path in redo.move_aside(line.state, markers, [*below, key], args.reason or "", kept, person()):
        out(f"moved aside: {path}")
    out("Next:", *(f"  {command}" for command in _next(launch, [*below, key])))
    return 0


def _known_instead(line: OpenRoots, launch: Launch, step: str, markers: redo.Markers) -> str:
    """A hint: the marker of this launch with the closest name; for a launch without markers, another launch."""
    if not markers:
        return did_you_mean_launch(line.state, line.roots_of(launch.job), launch)
    return "" if step in chain.by_word(chain.ROWS) else did_you_mean(step, map(layout.marker_name, markers))


def _file(markers: redo.Markers, key: Key, name: str) -> FileRef | None:
    """The file that NAME matches; None, after saying why, if it does not match exactly one."""
    known = redo.files(markers, key)
    chosen = redo.matching(name, known)
    if len(chosen) == 1:
        return chosen[0]
    if chosen:
        err(f"warcmill redo: {name} is more than one file; which one?", *(f"  {file.label}" for file in chosen))
    else:
        near = did_you_mean(name, [text for file in known for text in (file.label, file.name)])
        err(f"warcmill redo: {layout.marker_name(key)} has no file {name}{near}")
    return None


def _forget(state: MarkerStore, key: Key, file: FileRef) -> list[Key]:
    """Discard what the attempts settled of this file, and report it; return the steps whose attempts stay."""
    for step, others in redo.forget(state, key, file):
        if others:
            out(f"{step.task}: {others} other files stay settled")
    return redo.steps(key)


def _key(launch: Launch, step: str, of_stage: Stage | None) -> Key | None:
    """The key that STEP and STAGE name; None, after saying why, if they name none."""
    why = ""
    named = layout.parse_marker_name(step)
    if named and "launch_id" not in dict(named.params):
        why = f"{step} belongs to a due crawl, not to a launch: it cannot be redone"
    elif named:
        if layout.launch_of(named) == launch and of_stage is None:
            return named
        why = (
            f"{step} is not a marker of {launch}" if of_stage is None else "a marker's name contains its stage already"
        )
    elif step not in (words := [*_words("launch"), *_words("stage")]):
        why = f"there is no step '{step}'; one of: {', '.join(words)}{did_you_mean(step, words)}"
    elif (step in _words("stage")) != (of_stage is not None):
        why = (
            f"{step} is a step of a stage: which one?" if of_stage is None else f"{step} is a step of the whole launch"
        )
    if why:
        err(f"warcmill redo: {why}")
        return None
    return layout.step(step, launch, of_stage)


def _refusals(
    roots: redo.Roots, markers: redo.Markers, key: Key, below: list[Key], args: argparse.Namespace
) -> Iterator[str]:
    """Why nothing may be moved, each with what to do about it."""
    if below and not args.downstream:
        yield f"{len(below)} markers depend on it: --downstream moves them too"
        yield from (f"  {layout.marker_name(key)}" for key in reversed(below))
    for name in redo.outward([*below, key], frozenset(args.also)):
        yield f"{name} records an act outside the state, which redo does not undo: --also {name} moves it anyway"
    gone = redo.missing_inputs(roots, markers, [*below, key])
    for text in gone:
        yield f"it would be read again and is missing: {text}"
    for text in () if gone else redo.stored_otherwise(roots, markers, [*below, key]):
        yield f"{text} differs from the file that would be packed now: move it away by hand first"


def _next(launch: Launch, moved: list[Key]) -> Iterator[str]:
    """The commands that redo what was moved."""
    rows = {key: chain.by_task(chain.ROWS)[key.task] for key in moved}
    if any(row.scan and row.due != chain.ASKED for row in rows.values()):
        yield remedies.scan(launch)
    yield from (remedies.step(key) for key, row in rows.items() if row.scan and row.due == chain.ASKED)
    if any(key.task == "operator.Accept" for key in moved):
        yield f"warcmill reconcile {launch.day}      and accept again what it still finds"
    if any(row.word == "close" for row in rows.values()):
        yield f"warcmill close {launch.job} {launch.id} --reason TEXT      if it has ended after all"
