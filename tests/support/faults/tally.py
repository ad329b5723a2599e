"""Faults injected, and what they violated, by kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Tally:
    """A fault counts when it was really met; a violation is one sentence."""

    injected: dict[str, int] = field(default_factory=dict)
    violations: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, violations: Iterable[str] = ()) -> None:
        """One more fault of a kind."""
        self.injected[kind] = self.injected.get(kind, 0) + 1
        self.violate(kind, violations)

    def violate(self, kind: str, violations: Iterable[str]) -> None:
        """What a fault of this kind led to, and should not have."""
        self.violations.setdefault(kind, []).extend(violations)

    def include(self, other: Tally) -> None:
        """What another process has counted."""
        for kind, count in other.injected.items():
            self.injected[kind] = self.injected.get(kind, 0) + count
        for kind, found in other.violations.items():
            self.violate(kind, found)

    @property
    def total(self) -> int:
        return sum(self.injected.values())

    @property
    def wrong(self) -> list[str]:
        return [f"{kind}: {one}" for kind, found in self.violations.items() for one in found]

    def table(self) -> list[str]:
        """Kind, injected, violations; the total last."""
        rows = [(kind, count, len(self.violations.get(kind, []))) for kind, count in sorted(self.injected.items())]
        rows += [("total", self.total, len(self.wrong))]
        width = max(len(kind) for kind, *_ in rows)
        head = f"{'fault':<{width}}  injected  violations"
        return [head, *(f"{kind:<{width}}  {count:>8,}  {wrong:>10,}" for kind, count, wrong in rows)]


class FaultLog:
    """The faults that a test injects, counted with those of the whole session."""

    def __init__(self, tally: Tally, kinds: list[str]) -> None:
        self.tally, self._kinds = tally, kinds

    def injected(self, kind: str, count: int = 1) -> None:
        """It was really met; if the test fails, it was survived badly."""
        self._kinds.append(kind)
        for _ in range(count):
            self.tally.add(kind)
