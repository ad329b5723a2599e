"""warcmill pypi: crawl a package index, in full or what has changed; and ask what is published of it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from commands.console import imported
from commands.console.arguments import add_json, job
from commands.console.show import as_json, counted, err, out
from commands.console.single_task import do, free_moment
from tasks.config import engines
from tasks.config import pypi as indexes
from tasks.config.settings import check_hardened, settings
from tasks.line import OpenRoots, open_line
from warcmill import layout
from warcmill.errors import BadConfig, BadInput, NotReady, Unavailable
from warcmill.formats.pypi.filenames import normalised
from warcmill.launches import full_dumps
from warcmill.markers import locks
from warcmill.markers.claim import Evidence
from warcmill.markers.facts.pulse import Fed, Launched, Started
from warcmill.markers.facts.pypi import Dumped
from warcmill.model import Json, JsonObject, Launch, Stage
from warcmill.pulse import broken_launches
from warcmill.pypi import answers, dumps, feed, full_dump, providers, update_leveldb
from warcmill.pypi.feed import IndexSource
from warcmill.pypi.survey import listing
from warcmill.pypi.update_leveldb import UpdateRoots

_DAY = 86_400  # seconds
SUMMARY = "crawl a package index, in full or what has changed; ask what is known of its packages"
EPILOG = """\
examples:
  warcmill pypi trigger_full pypi
  warcmill pypi trigger_incremental pypi
  warcmill pypi provides yaml
  warcmill pypi provides google.cloud
  warcmill pypi provides --of src
  warcmill pypi requires requests-2.32.5-py3-none-any.whl
  warcmill pypi requires --reverse six
  warcmill pypi show six --as-of 31415926
  warcmill pypi show six --as-of 2026-11-27
  warcmill pypi lag --json
  warcmill pypi dump_full pypi
  warcmill pypi retire 1

The jobs are those of [pypi] in luigi.cfg. trigger_full launches a crawl of all wanted
projects, or continues the newest one if that was stopped before its end.
trigger_incremental asks the index what has changed since the newest whole dump, which it
makes first if it lacks; if nothing has, nothing is launched. Cron does the same by
[job.NAME] and pulse.ScanForLaunches.

Both run pulse.StartJob, which logs to stderr; a line on stdout reports what happened.

provides lists the projects that give "import MODULE", the best answer first: one of its
own name, one whose metadata has the name, one that many require, one released lately; of a
namespace those that have a part of it. Copies, private names, and types alone come last
and are marked. With --of it lists the projects that the imports of a file or a folder
need, without its own modules and those of Python. requires lists the requirements of a
file, or with --reverse the projects whose newest releases require one; show, the files
that a project has, or had at a serial, or at the end of a day or at a time by the times of
the changelog, with the serials from and to which each was there; lag, how far each step
has come. They read the newest version of the data sets that pypi.UpdateLevelDb publishes,
and ask no server; lag asks the index.

dump_full dumps all that the stored WARCs have, from serial 0 to the newest whole dump, as a
generation of its own, and asks no server; what has changed in how files are read counts for
all of them. Later increments follow there, and the next update starts from nothing.

retire deletes an old generation from the store, its dump files and databases: one that no
current version is made of. Each full crawl and full dump begins one. Its markers stay.

--json: provides {"files": [{"filename", "project", "version"}], "module", "projects": [{
"below", "confirmed", "copy", "dependents", "filename", "files", "gives", "marks",
"namespace", "newest", "own", "project", "version"}], "serial"}, the best project first;
with --of {"files", "projects": [{"modules", "optional", "others", "project", "version"}],
"serial", "unknown": [{"module", "optional", "place"}], "unread": [{"file", "why"}]};
requires {"filename", "project", "requires_dist", "requires_python", "serial", "sha256",
"type", "version"}, with --reverse {"project", "required_by": [{"extras", "marker",
"project", "requirement", "specifier", "version"}], "serial"}; show {"files":
[{"filename", "from", "modules", "requires_python", "sha256", "to", "url", "version",
"yanked"}], "newest", "project", "serial"}, with "quarantined", names of files, where some
are, and "status" {"from", "reason", "status"} of the project (PEP 792) where it is known;
lag {"crawled", "dumped", "index", "job", "published"}, and "waiting": {"files",
"projects"} while older releases wait. A file whose modules were read of another, which
differs in its platform alone, has that one as "modules_of". null: unknown, or none yet; a
file without an end has "to" null; "yanked" is the reason, '' without one. "serial" is the
last one that is known

exit codes: 0 done, 1 the job is running, nothing is known of it, there is no whole dump, or
the generation is in use, 2 usage, 3 configuration, 4 the engine or a root does not answer,
5 an update is running; else luigi's own: 30 the step failed, 35 nothing could be planned
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """trigger_full JOB, trigger_incremental JOB, dump_full JOB; provides NAME, requires NAME, show NAME, lag [JOB];
    retire N [JOB]."""
    words = "|".join((*ACTIONS, "dump_full", *ANSWERS, "retire"))
    actions = parser.add_subparsers(dest="action", required=True, metavar=words)
    for action in (*ACTIONS, "dump_full"):
        actions.add_parser(action, allow_abbrev=False).add_argument("job", type=job, metavar="JOB", help="the crawl")
    asked = {action: actions.add_parser(action, allow_abbrev=False) for action in ANSWERS}
    module = asked["provides"].add_mutually_exclusive_group(required=True)
    module.add_argument("name", nargs="?", metavar="NAME", help="of a module, such as yaml or yaml.nodes")
    of = "list the projects that the imports of this file, or of the files of this folder, need"
    module.add_argument("--of", metavar="FILE|FOLDER", help=of)
    asked["requires"].add_argument("name", metavar="NAME", help="of a distribution's file; of a project: --reverse")
    reverse = "list the projects whose newest releases require this one"
    asked["requires"].add_argument("--reverse", action="store_true", help=reverse)
    asked["requires"].add_argument("--project", default="", metavar="NAME", help="its project, if its name is unclear")
    asked["show"].add_argument("name", metavar="NAME", help="of a project")
    as_of = "at this serial, UTC day or time, such as 2026-11-27T08:00:00Z; by default the last serial"
    asked["show"].add_argument("--as-of", type=_moment, metavar="WHEN", help=as_of)
    asked["lag"].add_argument("job", type=job, nargs="?", metavar="JOB", help="by default the first of [pypi]")
    for one in asked.values():
        add_json(one)
    old = actions.add_parser("retire", allow_abbrev=False)
    old.add_argument("generation", type=int, metavar="N", help="of an old generation: its folder in the store is vN")
    old.add_argument("job", type=job, nargs="?", metavar="JOB", help="by default the first of [pypi]")


def run(args: argparse.Namespace) -> int:
    """Launch the crawl, and report what happened; or answer."""
    settings()
    if args.action in ANSWERS:
        return ANSWERS[args.action](args)
    check_hardened()
    if args.action == "retire":
        return _retire(args)
    if not indexes.mirrors(args.job):
        raise BadConfig("[pypi] jobs", f"does not list {args.job}; add it, with the index and a contact")
    line = open_line()
    if args.action == "dump_full":
        return _dump_full(line, args.job)
    with closing(engines.engine_of(args.job)) as engine:
        seen = engine.look(args.job)
    if seen.running:
        out(f"{args.job}: launch {seen.launch_id} is running ({seen.words}); wait, or: warcmill pulse stop {args.job}")
        return 1
    return _launch(line, args.job, *ACTIONS[args.action](line, args.job))


def _full(line: OpenRoots, name: str) -> tuple[str, list[str]]:
    """The due time and the further words of a full crawl. It continues the newest one, if that was stopped."""
    if launch := _died(line, name):
        return broken_launches.due_of(launch), ["--broken", launch.id]
    if checkpoint := _stopped(line, name):
        return Stage.parse(checkpoint).stamp, ["--checkpoint", checkpoint]
    return free_moment(line, name), ["--full"]


def _incremental(line: OpenRoots, name: str) -> tuple[str, list[str]]:
    return free_moment(line, name), []


def _provides(args: argparse.Namespace) -> int:
    if args.of is not None:
        return _needed(Path(args.of), in_json=args.json)
    found = providers.provides(indexes.published(open_line().state), args.name)
    rows = cast("list[JsonObject]", found["projects"])
    is_given = any(row["gives"] for row in rows)
    if args.json:
        print(as_json(found))
        return 0 if is_given else 1
    if not is_given:
        out(f"no distribution is known that gives {args.name}, up to serial {found['serial']}")
    for row in rows:
        out(f"{row['project']}  {'; '.join(_about(row))}")
    return 0 if is_given else 1


def _needed(top: Path, *, in_json: bool) -> int:
    imports = imported.below(top)
    found = imported.answer(imports, providers.needed(indexes.published(open_line().state), imports.names))
    unknown = cast("list[JsonObject]", found["unknown"])
    is_whole = not imports.unread and all(one["optional"] for one in unknown)
    if in_json:
        print(as_json(found))
        return 0 if is_whole else 1
    for one in cast("list[JsonObject]", found["projects"]):
        others = f"; also {', '.join(cast('list[str]', one['others']))}" if one["others"] else ""
        optional = ", optional" if one["optional"] else ""
        modules = ", ".join(cast("list[str]", one["modules"]))
        out(f"{one['project']} {one['version'] or ''}  for {modules}{optional}{others}")
    for one in unknown:
        optional = ", which is optional" if one["optional"] else ""
        out(f"no distribution is known that gives {one['module']}{optional}, of {one['place']}")
    err(*(f"{name} is left out: {why}" for name, why in imports.unread.items()))
    return 0 if is_whole else 1


def _about(row: JsonObject) -> Iterator[str]:
    """The reasons for a project's place among those that give a module."""
    if row["files"]:
        yield f"{counted(cast('int', row['files']), 'file', 'files')}, such as {row['filename']}"
    if row["namespace"]:
        yield f"namespace ({row['namespace']}) of {', '.join(cast('list[str]', row['below']))}"
    if row["own"]:
        yield "its own name"
    if row["confirmed"]:
        yield "its metadata and its files have the name"
    if row["dependents"]:
        yield f"{counted(cast('int', row['dependents']), 'project requires', 'projects require')} it"
    yield from (_MARKS[mark].format(**row) for mark in cast("list[str]", row["marks"]) if mark in _MARKS)


_MARKS = {
    "old": "its newest release, {newest}, does not have it",
    "private": "private",
    "vendored": "a copy",
    "stub": "types alone",
    "claimed": "its metadata has the name, and no file",
}


def _requires(args: argparse.Namespace) -> int:
    if args.reverse:
        return _required_by(args)
    found = answers.requires(indexes.published(open_line().state), args.name, args.project)
    if found is None:
        out(f"{args.name}: not known here; is the name whole? Else name its project by --project")
        return 1
    if args.json:
        print(as_json(found))
        return 0
    listed = found["requires_dist"]
    out(f"python {found['requires_python']}" if found["requires_python"] else "python: any, or unknown")
    out(*(listed if isinstance(listed, list) else ["its requirements are unknown"]))
    return 0


def _required_by(args: argparse.Namespace) -> int:
    found = providers.required_by(indexes.published(open_line().state), args.name)
    rows = cast("list[JsonObject]", found["required_by"])
    if args.json:
        print(as_json(found))
    elif not rows:
        out(f"no newest release is known that requires {found['project']}, up to serial {found['serial']}")
    for row in rows if not args.json else ():
        out(f"{row['project']} {row['version'] or ''}  {row['requirement']}")
    return 0 if rows else 1


def _show(args: argparse.Namespace) -> int:
    line, asked = open_line(), args.as_of
    serial = answers.serial_at(line.state, indexes.published(line.state), *asked) if isinstance(asked, tuple) else asked
    found = answers.show(indexes.published(line.state), normalised(args.name), serial)
    files = cast("list[dict[str, Json]]", found["files"])
    if args.json:
        print(as_json(found))
    elif "quarantined" in found:
        out(f"{found['project']}: in quarantine at serial {found['serial']}; its page had no files")
    elif not files:
        out(
            f"{found['project']}: no file at serial {found['serial']} is known; the last known one is {found['newest']}"
        )
    status = cast("dict[str, Json]", found.get("status", {}))
    if not args.json and status.get("status") not in (None, "active", "quarantined"):
        reason = f": {status['reason']}" if status["reason"] else ""
        out(f"{found['project']} is {status['status']} from serial {status['from']} on{reason}")
    for one in files if not args.json else ():
        until = f"to {one['to']}" if one["to"] is not None else "on"
        yanked = "" if one["yanked"] is None else f"  yanked: {one['yanked']}"
        shared = f"  modules of {one['modules_of']}" if "modules_of" in one else ""
        out(f"{one['filename']}  from serial {one['from']} {until}{yanked}{shared}")
    return 0 if files else 1


def _moment(text: str) -> int | tuple[int, int]:
    """A serial; or the begin and the end of a day or of a second, in seconds since 1970."""
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a serial, a day or a time") from error
    begin = int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())
    return begin, begin + _DAY - 1 if len(text) == len("2026-11-27") else begin


def _job(args: argparse.Namespace) -> str:
    name = args.job or next(iter(indexes.jobs()), "")
    if not indexes.mirrors(name):
        raise BadConfig("[pypi] jobs", f"does not list {name or 'any job'}; add it, with the index and a contact")
    return str(name)


def _dump_full(line: OpenRoots, name: str) -> int:
    def describe(marker: Evidence) -> str:
        dumped = Dumped.from_claim(marker.claim)
        lacked = f", {counted(len(dumped.lacked), 'gap', 'gaps')}" if dumped.lacked else ""
        rows = f"{counted(dumped.counts['rows'], 'file', 'files')} of {dumped.counts['projects']} projects"
        return f"generation {dumped.generation} is dumped: serials {dumped.window}, {rows}{lacked}"

    indexes.open_index()
    with locks.alone(line.state, dumps.lock(name)):
        full = full_dump.decide(line.state, lambda: line.store, name)
    words = ["--job", name, "--launch-id", full.launch.id, "--number", str(full.generation)]
    return do(line, full.key, ["pypi.DumpFull", *words], describe, "tasks.pypi")


def _retire(args: argparse.Namespace) -> int:
    line, name = open_line(), _job(args)
    index, place = indexes.open_index(), line.settings.store_uri("dumps")
    roots = UpdateRoots(line.state, lambda: line.store, index, place)
    newest = full_dumps.newest_generation(line.state, name)
    removed = update_leveldb.retire(roots, name, args.generation, newest)
    files = counted(removed.files, "dump file", "dump files")
    databases = counted(removed.databases, "database", "databases")
    out(f"generation {args.generation} of {name}: {files} and {databases} were deleted from the store")
    return 0


def _lag(args: argparse.Namespace) -> int:
    line, name = open_line(), _job(args)
    try:
        source = indexes.source()
        with source.index as index:
            newest = index.last_serial() if source.has_changelog else _last_listed(source)
    except (Unavailable, BadInput) as error:
        newest = None
        err(str(error))
    found = answers.lag(line.state, indexes.published(line.state) if line.settings.index else None, name, newest)
    if args.json:
        print(as_json(found))
        return 0
    for step in ("index", "crawled", "dumped", "published"):
        out(f"{step:<9}  {found[step] if found[step] is not None else '-'}")
    if (dumped := dumps.newest(line.state, name)) and dumped.waiting:
        out(f"waiting    {dumped.waiting.words}")
    return 0


def _last_listed(source: IndexSource) -> int | None:
    """The last serial of the list of an index, by which its crawls go; None for one without serials."""
    listed = source.index.projects()
    return listing.last_serial(listed, feed.wanted_of(source, listed, [])) or None


ANSWERS = {"provides": _provides, "requires": _requires, "show": _show, "lag": _lag}
ACTIONS = {"trigger_full": _full, "trigger_incremental": _incremental}


def _died(line: OpenRoots, name: str) -> Launch | None:
    """The newest launch, if it is a full crawl that broke off, as after a kill: its engine first puts it in order."""
    newest = broken_launches.newest(line.state, line.rootmap.alone(name), name)
    return newest.launch if newest and not newest.is_empty and _is_full(line, newest.launch) else None


def _is_full(line: OpenRoots, launch: Launch) -> bool:
    started = line.state.read(layout.key("pulse.Started", launch))
    fed = line.state.read(layout.feed_key(launch.job, Started.from_claim(started.claim).due)) if started else None
    window = Fed.from_claim(fed.claim).window if fed else None
    return window is not None and not window.after


def _stopped(line: OpenRoots, name: str) -> str:
    """The checkpoint from which a full crawl continues that was stopped; '' if the newest launch is another."""
    roots = line.rootmap.alone(name)
    newest = broken_launches.last(roots, name)
    if newest is None or newest.is_empty or not _is_full(line, newest.launch):
        return ""
    try:
        with closing(engines.engine_of(name)) as engine:
            return str(broken_launches.checkpoint(line.state, roots, engine, newest.launch).checkpoint)
    except NotReady as error:
        out(f"{error.what}: it left no checkpoint, so all is asked for anew")
        return ""


def _launch(line: OpenRoots, name: str, due: str, words: list[str]) -> int:
    def describe(marker: Evidence) -> str:
        launched = Launched.from_claim(marker.claim)
        fed = line.state.require(layout.feed_key(name, due))
        facts = Fed.from_claim(fed.claim)
        serials = f"serials {facts.window}, {facts.counts['of_job']} projects"
        if launched.nothing_new:
            return f"nothing is new since launch {launched.launch.id} ({serials}); nothing is launched"
        return f"launch {launched.launch.id} was started: {serials}"

    return do(line, layout.due_key(name, due), ["pulse.StartJob", "--job", name, "--due", due, *words], describe)
