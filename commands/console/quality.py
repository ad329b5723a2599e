"""The quality of a launch, for `warcmill quality`: a check by a replay of its own, a mark, a patch.

Stands alone, as the verb begins without all that this imports. Writes the report, the decision, the papers of a patch.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, nullcontext, redirect_stdout
from functools import partial
from pathlib import Path

from commands.console import luigi_cfg, pulse
from commands.console.launches import launch_of
from commands.console.papers import person
from commands.console.replaying import own_replay
from commands.console.show import as_json, counted, err, out
from tasks.config import engines, folders
from tasks.config.settings import NO_INDEX
from tasks.line import OpenRoots, open_line, papers_of
from warcmill.crawl.job import file
from warcmill.crawl.render import BrowserSettings, check_browser
from warcmill.errors import BadConfig, Busy, Conflict, NotReady
from warcmill.model import Json, Launch
from warcmill.quality import judgement, patch, reports
from warcmill.quality.reports import QualityReport
from warcmill.stores.opening import open_folder

MOST_NAMED = 10  # parts of a page, for a person


def run(args: argparse.Namespace) -> int:
    """Check, show, mark or patch a launch; return the exit code."""
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
    if not line.settings.index:
        raise BadConfig("[warcmill] index", f"is not set, {NO_INDEX}")
    papers = _papers(launch, of_launch=True)
    browser = BrowserSettings(sandbox=not args.no_sandbox and _has_sandbox(papers, launch.job))
    check_browser(browser)
    from warcmill.quality import check

    index = open_folder("index", line.settings.index)
    archive = check.CheckedArchive(line.state, line.store, index, partial(own_replay, line), papers, browser)
    return check.check(archive, launch, args.sample, err)


def _papers(launch: Launch, *, of_launch: bool) -> dict[str, bytes]:
    """The papers that a launch of our crawler began with, or those that its job has now; none of another's."""
    section = engines.section_of(launch.job)
    if not section or engines.kind_of(section) != engines.WARCMILL:
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
    name, of_job = patch.job_of(launch), _papers(launch, of_launch=False)
    with closing(luigi_cfg.engine_for(launch.job)) if of_job else nullcontext() as mended:
        networks = mended.allow_private if mended else ()
    written = patch.papers_of(_last(line, launch), of_job, networks)
    file.parse({paper: text for paper, text in written.items() if text is not None}, name)
    with closing(luigi_cfg.engine_for(name)) as engine:
        engine.places.require()
        folder = engine.places.job(name)
        if (there := file.files_in(folder)) and not patch.is_patch(there):
            raise Conflict(f"job {name}", "it is of another purpose; move its folder out of the jobs root")
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
        print(as_json(_answer(number, name, launch)))
    else:
        urls = counted(number, "URL is", "URLs are")
        out(f"{launch}: {urls} asked for by job {name}; to see how far: warcmill job {name} watch")
        out(f"when it has ended: warcmill scan; then check again: warcmill quality {launch.job} {launch.id}")
    return 0


def _answer(number: int, name: str, launch: Launch) -> dict[str, Json]:
    return {"asked": number, "job": name, "mends": str(launch)}


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
