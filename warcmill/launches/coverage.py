"""Which SIP covers which stages of a launch. Pure, from the names and facts of markers.

A SIP covers the stages of its launch that no earlier SIP covers, up to its own. So every stage of an ended launch is
in exactly one SIP, however often `[package] stages` is changed: that changes only what no SIP covers yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from warcmill.model import Stage


@dataclass(frozen=True, slots=True)
class Coverage:
    """The assembled stages of a launch, and its SIPs: the stages that each covers, by the SIP's own stage.

    `broken`: stages whose 05 marker is there and cannot be relied on. Their SIPs are built again, before those of the
    stages below them: such a SIP covered all that no earlier one did, and covers the same again.
    """

    stages: frozenset[Stage]
    sips: Mapping[Stage, tuple[Stage, ...]] = field(default_factory=dict)
    broken: frozenset[Stage] = frozenset()

    def covering(self, stage: Stage) -> Stage | None:
        """The SIP, by its own stage, that covers a stage; None when none does."""
        return next((sip for sip, covered in self.sips.items() if stage in covered), None)

    def due(self, *, final_only: bool) -> tuple[Stage, ...]:
        """The stages that must get a SIP of their own, in order.

        With `final_only` that is the final stage alone, and once it has its SIP any stage that this one missed.
        """
        left = [stage for stage in self._left() if stage in self.broken or not any(one > stage for one in self.broken)]
        if not final_only or self._final_is_packaged():
            return tuple(left)
        return tuple(stage for stage in left if stage.is_final or stage in self.broken)

    def before(self, stage: Stage) -> Stage | None:
        """The SIP before the one of a stage: that of the latest earlier stage; None when there is none."""
        return max((sip for sip in self.sips if sip < stage), default=None)

    def earlier_due(self, stage: Stage, *, final_only: bool) -> tuple[Stage, ...]:
        """The stages before this one whose SIPs are due: they are built first."""
        return tuple(one for one in self.due(final_only=final_only) if one < stage)

    def covers(self, stage: Stage) -> tuple[Stage, ...]:
        """The stages that the SIP of a stage covers when it is built now, in order."""
        return tuple(one for one in self._left({stage}) if one <= stage)

    def to_cover(self, stage: Stage, *, final_only: bool) -> tuple[Stage, ...]:
        """The stages that the SIP of a stage covers once those that are due before it are built."""
        after = self
        for one in self.earlier_due(stage, final_only=final_only):
            after = after.with_sip(one)
        return after.covers(stage)

    def with_sip(self, stage: Stage) -> Coverage:
        """The coverage once the SIP of a stage is built."""
        return replace(self, sips={**self.sips, stage: self.covers(stage)}, broken=self.broken - {stage})

    def _left(self, also: Iterable[Stage] = ()) -> list[Stage]:
        covered = {stage for stages in self.sips.values() for stage in stages}
        return sorted((self.stages | self.broken | set(also)) - covered)

    def _final_is_packaged(self) -> bool:
        return any(stage.is_final for stage in self.sips)
