"""SIPs that an 08 marker stands for, and that the catalogue lacks, or has otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from warcmill import layout
from warcmill.audit.gaps import Gap
from warcmill.audit.survey import Survey
from warcmill.errors import Unavailable, WarcmillError
from warcmill.model import Launch, Stage

Catalogued = Callable[[Launch], Mapping[str, tuple[str, str]]]
"""The SIPs of a launch in the catalogue: by stage, the state and the digest of the claim of 05."""
_LATER = {"packaged": ("verify-sip", "submit"), "submitted": ("verify-sip",)}  # steps that come after a state
_REBUILD = "warcmill catalogue rebuild"


def find(seen: Survey, catalogued: Catalogued) -> tuple[Gap, ...]:
    """A gap for every SIP whose 08 the catalogue does not bear out. One that cannot be read bears out none."""
    stages = [stage for stage in seen.stages if seen.marker("catalogue", stage)]
    if not stages:
        return ()
    try:
        known = catalogued(seen.launch)
    except Unavailable:
        raise
    except WarcmillError as error:
        return tuple(_of(seen, stage, str(error)) for stage in stages)
    return tuple(gap for stage in stages for gap in _of_sip(seen, stage, known))


def _of_sip(seen: Survey, stage: Stage, known: Mapping[str, tuple[str, str]]) -> Iterator[Gap]:
    built = seen.marker("package", stage)
    state, claim = known.get(str(stage), ("", ""))
    if not state:
        yield _of(seen, stage, "the catalogue has no such SIP")
    elif built and claim != built.digest:
        yield _of(seen, stage, "the catalogue has another SIP of this stage than there is now")
    elif later := next((word for word in _LATER.get(state, ()) if seen.marker(word, stage)), ""):
        yield _of(seen, stage, f"the catalogue has it as {state}, and {later} is done since")


def _of(seen: Survey, stage: Stage, why: str) -> Gap:
    return Gap(
        seen.launch, str(stage), "not catalogued", layout.marker_name(seen.key("catalogue", stage)), why, _REBUILD
    )
