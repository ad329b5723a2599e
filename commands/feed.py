"""warcmill feed: check a feed; list and edit its targets; exchange them, and jobs with another crawler."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from commands.console.arguments import add_json, job
from commands.console.show import as_json, err, out
from warcmill.base.schedule import NAMED
from warcmill.clients import feed_source
from warcmill.errors import BadInput, Conflict
from warcmill.formats.feed import Depth, Feed, Target, TargetScope, read
from warcmill.model import Json

SUMMARY = "check a crawl feed; list, add, edit, pause its targets; exchange them, and jobs of brozzler"
EPILOG = """\
examples:
  warcmill feed check /srv/feeds/targets.jsonl
  warcmill feed check targets.json --json | jq -r '.faults[].where'
  warcmill feed targets daily --words things --owner "Ann Example"
  warcmill feed add daily --url https://www.example.org/ --title Things --schedule monthly
  warcmill feed edit daily 7 --schedule "daily from 2026-12-01" --why "it changes"
  warcmill feed pause daily 7 9
  warcmill feed resume daily 7 9
  warcmill feed import --from w3act --job daily targets.csv --dry-run
  warcmill feed export --to csv daily > targets.csv
  warcmill feed history daily
  warcmill feed import --from brozzler news.yaml
  warcmill feed export --to brozzler news > news.yaml

check reads JSON Lines, or one JSON list, of targets. Names every faulty target by its line or
its place in the list; a crawl leaves such targets out. Then counts the sound targets, and
their schedules, by depth, scope and frequency. Needs no line and no configuration.

Notes are not faults: a seed without a scheme is crawled by https and by http; a
schedule with a frequency that Warcmill does not have is skipped.

A target that needs a login (loginPageUrl, secretId) is crawled as anyone sees it:
crawls do not log in. Such targets are named, and are not a fault.

--json: {"targets", "seeds", "depths", "scopes", "frequencies", "ignore_robots",
"refresh", "without_login": [id], "faults": [{"where", "why"}], "notes": [{"where", "why"}]}

targets, add, edit, pause, resume, history and undo are about the feed that [feed] source names,
for a JOB of [feed] jobs. It can be edited if it is a file of JSON Lines that this user may
write; each saved change is an edition, with who, when and why, and what was edited by hand is
one, too. Other lines, and other fields of a line, stay as they are. A schedule is a line as
'monthly', 'every 6 hours', 'daily from 2026-12-01 to 2027-06-01', 'daily refresh'; --url and
--schedule may be given several times, and replace what the target had. A paused target is
never due. The fate of a target is what became of its seeds in the newest launch of JOB that
asked for it.

import --from w3act takes W3ACT's JSON Lines or CSV, or an export: a target whose id the feed has
is changed in what the list names, others are added, and none is removed. --dry-run says so, and
writes nothing. A line that cannot be taken is named with its number and the reason.

--json: targets: {"faults", "job", "source", "targets": [{"id", "title", "addresses",
"schedules", "owner", "paused", "fate", "fault", "line", ...}], "total", "why_fixed"}; add, edit,
pause, resume: {"changed", "edition", "job", "targets"}; import: {"new", "changed", "same",
"refused": [{"line", "text", "why"}], "new_ids", "changed_ids", "ignored", "edition"}

import --from brozzler makes a job of the built-in crawler of brozzler's job-conf: its papers are an edition,
and its name is the id, or the host of the first seed. No crawl is begun: 'warcmill pulse
start' or 'warcmill schedule' does. An import that differs replaces an earlier one, unless
somebody has edited the job since. export prints a job as a job-conf: an imported one as it
was, until it is edited. What the other crawler would not do is listed on stderr, a line
each; then nothing is written, and the exit code is 1, unless there is --lossy. A password
may only be ${NAME}, a variable of the environment. YAML has no aliases and no tags here.

exit codes: 0 sound, or done, 1 faults, no targets, something cannot be kept or was refused,
somebody else has saved the target meanwhile, 2 usage, 3 configuration, also a feed that cannot
be edited here, 4 it could not be read, or the archive did not answer
"""
BROZZLER, W3ACT = "brozzler", "w3act"
LISTS = ("jsonl", "csv")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """check FILE, --json; import --from FILE and export --to JOB; what is done to the targets of JOB."""
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="|".join(("check", "import", "export", *TARGETS))
    )
    check, read_in, write_out = (actions.add_parser(name, allow_abbrev=False) for name in ("check", "import", "export"))
    check.add_argument("file", metavar="FILE", help="a feed")
    add_json(check)
    read_in.add_argument(
        "--from", dest="of", choices=(BROZZLER, W3ACT), required=True, help="the program whose file it is"
    )
    read_in.add_argument("--job", type=job, metavar="JOB", help="of w3act: a job with the feed")
    read_in.add_argument("--dry-run", action="store_true", help="of w3act: say what it would be, and write nothing")
    read_in.add_argument("--why", default="", metavar="TEXT", help="of w3act: kept with the edition")
    read_in.add_argument("file", metavar="FILE", help="a job-conf; a list of targets")
    add_json(read_in)
    write_out.add_argument("--to", dest="of", choices=(BROZZLER, *LISTS), required=True, help="the form that it gets")
    write_out.add_argument("job", type=job, metavar="JOB", help="a job of the built-in crawler, or with the feed")
    for one in (read_in, write_out):
        one.add_argument("--lossy", action="store_true", help="of brozzler: leave out what cannot be kept")
    _add_targets({name: actions.add_parser(name, allow_abbrev=False) for name in TARGETS})


def _add_targets(parsers: Mapping[str, argparse.ArgumentParser]) -> None:
    for name, parser in parsers.items():
        parser.add_argument("job", type=job, metavar="JOB", help="a job of [feed] jobs")
        add_json(parser)
        if name not in ("targets", "history"):
            parser.add_argument("--why", default="", metavar="TEXT", help="kept with the edition")
    parsers["targets"].add_argument("--words", default="", metavar="TEXT", help="in the title, an address or the id")
    parsers["targets"].add_argument("--owner", default="", metavar="TEXT", help="whose they are")
    parsers["targets"].add_argument("--paused", action="store_true", help="only those that are paused")
    parsers["targets"].add_argument("--limit", type=int, default=100, metavar="NUMBER", help="how many; by default 100")
    parsers["edit"].add_argument("id", metavar="ID", help="the id of a target")
    for name in ("pause", "resume"):
        parsers[name].add_argument("ids", nargs="+", metavar="ID", help="the id of a target")
    parsers["undo"].add_argument("--edition", type=int, default=0, metavar="NUMBER", help="back to this one")
    for name in ("add", "edit"):
        one = parsers[name]
        one.add_argument("--url", action="append", dest="addresses", metavar="URL", help="an address to begin with")
        one.add_argument(
            "--schedule", action="append", dest="schedules", metavar="TEXT", help="as 'monthly'; '' for none"
        )
        one.add_argument("--title", metavar="TEXT", help="for people")
        one.add_argument("--owner", metavar="TEXT", help="for people")
        one.add_argument("--scope", choices=[*TargetScope], help="how far from its addresses")
        one.add_argument("--depth", choices=[*Depth], help="how much of a host")
        one.add_argument("--watched", choices=("yes", "no"), help="its documents are looked for")
        one.add_argument("--ignore-robots", choices=("yes", "no"), help="leave its robots.txt aside")


def run(args: argparse.Namespace) -> int:
    """Check a feed, or exchange a job."""
    if args.action == "check":
        return _check(args)
    if args.action in TARGETS or args.of in (W3ACT, *LISTS):
        from commands.console import feed_targets  # checking a feed needs no archive

        return feed_targets.ACTIONS[args.action](args)
    return _import(args) if args.action == "import" else _export(args)


def _check(args: argparse.Namespace) -> int:
    """Check the feed and print what it contains. Exit 1 for any fault, and for a feed without targets."""
    feed = read(feed_source.read_file(args.file), args.file)
    if args.json:
        print(as_json({**counted(feed.targets), "faults": _json(feed.left_out), "notes": _json(feed.notes)}))
    else:
        for line in _lines(feed):
            out(line)
    return int(bool(feed.left_out) or not feed.targets)


def _import(args: argparse.Namespace) -> int:
    """Make a job of a job-conf. Conflict if somebody has edited the job, or made it otherwise."""
    from commands.console.luigi_cfg import job_of, list_job  # checking a feed needs no archive
    from commands.console.papers import open_papers, person
    from tasks.config import folders
    from warcmill.crawl.job import brozzler
    from warcmill.formats import job_conf
    from warcmill.markers.papers import read_papers

    if args.job or args.dry_run or args.json:
        raise BadInput("--job, --dry-run, --json", "they are for --from w3act; nothing was read")
    known = job_conf.read(feed_source.read_file(args.file), args.file)
    made = brozzler.papers(known, args.file, job_of(known.seeds[0].url))
    if _is_refused(made.lost, lossy=args.lossy):
        return 1
    papers = open_papers(made.name)
    newest = papers.settle()
    there = read_papers(papers.folder)
    if there and there != made.papers and not brozzler.is_as_imported(there, made.name):
        raise Conflict(f"job {made.name}", "it was edited, or made otherwise; give the file another id")
    number = newest.number if newest else 0
    edition = papers.save(made.papers, who=person(), why="warcmill feed import --from brozzler", made_from=number)
    list_job(Path(folders.config_file()), made.name)
    seeds = len(known.seeds)
    out(f"{made.name}: {seeds:,} {'seed' if seeds == 1 else 'seeds'}, edition {edition.number}")
    out(f"next: warcmill pulse start {made.name}")
    return 0


def _export(args: argparse.Namespace) -> int:
    """Print a job as a job-conf."""
    from commands.console.papers import open_papers
    from warcmill.crawl.job import brozzler, file
    from warcmill.formats import job_conf

    made = brozzler.conf(file.files_in(open_papers(args.job).folder), args.job)
    if _is_refused(made.lost, lossy=args.lossy):
        return 1
    sys.stdout.write(job_conf.write(made.conf).decode())
    return 0


def _is_refused(lost: Iterable[str], *, lossy: bool) -> bool:
    """Name what cannot be kept; True if that ends it."""
    lines = list(lost)
    err(*(f"not kept: {line}" for line in lines))
    if lines and not lossy:
        err("nothing was written; with --lossy the rest is")
    return bool(lines) and not lossy


TARGETS = ("targets", "add", "edit", "pause", "resume", "history", "undo")
"""The actions on the targets of a job's feed."""


def _json(faults: list[BadInput]) -> list[Json]:
    return [{"where": fault.path, "why": fault.why} for fault in faults]


def counted(targets: list[Target]) -> dict[str, Json]:
    """The number of targets by kind. A target counts once for each of its frequencies."""
    by_target = ({schedule.frequency for schedule in target.schedules} for target in targets)
    frequencies = [frequency for of_target in by_target for frequency in of_target]
    return {
        "targets": len(targets),
        "seeds": sum(len(target.seeds) for target in targets),
        "depths": _tally(Depth, (target.depth for target in targets)),
        "scopes": _tally(TargetScope, (target.scope for target in targets)),
        "frequencies": _tally(NAMED, frequencies),
        "refresh": sum(any(schedule.refresh for schedule in target.schedules) for target in targets),
        "ignore_robots": sum(target.ignore_robots for target in targets),
        "without_login": [target.id for target in targets if target.needs_login],
    }


def _tally(words: Iterable[str], values: Iterable[object]) -> dict[str, Json]:
    """The number of times that each word occurs: the known words first, then others."""
    counts = Counter(map(str, values))
    known = [str(word) for word in words]
    return {word: counts[word] for word in [*known, *sorted(set(counts) - set(known))]}


def _lines(feed: Feed) -> Iterator[str]:
    yield from (str(fault) for fault in feed.left_out)
    yield from (f"note: {note}" for note in feed.notes)
    for name, value in counted(feed.targets).items():
        if isinstance(value, dict):
            yield f"{name:<14}" + ", ".join(f"{number} {word}" for word, number in value.items())
        elif isinstance(value, list):
            yield f"{name:<14}{len(value)}" + (f": {', '.join(map(str, value))}" if value else "")
        else:
            yield f"{name:<14}{value}"
    faults = len(feed.left_out)
    yield f"{faults} {'fault' if faults == 1 else 'faults'}" if faults else "sound" if feed.targets else "no target"
