"""The targets of a feed, for `warcmill feed`: listed, edited, imported, exported. Writes the feed and its editions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping

from commands.console.papers import person
from commands.console.show import as_json, err, out
from tasks.line import feed_of, open_line
from warcmill.clients import feed_source
from warcmill.errors import BadInput
from warcmill.markers import job_edits
from warcmill.pulse import feed_edits, target_exchange
from warcmill.pulse.feed_edits import SavedTargets
from warcmill.pulse.target_fates import listed
from warcmill.pulse.target_list import JSON_NAMES, TargetFilter

LINES = ("addresses", "schedules")


def _targets(args: argparse.Namespace) -> int:
    """List targets, with the fate of each."""
    line = open_line()
    wanted = TargetFilter(args.words, args.owner, is_paused=args.paused)
    found = listed(line.state, feed_of(line, args.job), wanted, most=args.limit)
    if args.json:
        print(as_json(found.json()))
        return 0
    for one in found.rows:
        state = "  paused" if one.line.fields.paused else ""
        out(f"{one.line.id}  {one.line.fields.title or '-'}{state}")
        for text in (*one.line.seeds, *one.line.fields.schedules.splitlines()):
            out(f"  {text}")
        if owner := one.line.fields.owner:
            out(f"  owner: {owner}")
        if one.fate:
            out(f"  launch {one.fate.launch_id}: {one.fate.words}")
        if one.fault:
            out(f"  fault: {one.fault}")
    err(*(f"{fault}; it stays as it is" for fault in found.faults))
    err(*([found.feed.why_fixed] if found.feed.why_fixed else []))
    if found.total > len(found.rows):
        err(f"{len(found.rows):,} of {found.total:,}; --limit N shows more")
    return 0


def _add(args: argparse.Namespace) -> int:
    """Add a target."""
    feed = feed_of(open_line(), args.job)
    return _said(args, feed_edits.add(feed, _wanted(args), feed.rules(may_all=True), who=person(), why=args.why))


def _edit(args: argparse.Namespace) -> int:
    """Change fields of a target."""
    feed, wanted = feed_of(open_line(), args.job), _wanted(args)
    rules = feed.rules(may_all=True)
    return _said(args, feed_edits.edit(feed, args.id, wanted, rules, who=person(), why=args.why))


def _pause(args: argparse.Namespace) -> int:
    """Pause targets, or resume them: all, or none."""
    feed, paused = feed_of(open_line(), args.job), args.action == "pause"
    rules = feed.rules(may_all=True)
    return _said(args, feed_edits.pause(feed, args.ids, rules, who=person(), why=args.why, paused=paused))


def _import(args: argparse.Namespace) -> int:
    """Import targets, or say what an import would be. Exit 1 if a line was refused."""
    if not args.job:
        raise BadInput("--job", "is missing: the job whose feed gets the targets")
    feed, data = feed_of(open_line(), args.job), feed_source.read_file(args.file)
    edition = 0
    if args.dry_run:
        found = feed_edits.look_at_import(feed, data, feed.rules(may_all=True))
    else:
        saved, found = feed_edits.save_import(feed, data, feed.rules(may_all=True), who=person(), why=args.why)
        edition = saved.edition
    if args.json:
        print(as_json({**found.json(), "edition": edition}))
    else:
        err(*(one.words for one in found.refused))
        err(*([f"columns that say nothing here: {', '.join(found.ignored)}"] if found.ignored else []))
        out(f"{found.words}; nothing is written" if args.dry_run else f"{found.words}; edition {edition}")
    return int(bool(found.refused))


def _export(args: argparse.Namespace) -> int:
    """Print the targets of the feed."""
    data = feed_of(open_line(), args.job).data()
    if args.of == "csv":
        sys.stdout.writelines(target_exchange.csv_lines(data))
    else:
        sys.stdout.buffer.write(target_exchange.json_lines(data))
    return 0


def _history(args: argparse.Namespace) -> int:
    """List the editions of the feed, the newest first."""
    found = [*feed_of(open_line(), args.job).editable().editions.all()]
    if args.json:
        print(as_json(job_edits.history(args.job, found)))
    for one in found if not args.json else ():
        made_from = f"  from {one.made_from}" if one.made_from else ""
        out(f"{one.number:6}  {one.time}  {one.who or '-'}{made_from}  {one.why}")
    return 0


def _undo(args: argparse.Namespace) -> int:
    """Save an earlier edition of the feed as the newest one."""
    papers = feed_of(open_line(), args.job).editable()
    made = job_edits.undo(papers, who=person(), why=args.why, to=args.edition)
    return _said(args, SavedTargets(made.number, (), is_new=True))


def _wanted(args: argparse.Namespace) -> dict[str, str]:
    """The fields that were given."""
    given = {name: value for name in JSON_NAMES if (value := getattr(args, name, None)) is not None}
    texts = {name: "\n".join(value) if name in LINES else str(value) for name, value in given.items()}
    return {name: "" if text == "no" and name in ("watched", "ignore_robots") else text for name, text in texts.items()}


def _said(args: argparse.Namespace, saved: SavedTargets) -> int:
    if args.json:
        print(as_json(saved.json(args.job)))
    elif saved.is_new:
        what = f": target {', '.join(saved.targets)}" if saved.targets else ""
        out(f"the feed of {args.job}: edition {saved.edition}{what}")
    else:
        out(f"the feed of {args.job}: nothing has changed")
    return 0


ACTIONS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "targets": _targets, "add": _add, "edit": _edit, "pause": _pause, "resume": _pause, "import": _import,
    "export": _export, "history": _history, "undo": _undo,
}  # fmt: skip
