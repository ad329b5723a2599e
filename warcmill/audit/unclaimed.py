"""SIPs in the store that no 05 accounts for, where no run that is due will settle it. By names; reads no file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warcmill import layout
from warcmill.audit import remedies
from warcmill.audit.gaps import Gap
from warcmill.audit.survey import Survey
from warcmill.markers.facts import Packaged
from warcmill.model import Stage

_STEP = "package"


def find(seen: Survey, in_store: Iterable[str]) -> tuple[Gap, ...]:
    """A gap for every such SIP. `in_store`: the paths of the launch's files in the store."""
    known = [fact for fact in seen.facts.values() if isinstance(fact, Packaged)]
    listed = {path for fact in known for path in fact.orphaned}
    sips = (path for path in sorted(in_store) if path.startswith("sips/") and path not in listed)
    return tuple(gap for path in sips if not any(one.is_named(path) for one in known) for gap in _of(seen, path))


def _of(seen: Survey, path: str) -> Iterator[Gap]:
    name = path.rpartition("/")[2]
    if name.startswith("."):
        return  # half-written
    parsed = layout.parse_sip_name(name)
    stage = parsed[0] if parsed else None
    if stage and seen.due(_STEP, stage) and not seen.marker(_STEP, stage):
        return  # its next run takes it, or lists it
    todo = _todo(seen, stage) if stage else "look at it, and move it away by hand"
    yield Gap(seen.launch, str(stage or ""), "unclaimed", path, "it is among the SIPs, and no 05 names it", todo)


def _todo(seen: Survey, stage: Stage) -> str:
    """Have the 05 of the stage's SIP list it, or take it."""
    by = seen.coverage.covering(stage)
    return remedies.redo(seen.key(_STEP, by)) if by else remedies.step(seen.key(_STEP, stage))
