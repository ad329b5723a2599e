"""Verify a SIP where the ingesting system has put it: by other code than has built it.

The tar is read once, by tarfile and the checker of `warcmill check`: its digest is that of 05, it is a valid bag, it
lists each WARC and log package of the stages that it covers and nothing else, METS and manifest name the same files,
and warcio finds no other content in a WARC than the gate did. A WARC that warcio cannot read, and the gate finds whole,
is a fact of the claim and a finding: no run of this step ever changes that. What `fetch.txt` names has to be in the
store, as files.verified has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from warcmill import layout
from warcmill.base.digests import Readable, drain
from warcmill.base.progress import Progress
from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.formats.bagit import bag, reading
from warcmill.formats.bagit.algorithms import Summed
from warcmill.formats.bagit.archives import Tar
from warcmill.formats.bagit.findings import Fetch, Verdict
from warcmill.formats.warc import gate
from warcmill.formats.warc.digest_checks import AS_TRANSFERRED
from warcmill.formats.warc.second_opinion import Opinion, opinion
from warcmill.markers.claim import Claim
from warcmill.markers.facts import Checked, Packaged, SipVerified, Submitted
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Launch, Stage
from warcmill.package import expected
from warcmill.package.expected import Expected
from warcmill.package.read_mets import NAME, MetsFiles
from warcmill.package.sips import BUILD
from warcmill.package.submit import SUBMIT
from warcmill.stores import Store

VERIFY = "package.VerifySip"
_MANIFEST = "manifest-sha512.txt"
_SHOWN = 5  # faults in the message


def verify(state: MarkerStore, store: Store, at: Store, folder: str, launch: Launch, stage: Stage) -> Claim:
    """Read the SIP of a stage in `folder` of the store `at`; return the claim of 07.verified.

    NotReady until it is there whole. BadInput, naming the first faults, when anything in it is wrong.
    """
    key = layout.key(VERIFY, launch, stage=stage)
    sip = Packaged.from_claim(state.require(layout.key(BUILD, launch, stage=stage)).claim)
    submitted = state.require(layout.key(SUBMIT, launch, stage=stage))
    path = f"{folder}{Submitted.from_claim(submitted.claim).name}"
    _require_whole(at, path, sip.sip.size)
    found = _Reading(at, path, Progress(str(key), sip.sip.size))
    found.read()
    wanted = expected.of_sip(state, launch, sip)
    bag = [*found.faults(sip), *wanted.faults(found.digests), *found.differences(sip)]
    faults = [*bag, *found.warc_faults(wanted), *_fetch_faults(store, found, sip, wanted)]
    if faults:
        more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        shown = "; ".join(faults[:_SHOWN])
        raise BadInput(f"{at.root}:{path}", f"not the SIP that was submitted: {shown}{more}")
    counts = {"files": len(found.digests), "bytes": sip.sip.size, "warcs": len(found.opinions)}
    facts = SipVerified(found.unread(wanted)).facts()
    return Claim(key, rests_on(submitted), counts=counts | {"referred": len(found.verdict.to_fetch)}, facts=facts)


def _require_whole(at: Store, path: str, size: int) -> None:
    there = at.stat(path)
    if there is None:
        why = "the ingesting system has not put it there; where it puts SIPs elsewhere, set [package] verified_at"
        raise NotReady(f"{at.root}:{path}", why)
    if there.size < size:
        raise NotReady(f"{at.root}:{path}", f"it has {there.size} of {size} bytes, and may still be written")
    if there.size > size:
        raise Mismatch(f"length of {at.root}:{path}", f"{size} bytes", f"{there.size} bytes")


class _Reading:
    """One pass over the tar."""

    verdict: Verdict
    digests: Mapping[str, bytes]

    def __init__(self, at: Store, path: str, progress: Progress) -> None:
        self._at, self._path, self._progress = at, path, progress
        self._sha512 = ""
        self._sizes: dict[str, int | None] = {}
        self._mets = MetsFiles()
        self.opinions: dict[str, Opinion] = {}

    def read(self) -> None:
        contents = reading.read(Tar(self._path, self._opened), self._listen)
        self.verdict = bag.judge(contents)
        self.digests = bag.listed(contents, _MANIFEST)
        self._sizes = {fetch.path: fetch.length for fetch in self.verdict.to_fetch}
        self._sizes |= {path: seen.size for path, seen in contents.files.items()}

    @contextmanager
    def _opened(self) -> Iterator[Readable]:
        with self._at.open(self._path) as stream:
            summed = Summed(_Counted(stream, self._path, self._progress), ("sha512",))
            yield summed
            drain(summed)
        self._sha512 = summed.digests()[0].hex()

    def _listen(self, path: str, stream: Readable) -> None:
        name = path.rpartition("/")[2]
        if name == NAME:
            self._mets.read(path, stream)
        elif gate.is_warc_name(name):
            self.opinions[path] = opinion(stream)

    def faults(self, sip: Packaged) -> Iterator[str]:
        """What is wrong with the bag."""
        if self._sha512 != sip.sip.sha512:
            yield f"its sha512 is {self._sha512[:16]}..., not {str(sip.sip.sha512)[:16]}..."
        yield from map(str, self.verdict.faults)

    def differences(self, sip: Packaged) -> Iterator[str]:
        """Where METS lists something else than the manifest, and which files a SIP by value only refers to."""
        yield from self._mets.differences(f"data/{sip.bag}", self.digests, self._sizes)
        if sip.form == "value" and self.verdict.to_fetch:
            yield f"{len(self.verdict.to_fetch)} files are not in it, but it is a SIP by value"

    def warc_faults(self, wanted: Expected) -> Iterator[str]:
        """Where warcio finds other content than the gate: digests that do not fit."""
        for path, theirs, ours in self._compared(wanted):
            unlike = sum(number for reading, number in ours.payload.items() if reading != AS_TRANSFERRED)
            if theirs.differing > unlike:  # warcio knows a body only as transferred
                first, number = theirs.problems[0], theirs.differing
                yield f"{path}: warcio finds {number} faults, the first at offset {first.offset}: {first.why}"

    def unread(self, wanted: Expected) -> tuple[tuple[str, str], ...]:
        """The WARCs that warcio cannot read to their end, or reads in other records: name, and what it finds."""
        found = list[tuple[str, str]]()
        for path, theirs, ours in self._compared(wanted):
            if theirs.records != ours.records or len(theirs.problems) > theirs.differing:
                first = next((f"; {one.why}, at offset {one.offset}" for one in theirs.problems[-1:]), "")
                why = f"warcio reads {theirs.records} records, the gate {ours.records}{first}"
                found.append((path.rpartition("/")[2], why))
        return tuple(sorted(found))

    def _compared(self, wanted: Expected) -> Iterator[tuple[str, Opinion, Checked]]:
        """What both have read. A WARC that was cut has no such count."""
        for path, theirs in self.opinions.items():
            if ours := wanted.checked.get(self.digests.get(path, b"").hex()):
                yield path, theirs, ours


@dataclass(frozen=True, slots=True)
class _Counted:
    stream: Readable
    name: str
    progress: Progress

    def read(self, size: int, /) -> bytes:
        data = self.stream.read(size)
        self.progress.add(len(data), self.name)
        return data


def _fetch_faults(store: Store, found: _Reading, sip: Packaged, wanted: Expected) -> Iterator[str]:
    """Each file of fetch.txt is in the store: at the path that its URL ends with, with its digest and length."""
    if sip.form == "value":
        return
    sizes: dict[str, dict[str, int]] = {}
    for fetch in found.verdict.to_fetch:
        known = wanted.warcs.get(found.digests.get(fetch.path, b"").hex(), [])
        copy = next((file for file in known if _is_at(fetch, file)), None)
        if copy is None:
            yield f"{fetch.path}: no file of the launch with its digest lies at {fetch.url}"
            continue
        folder = copy.path.rpartition("/")[0]
        if folder not in sizes:
            sizes[folder] = {entry.path: entry.size for entry in store.list(folder)}
        if (there := sizes[folder].get(copy.path)) != fetch.length:
            is_there = "is missing" if there is None else f"has {there} bytes, not {fetch.length}"
            yield f"{fetch.path}: store:{copy.path} {is_there}"


def _is_at(fetch: Fetch, file: FileRef) -> bool:
    return unquote(urlsplit(fetch.url).path).endswith(f"/{file.path}") and fetch.length == file.size
