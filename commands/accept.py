"""warcmill accept: an operator's word that a finding is known and may stand."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from commands.arguments import reason
from commands.printing import err, out
from commands.show import printable
from tasks.step import Line, open_line
from warcmill import layout, survey
from warcmill.errors import BadInput, Conflict
from warcmill.evidence import Claim
from warcmill.gaps import accept as command
from warcmill.model import Launch
from warcmill.nearest import did_you_mean
from warcmill.state import State
from warcmill.steps import operator
from warcmill.survey import Survey

SUMMARY = "take note of a refused file, so that it no longer counts as a gap"
EPILOG = """\
examples:
  warcmill accept BL-20261121083736394-00000-1283~crawler01~8443.warc.gz.open \\
      --reason "the crawler was killed; its whole records are salvaged"
  warcmill accept cp00003 --launch daily 20161019234428 --reason "the disk was full"

NAME is what 'warcmill reconcile' prints: the path or the file name of a WARC that
is refused or unnamed, the name of one that is absent, a log ('final/surts.dump'), a
serial or a checkpoint that is missing. It is sought in every launch, and has to be found once; --launch says in
which one. A NAME that begins with '-' goes last, after '--'.

The file itself stays as it was judged: a refused WARC is kept out of indexes and
is never retired. When the step that found it is redone, it has to be accepted again.

exit codes: 0 accepted, now or before for the same reason, 1 nothing is found under
that name, or it was accepted for another reason, 2 usage, or NAME is found more than
once, 3 configuration, 4 a root is unavailable
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something found under a name, and the launch it was found in."""

    seen: Survey
    name: str

    def names(self) -> tuple[str, ...]:
        """What an operator may type for it: the whole name, or the file's alone; also as a terminal shows them."""
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
    parser.add_argument("--reason", type=reason, required=True, metavar="TEXT", help="why it may stand; kept for ever")
    parser.add_argument("--launch", nargs=2, action=_Launch, metavar=("JOB", "LAUNCH"), help="look in this one alone")


def run(args: argparse.Namespace) -> int:
    """Find every name first, then leave a marker for each: all or, when one is not found once, none."""
    line = open_line()
    everything = list(_findings(line, args.launch))
    chosen = {name: _called(name, everything) for name in args.names}
    for name, found in chosen.items():
        if len(found) != 1:
            return _not_once(name, found, everything)
    claims = [operator.accept(one.seen, one.name, args.reason) for (one,) in chosen.values()]
    for claim in claims:
        _refuse_another_reason(line.state, claim, args.reason)
    for claim in claims:
        line.state.publish(claim.key, claim)
        out(f"accepted: {layout.launch_of(claim.key)} {claim.facts['kind']}: {claim.facts['name']}")
    out("Next:", *sorted({f"  warcmill reconcile {layout.launch_of(claim.key).day}" for claim in claims}))
    return 0


def _findings(line: Line, only: Launch | None) -> Iterator[Finding]:
    launches = [only] if only else _all(line)
    for launch in launches:
        seen = survey.glance(line.state, line.engines(launch.job), launch, line.settings.wanted())
        if only:
            survey.refuse_unknown(line.state, line.engines(launch.job), seen)
        yield from (Finding(seen, name) for name in sorted({gap.name for gap in operator.findings(seen)}))


def _all(line: Line) -> tuple[Launch, ...]:
    """Every launch; Unavailable when a root does not answer: a name might be found there once more."""
    found = survey.find(line.state, line.sites, date.min, date.max)
    for error in found.away:
        raise error
    return found.launches


def _called(name: str, everything: list[Finding]) -> list[Finding]:
    """The findings that a name may mean; its whole name means none but itself."""
    return [one for one in everything if one.name == name] or [one for one in everything if name in one.names()]


def _not_once(name: str, found: list[Finding], everything: list[Finding]) -> int:
    if not found:
        hint = did_you_mean(name, [known for one in everything for known in one.names()])
        err(f"warcmill accept: nothing was accepted: nothing is found under {name}{hint}")
        return 1
    err(f"warcmill accept: {name} is found more than once; which one is meant?")
    for one in found:
        err(f"  {command(one.seen.launch, one.name)}")
    return 2


def _refuse_another_reason(state: State, claim: Claim, why: str) -> None:
    there = state.read(claim.key)
    if there and there.claim.facts["reason"] != why:
        name, launch = layout.marker_name(claim.key), layout.launch_of(claim.key)
        raise Conflict(
            layout.marker_path(claim.key),
            f"accepted already on {there.run.finished}: {there.claim.facts['reason']}."
            f" To say something else: warcmill redo {launch.job} {launch.id} {name}, then accept it again",
        )
