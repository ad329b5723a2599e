"""warcmill accept: record that an operator knows of a finding and accepts it. Writes markers and decisions.

A finding of a launch is accepted by a marker of it; lost seeds, and due crawls that are skipped, by decisions, as they
hold for later launches, or have none.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from msgspec import Struct

from commands.console.arguments import Interval, interval, reason
from commands.console.person import person
from commands.console.show import counted, err, out
from tasks.audited import audited
from tasks.config import engines
from tasks.line import OpenRoots, open_line
from warcmill import layout
from warcmill.audit import accepted_seeds, due_crawls, gaps, survey
from warcmill.audit.answers import dues
from warcmill.audit.findings import OF_SEEDS, looked_up, lost_seeds
from warcmill.audit.remedies import accept as command
from warcmill.audit.survey import Survey
from warcmill.base.escapes import did_you_mean, printable
from warcmill.decisions import statements
from warcmill.errors import BadInput, Conflict
from warcmill.formats.seeds import comparable
from warcmill.markers import decisions
from warcmill.markers.claim import Claim
from warcmill.markers.facts.operator import Accepted
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch, parse_job, parse_stamp, stamp_time

SUMMARY = "accept a finding, such as a refused file, so that it is no longer a gap"
EPILOG = """\
examples:
  warcmill accept BL-20261121083736394-00000-1283~crawler01~8443.warc.gz.open \\
      --reason "the crawler was killed; its whole records are salvaged"
  warcmill accept cp00003 --launch daily 20161019234428 --reason "the disk was full"
  warcmill accept --kind 'absent log' 2016-10 --reason "the engine was killed on the 19th"
  warcmill accept daily 20161224060000 20161225060000 --reason "closed at Christmas"
  warcmill accept http://gone.example/ --reason "the site was closed for good"
  warcmill accept --seeds --launch daily 20161019234428 --reason "the host moves"

NAME is what 'warcmill reconcile' prints: the path or file name of a refused or unnamed
WARC, the name of an absent one, a log ('final/surts.dump'), a missing serial or
checkpoint, a seed. It must match one finding in all launches; --launch selects the launch.
Put a NAME that begins with '-' last, after '--'. --kind takes every open finding of a
kind at once, of an INTERVAL or of --launch: 'refused', 'absent', 'not launched' ...

JOB DUE: a crawl that was due, or will be, is meant to be skipped. No scan starts it then.
This is a decision, kept in the state and in the store.

A seed is accepted in the first launch of the job where it is open, and in all later ones,
until a launch gets it: after that, losing it is a new finding. --seeds accepts all lost
seeds of a launch so. The decision is in the store too when this returns.

The file stays as it was judged: a refused WARC is kept out of indexes and is never
retired. If the step that found it is redone, accept it again.

exit codes: 0 accepted, now or earlier for the same reason, 1 no finding has that name or
kind, or it was accepted for another reason, 2 usage, or several findings have that name,
3 configuration, 4 a root is unavailable, or a decision is not in the store yet
"""
Crawl = tuple[str, str]  # a job and a due time
MOST_BYTES = 1 << 19  # of the names in one decision: it has room for twice as many
SHOWN = 10  # seeds
_SECOND = timedelta(seconds=1)


class NamedFinding(Struct, frozen=True):
    """The name of a finding, the launch it was found in, and all kinds of that name, and the open ones."""

    seen: Survey
    name: str
    kinds: frozenset[str]
    open_kinds: frozenset[str]

    @property
    def is_seed(self) -> bool:
        """True if this is a lost seed, and nothing else."""
        return self.kinds <= set(OF_SEEDS)

    def names(self) -> tuple[str, ...]:
        """The words that an operator may type for it: the whole or the file name; also as a terminal shows them."""
        short = self.name.rstrip("/").rpartition("/")[2]
        return self.name, short, printable(self.name), printable(short)


class _Launch(argparse.Action):
    """JOB and LAUNCH as one value."""

    def __call__(self, _: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *__: object) -> None:
        try:
            setattr(namespace, self.dest, Launch.parse(*values))
        except BadInput as error:
            raise argparse.ArgumentError(self, str(error)) from error


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """NAME... | JOB DUE... | --kind KIND [INTERVAL] | --seeds, --reason TEXT [--launch JOB LAUNCH]."""
    parser.usage = "%(prog)s [OPTION ...] --reason TEXT (NAME ... | JOB DUE ... | --kind KIND [INTERVAL] | --seeds)"
    parser.add_argument("names", nargs="*", metavar="NAME", help="as reconcile prints it; or a job and due times")
    kinds = [*gaps.ACCEPTABLE, due_crawls.NOT_LAUNCHED]
    about = "all open findings of this kind, as reconcile prints it, of an INTERVAL or of --launch"
    parser.add_argument("--kind", choices=kinds, metavar="KIND", help=about)
    parser.add_argument("--seeds", action="store_true", help="all lost seeds of --launch, also for later launches")
    parser.add_argument(
        "--reason", type=reason, required=True, metavar="TEXT", help="why it is acceptable; kept for ever"
    )
    parser.add_argument("--launch", nargs=2, action=_Launch, metavar=("JOB", "LAUNCH"), help="look only in this launch")


def run(args: argparse.Namespace) -> int:
    """Look up every name first, then publish a marker for each; all names must match, or none is accepted."""
    line = open_line()
    if args.seeds:
        return _seeds_of_launch(line, args)
    if args.kind:
        return _of_kind(line, args)
    if not args.names:
        err("warcmill accept: give a NAME, a JOB and the times DUE, or --kind KIND")
        return 2
    if not args.launch and (skipped := _named_dues(args.names)):
        lost = [launch for launch in _lost(line, skipped) if (launch.job, launch.id) in skipped]
        is_lost = len(lost) == len(skipped)
        return _accept_lost(line, lost, args.reason) if is_lost else _accept_dues(line, skipped, args.reason)
    launches = [args.launch] if args.launch else _launches(line, date.min, date.max)
    everything = list(_findings(line, launches, bool(args.launch)))
    chosen = {name: _first_of_seed(_called(name, everything)) for name in args.names}
    for name, matches in chosen.items():
        if len(matches) != 1:
            return _report_matches(name, matches, everything)
    return _accept(line, [match for (match,) in chosen.values()], args.reason)


def _seeds_of_launch(line: OpenRoots, args: argparse.Namespace) -> int:
    """Accept all lost seeds of a launch that are open."""
    if args.names or args.kind or not args.launch:
        err("warcmill accept: --seeds is for the seeds of --launch JOB LAUNCH, without NAME and --kind")
        return 2
    seen = survey.require(line.state, line.roots_of(args.launch.job), args.launch, line.wanted)
    _accept_all_seeds(line, seen, args.reason)
    out("Next:", f"  warcmill reconcile {args.launch.day}")
    return 0


def _accept(line: OpenRoots, chosen: list[NamedFinding], why: str) -> int:
    """Accept findings: seeds by a decision on their job, all others by a marker of their launch."""
    seeds, others = (_names(one for one in chosen if one.is_seed is is_seed) for is_seed in (True, False))
    seen = {one.seen.launch: one.seen for one in chosen}
    claims = [claim for launch in others for claim in statements.accept_all(seen[launch], others[launch], why)]
    if seeds:
        _accept_seeds(line, seeds, why)
    if not claims:
        out("Next:", *(f"  warcmill reconcile {day}" for day in sorted({launch.day for launch in seeds})))
        return 0
    return publish(line, claims)


def _names(findings: Iterable[NamedFinding]) -> dict[Launch, list[str]]:
    """The names of some findings, by launch."""
    names: dict[Launch, list[str]] = {}
    for one in findings:
        names.setdefault(one.seen.launch, []).append(one.name)
    return names


def _of_kind(line: OpenRoots, args: argparse.Namespace) -> int:
    """Accept every finding of a kind that is open: of a launch, or of all launches of some days."""
    if bool(args.launch) == bool(args.names) or len(args.names) > 1:
        err("warcmill accept: --kind KIND is for the findings of an INTERVAL, or of --launch JOB LAUNCH")
        return 2
    try:
        days = None if args.launch else interval(args.names[0])
    except argparse.ArgumentTypeError as error:
        err(f"warcmill accept: {error}")
        return 2
    if args.kind == due_crawls.NOT_LAUNCHED:
        missed = _dues_in(line, days) if days else []
        return _accept_dues(line, missed, args.reason) if missed else _none_of_kind(args.kind)
    found = _findings(line, [args.launch] if days is None else _launches(line, days.first, days.end), bool(args.launch))
    chosen = [finding for finding in found if args.kind in finding.open_kinds]
    return _accept(line, chosen, args.reason) if chosen else _none_of_kind(args.kind)


def _none_of_kind(kind: str) -> int:
    err(f"warcmill accept: nothing was accepted: there is no open finding of the kind '{kind}'")
    return 1


def publish(line: OpenRoots, claims: list[Claim]) -> int:
    """Publish what is accepted, each claim once; nothing if one of them was accepted for another reason."""
    for claim in claims:
        _refuse_another_reason(line.state, claim, Accepted.from_claim(claim).reason)
    for claim in claims:
        line.state.publish(claim.key, claim, by=person())
        accepted = Accepted.from_claim(claim)
        out(f"accepted: {layout.launch_of(claim.key)} {accepted.kind}: {accepted.name}")
    days = {layout.launch_of(claim.key).day for claim in claims}
    out("Next:", *(f"  warcmill reconcile {day}" for day in sorted(days)))
    return 0


def _findings(line: OpenRoots, launches: Sequence[Launch], was_typed: bool) -> Iterator[NamedFinding]:
    """The findings of some launches; BadInput for a launch that was typed and that there is not."""
    resolve = audited(line).resolver(launches)
    for launch in launches:
        seen = survey.load_markers(line.state, line.roots_of(launch.job), launch, line.wanted)
        if was_typed:
            survey.refuse_unknown(line.state, line.roots_of(launch.job), seen)
        seen = looked_up(seen, resolve)
        kinds: dict[bool, dict[str, set[str]]] = {True: {}, False: {}}  # by whether they are open
        for is_open, found in zip((True, False), gaps.find(seen), strict=True):
            for gap in found:
                if gap.kind in gaps.ACCEPTABLE:
                    kinds[is_open].setdefault(gap.name, set()).add(gap.kind)
        opened, closed = kinds[True], kinds[False]
        for name in sorted({*opened, *closed}):
            of_name = opened.get(name, set())
            yield NamedFinding(seen, name, frozenset(of_name | closed.get(name, set())), frozenset(of_name))


def _launches(line: OpenRoots, first: date, end: date) -> tuple[Launch, ...]:
    """Every launch of some days. Unavailable if a root does not answer: it might hold a second match of a name."""
    discovered = survey.find(line.state, line.rootmap, first, end)
    for error in discovered.unreachable:
        raise error
    return discovered.launches


def _called(name: str, everything: list[NamedFinding]) -> list[NamedFinding]:
    """The findings that a name matches: those with exactly that whole name, else those that it may stand for."""
    return (
        [finding for finding in everything if finding.name == name]
        or [finding for finding in everything if name in finding.names()]
        or [one for one in everything if "://" in name and one.is_seed and comparable(one.name) == comparable(name)]
    )


def _first_of_seed(matches: list[NamedFinding]) -> list[NamedFinding]:
    """Of a seed that several launches of a job have lost, the first of these that is open: it covers the later ones."""
    jobs = {match.seen.launch.job for match in matches}
    if len(matches) < 2 or len(jobs) > 1 or not all(one.is_seed for one in matches):
        return matches
    in_order = sorted(matches, key=lambda match: match.seen.launch)
    return ([one for one in in_order if one.open_kinds] or in_order)[:1]


def _report_matches(name: str, matches: list[NamedFinding], everything: list[NamedFinding]) -> int:
    if not matches:
        hint = did_you_mean(name, [known for finding in everything for known in finding.names()])
        err(f"warcmill accept: nothing was accepted: nothing is found under {name}{hint}")
        return 1
    err(f"warcmill accept: {name} is found more than once; which one is meant?")
    for match in matches:
        err(f"  {command(match.seen.launch, match.name)}")
    return 2


def _refuse_another_reason(state: MarkerStore, claim: Claim, why: str) -> None:
    marker = state.read(claim.key)
    before = Accepted.from_claim(marker.claim).reason if marker else why
    if marker and before != why:
        name, launch = layout.marker_name(claim.key), layout.launch_of(claim.key)
        raise Conflict(
            layout.marker_path(claim.key),
            f"accepted already on {marker.run.finished}: {before}."
            f" To change the reason: warcmill redo {launch.job} {launch.id} {name}, then accept it again",
        )


def _named_dues(words: Sequence[str]) -> list[Crawl]:
    """The due crawls that words name: JOB DUE...; none if they name something else."""
    try:
        job, times = parse_job(words[0]), [parse_stamp(word) for word in words[1:]]
    except BadInput:
        return []
    return [(job, due) for due in times]


def _lost(line: OpenRoots, named: Sequence[Crawl]) -> list[Launch]:
    """The lost launches of the job that words name."""
    days = [stamp_time(time).date() for _, time in named]
    return dues.lost(audited(line), min(days), max(days) + timedelta(days=1)).get(named[0][0], [])


def _accept_lost(line: OpenRoots, lost: Sequence[Launch], reason: str) -> int:
    """Decide that these launches are lost for good. Return the exit code."""
    wanted = [dues.accept_lost(launch, reason) for launch in lost]
    decisions.make_all(line.state.store, lambda: line.store, decisions.ACCEPTED, wanted, person())
    out(*(f"accepted: {launch} is lost" for launch in lost))
    return 0


def _dues_in(line: OpenRoots, days: Interval) -> list[Crawl]:
    """The crawls that were due in some days and have no launch."""
    owing = dues.of_days(audited(line), days.first, days.end)
    return [(gap.job, gap.name) for gap in owing.gaps if gap.kind == due_crawls.NOT_LAUNCHED]


def _accept_dues(line: OpenRoots, crawls: Sequence[Crawl], reason: str) -> int:
    """Decide that these crawls are skipped, all or none; a scan then starts none of them. Return the exit code."""
    schedules, accepted = engines.schedules()[0], dues.accepted_dues(line.state)
    for job, due in crawls:
        moment, schedule = stamp_time(due), schedules.get(job)
        if line.state.holds(layout.due_key(job, due)):
            err(f"warcmill accept: nothing was accepted: the crawl of {job} due {due} was launched")
            return 1
        if not schedule or not list(schedule.due(moment - _SECOND, moment)):
            why = f"[job.{job}] has no crawl due then" if schedule else f"luigi.cfg has no [job.{job}]"
            err(f"warcmill accept: nothing was accepted: {why}: {due}")
            return 1
        before = accepted.get(job, {}).get(due, reason)
        if before != reason:
            raise Conflict(f"{job} {due}", f"accepted already, for another reason: {before}")
    skipped = [due_crawls.skip(job, due, reason) for job, due in crawls]
    decisions.make_all(line.state.store, lambda: line.store, decisions.ACCEPTED, skipped, person())
    out(*(f"accepted: {job} {due} is skipped" for job, due in crawls))
    return 0


def _accept_all_seeds(line: OpenRoots, seen: Survey, reason: str) -> None:
    """Accept all lost seeds of a launch that nobody has accepted. BadInput when it has lost none."""
    lost = [finding.name for finding in lost_seeds(seen) if finding.kind in OF_SEEDS]
    if not lost:
        raise BadInput(str(seen.launch), "it has no lost seed: each was got, or they are not listed yet")
    if opened := [name for name in lost if name not in seen.accepted_seeds]:
        _accept_seeds(line, {seen.launch: opened}, reason)
    else:
        decisions.copy(line.state.store, lambda: line.store, decisions.ACCEPTED)  # the store may have been away
        out(f"accepted already: {counted(len(lost), 'lost seed', 'lost seeds')} of {seen.launch}")


def _accept_seeds(line: OpenRoots, seeds: Mapping[Launch, Sequence[str]], reason: str) -> None:
    """Decide that these seeds of some launches are accepted, in each and in later ones of its job; report it.

    Unavailable when the store does not have the decisions by then; they stand in the state.
    """
    portions = ((launch, some) for launch, names in seeds.items() for some in _portions(names))
    wanted = (accepted_seeds.facts(launch, some, reason) for launch, some in portions)
    decisions.make_all(line.state.store, lambda: line.store, decisions.ACCEPTED, wanted, person())
    for launch, names in seeds.items():
        out(*(f"accepted: {launch} and later launches of the job: {name}" for name in names[:SHOWN]))
        if len(names) > SHOWN:
            out(f"accepted: {len(names) - SHOWN} more seeds of {launch}")


def _portions(names: Iterable[str]) -> Iterator[list[str]]:
    portion: list[str] = []
    size = 0
    for name in names:
        portion.append(name)
        size += len(name.encode()) + 8
        if size > MOST_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
