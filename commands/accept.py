"""warcmill accept: record that an operator knows of a finding and accepts it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from commands.arguments import reason
from commands.printing import err, out
from commands.reconcile import resolver
from commands.show import printable
from tasks.step import OpenRoots, open_line
from warcmill import layout
from warcmill.audit import survey
from warcmill.audit.orphan_revisits import looked_up
from warcmill.audit.remedies import accept as command
from warcmill.audit.survey import Survey
from warcmill.base.nearest import did_you_mean
from warcmill.decisions import statements
from warcmill.errors import BadInput, Conflict
from warcmill.markers.claim import Claim
from warcmill.markers.facts import Accepted
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch

SUMMARY = "accept a finding, such as a refused file, so that it is no longer a gap"
EPILOG = """\
examples:
  warcmill accept BL-20261121083736394-00000-1283~crawler01~8443.warc.gz.open \\
      --reason "the crawler was killed; its whole records are salvaged"
  warcmill accept cp00003 --launch daily 20161019234428 --reason "the disk was full"

NAME is what 'warcmill reconcile' prints: the path or file name of a refused or unnamed
WARC, the name of an absent one, a log ('final/surts.dump'), a missing serial or
checkpoint. It must match one finding in all launches; --launch selects the launch.
Put a NAME that begins with '-' last, after '--'.

The file stays as it was judged: a refused WARC is kept out of indexes and is never
retired. If the step that found it is redone, accept it again.

exit codes: 0 accepted, now or earlier for the same reason, 1 no finding has that name,
or it was accepted for another reason, 2 usage, or several findings have that name,
3 configuration, 4 a root is unavailable
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """The name of a finding, and the launch it was found in."""

    seen: Survey
    name: str

    def names(self) -> tuple[str, ...]:
        """What an operator may type for it: the whole name or the file name; also as a terminal shows them."""
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
    """NAME... --reason TEXT [--launch JOB LAUNCH]."""
    parser.add_argument("names", nargs="+", metavar="NAME", help="as reconcile prints it")
    parser.add_argument(
        "--reason", type=reason, required=True, metavar="TEXT", help="why it is acceptable; kept for ever"
    )
    parser.add_argument("--launch", nargs=2, action=_Launch, metavar=("JOB", "LAUNCH"), help="look only in this launch")


def run(args: argparse.Namespace) -> int:
    """Look up every name first, then publish a marker for each; all names must match, or none is accepted."""
    line = open_line()
    everything = list(_findings(line, args.launch))
    chosen = {name: _called(name, everything) for name in args.names}
    for name, matches in chosen.items():
        if len(matches) != 1:
            return _report_matches(name, matches, everything)
    claims = [statements.accept(match.seen, match.name, args.reason) for (match,) in chosen.values()]
    for claim in claims:
        _refuse_another_reason(line.state, claim, args.reason)
    for claim in claims:
        line.state.publish(claim.key, claim)
        accepted = Accepted.from_claim(claim)
        out(f"accepted: {layout.launch_of(claim.key)} {accepted.kind}: {accepted.name}")
    out("Next:", *sorted({f"  warcmill reconcile {layout.launch_of(claim.key).day}" for claim in claims}))
    return 0


def _findings(line: OpenRoots, only: Launch | None) -> Iterator[Finding]:
    launches = [only] if only else _all(line)
    resolve = resolver(line, launches)
    for launch in launches:
        seen = survey.load_markers(line.state, line.roots_of(launch.job), launch, line.wanted)
        if only:
            survey.refuse_unknown(line.state, line.roots_of(launch.job), seen)
        seen = looked_up(seen, resolve)
        yield from (Finding(seen, name) for name in sorted({gap.name for gap in statements.findings(seen)}))


def _all(line: OpenRoots) -> tuple[Launch, ...]:
    """Every launch. Unavailable if a root does not answer: it might hold a second match of a name."""
    discovered = survey.find(line.state, line.rootmap, date.min, date.max)
    for error in discovered.unreachable:
        raise error
    return discovered.launches


def _called(name: str, everything: list[Finding]) -> list[Finding]:
    """The findings that a name matches: those with exactly that whole name, else those that it may stand for."""
    return [finding for finding in everything if finding.name == name] or [
        finding for finding in everything if name in finding.names()
    ]


def _report_matches(name: str, matches: list[Finding], everything: list[Finding]) -> int:
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
