"""Every claim's facts by its task: the one table of their classes. Pure.

Who needs the facts of one chain imports them from its module, and not all of them from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from warcmill.markers.claim import Claim
from warcmill.markers.facts.documents import Harvested, HarvestVerified
from warcmill.markers.facts.files import Checksums, Scanned, Stored
from warcmill.markers.facts.index import CdxVerified, Indexed, Rows, TextFound, TextIndexed
from warcmill.markers.facts.operator import Accepted, Closed, Imported
from warcmill.markers.facts.output import Assembled, Complete, PackedLogs, Stopped
from warcmill.markers.facts.package import GivenArks, Packaged, SipVerified, Submitted
from warcmill.markers.facts.pulse import Checkpointed, Confirmed, Fed, Launched, Started
from warcmill.markers.facts.pypi import Dumped, DumpVerified, Processed
from warcmill.markers.facts.reading import refuse_misshapen
from warcmill.markers.facts.reports import CrawlReported, Seeds
from warcmill.markers.facts.state import BackedUp

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
    "documents.ExtractDocuments": Harvested.from_claim,
    "documents.VerifyDocuments": HarvestVerified.from_claim,
    "state.Backup": BackedUp.from_claim,
    "state.BackupDue": BackedUp.from_claim,
}


def of(claim: Claim) -> object:
    """Return the facts of a claim as its task's class; None for a task without one. BadInput when they do not fit."""
    refuse_misshapen(claim)
    read = _READERS.get(claim.key.task)
    return read(claim) if read else None
