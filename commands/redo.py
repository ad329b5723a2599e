"""warcmill redo: have a step, and all that came of it, done again."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from commands.arguments import add_launch, reason, stage
from commands.printing import err, in_words, out
from tasks.step import Line, open_line
from warcmill import chain, gaps, layout
from warcmill.model import FileRef, Key, Launch, Stage
from warcmill.nearest import did_you_mean
from warcmill.state import State
from warcmill.steps import redo, redo_file
from warcmill.survey import did_you_mean_launch


def _words(scope: str) -> list[str]:
    """The words of the steps of launches, or of stages."""
    return [row.word for row in chain.ROWS if row.word and row.scope == scope]


def _one_by_one() -> list[str]:
    return [row.word for row in redo_file.one_by_one()]


SUMMARY = "move a step's marker, and all that came of it, aside so that it is done again"
EPILOG = f"""\
examples:
  warcmill redo daily 20161019234428 checksum final --downstream
  warcmill redo daily 20161019234428 checksum final --downstream --file BL-20161019234428123-00000.warc.gz
  warcmill redo daily 20161019234428 stop --downstream --reason "it was closed too early"

STEP is one of: {", ".join(_words("launch"))} (of the launch),
{", ".join(_words("stage"))} (of a stage);
or a marker's name, as 'reconcile' prints it. Nothing is deleted: the markers, and the
attempts at these steps, go to aside/ in the launch's state folder, where a journal
keeps the reason. Files in the archive stay where they are.

--file does one file again, in {in_words(_one_by_one(), "or")} and the steps after it:
what these steps have settled of the stage's other files stays, and is not read again.

Refused, and nothing moved: when other markers rest on this one, unless
--downstream moves them too; when one of them tells of an act outside the state
(WARCs retired, a crawl stopped), unless --also names it; when a file that a step
would read again is gone; when a zip of logs is stored that would not be packed again
byte for byte, for the store replaces nothing: move it away by hand first.

exit codes: 0 moved, 1 refused, or there is no such marker, 2 usage,
3 configuration, 4 a root is unavailable
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """JOB LAUNCH STEP [STAGE] [--downstream] [--also NAME]... [--file NAME] [--reason TEXT]."""
    add_launch(parser)
    parser.add_argument("step", metavar="STEP", help="a step, or a marker's name")
    parser.add_argument("stage", nargs="?", type=stage, metavar="STAGE", help="final, or a checkpoint")
    parser.add_argument("--downstream", action="store_true", help="also all whose claims descend from it")
    parser.add_argument(
        "--also", action="append", default=[], metavar="NAME", help="the marker of an outward act, that it may move too"
    )
    parser.add_argument("--file", metavar="NAME", help="this file of the stage alone: its path or its name")
    parser.add_argument("--reason", type=reason, metavar="TEXT", help="kept in aside/")


def run(args: argparse.Namespace) -> int:
    """Look at the lineage; refuse, or move it aside."""
    launch = Launch(args.job, args.launch_id)
    key = _key(launch, args.step, args.stage)
    if key is None:
        return 2
    if args.file and chain.by_task(chain.ROWS)[key.task] not in redo_file.one_by_one():
        err(f"warcmill redo: --file is of {in_words(_one_by_one())} of a stage")
        return 2
    line = open_line()
    found = redo.markers(line.state, launch)
    below = redo.descendants(found, key)
    if key not in found and not below:
        hint = _known_instead(line, launch, args.step, found)
        err(f"warcmill redo: there is no {layout.marker_path(key)}, so nothing is in the way{hint}")
        return 1
    roots = redo.Roots(line.state, line.engines(launch.job), line.store)
    one = _file(found, key, args.file) if args.file else None
    if args.file and one is None:
        return 1
    if refusals := list(_refusals(roots, found, key, below, args)):
        err("warcmill redo: refused, nothing was moved", *(f"  {why}" for why in refusals))
        return 1
    kept = _forget(line.state, key, one) if one else []
    for path in redo.move_aside(line.state, found, [*below, key], args.reason or "", kept):
        out(f"moved aside: {path}")
    out("Next:", *(f"  {command}" for command in _next(launch, [*below, key])))
    return 0


def _known_instead(line: Line, launch: Launch, step: str, found: redo.Markers) -> str:
    """A marker of this launch that may be meant by a marker's name; of a launch without any, another launch."""
    if not found:
        return did_you_mean_launch(line.state, line.engines(launch.job), launch)
    return "" if step in chain.by_word(chain.ROWS) else did_you_mean(step, map(layout.marker_name, found))


def _file(found: redo.Markers, key: Key, name: str) -> FileRef | None:
    """The file that NAME means; None, having said why, when it is not one."""
    known = redo_file.files(found, key)
    chosen = redo_file.called(name, known)
    if len(chosen) == 1:
        return chosen[0]
    if chosen:
        err(f"warcmill redo: {name} is more than one file; which one?", *(f"  {one.label}" for one in chosen))
    else:
        near = did_you_mean(name, [text for one in known for text in (one.label, one.name)])
        err(f"warcmill redo: {layout.marker_name(key)} speaks of no file {name}{near}")
    return None


def _forget(state: State, key: Key, file: FileRef) -> list[Key]:
    """Say of which file nothing counts any more; the steps whose attempts stay."""
    for step, others in redo_file.forget(state, key, file):
        if others:
            out(f"{step.task}: {others} other files stay settled")
    return redo_file.steps(key)


def _key(launch: Launch, step: str, of_stage: Stage | None) -> Key | None:
    """The key that STEP and STAGE name; None, having said why, when they name none."""
    why = ""
    named = layout.parse_marker_name(step)
    if named:
        if layout.launch_of(named) == launch and of_stage is None:
            return named
        why = f"{step} is not a marker of {launch}" if of_stage is None else "a marker's name tells its stage already"
    elif step not in (words := [*_words("launch"), *_words("stage")]):
        why = f"no step is called '{step}'; one of: {', '.join(words)}{did_you_mean(step, words)}"
    elif (step in _words("stage")) != (of_stage is not None):
        why = (
            f"{step} is a step of a stage: which one?" if of_stage is None else f"{step} is a step of the whole launch"
        )
    if why:
        err(f"warcmill redo: {why}")
        return None
    return layout.step(step, launch, of_stage)


def _refusals(
    roots: redo.Roots, found: redo.Markers, key: Key, below: list[Key], args: argparse.Namespace
) -> Iterator[str]:
    """Why not; each with what to do about it."""
    if below and not args.downstream:
        yield f"{len(below)} markers rest on it: --downstream moves them too"
        yield from (f"  {layout.marker_name(one)}" for one in reversed(below))
    for name in redo.outward([*below, key], frozenset(args.also)):
        yield f"{name} tells of an act outside the state, which redo does not undo: --also {name} moves it all the same"
    gone = redo.gone(roots, found, [*below, key])
    for text in gone:
        yield f"it would be read again and is not there: {text}"
    for text in () if gone else redo.stored_otherwise(roots, found, [*below, key]):
        yield f"{text} is another file than would be packed now: move it away by hand first"


def _next(launch: Launch, moved: list[Key]) -> Iterator[str]:
    """The commands that do again what was moved."""
    rows = {key: chain.by_task(chain.ROWS)[key.task] for key in moved}
    for scan in chain.scans(chain.ROWS):
        if keys := [key for key, row in rows.items() if row.scan == scan]:
            yield gaps.scan(launch, keys[0])
    yield from (gaps.step(key) for key, row in rows.items() if row.scan and row.due == chain.ASKED)
    if any(key.task == "operator.Accept" for key in moved):
        yield f"warcmill reconcile {launch.day}      and accept again what is still found"
    if any(row.word == "close" for row in rows.values()):
        yield f"warcmill close {launch.job} {launch.id} --reason TEXT      if it has ended after all"
