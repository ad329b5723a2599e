"""The papers of a job, for `warcmill job`: edit, try, history, undo, leave-out, set, rename, delete.

Writes the files of the job, its editions, and its schedule in luigi.cfg; set asks the crawl that runs, too.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import cast

from msgspec.structs import asdict

from commands.console.job_desk import OwnJobs
from commands.console.papers import look_at, person
from commands.console.show import as_json, out
from tasks.config import engines
from warcmill.crawl.job import form, rules
from warcmill.errors import BadInput, NotReady, Unavailable
from warcmill.markers import job_edits
from warcmill.model import Json

LARGEST = 32 << 20  # bytes of --from
SCHEDULE = ("schedule", "zone")
LIMITS = ("documents", "bytes", "seconds", "least")
TEXTS = {paper.replace(".", "_"): paper for paper in form.PAPERS}


def _edit(args: argparse.Namespace) -> int:
    """Save the fields of a form as an edition; without them, print the form."""
    desk, job = OwnJobs(), args.job
    papers = desk.new(job) if args.new else desk.papers(job)
    if args.source is None:
        words, zone = desk.schedule(job)
        _show_form({**asdict(job_edits.opened(papers).form), "schedule": words, "zone": zone}, args)
        return 0
    wanted = read(args.source)
    times = {name: wanted.pop(name) for name in SCHEDULE if name in wanted}
    if times:
        words, zone = desk.schedule(job)
        times = {"schedule": words, "zone": zone, **times}
        desk.check_schedule(times["schedule"], times["zone"])
    change = change_of(wanted)
    saved = job_edits.save(papers, change, who=person(), why=args.why, networks=desk.networks(job))
    desk.list_job(job)
    said = desk.set_schedule(job, times["schedule"], times["zone"]) if times else []
    if args.json:
        print(as_json(saved.json(job, said)))
        return 0
    what = ", ".join(saved.changed)
    out(f"{job}: edition {saved.edition}: {what}" if what else f"{job}: nothing has changed", *said)
    if desk.is_running(job):
        out(*([f"  the running crawl takes at once: {', '.join(saved.at_once)}"] if saved.at_once else []))
        out(*([f"  its next launch takes: {', '.join(saved.waits)}"] if saved.waits else []))
    return 0


def _try(args: argparse.Namespace) -> int:
    """Judge the newest launch by the rules of the form, with some other fields; no site is asked."""
    desk = OwnJobs()
    before = job_edits.opened(desk.papers(args.job)).files
    wanted = read(args.source) if args.source else {}
    found = desk.tried(args.job, change_of({k: v for k, v in wanted.items() if k not in SCHEDULE})(before))
    if args.json:
        print(as_json(found.json()))
        return 0
    out(f"{args.job}, launch {found.launch_id}; no site was asked", *(f"  {line}" for line in found.words))
    for rule, hits in found.by_rule:
        out(f"left out by {rule}: {hits.number:,}", *(f"  {address}" for address in hits.first))
    if found.taken.number:
        out(f"taken: {found.taken.number:,}", *(f"  {address}" for address in found.taken.first))
    return 0


def _history(args: argparse.Namespace) -> int:
    """List the editions of a job, the newest first."""
    desk = OwnJobs()
    papers = desk.papers(args.job)
    look_at(args.job)
    found = [*papers.editions.all()]
    if args.json:
        print(as_json(job_edits.history(args.job, found)))
        return 0
    for one in found:
        made_from = f"  from {one.made_from}" if one.made_from else ""
        out(f"{one.number:6}  {one.time}  {one.who or '-'}{made_from}  {', '.join(one.changed)}  {one.why}")
    if not found:
        out(f"{args.job}: it has no edition yet; the next edit or launch makes one")
    return 0


def _undo(args: argparse.Namespace) -> int:
    """Save the papers of an earlier edition as the newest one."""
    made = job_edits.undo(OwnJobs().papers(args.job), who=person(), why=args.why, to=args.edition)
    if args.json:
        print(as_json(job_edits.undone(made)))
    else:
        out(f"{args.job}: edition {made.number}: {', '.join(made.changed)}: {made.why}")
    return 0


def _rename(args: argparse.Namespace) -> int:
    """Give a job another title, as an edition."""
    desk = OwnJobs()
    saved = job_edits.rename(desk.papers(args.job), args.title, who=person(), networks=desk.networks(args.job))
    if args.json:
        print(as_json(saved.json(args.job)))
    else:
        out(f"{args.job}: edition {saved.edition}" if saved.changed else f"{args.job}: it has this title already")
    return 0


def _delete(args: argparse.Namespace) -> int:
    """Take a job out of the list; what it has archived stays."""
    said = OwnJobs().delete(args.job, person())
    if args.json:
        print(as_json({"job": args.job, "said": [*said]}))
    else:
        out(*said)
    return 0


def _leave_out(args: argparse.Namespace) -> int:
    """Add a rule to what a job leaves out, as an edition. One that it has already adds nothing."""
    rule = rules.named(args.rule, is_rule=args.is_rule)
    saved = job_edits.leave_out(OwnJobs().papers(args.job), rule, who=person())
    if args.json:
        print(as_json({"edition": saved.edition, "new": bool(saved.changed), "rule": rule}))
    elif saved.changed:
        out(f"{args.job}: {rule} is left out, edition {saved.edition}; a running crawl takes that within a second")
    else:
        out(f"{args.job}: {rule} is left out already")
    return 0


def _set(args: argparse.Namespace) -> int:
    """Set limits of the running launch, or its pace; with --keep those of the job, too, whether it runs or not."""
    typed = {name: text for name in LIMITS if (text := getattr(args, name)) is not None}
    wanted = {name: form.value(name, text) or 0 for name, text in typed.items()}
    if not wanted:
        raise BadInput("set", f"name some of {', '.join(f'--{name}' for name in LIMITS)}")
    said, answer = list[str](), dict[str, Json]()
    if args.keep:
        change = job_edits.of_form(typed)
        saved = job_edits.save(OwnJobs().papers(args.job), change, who=person(), why="limits and pace")
        said.append(
            f"{args.job}: edition {saved.edition}" if saved.changed else f"{args.job}: the job has them already"
        )
    try:
        with closing(engines.running_job(args.job)) as crawl:
            answer = cast("dict[str, Json]", crawl.ask("set", **wanted))
        said.append(f"{args.job}: set for the running launch")
    except NotReady:
        if not args.keep:
            raise
    if args.json:
        print(as_json(answer))
    else:
        out(*said)
    return 0


def change_of(wanted: Mapping[str, str]) -> job_edits.Change:
    """The change of some fields of the form; or of whole papers, whose names are crawl_toml, seeds_txt and so on."""
    texts = {TEXTS[name]: text for name, text in wanted.items() if name in TEXTS}
    fields = {name: text for name, text in wanted.items() if name not in TEXTS}
    of_form, of_texts = job_edits.of_form(fields), job_edits.of_texts(texts)
    return lambda before: of_texts(of_form(before) if fields or not before else before)


def read(source: Path) -> dict[str, str]:
    """The fields in a file, TOML or JSON: each a text, a number, or a list, whose members are lines of a field."""
    try:
        data = sys.stdin.buffer.read(LARGEST + 1) if str(source) == "-" else source.read_bytes()
    except OSError as error:
        raise Unavailable(str(source), error.strerror or str(error)) from error
    if len(data) > LARGEST:
        raise BadInput(str(source), f"it is longer than {LARGEST:,} bytes")
    try:
        text = data.decode("utf-8-sig")
        found = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(str(source), f"it is neither TOML nor JSON: {error}") from error
    return {name: _field(name, value) for name, value in found.items()}


def _field(name: str, value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return (", " if name in ("tags", "extensions", "allow_private") else "\n").join(map(str, value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    raise BadInput(name, f"is {value!r}; it takes a text, a number, or a list of texts")


def _show_form(fields: Mapping[str, str], args: argparse.Namespace) -> None:
    if args.json:
        print(as_json({**fields}))
        return
    for name, value in fields.items():
        if value:
            out(f"{name}: {value}" if "\n" not in value else f"{name}:", *(value.splitlines() if "\n" in value else []))


ACTIONS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "edit": _edit, "try": _try, "history": _history, "undo": _undo, "leave-out": _leave_out, "set": _set,
    "rename": _rename, "delete": _delete,
}  # fmt: skip
