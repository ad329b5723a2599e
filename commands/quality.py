"""warcmill quality: open pages of a launch in replay, name what they lack; mark the launch, and patch it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, nullcontext, redirect_stdout
from pathlib import Path

from commands.console import luigi_cfg
from commands.console.arguments import add_json, add_launch
from commands.console.launches import launch_of
from commands.console.papers import person
from commands.console.show import as_json, counted, err, out
from tasks.config import engines, folders
from tasks.config.settings import NO_INDEX
from tasks.line import OpenRoots, open_line, papers_of
from warcmill.crawl.job import file
from warcmill.errors import BadConfig, Busy, Conflict, NotReady
from warcmill.model import Launch
from warcmill.quality import judgement, reports
from warcmill.quality.judgement import MOST, SAMPLE
from warcmill.quality.reports import MARKS, QualityReport
from warcmill.stores.opening import open_folder

SUMMARY = "open pages of a launch in replay with the network cut, and name what they lack"
EPILOG = """\
examples:
  warcmill quality daily
  warcmill quality daily 20161019234428 --sample 50
  warcmill quality daily 20161019234428 --last --json
  warcmill quality daily 20161019234428 --mark poor --note 'no pictures in the news'
  warcmill quality daily 20161019234428 --patch

A check opens the seeds and 20 other pages, or --sample so many of each, in Chromium, which
reaches our replay alone. The same ones each time: those whose URLs have the smallest SHA-256.
For each page it names the parts that replay has not, with the reason:

  hidden      an access rule hides it
  scope       a rule of the job leaves it out
  robots      robots.txt forbids it
  refused     a quota, a person, or the rule about inside addresses was against it
  failed      no answer came, or an error
  orphan      the archive has a revisit of it, and not the payload
  unseen      the crawl found no link to it, as where a script makes the address
  unindexed   it was got, and the index version has it not yet
  broken      the index version has it, and replay could not show it

Besides: what the page asked the live web for, which was refused, and how many of the words
that the crawl saw are in replay. Worst first. The report is kept in the state, and names the
version of the index. --last shows the newest one again. --mark is a decision, kept with who
made it. --patch starts a crawl of what the newest report names and a crawl can bring, as a
job of its own, JOB-patch: these URLs, each with its parts, and the manners of JOB. Its launch
names the one that it mends. Once 'warcmill scan' has brought it in, check again.

It needs Chromium and pywb: apt-get install chromium, pip install 'warcmill[render]',
'warcmill serve --get-replay'.

--json: {"job", "launch_id", "number", "made", "version", "kinds": {reason: number},
"lacking", "seeds", "others", "pages": [{"url", "time", "title", "is_seed", "state", "why",
"parts", "missing": [{"kind", "url", "why"}], "leaks", "words", "common", "thumbnail"}]}

exit codes: 0 checked, whatever is missing, or shown, marked, started; 1 no such launch, none
of its stages is verified yet, no index is published, nothing to show or to patch, 2 usage,
3 configuration, or Chromium or pywb is missing, 4 a root, the store, the browser or replay
did not answer
"""
MOST_NAMED = 10  # parts of a page, for a person


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[JOB [LAUNCH]], --sample, and what else is to be done than a check."""
    add_launch(parser, optional=True)
    parser.add_argument(
        "--sample", type=_sample, default=SAMPLE, metavar="N",
        help=f"so many seeds, and so many other pages; by default {SAMPLE}",
    )  # fmt: skip
    parser.add_argument("--no-sandbox", action="store_true", help="Chromium without its sandbox, as root needs it")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--last", action="store_true", help="check nothing: show the newest report")
    what.add_argument("--mark", choices=MARKS, help="check nothing: say how the launch is")
    what.add_argument("--patch", action="store_true", help="check nothing: start a crawl of what is missing")
    parser.add_argument("--note", default="", metavar="TEXT", help="why, one line, kept with the mark")
    add_json(parser)


def _sample(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 to {MOST}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Check, show, mark or patch a launch."""
    if args.note and not args.mark:
        err("warcmill quality: --note goes with --mark")
        return 2
    line = open_line()
    launch = launch_of(line, args, in_state=True)
    if args.mark:
        return _mark(line, launch, args)
    if args.patch:
        return _patch(line, launch, args)
    report = _last(line, launch) if args.last else _checked(line, launch, args)
    if args.json:
        print(as_json(report.json()))
    else:
        out(*_texts(report))
    return 0


def _last(line: OpenRoots, launch: Launch) -> QualityReport:
    found = reports.newest(line.state.store, launch)
    if found is None:
        raise NotReady(str(launch), f"it was not checked yet: warcmill quality {launch.job} {launch.id}")
    return found


def _checked(line: OpenRoots, launch: Launch, args: argparse.Namespace) -> QualityReport:
    """The report of a check that is made now."""
    from commands.console.replaying import own_replay  # with the web and the browser, which others do without
    from warcmill.crawl.render import BrowserSettings, check_browser

    if not line.settings.index:
        raise BadConfig("[warcmill] index", f"is not set, {NO_INDEX}")
    papers = _papers(launch, of_launch=True)
    browser = BrowserSettings(sandbox=not args.no_sandbox and _has_sandbox(papers, launch.job))
    check_browser(browser)
    from warcmill.quality import check

    index = open_folder("index", line.settings.index)
    with own_replay(line) as replay:
        archive = check.CheckedArchive(line.state, line.store, index, replay, papers, browser)
        return check.check(archive, launch, args.sample, err)


def _papers(launch: Launch, *, of_launch: bool) -> dict[str, bytes]:
    """The papers that a launch of our crawler began with, or those that its job has now; none of another's."""
    section = engines.section_of(launch.job)
    if section and engines.kind_of(section) != engines.WARCMILL:
        return {}
    with closing(luigi_cfg.engine_for(launch.job)) as engine:
        return file.files_in(engine.places.folders(launch).own if of_launch else engine.places.job(launch.job))


def _has_sandbox(papers: Mapping[str, bytes], job: str) -> bool:
    """False if the job renders without one, as root has to."""
    return not papers or file.described(papers, job).render.sandbox


def _mark(line: OpenRoots, launch: Launch, args: argparse.Namespace) -> int:
    made = reports.mark(line.state.store, lambda: line.store, launch, args.mark, args.note, person())
    if args.json:
        print(as_json(reports.marked(made)))
    else:
        out(f"{launch}: {args.mark}, decision {made.number}")
    return 0


def _patch(line: OpenRoots, launch: Launch, args: argparse.Namespace) -> int:
    """Write the papers of the job that patches this one, and start it."""
    from commands.console import pulse
    from warcmill.quality import patch

    name, of_job = patch.job_of(launch), _papers(launch, of_launch=False)
    with closing(luigi_cfg.engine_for(launch.job)) if of_job else nullcontext() as mended:
        networks = mended.allow_private if mended else ()
    written = patch.papers_of(_last(line, launch), of_job, networks)
    file.parse({paper: text for paper, text in written.items() if text is not None}, name)
    with closing(luigi_cfg.engine_for(name)) as engine:
        engine.places.require()
        folder = engine.places.job(name)
        if (there := file.files_in(folder)) and not patch.is_patch(there):
            raise Conflict(f"job {name}", "it is no patch, and its name is taken; move its folder out of the jobs root")
        if (seen := engine.look(name)).running:
            raise Busy(f"job {name}, launch {seen.launch_id},")
    papers = papers_of(line, folder, name)
    newest = papers.settle()
    papers.save(written, who=person(), why=f"mends {launch}", made_from=newest.number if newest else 0)
    luigi_cfg.list_job(Path(folders.config_file()).absolute(), name)
    with redirect_stdout(sys.stderr) if args.json else nullcontext():
        code = pulse.start(name, again=True, mends=str(launch))
    if code:
        return code
    number = len((written[file.SEEDS] or b"").splitlines())
    if args.json:
        print(as_json({"asked": number, "job": name, "mends": str(launch)}))
    else:
        urls = counted(number, "URL is", "URLs are")
        out(f"{launch}: {urls} asked for by job {name}; to see how far: warcmill job {name} watch")
        out(f"when it has ended: warcmill scan; then check again: warcmill quality {launch.job} {launch.id}")
    return 0


def _texts(report: QualityReport) -> Iterator[str]:
    """A report for a person."""
    well = sum(page.is_well for page in report.pages)
    pages = counted(len(report.pages), "page was", "pages were")
    yield f"{report.launch}: {pages} opened in index version {report.version}, {well:,} of them lack nothing"
    yield f"  of {counted(report.seeds, 'seed', 'seeds')} and {counted(report.others, 'other page', 'other pages')}"
    for kind, number in judgement.counts(report.pages).items():
        yield f"  {number:>7,}  {kind}"
    for one in report.lacking:
        yield f"  not among them: {one}"
    for page in report.pages:
        if page.is_well and not page.lost_words:
            continue
        words = "" if page.words is None else f", {page.common:,} of {page.words:,} words"
        yield f"{page.url}: {page.state}{words}{f': {page.why}' if page.why else ''}"
        for part in page.missing[:MOST_NAMED]:
            yield f"  {part.kind:<9}  {part.url}: {part.why}"
        if (more := len(page.missing) - MOST_NAMED) > 0:
            yield f"  ... and {more:,} more; --json has all"
        for leak in page.leaks[:MOST_NAMED]:
            yield f"  leak       {leak}: it asked the live web, and was refused"
