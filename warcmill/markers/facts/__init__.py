"""The facts of claims, typed: one frozen class for each claim that has facts. Every room reads facts here.

`from_claim` raises BadInput with the marker's path and the fact that is missing or of another type. So a step that
needs a fact fails and names it, and audit shows such a marker as broken, for its own launch alone.
`MarkerStore.read` and `MarkerStore.holds` do not check facts: to them such a marker is sound, and it is redone only
when an operator asks.

Read a fact that was added after the first release of its marker with `maybe`: older markers lack it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

from warcmill.markers.claim import Claim
from warcmill.markers.facts.files import (
    DAMAGED,
    Checked,
    Checksums,
    Hit,
    Scanned,
    ScannedFile,
    Stored,
    StoredFile,
    is_salvaged,
    warnings,
)
from warcmill.markers.facts.index import (
    CdxVerified,
    Indexed,
    IndexedFile,
    Rows,
    TextFound,
    TextIndexed,
    TextIndexedFile,
)
from warcmill.markers.facts.output import NUMBERS, TABLES, Assembled, Complete, Ended, PackedLogs, Stopped
from warcmill.markers.facts.package import GivenArks, Packaged, SipVerified, Submitted
from warcmill.markers.facts.pulse import Checkpointed, Confirmed, Continued, Fed, Launched, Started, follows
from warcmill.markers.facts.pypi import Dumped, DumpVerified, Processed
from warcmill.markers.facts.reading import ClaimFields, members, refuse_misshapen, text, texts
from warcmill.markers.facts.reports import (
    DAMAGED_RESULT,
    REPORT_TABLES,
    CrawlReported,
    LostRequest,
    SeedFate,
    Seeds,
    SeedState,
)
from warcmill.model import FileRef

__all__ = [
    "DAMAGED",
    "DAMAGED_RESULT",
    "NUMBERS",
    "REPORT_TABLES",
    "TABLES",
    "Accepted",
    "Assembled",
    "BackedUp",
    "CdxVerified",
    "Checked",
    "Checkpointed",
    "Checksums",
    "Closed",
    "Complete",
    "Confirmed",
    "Continued",
    "CrawlReported",
    "DumpVerified",
    "Dumped",
    "Ended",
    "Fed",
    "GivenArks",
    "Hit",
    "Imported",
    "Indexed",
    "IndexedFile",
    "Launched",
    "LostRequest",
    "Packaged",
    "PackedLogs",
    "Processed",
    "Rows",
    "Scanned",
    "ScannedFile",
    "SeedFate",
    "SeedState",
    "Seeds",
    "SipVerified",
    "Started",
    "Stopped",
    "Stored",
    "StoredFile",
    "Submitted",
    "TextFound",
    "TextIndexed",
    "TextIndexedFile",
    "follows",
    "is_salvaged",
    "of",
    "warnings",
]


@dataclass(frozen=True, slots=True)
class Closed:
    """01.closed: the operator's reason for ending the launch."""

    reason: str

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        return cls(ClaimFields.facts(claim).require("reason", text))


@dataclass(frozen=True, slots=True)
class Imported:
    """01.imported: who took a folder of WARCs in, from where; the span of the records' dates, what was left out, and
    the path in the folder of each WARC.

    `missing`: entries that may be WARCs, and are not in the launch. `left_out`: all others. Each is `path: why`.
    """

    by: str
    source: str
    layout: str
    first: str
    last: str
    missing: tuple[str, ...]
    left_out: tuple[str, ...]
    origins: Mapping[FileRef, str]

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        facts = ClaimFields.facts(claim)
        return cls(
            by=facts.require("by", text),
            source=facts.require("source", text),
            layout=facts.require("layout", text),
            first=facts.require("first", text),
            last=facts.require("last", text),
            missing=facts.require("missing", texts),
            left_out=facts.require("left_out", texts),
            origins={item.file: fields.require("origin", text) for item, fields in ClaimFields.items(claim)},
        )


@dataclass(frozen=True, slots=True)
class Accepted:
    """A finding that an operator accepted: its name, its kind, and the reason."""

    name: str
    kind: str
    reason: str

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        facts = ClaimFields.facts(claim)
        return cls(facts.require("name", text), facts.require("kind", text), facts.require("reason", text))


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A backup: the name of each file in the zip."""

    members: Mapping[FileRef, str]

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        return cls(members(claim))


_READERS: Mapping[str, Callable[[Claim], object]] = {
    "pulse.CrawlFeed": Fed.from_claim,
    "pulse.StartJob": Launched.from_claim,
    "pulse.Started": Started.from_claim,
    "pulse.CheckpointJob": Checkpointed.from_claim,
    "pulse.StopJob": Confirmed.from_claim,
    "operator.Close": Closed.from_claim,
    "operator.Import": Imported.from_claim,
    "operator.Accept": Accepted.from_claim,
    "output.CheckJobStopped": Stopped.from_claim,
    "output.PackageLogs": PackedLogs.from_claim,
    "output.AssembleOutput": Assembled.from_claim,
    "output.ProcessOutputs": Complete.from_claim,
    "files.Checksum": Checksums.from_claim,
    "files.Copy": Stored.from_claim,
    "files.Verify": Stored.from_claim,
    "files.VirusScan": Scanned.from_claim,
    "files.ReadBack": Stored.from_claim,
    "package.GiveArks": GivenArks.from_claim,
    "package.BuildSip": Packaged.from_claim,
    "package.SubmitSip": Submitted.from_claim,
    "package.VerifySip": SipVerified.from_claim,
    "index.CdxIndex": Indexed.from_claim,
    "index.VerifyCdx": CdxVerified.from_claim,
    "index.SolrIndex": TextIndexed.from_claim,
    "index.VerifySolr": TextFound.from_claim,
    "index.Columns": Rows.from_claim,
    "reports.GenerateCrawlLogReports": CrawlReported.from_claim,
    "reports.ListDeadSeeds": Seeds.from_claim,
    "pypi.ProcessDistributions": Processed.from_claim,
    "pypi.DumpDistributionData": Dumped.from_claim,
    "pypi.VerifyDump": DumpVerified.from_claim,
    "pypi.DumpFull": Dumped.from_claim,
    "state.Backup": BackedUp.from_claim,
    "state.BackupDue": BackedUp.from_claim,
}


def of(claim: Claim) -> object:
    """Return the facts of a claim as its task's class; None for a task without one. BadInput when they do not fit."""
    refuse_misshapen(claim)
    read = _READERS.get(claim.key.task)
    return read(claim) if read else None
