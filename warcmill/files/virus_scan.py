"""Scan the payloads of every stored WARC of a stage for viruses, by clamd. Reads the store alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from warcmill import layout
from warcmill.base.progress import Progress
from warcmill.clients.clamd import Clamd, Scans
from warcmill.errors import Mismatch, Unavailable
from warcmill.files import transfer
from warcmill.files.payload_scan import Limits, PayloadScan
from warcmill.files.transfer import Tee, place, present, stored
from warcmill.formats.warc import gate
from warcmill.markers.attempts import Attempts, run_items
from warcmill.markers.claim import Claim
from warcmill.markers.facts import DAMAGED, Scanned, is_salvaged
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Item, Json, Launch, Outcome, Stage
from warcmill.stores import Store

AT_ONCE = 8  # payloads that wait for clamd's answer; MaxThreads of its own is 10


class Scan(NamedTuple):
    """The claim of files.scanned, and the tools of its run: the versions of engine and database."""

    claim: Claim
    tools: Mapping[str, str]


def scan(state: MarkerStore, store: Store, clamd: Clamd, limits: Limits, launch: Launch, stage: Stage) -> Scan:
    """Scan a stage. A hit refuses nothing: the claim lists it, and who reads the claim leaves the record out.

    Unsettled when clamd does not answer, or answers with an error, and when a stored file is missing or has changed.
    What an earlier attempt scanned with the same database is not scanned again.
    """
    key = layout.key("files.VirusScan", launch, stage=stage)
    verified = state.require(layout.key("files.Verify", launch, stage=stage))
    groups = _groups(verified.claim)
    attempts = Attempts(state, key)
    scanning = _Scanning(store, clamd, limits, groups, transfer.progress(attempts, groups))
    items = run_items(attempts, groups, scanning.version, scanning.items)
    claim = Claim(key, rests_on(verified), items=items)
    counts = transfer.counts(items) | _totals(claim)
    return Scan(replace(claim, counts=counts), tools(scanning.versions))


def _groups(verified: Claim) -> dict[FileRef, list[Item]]:
    """The WARCs, by the stored file to read: a WARC that is stored under two names is read once."""
    groups: dict[tuple[FileRef, str | None], list[Item]] = {}
    for item in verified.items:
        if item.file.is_engines:
            groups.setdefault((item.file, stored(item).sha512), []).append(item)
    return {stored(items[0]): items for items in groups.values()}


def tools(versions: list[str]) -> dict[str, str]:
    """Name clamd's versions for a run: `ClamAV 1.4.6/27000/Mon Nov 23 2026`. Several when it was updated meanwhile."""
    parts = [version.partition("/") for version in dict.fromkeys(versions)]
    engines = dict.fromkeys(engine for engine, _, _ in parts)
    databases = dict.fromkeys(database or "none of ClamAV's own" for _, _, database in parts)
    return {"clamd": ", then ".join(engines), "virus database": ", then ".join(databases)} if parts else {}


@dataclass
class _Scanning:
    store: Store
    clamd: Clamd
    limits: Limits
    groups: Mapping[FileRef, list[Item]]
    progress: Progress
    versions: list[str] = field(default_factory=list)
    _gone: Unavailable | None = None

    def version(self, copy: FileRef) -> str:
        """A text that changes when the stored file does, or clamd's database. Once clamd is gone, it is not asked."""
        if self._gone:
            raise self._gone
        try:
            self.versions.append(self.clamd.version())
        except Unavailable as error:
            self._gone = error
            raise
        return f"{present(self.store, copy).version} {self.versions[-1]}"

    def items(self, copy: FileRef) -> tuple[Item, ...]:
        """Scan a stored WARC; the facts are the same for every name that it is stored under."""
        found = self._scan(copy)
        facts: dict[str, Json] = {
            "clean": found.clean,
            "hits": [hit._asdict() for hit in found.hits],
            "not_scanned": dict(found.not_scanned),
        }
        return tuple(_item(item, facts) for item in self.groups[copy])

    def _is_whole(self, copy: FileRef) -> bool:
        """True if the gate accepted a WARC. Where it refused one, it must find the same fault again."""
        return all(item.outcome is Outcome.OK for item in self.groups[copy])

    def _scan(self, copy: FileRef) -> PayloadScan:
        sha512 = hashlib.sha512()
        scans = Scans(self.clamd, AT_ONCE)
        with closing(PayloadScan(scans, self.limits)) as found, self.store.open(copy.path) as stream:
            tee = Tee(stream, copy, self.progress, sha512.update)
            verdict = gate.examine(tee, copy.name, hearers=[found], proven=self._is_whole(copy))
            for failure in verdict.unheard:
                raise failure.error
            found.finish()
        if sha512.hexdigest() != copy.sha512:
            raise Mismatch(f"sha512 of {place(copy)}, read to be scanned", copy.sha512, sha512.hexdigest())
        if not verdict.ok:
            found.not_scanned[DAMAGED] += 1
        return found


def _item(item: Item, facts: Mapping[str, Json]) -> Item:
    salvaged: dict[str, Json] = {"salvaged": True} if is_salvaged(item) else {}
    return Item(item.file, item.outcome, item.made, item.why, item.offset, {**salvaged, **facts})


def _totals(claim: Claim) -> dict[str, Json]:
    """The payloads of the stage. A salvaged WARC is not counted: the file it was salvaged from has all its records."""
    files = Scanned.from_claim(claim).files
    ours = [files[stored(item)] for item in claim.items if not is_salvaged(item)]
    return {
        "clean": sum(file.clean for file in ours),
        "hits": sum(len(file.hits) for file in ours),
        "not_scanned": sum(sum(file.not_scanned.values()) for file in ours),
    }
