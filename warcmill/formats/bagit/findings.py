"""The findings in a bag, and the result that follows. Pure.

Among them are names that some file system takes for one: they would overwrite each other where the bag is unpacked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct, field

from warcmill.formats.bagit import containers
from warcmill.formats.warc.gate import FileVerdict as WarcVerdict


class BagResult(StrEnum):
    """A bag is valid; or whole but for files that its fetch.txt names; or wrong."""

    VALID = "valid"
    INCOMPLETE = "incomplete"
    INVALID = "invalid"


class BagFinding(Struct, frozen=True):
    """A fault, or something unusual, at `path` in the bag; '' is the bag as a whole."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}" if self.path else self.why


class FetchLine(Struct, frozen=True):
    """A line of fetch.txt: the URL of a file of the bag, and its length, if it is given."""

    url: str
    length: int | None
    path: str


class Findings(Struct):
    """Collect what is found while a bag is read."""

    faults: list[BagFinding] = field(default_factory=list)
    warnings: list[BagFinding] = field(default_factory=list)
    habits: Counter[BagFinding] = field(default_factory=Counter)  # of the program that wrote the bag: on many lines

    def fault(self, path: str, why: str) -> None:
        self.faults.append(BagFinding(path, why))

    def warn(self, path: str, why: str) -> None:
        self.warnings.append(BagFinding(path, why))

    def count(self, path: str, why: str) -> None:
        """Count what is unusual in a line, for one warning a file."""
        self.habits[BagFinding(path, why)] += 1

    def all_warnings(self) -> tuple[BagFinding, ...]:
        habits = (BagFinding(habit.path, f"{habit.why} ({number} lines)") for habit, number in self.habits.items())
        return (*self.warnings, *habits)

    def judge(self, path: str, why: str, *, is_fault: bool) -> None:
        """A fault or a warning, as the bag's version has it."""
        (self.faults if is_fault else self.warnings).append(BagFinding(path, why))


class BagVerdict(Struct, frozen=True):
    """The verdict on one bag. `files` and `size` are of the payload that is there; `warcs` are the gate's verdicts."""

    version: str
    encoding: str
    manifests: tuple[str, ...]
    files: int
    size: int
    faults: tuple[BagFinding, ...]
    warnings: tuple[BagFinding, ...]
    to_fetch: tuple[FetchLine, ...]
    warcs: tuple[tuple[str, WarcVerdict], ...]

    @property
    def result(self) -> BagResult:
        if self.faults:
            return BagResult.INVALID
        return BagResult.INCOMPLETE if self.to_fetch else BagResult.VALID


def alike(names: Iterable[str], findings: Findings) -> None:
    """Warn of each name that differs from an earlier one only in case, or in the form of its characters."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(containers.folded(name), name)
        if other == name:
            continue
        if containers.composed(other) == containers.composed(name):
            findings.warn(name, f"differs from {other} only in the form of its characters (Unicode's NFC and NFD)")
        else:
            findings.warn(name, f"differs from {other} only in case")
