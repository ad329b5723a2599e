"""The digests of a stage's files, each read once: SHA-512, the checksum of HDFS, and the gate's verdict. Reads only."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import BinaryIO

from msgspec import Struct

from warcmill import layout
from warcmill.base import digests
from warcmill.base.progress import Progress
from warcmill.errors import Mismatch
from warcmill.extracts.extracts import Maker
from warcmill.files.transfer import Sources, Tee, counts, place, progress
from warcmill.formats.hdfs_checksum import Hasher
from warcmill.formats.logs import crawllog
from warcmill.formats.warc import gate
from warcmill.formats.warc.gate import FileVerdict
from warcmill.formats.warc.hearers import Hearer, Unheard
from warcmill.formats.warc.rest import FOUND_AGAIN, MOST_LISTED, RecordFault, Rest
from warcmill.launches import stored_logs
from warcmill.launches.roots import JobRoots
from warcmill.markers.attempts import Attempts, run_items
from warcmill.markers.claim import Claim, Evidence
from warcmill.markers.facts.files import Checked, Checksums
from warcmill.markers.facts.output import Assembled
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Item, Json, Key, Launch, Outcome, Stage

log = logging.getLogger(__name__)
Listen = Callable[[FileRef], Sequence[Hearer]]
"""Return the hearers of a WARC that is about to be read. Not called for files that an earlier attempt settled.
A `Maker` among them leaves its extract under the digest of the bytes that were read. An error it raises fails the item.
"""


def nobody(_: FileRef) -> Sequence[Hearer]:
    """Listen to no file."""
    return ()


def checksum(
    state: MarkerStore, roots: JobRoots, launch: Launch, stage: Stage, block_size: int, listen: Listen = nobody
) -> Claim:
    """The claim of files.checksums. It includes WARCs that the gate refuses, with offset and reason.

    `block_size` is HDFS's, in bytes. Unsettled when a file is missing, differs in length from 03, or changes
    while it is read. Hearers do not change the claim; one that fails is logged.
    """
    Hasher(block_size)  # an impossible block size is an error of the configuration: raise it before any file is read
    key = layout.key("files.Checksum", launch, stage=stage)
    assembled = state.require(layout.key("output.AssembleOutput", launch, stage=stage))
    packed = state.require(layout.key("output.PackageLogs", launch, stage=stage))
    files = (*assembled.claim.outputs, _zip(state, packed.claim.key))
    attempts = Attempts(state, key)
    sources = Sources(state, roots)
    offsets = Assembled.from_claim(assembled.claim).offsets
    reading = _Reading(sources, offsets, block_size, progress(attempts, files), listen)
    items = run_items(attempts, files, sources.version, reading.item)
    items = _by_log(state, packed, key, items)
    return Claim(key, rests_on(assembled, packed), items=items, counts=counts(items))


def _by_log(state: MarkerStore, packed: Evidence, key: Key, items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The items, with those records counted as sound that a search found and the crawl log names by their offset."""
    refused = tuple(item for item in items if item.outcome is Outcome.REFUSED)
    known = Checksums.from_claim(Claim(key, items=refused)).files
    found = {
        (layout.final_name(file.name), offset)
        for file, checked in known.items()
        for offset, why in checked.odd.listed
        if why == FOUND_AGAIN
    }
    if not found:
        return items
    offsets, named = {offset for _, offset in found}, set[tuple[str, int]]()
    with stored_logs.packed(state, packed) as logs:
        logs.read_crawl_logs(lambda log: named.update(crawllog.named_offsets(log, offsets)))
    named &= found
    return tuple(_with_named(item, known[item.file], named) if item.file in known else item for item in items)


def _with_named(item: Item, checked: Checked, named: set[tuple[str, int]]) -> Item:
    """The item of a refused WARC, with these of its odd records counted as sound."""
    name = layout.final_name(item.file.name)
    left: list[Json] = [{"offset": at, "why": why} for at, why in checked.odd.listed if (name, at) not in named]
    number = len(checked.odd.listed) - len(left)
    if not number:
        return item
    changed: dict[str, Json] = {"odd": left, "sound": checked.sound + number}
    if checked.odd.records > MOST_LISTED:
        changed["odd_records"] = checked.odd.records - number
    return item._replace(facts={**item.facts, **changed})


def _zip(state: MarkerStore, packed: Key) -> FileRef:
    """The zip of a stage's logs as a file to transfer."""
    path = layout.marker_path(packed)
    with state.store.open(path) as file:
        return FileRef("state", path, file.seek(0, os.SEEK_END))


class _Reading(Struct, frozen=True):
    sources: Sources
    offsets: Mapping[str, int]
    block_size: int
    progress: Progress
    listen: Listen

    def item(self, file: FileRef) -> tuple[Item, ...]:
        """Read a file once; Mismatch when it changed meanwhile."""
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
            digests.drain(tee)
            return Item(file._replace(sha512=sha512.hexdigest()), Outcome.OK, facts={"hdfs": hdfs.result()})
        hearers = self.listen(file)
        makers = [hearer for hearer in hearers if isinstance(hearer, Maker)]
        with ExitStack() as closing:
            for maker in makers:
                closing.callback(maker.close)
            again = partial(self.sources.root(file).open, file.path)
            verdict = gate.examine(tee, file.name, self.offsets.get(file.label), hearers, again=again)
            known = file._replace(sha512=sha512.hexdigest())
            _leave(known, verdict, makers)
        return _judged(known, verdict, {"hdfs": hdfs.result()})


def _leave(file: FileRef, verdict: FileVerdict, makers: Sequence[Maker]) -> None:
    """Leave the extracts of a WARC, but not of one whose whole records will be salvaged. One that fails is logged, and
    costs nothing but itself."""
    is_wanted = verdict.ok or layout.final_name(file.name) == file.name
    failed = list(verdict.unheard)
    unheard = [failure.hearer for failure in failed]
    for maker in makers:
        if is_wanted and maker not in unheard:
            try:
                maker.leave(str(file.sha512))
            except Exception as error:  # noqa: BLE001 - any error is the maker's own; the digest stands without it
                failed.append(Unheard(maker, error))
    for failure in failed:
        hearer = type(failure.hearer).__name__
        log.warning("%s: not heard by %s: %s", place(file), hearer, failure.why, exc_info=failure.error)


def _by_record(rest: Rest) -> dict[str, Json]:
    """The facts of a refused WARC's records from the first fault on: the bad and the odd ones, and how many are sound.

    Of either the first are listed; a number counts them where there are more.
    """
    facts: dict[str, Json] = {"bad": _listed(rest.bad), "odd": _listed(rest.odd), "sound": rest.sound}
    more = {"bad_records": rest.bad_records, "odd_records": rest.odd_records}
    return facts | {name: number for name, number in more.items() if number > MOST_LISTED}


def _listed(faults: Sequence[RecordFault]) -> list[Json]:
    return [{"offset": fault.offset, "why": fault.why} for fault in faults]


def _judged(file: FileRef, verdict: FileVerdict, facts: dict[str, Json]) -> Item:
    facts |= {
        "records": verdict.records,
        "payload": dict(verdict.payload_digests),
        "warnings": list(verdict.warnings),
    }
    if verdict.ok:
        return Item(file, Outcome.OK, facts=facts)
    log.warning("%s: refused at offset %s: %s", place(file), verdict.offset, verdict.why)
    facts["whole"] = verdict.whole
    if verdict.rest:
        facts |= _by_record(verdict.rest)
    return Item(file, Outcome.REFUSED, why=verdict.why, offset=verdict.offset, facts=facts)
