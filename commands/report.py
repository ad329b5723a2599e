"""warcmill report: what a launch brought, what became of its seeds, and what is new beside the launch before."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice

from msgspec.structs import replace
from rich.text import Text

from commands.console.arguments import add_json, add_launch
from commands.console.launches import launch_of, report_away
from commands.console.show import as_json, counted, err, out, write_rows
from commands.console.terminal import console, lines, styled
from tasks.config.settings import NO_INDEX
from tasks.line import OpenRoots, open_line
from warcmill.audit import remedies
from warcmill.audit.progress_grid import STYLES, Mark
from warcmill.audit.survey import TARGET
from warcmill.audit.survey import known as known_launch
from warcmill.base.escapes import printable
from warcmill.errors import BadConfig, NotReady, Unavailable
from warcmill.markers.facts.reports import REPORT_TABLES, LostRequest, SeedFate, Seeds, SeedState
from warcmill.model import Launch
from warcmill.reports import figures, missed, page_versions
from warcmill.reports.comparison import NOT_VISITED, LaunchComparison
from warcmill.reports.figures import LaunchFigures
from warcmill.reports.missed import MissedUrl
from warcmill.stores.opening import open_folder

SUMMARY = "show what a launch brought, and what became of each of its seeds"
EPILOG = """\
examples:
  warcmill report
  warcmill report daily 20161019234428
  warcmill report daily 20161019234428 --seeds
  warcmill report daily --seeds --csv > seeds.csv
  warcmill report daily --missed --csv > missed.csv
  warcmill report daily --compare https://example.org/news

Without LAUNCH: the newest of the job; without JOB: the newest of all. First what was
missed: the first ten URLs, then the seeds that were not got; then what is new, changed,
the same, gone (404 or 410 now) or not visited beside the job's launch before, then the
figures of the crawl log, each table with its first rows. --seeds lists every seed
instead, those that were not got first; --missed every URL that was tried and not got, in
order, with its status, the reason and the page that led to it, unless a later launch of
the job got it: 'warcmill job JOB retry --missed' asks for them again. The scan for
reports has read the stored logs; the comparison is made when it is first asked for, and
kept in the index root. Nothing else is changed. --compare shows two versions of a URL, of
this launch and of the one before it: dates, digests, sizes, and the lines of words that were
removed and added, by the published index and the extracts of text.

--json: {"job", "launch_id", "seeds": null before they are listed, else {"listed", "end",
"untried_as", "counts", "seeds": [{"seed", "state", "code", "why", "redirect",
"target"}], "without_page"}, "before": {"before", "counts", "first", "why": {URL: why it was not
visited}} or null, "crawl":
{"stages", "lines", "bytes", "unread", table: {name: number}}}; with requests that have no page "crawl" has
"requests_lost" too, and "requests_without_page": [{"appid", "crawlid", "url", "why"}];
"bounds": [{"bound", "finding", "first", "is_set", "key", "number", "value"}], where bounds
of the crawl left something out; "unrendered": [{"why", "number", "first"}], where pages
were to be rendered and were not.
--csv: the same rows, seed,state,code,why,redirect,target; without --seeds
table,name,number. --missed --json: {"cut": how the crawl was cut short, "job",
"launch_id", "missed": [{"url", "status", "why", "referrer"}]}; --csv: the same columns.
--compare --json: {"url", "before", "now" and "then": null or {"launch_id", "time", "url",
"status", "type", "digest", "length", "warc", "offset", "why": why it has no words}, "lines":
[["+", "-" or " ", line]], "cut": some lines are left out}.

exit codes: 0 shown, 1 there is no report of it yet, or no such launch, 2 usage,
3 configuration, 4 a root or the store did not answer
"""
MISSED = 10  # URLs that are named before all else
LONGEST = 1_000_000  # lines of crawl logs that are read for them
ROWS = 20  # of a table, or of the seeds without --seeds
_COLUMNS = ("seed", "state", "code", "why", "redirect", "target")
_HEADS = {
    "by_status": "by status", "by_mime": "by type", "by_host_top": "by host", "by_hop": "by hop",
    "by_tries": "by tries", "refused": "not fetched, by what was against it", "rejected": "links rejected, by rule",
    "cut": "answers cut, by limit",
}  # fmt: skip
_SHORTEST_FIRST = ("cut", "refused", "rejected", "by_tries", "by_hop", "by_status", "by_mime", "by_host_top")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[JOB [LAUNCH]], --seeds or --missed, --json or --csv."""
    add_launch(parser, optional=True)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--seeds", action="store_true", help="every seed, and nothing else")
    what.add_argument("--missed", action="store_true", help="every URL that was not got, and nothing else")
    what.add_argument("--compare", metavar="URL", help="two versions of a URL, and nothing else")
    add_json(parser)
    parser.add_argument("--csv", action="store_true", help="rows for a spreadsheet")


def run(args: argparse.Namespace) -> int:
    """Read the reports; print."""
    if args.json and args.csv:
        err("warcmill report: --json or --csv, not both")
        return 2
    line = open_line()
    launch = launch_of(line, args, in_state=True)
    if args.compare:
        return _compare(line, launch, args)
    if args.missed:
        with missed.of_launch(line.state, line.store, launch) as urls:
            _show_missed(line, launch, urls, args)
        return 0
    known = _read(line, launch, compared=not args.seeds and not args.csv)
    if args.json:
        print(as_json(known.json()))
    elif args.csv:
        _write_csv(known, of_seeds=args.seeds)
    else:
        lines(console(), *(_every_seed(known) if args.seeds else _texts(known, [*_first_missed(line, known)])))
    return 0 if known.seeds or (known.stages and not args.seeds) else 1


def _compare(line: OpenRoots, launch: Launch, args: argparse.Namespace) -> int:
    """Print two versions of a URL; 1 if there is none of this launch."""
    if args.csv:
        err("warcmill report: --compare has no --csv")
        return 2
    if not line.settings.index:
        raise BadConfig("[warcmill] index", f"is not set, {NO_INDEX}")
    found = page_versions.compare(line.state, open_folder("index", line.settings.index), launch, args.compare)
    if args.json:
        print(as_json(found.json()))
        return 0 if found.now else 1
    for word, launch_id, one in (("then", found.before, found.then), ("now", launch.id, found.now)):
        if one is None:
            out(f"{word}: no capture is shown of launch {launch_id}" if launch_id else f"{word}: no launch before it")
            continue
        out(f"{word}: launch {launch_id}, {one.time}, status {one.status}, {one.digest}, {one.length:,} bytes stored")
        if one.why:
            out(f"  {one.why}")
    if found.is_same:
        out("both have the same bytes")
    out(*(f"{mark} {text}" for mark, text in found.lines))
    if found.is_cut:
        err("the texts are long: only their first lines that differ are shown")
    return 0 if found.now else 1


def _read(line: OpenRoots, launch: Launch, *, compared: bool) -> LaunchFigures:
    """The reports of a launch. BadInput when there is no such launch."""
    seen = known_launch(line.state, line.rootmap, launch, line.wanted)
    report_away(seen.away)
    known = figures.of_crawl(line.state, figures.of_facts(launch, seen.stages, seen.facts))
    if seen.cut:
        known = replace(known, cut=seen.cut.text, go_on=remedies.go_on(seen))
    known = replace(known, got_later=seen.got_later)
    if not compared or known.seeds is None:
        return known
    index = open_folder("index", line.settings.index) if line.settings.index else None
    return replace(known, before=figures.beside_the_one_before(line.state, index, launch, line.store))


def _show_missed(line: OpenRoots, launch: Launch, urls: Iterable[MissedUrl], args: argparse.Namespace) -> None:
    """Print each URL as it is read: there may be 100,000."""
    if args.csv:
        write_rows(missed.COLUMNS, (url[: len(missed.COLUMNS)] for url in urls))
        return
    seen = known_launch(line.state, line.rootmap, launch, line.wanted)
    report_away(seen.away)
    cut = seen.cut.text if seen.cut else ""
    if args.json:
        head = as_json({"cut": cut, "job": launch.job, "launch_id": launch.id}).rstrip().removesuffix("}").rstrip()
        sys.stdout.write(f'{head},\n "missed": [')
        for number, url in enumerate(urls):
            sys.stdout.write(f"{',' if number else ''}\n  {json.dumps(url.json(), ensure_ascii=False, sort_keys=True)}")
        print("\n ]\n}")
        return
    number = 0
    for number, url in enumerate(urls, 1):  # noqa: B007 the last number is that of all
        print(_missed(url))
    out(f"{launch}: {counted(number, 'URL', 'URLs')} missed{f'; {cut}' if cut else ''}")
    if number:
        out(f"to ask for them again: {remedies.retry_missed(launch)}")


def _missed(url: MissedUrl) -> str:
    led = f"; from {url.referrer}" if url.referrer else ""
    return printable(f"{url.status:>6}  {url.url}: {url.why}{led}")


def _first_missed(line: OpenRoots, figures: LaunchFigures) -> Iterator[str]:
    """The first URLs that were missed, and their number; of a launch with very long logs the command alone."""
    every, codes = remedies.report_missed(figures.launch), figures.tables["by_status"]
    if all(200 <= int(code) < 400 for code in codes if code.lstrip("-").isdigit()):
        return
    if figures.numbers["lines"] > LONGEST:
        yield f"each URL that was not got: {every}"
        return
    try:
        with missed.of_launch(line.state, line.store, figures.launch) as urls:
            found = iter(urls)
            first = [*islice(found, MISSED)]
            more = sum(1 for _ in found)
    except NotReady:  # a stage is not verified: below is which
        return
    except Unavailable as error:
        err(f"{error}; what was missed is in its logs")
        return
    if first:
        yield f"{counted(len(first) + more, 'URL', 'URLs')} missed"
        yield from map(_missed, first)
    if more:
        yield f"  and {more:,} more: {every}"


def _texts(figures: LaunchFigures, first_missed: list[str]) -> Iterator[str | Text]:
    yield f"{figures.launch}"
    if figures.cut:
        yield styled(f"cut short: {figures.cut}", STYLES[Mark.CUT])
        yield styled(f"    -> {figures.go_on}", "cyan")
    yield from first_missed
    if figures.parts:
        yield f"one crawl with {', '.join(one.id for one in figures.parts)}, which it continues: figures are of all"
    yield from (
        f"asked for less than launch {figures.less_than.id}: {one}" for one in figures.less if figures.less_than
    )
    if figures.broken:
        yield f"a part of the crawl is missing: {figures.broken}"
    yield from _left_out(figures)
    yield from _seeds(figures)
    yield from _compared(figures.before)
    if figures.stages:
        words = ", ".join([*(one.id for one in figures.parts), *map(str, figures.stages)])
        numbers = {name: f"{number:,}" for name, number in figures.numbers.items()}
        yield f"crawl log of {words}: {numbers['lines']} lines, {numbers['bytes']} bytes, {numbers['unread']} unread"
    if figures.missing:
        yield f"no report of {', '.join(map(str, figures.missing))} yet: {_scan(figures.launch)}"
    if figures.requests_lost:
        yield f"{counted(figures.requests_lost, 'request', 'requests')} without a page"
        yield from map(_request, figures.requests[:ROWS])
    if figures.requests_lost > ROWS:
        yield f"  and {figures.requests_lost - ROWS:,} more; --json lists them"
    for name in _SHORTEST_FIRST:
        yield from _table(_HEADS[name], figures.tables[name])


def _left_out(figures: LaunchFigures) -> Iterator[str | Text]:
    """The cuts of bounds, and the pages that were not rendered; findings in colour."""
    for cut in figures.bounds:
        yield styled(printable(cut.text), STYLES[Mark.CUT]) if cut.is_finding else printable(cut.text)
    for lost in figures.unrendered:
        yield styled(printable(lost.text), STYLES[Mark.CUT]) if lost.is_finding else printable(lost.text)


def _scan(launch: Launch) -> str:
    return f"warcmill scan {launch.day}"


def _table(head: str, table: dict[str, int]) -> Iterator[str]:
    rows = list(table.items())
    if rows:
        yield f"  {head}"
        yield from (f"  {number:>12,}  {printable(name or '-')}" for name, number in rows[:ROWS])
    if len(rows) > ROWS:
        yield f"                and {len(rows) - ROWS} more"


def _seeds(figures: LaunchFigures) -> Iterator[str]:
    if figures.seeds is None:
        yield f"seeds: not listed yet: {_scan(figures.launch)}"
        return
    yield from _heading(figures.seeds)
    lost = figures.seeds.lost()
    yield from (_seed(one, figures.got_later.get(one.seed, "")) for one in lost[:ROWS])
    if len(lost) > ROWS:
        yield f"  and {len(lost) - ROWS} more: warcmill report {figures.launch.job} {figures.launch.id} --seeds"
    for target in figures.seeds.without_page[:ROWS]:
        later = _later(figures.got_later.get(f"{TARGET}{target}", ""))
        yield f"  no page of target {printable(target)}{later}"
    if len(figures.seeds.without_page) > ROWS:
        yield f"  and {len(figures.seeds.without_page) - ROWS} more targets"


def _heading(seeds: Seeds) -> Iterator[str]:
    if not seeds.listed:
        yield "seeds: unknown, for the launch has no seeds.txt among its logs"
        return
    numbers = ", ".join(f"{seeds.numbers[state]} {state}" for state in reversed(SeedState) if seeds.numbers[state])
    yield f"{counted(seeds.numbers['seeds'], 'seed', 'seeds')}: {numbers or 'none'}"
    if seeds.untried_as and seeds.numbers[SeedState.UNTRIED]:
        yield f"  untried ones are no loss: {printable(seeds.untried_as)}"
    yield from (f"  not read to its end: {printable(log)}" for log in seeds.unread)


def _every_seed(figures: LaunchFigures) -> Iterator[str]:
    if figures.seeds is None:
        yield f"{figures.launch}: seeds: not listed yet: {_scan(figures.launch)}"
        return
    yield f"{figures.launch}"
    yield from _heading(figures.seeds)
    for fate in _worst_first(figures.seeds):
        yield _seed(fate, figures.got_later.get(fate.seed, ""))


def _worst_first(seeds: Seeds) -> list[SeedFate]:
    place = {state: number for number, state in enumerate(SeedState)}
    return sorted(seeds.seeds, key=lambda fate: place[fate.state])


def _later(launch_id: str) -> str:
    return f"; missed then, got later by launch {launch_id}" if launch_id else ""


def _seed(fate: SeedFate, later: str) -> str:
    code = "" if fate.code is None else str(fate.code)
    target = f", target {fate.target}" if fate.target else ""
    led = f" -> {fate.redirect}" if fate.redirect and not fate.why else ""
    added = f"; Heritrix added it, {fate.added_from} redirects to it" if fate.added_from else ""
    why = f": {fate.why}" if fate.why else ""
    return printable(f"  {fate.state:<10} {code:>5}  {fate.seed}{target}{led}{why}{added}{_later(later)}")


def _request(lost: LostRequest) -> str:
    return printable(f"  {lost.appid} {lost.crawlid}  {lost.url}: {lost.why}")


def _compared(before: LaunchComparison | None) -> Iterator[str]:
    if before:
        numbers = ", ".join(f"{number:,} {kind}" for kind, number in before.counts.items())
        yield f"pages beside launch {before.before.id}: {numbers}"
        for kind in ("gone", NOT_VISITED, "changed"):
            whys = ((url, before.why.get(url, "")) for url in before.first[kind][:5])
            yield from (f"  {kind:<11} {printable(url)}{f': {why}' if why else ''}" for url, why in whys)
            if before.counts[kind] > 5:
                yield f"             and {before.counts[kind] - 5:,} more"


def _write_csv(figures: LaunchFigures, *, of_seeds: bool) -> None:
    rows: Iterable[Iterable[object]]
    heads: tuple[str, ...]
    if of_seeds:
        heads = _COLUMNS
        rows = ([fate.facts()[name] for name in _COLUMNS] for fate in (figures.seeds.seeds if figures.seeds else ()))
    else:
        heads = ("table", "name", "number")
        rows = ((table, name, number) for table in REPORT_TABLES for name, number in figures.tables[table].items())
    write_rows(heads, rows)
