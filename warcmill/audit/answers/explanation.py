"""The answer of `warcmill why`: the lacks of a launch, the reasons, and the command to type next. Reads only.

A page asks for it without an engine: then nothing but folders is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from msgspec import Struct

from warcmill import layout
from warcmill.audit import findings, gaps, reconciliation
from warcmill.audit.answers.line import AuditedLine, away_json, each_once
from warcmill.audit.gaps import Gap
from warcmill.audit.survey import CrawlFinding, Survey, known
from warcmill.base.escapes import did_you_mean
from warcmill.errors import BadInput, Unavailable
from warcmill.formats.logs.unrendered import Unrendered
from warcmill.launches.view import LaunchView, vitals
from warcmill.markers.attempts import Attempt, Attempts
from warcmill.model import Json, Key, Launch, Stage

AskEngine = Callable[[Launch], tuple[str, int]]
"""The engine's report of a running launch, '' if none is asked; and the exit code of the error that ended its crawler,
1 if that is not known, 0 if none did."""


class Explanation(Struct, frozen=True):
    """The answer. `waiting`: pairs of a stage ('' for the launch) and what it waits for.

    `away`: the roots that do not answer; then the gaps are those that the markers, and the other roots, show.
    `broke_off`: the exit code of the error that ended its crawler; 0 if none did. `got_later`: what it missed, and the
    id of the later launch of its job that got it. `unrendered`: pages that were to be rendered and were not.
    """

    seen: Survey
    waiting: tuple[tuple[str, str], ...]
    gaps: tuple[Gap, ...]
    accepted: tuple[Gap, ...]
    attempts: tuple[tuple[Key, Attempt], ...]
    away: tuple[Unavailable, ...]
    broke_off: int
    got_later: tuple[tuple[CrawlFinding, str], ...] = ()
    unrendered: tuple[Unrendered, ...] = ()

    def json(self) -> dict[str, Json]:
        """The answer."""
        return {
            "job": self.seen.launch.job,
            "launch_id": self.seen.launch.id,
            "ended": self.seen.ended,
            "away": away_json(self.away),
            "waiting": [{"stage": stage, "why": why} for stage, why in self.waiting],
            "gaps": [gap.json() for gap in self.gaps],
            "accepted": [gap.json() for gap in self.accepted],
            "attempts": [_of_attempt(key, attempt) for key, attempt in self.attempts],
            **({"cut": self.seen.cut.text} if self.seen.cut else {}),
            **({"history": self.seen.history} if self.seen.history else {}),
            **({"got_later": got_later} if (got_later := self._got_later()) else {}),
            **({"unrendered": [{**one.json()} for one in self.unrendered]} if self.unrendered else {}),
        }

    def _got_later(self) -> list[Json]:
        return [{"kind": one.kind, "name": one.name, "launch_id": later} for one, later in self.got_later]


def _of_attempt(key: Key, attempt: Attempt) -> dict[str, Json]:
    return {
        "task": key.task,
        "stage": dict(key.params).get("stage", ""),
        "path": attempt.path,
        "error": attempt.error,
        "failed": dict(attempt.failures),
    }


def _unasked(_: Launch) -> tuple[str, int]:
    return "", 0


def read(line: AuditedLine, launch: Launch, stage: Stage | None = None, ask: AskEngine = _unasked) -> Explanation:
    """All that is known of a launch, or of one of its stages; BadInput if there is none."""
    seen = known(line.state, line.roots, launch, line.wanted)
    if stage and stage not in seen.stages:
        names = [str(stage) for stage in seen.stages]
        hint = did_you_mean(str(stage), names)
        raise BadInput(f"{launch} {stage}", f"no such stage; its stages are: {', '.join(names)}{hint}")

    def asked(name: str) -> bool:
        return stage is None or name in ("", str(stage))

    away, *both = _found(line, seen)
    open_gaps, accepted = (tuple(gap for gap in listed if asked(gap.stage)) for listed in both)
    last = [(key, tried[-1]) for key, tried in seen.attempts.items() if tried] + list(_pulse_attempts(line, seen))
    tried = tuple((key, attempt) for key, attempt in last if asked(dict(key.params).get("stage", "")))
    of_engine, broke_off = ("", 0) if seen.ended or line.is_state_alone else ask(seen.launch)
    waiting = tuple((name, why) for name, why in _waiting(line, seen, of_engine) if asked(name))
    got_later = tuple(findings.healed(seen)) if asked("") else ()
    stages = [one for one in seen.stages if asked(str(one))]
    return Explanation(
        seen, waiting, open_gaps, accepted, tried, away, broke_off, got_later, findings.unrendered(seen, stages)
    )


def _found(line: AuditedLine, seen: Survey) -> tuple[tuple[Unavailable, ...], tuple[Gap, ...], tuple[Gap, ...]]:
    """The roots that do not answer; the gaps; those that are accepted.

    With the store or the index away no step can continue, and no stored file can be relied on.
    """
    if line.is_state_alone:
        return (), *gaps.find(seen)
    try:
        looked = findings.looked_up(seen, line.resolver([seen.launch]))
        return (*seen.away, *line.away()), *reconciliation.find(line.state, looked, line.store, line.catalogued)
    except Unavailable as error:
        return each_once((*seen.away, *line.away(), error)), *gaps.find(seen)


def _waiting(line: AuditedLine, seen: Survey, of_engine: str) -> Iterator[tuple[str, str]]:
    """The stages that have not ended yet, or the launch, and which sign would end each."""
    for stage in seen.stages:
        if stage not in seen.sealed and not stage.is_final:
            yield str(stage), "its checkpoint is not done: job.log does not say CHECKPOINTED, and no later stage exists"
    if seen.ended:
        return
    if line.roots is None or not seen.is_listed:
        yield "", f"no marker says that it has ended; its logs were not asked.{of_engine}"
        return
    roots = line.rootmap.of(seen.launch.job)
    why = LaunchView.of(line.state, roots, seen.launch).not_ended
    if why and seen.is_imported:
        yield "", why
    elif why:
        signs = vitals(roots, seen.launch, seen.listing).text(datetime.now(UTC))
        yield "", f"it has been {signs}.{of_engine} {why[:1].upper()}{why[1:]}"


def _pulse_attempts(line: AuditedLine, seen: Survey) -> Iterator[tuple[Key, Attempt]]:
    """The last attempt at every stop or checkpoint of the launch that was tried and is not done."""
    names = line.state.store.names(layout.attempts_folder(layout.state_folder(seen.launch)))
    keys = set(map(layout.parse_attempt_name, names))
    for key in sorted(key for key in keys if key and key.task.startswith("pulse.") and key not in seen.markers):
        yield from ((key, last) for last in Attempts(line.state, key).earlier()[-1:])
