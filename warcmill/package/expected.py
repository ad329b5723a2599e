"""What has to be in a SIP, from the markers of the stages that it covers: to verify it, by other code than builds it.

Each holding (whole, cut, salvaged or viral) and each log package has one path in the bag, under its own name. A file
that two stages of the SIP hold alike is in it once. Beside these it has the documents of its package, and no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from warcmill import layout
from warcmill.formats.warc import gate
from warcmill.launches import holdings
from warcmill.launches.holdings import StageHoldings, Word
from warcmill.markers.facts import Checked, Checksums, Packaged
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Launch

_LOG = "log package"


@dataclass(slots=True)
class Expected:
    """`files`: what has to be in the bag, by path and sha512: the stage that has it, and the word for it.

    By sha512: `warcs`, the stored WARCs; `checked`, what the gate counted in those that it took.
    """

    package: str  # the folder of the package in the bag
    files: dict[tuple[str, str], str] = field(default_factory=dict)
    warcs: dict[str, list[FileRef]] = field(default_factory=dict)
    checked: dict[str, Checked] = field(default_factory=dict)

    def add(self, held: StageHoldings, checks: Checksums) -> None:
        """Add what a stage holds."""
        by_source = {(file.root, file.path): one for file, one in checks.files.items()}
        for one in held.holdings:
            sha512 = self._add(held, one.stored, one.name, f"{one.word} WARC")
            self.warcs.setdefault(sha512, []).append(one.stored)
            if one.word in (Word.WHOLE, Word.VIRAL):
                self.checked[sha512] = by_source[one.source.root, one.source.path]
        for log in held.logs:
            self._add(held, log, log.name, _LOG)

    def _add(self, held: StageHoldings, stored: FileRef, name: str, what: str) -> str:
        sha512 = str(stored.sha512)
        kind = stored.path.partition("/")[0]
        path = f"{self.package}/representations/{kind}/data/{name}"
        self.files.setdefault((path, sha512), f"the {what} of stage {held.stage}")
        return sha512

    def faults(self, listed: Mapping[str, bytes]) -> Iterator[str]:
        """What is missing, doubled or additional in a bag whose manifest lists these digests."""
        for (path, sha512), what in self.files.items():
            found = listed.get(path)
            if found is None:
                yield f"{path}: missing, {what}"
            elif found.hex() != sha512:
                yield f"{path}: its sha512 is {found.hex()[:16]}..., but files.verified has {sha512[:16]}... of {what}"
        paths = {path for path, _ in self.files}
        known = {sha512: path for path, sha512 in self.files}
        for path, digest in listed.items():
            if path in paths or self._is_document(path):
                continue
            if again := known.get(digest.hex()):
                yield f"{path}: additional, the same bytes as {again}"
            else:
                yield f"{path}: additional, no stage of the SIP has it"

    def _is_document(self, path: str) -> bool:
        """True if a file describes the package: its metadata, a schema or a METS."""
        if gate.is_warc_name(path.rpartition("/")[2]) or not path.startswith(f"{self.package}/"):
            return False
        match path.removeprefix(f"{self.package}/").split("/"):
            case ["METS.xml"] | ["representations", _, "METS.xml"]:
                return True
            case ["metadata" | "schemas", *_]:
                return True
        return False


def of_sip(state: MarkerStore, launch: Launch, sip: Packaged) -> Expected:
    """What has to be in a SIP. NotReady, with the step to run first, when a stage of it is not verified."""
    expected = Expected(f"data/{sip.bag}")
    for stage in sip.covers:
        checks = state.require(layout.step("checksum", launch, stage))
        expected.add(holdings.of_stage(state, launch, stage), Checksums.from_claim(checks.claim))
    return expected
