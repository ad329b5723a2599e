"""Read every file of a stage once: SHA-512, the checksum that HDFS would give, and the gate."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import BinaryIO

from warcmill import fixity, layout
from warcmill.errors import Mismatch
from warcmill.evidence import Claim
from warcmill.formats import gate
from warcmill.formats.gate import Verdict
from warcmill.formats.hdfs_checksum import Hasher
from warcmill.launches import Engines
from warcmill.ledger import Ledger, settle
from warcmill.model import FileRef, Item, Json, Key, Launch, Outcome, Stage
from warcmill.progress import Progress
from warcmill.state import State
from warcmill.steps.transfer import Sources, Tee, counts, place, progress, rests_on

log = logging.getLogger(__name__)


def checksum(state: State, engines: Engines, launch: Launch, stage: Stage, block_size: int) -> Claim:
    """The claim of files.checksums. A WARC the gate refuses is in it too, by offset and reason.

    Unsettled when a file is gone, has another length than 03 says, or changes while it is read.
    """
    Hasher(block_size)  # a block size that cannot be is a matter of configuration, not of any file
    key = layout.key("files.Checksum", launch, stage=stage)
    assembled = state.need(layout.key("output.AssembleOutput", launch, stage=stage))
    packed = state.need(layout.key("output.PackageLogs", launch, stage=stage))
    files = (*assembled.claim.outputs, _zip(state, packed.claim.key))
    ledger = Ledger(state, key)
    sources = Sources(state, engines)
    reading = _Reading(sources, named_offsets(assembled.claim), block_size, progress(ledger, files))
    items = settle(ledger, files, sources.version, reading.item)
    return Claim(key, rests_on(assembled, packed), items=items, counts=counts(items))


def _zip(state: State, packed: Key) -> FileRef:
    """The zip of a stage's logs as a file to transfer."""
    path = layout.marker_path(packed)
    with state.store.open(path) as file:
        return FileRef("state", path, file.seek(0, os.SEEK_END))


def named_offsets(claim: Claim) -> dict[str, int]:
    """The greatest offset that the crawl log names in each WARC, by label: a shorter file has lost something."""
    found = {item.file.label: item.facts.get("offset") for item in claim.items}
    return {path: offset for path, offset in found.items() if isinstance(offset, int)}


@dataclass(frozen=True)
class _Reading:
    sources: Sources
    offsets: Mapping[str, int]
    block_size: int
    progress: Progress

    def item(self, file: FileRef) -> tuple[Item, ...]:
        """What one pass over a file tells; Mismatch when it changed meanwhile."""
        before = self.sources.stat(file)
        with self.sources.root(file).open(file.path) as stream:
            item = self._read(stream, file)
        if self.sources.stat(file) != before:
            raise Mismatch(f"{place(file)} changed while it was read; version", before.version, "another")
        return (item,)

    def _read(self, stream: BinaryIO, file: FileRef) -> Item:
        sha512, hdfs = hashlib.sha512(), Hasher(self.block_size)
        tee = Tee(stream, file, self.progress, sha512.update, hdfs.update)
        if file.root == "state":
            fixity.drain(tee)
            verdict = None
        else:
            verdict = gate.examine(tee, file.name, self.offsets.get(file.label))
        known = replace(file, sha512=sha512.hexdigest())
        facts: dict[str, Json] = {"hdfs": hdfs.result()}
        return _judged(known, verdict, facts) if verdict else Item(known, Outcome.OK, facts=facts)


def _judged(file: FileRef, verdict: Verdict, facts: dict[str, Json]) -> Item:
    facts |= {
        "records": verdict.records,
        "payload": dict(verdict.payload_digests),
        "warnings": list(verdict.warnings),
    }
    if verdict.ok:
        return Item(file, Outcome.OK, facts=facts)
    log.warning("%s: refused at offset %s: %s", place(file), verdict.offset, verdict.why)
    facts["whole"] = verdict.whole
    return Item(file, Outcome.REFUSED, why=verdict.why, offset=verdict.offset, facts=facts)
