"""The check of a SIP where the ingesting system has put it, by other code than has built it. Reads only.

The tar is read once, by tarfile and the checker of `warcmill check`: its digest is that of 05, it is a valid bag, it
lists each WARC and log package of the stages that it covers and nothing else, and METS and manifest name the same
files. A file that `fetch.txt` names has to be in the store, as files.verified has it.

warcio reads each WARC, and may find digests wrong that the gate finds right, or not read a file that the gate finds
whole. The WARC has the digest that files.verified has, so one of the two readers errs. Which one does is computed from
the stored copy; it is a fact of the claim and a finding, since no run of this step ever changes it.

Each holding (whole, cut, salvaged or viral) and each log package has one path in the bag, under its own name or the one
that 05 gives it there. A file that two stages of the SIP hold alike is in it once. Beside these it has the documents of
its package, and no more.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, BinaryIO, cast
from urllib.parse import unquote, urlsplit
from xml.etree.ElementTree import ParseError

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException
from msgspec import Struct, field

from warcmill import layout
from warcmill.base.digests import Readable, drain
from warcmill.base.progress import Progress
from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.formats.bagit import bag
from warcmill.formats.bagit import bag as reading
from warcmill.formats.bagit.containers import Tar
from warcmill.formats.bagit.findings import BagVerdict, FetchLine
from warcmill.formats.bagit.tag_files import Summed
from warcmill.formats.sip import eark
from warcmill.formats.warc import declared_digests, gate, second_opinion
from warcmill.formats.warc.checks import AS_TRANSFERRED
from warcmill.formats.warc.second_opinion import Opinion, Problem
from warcmill.launches import holdings
from warcmill.launches.holdings import HoldingKind, StageHoldings
from warcmill.markers.claim import Claim
from warcmill.markers.facts.files import Checked, Checksums
from warcmill.markers.facts.package import Packaged, SipVerified, Submitted
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Launch, Stage
from warcmill.package.sips import BUILD
from warcmill.package.submit import SUBMIT
from warcmill.stores import Store

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


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
    wanted = of_sip(state, launch, sip)
    bag = [*found.faults(sip), *wanted.faults(found.digests), *found.differences(sip)]
    faults = [*bag, *_fetch_faults(store, found, sip, wanted)]
    if faults:
        more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        shown = "; ".join(faults[:_SHOWN])
        raise BadInput(f"{at.root}:{path}", f"not the SIP that was submitted: {shown}{more}")
    counts = {"files": len(found.digests), "bytes": sip.sip.size, "warcs": len(found.opinions)}
    facts = SipVerified(found.unread(wanted), found.differing(wanted, store)).facts()
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

    verdict: BagVerdict
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
            self.opinions[path] = second_opinion.opinion(stream)

    def faults(self, sip: Packaged) -> Iterator[str]:
        """The faults of the bag."""
        if self._sha512 != sip.sip.sha512:
            yield f"its sha512 is {self._sha512[:16]}..., not {str(sip.sip.sha512)[:16]}..."
        yield from map(str, self.verdict.faults)

    def differences(self, sip: Packaged) -> Iterator[str]:
        """Where METS lists something else than the manifest, and which files a SIP by value only refers to."""
        yield from self._mets.differences(f"data/{sip.bag}", self.digests, self._sizes)
        if sip.form == "value" and self.verdict.to_fetch:
            yield f"{len(self.verdict.to_fetch)} files are not in it, but it is a SIP by value"

    def differing(self, wanted: ExpectedFiles, store: Store) -> tuple[tuple[str, str], ...]:
        """The WARCs in which warcio finds digests wrong that the gate does not: name, and which of the two errs."""
        found = list[tuple[str, str]]()
        for path, theirs, ours in self._compared(wanted):
            unlike = sum(number for reading, number in ours.payload.items() if reading != AS_TRANSFERRED)
            differing = [one for one in theirs.problems if one.digest]
            if len(differing) > unlike:  # warcio knows a body only as transferred
                stored = wanted.warcs[self.digests[path].hex()][0]
                found.append((stored.name, who_errs(store, stored, differing, unlike)))
        return tuple(sorted(found))

    def unread(self, wanted: ExpectedFiles) -> tuple[tuple[str, str], ...]:
        """The WARCs that warcio cannot read to their end, or reads in other records: name, and what it finds."""
        found = list[tuple[str, str]]()
        for path, theirs, ours in self._compared(wanted):
            others = [one for one in theirs.problems if not one.digest]
            if theirs.records != ours.records or others:
                first = next((f"; {one.why}, at offset {one.offset}" for one in theirs.problems[-1:]), "")
                why = f"warcio reads {theirs.records} records, the gate {ours.records}{first}"
                found.append((wanted.own_name(path), why))
        return tuple(sorted(found))

    def _compared(self, wanted: ExpectedFiles) -> Iterator[tuple[str, Opinion, Checked]]:
        """The content that both have read. A WARC that was cut has no such count."""
        for path, theirs in self.opinions.items():
            if ours := wanted.checked.get(self.digests.get(path, b"").hex()):
                yield path, theirs, ours


def who_errs(store: Store, stored: FileRef, differing: Sequence[Problem], unlike: int) -> str:
    """Which reader errs over digests of a WARC. `unlike`: those of bodies with codings undone, by the gate."""
    sound, wrong = list[Problem](), list[Problem]()
    for offset, problems in groupby(differing, attrgetter("offset")):
        with store.open(stored.path, offset) as record:
            unfit = declared_digests.unfit(record)
        for one in problems:
            (wrong if one.digest in unfit else sound).append(one)
    if len(wrong) > unlike:
        return f"the gate errs over digests that are not those of the bytes: {len(wrong) - unlike}, {_first(wrong)}"
    return f"warcio errs over digests that are those of the bytes: {len(sound)}, {_first(sound)}"


def _first(problems: Sequence[Problem]) -> str:
    return f"the first at offset {problems[0].offset}: {problems[0].why}"


class _Counted(Struct, frozen=True):
    stream: Readable
    name: str
    progress: Progress

    def read(self, size: int, /) -> bytes:
        data = self.stream.read(size)
        self.progress.add(len(data), self.name)
        return data


def _fetch_faults(store: Store, found: _Reading, sip: Packaged, wanted: ExpectedFiles) -> Iterator[str]:
    """Each file of fetch.txt is in the store: at the path that its URL ends with, with its digest and length."""
    if sip.form == "value":
        return
    sizes: dict[str, dict[str, int]] = {}
    for fetch in found.verdict.to_fetch:
        known = wanted.warcs.get(found.digests.get(fetch.path, b"").hex(), [])
        copy = next((file for file in known if _is_at(fetch, file)), None)
        if copy is None:
            yield f"{fetch.path}: no file of the launch with its digest is at {fetch.url}"
            continue
        folder = copy.path.rpartition("/")[0]
        if folder not in sizes:
            sizes[folder] = {entry.path: entry.size for entry in store.list(folder)}
        if (there := sizes[folder].get(copy.path)) != fetch.length:
            is_there = "is missing" if there is None else f"has {there} bytes, not {fetch.length}"
            yield f"{fetch.path}: store:{copy.path} {is_there}"


def _is_at(fetch: FetchLine, file: FileRef) -> bool:
    return unquote(urlsplit(fetch.url).path).endswith(f"/{file.path}") and fetch.length == file.size


_LOG = "log package"


class ExpectedFiles(Struct, dict=True):
    """`files`: what has to be in the bag, by path and sha512: the stage that has it, and the word for it.

    By sha512: `warcs`, the stored WARCs; `checked`, what the gate counted in those that it took.
    """

    package: str  # the folder of the package in the bag
    renamed: Mapping[str, str]  # as 05 has it
    files: dict[tuple[str, str], str] = field(default_factory=dict)
    warcs: dict[str, list[FileRef]] = field(default_factory=dict)
    checked: dict[str, Checked] = field(default_factory=dict)

    def add(self, held: StageHoldings, checks: Checksums) -> None:
        """Add what a stage holds."""
        by_source = {(file.root, file.path): one for file, one in checks.files.items()}
        for one in held.holdings:
            sha512 = self._add(held, one.stored, one.name, f"{one.word} WARC")
            self.warcs.setdefault(sha512, []).append(one.stored)
            if one.word in (HoldingKind.WHOLE, HoldingKind.VIRAL):
                self.checked[sha512] = by_source[one.source.root, one.source.path]
        for log in held.logs:
            self._add(held, log, log.name, _LOG)

    def _add(self, held: StageHoldings, stored: FileRef, name: str, what: str) -> str:
        sha512 = str(stored.sha512)
        kind = stored.path.partition("/")[0]
        path = f"{self.package}/{eark.path_of(kind, self._in_bag.get((kind, name), name))}"
        self.files.setdefault((path, sha512), f"the {what} of stage {held.stage}")
        return sha512

    @cached_property
    def _in_bag(self) -> dict[tuple[str, str], str]:
        """The names in the bag of files that have another one of their own, by kind and that one."""
        parts = ((*place.partition("/"), name) for place, name in self.renamed.items())
        return {(kind, name): other for kind, _, other, name in parts}

    def own_name(self, path: str) -> str:
        """The own name of the file at a path in the bag."""
        folder, _, name = path.rpartition("/")
        return self.renamed.get(f"{folder.split('/')[-2]}/{name}", name)

    def faults(self, listed: Mapping[str, bytes]) -> Iterator[str]:
        """The files that are missing, doubled or additional in a bag whose manifest lists these digests."""
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


def of_sip(state: MarkerStore, launch: Launch, sip: Packaged) -> ExpectedFiles:
    """The files that have to be in a SIP. NotReady, with the step to run first, when a stage of it is not verified."""
    expected = ExpectedFiles(f"data/{sip.bag}", sip.renamed)
    for stage in sip.covers:
        checks = state.require(layout.step("checksum", launch, stage))
        expected.add(holdings.of_stage(state, launch, stage), Checksums.from_claim(checks.claim))
    return expected


NAME = "METS.xml"
_METS, _HREF = "{http://www.loc.gov/METS/}", "{http://www.w3.org/1999/xlink}href"
_SHA512 = "SHA-512"


class MetsEntry(Struct, frozen=True):
    """A file as METS has it."""

    size: str
    sha512: str


class MetsFiles(Struct):
    """All files that the METS files of a bag name, by their paths in the bag, and what is wrong in those."""

    named: dict[str, MetsEntry] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def read(self, path: str, stream: Readable) -> None:
        """Take up one METS file, at `path` in the bag."""
        folder = posixpath.dirname(path)
        try:
            for _, element in ElementTree.iterparse(cast("BinaryIO", stream), forbid_dtd=True):
                if element.tag in (f"{_METS}file", f"{_METS}mdRef"):
                    self._take(path, folder, element)
                    element.clear()
        except (ParseError, DefusedXmlException, ValueError) as error:
            self.faults.append(f"{path}: not sound XML: {error}")

    def _take(self, mets: str, folder: str, element: Element) -> None:
        located = element.find(f"{_METS}FLocat") if element.tag == f"{_METS}file" else element
        href = (located.get(_HREF) if located is not None else None) or ""
        path = posixpath.normpath(posixpath.join(folder, unquote(href)))
        if not href or urlsplit(href).scheme or href.startswith("/") or path.startswith("../"):
            self.faults.append(f"{mets}: {href or 'an empty reference'} is no file of the bag")
            return
        if element.get("CHECKSUMTYPE") != _SHA512:
            self.faults.append(f"{mets}: {path} has no {_SHA512}")
            return
        found = MetsEntry(element.get("SIZE", ""), element.get("CHECKSUM", "").lower())
        if self.named.setdefault(path, found) != found:
            self.faults.append(f"{mets}: {path} is named twice, and not alike")

    def differences(self, folder: str, digests: Mapping[str, bytes], sizes: Mapping[str, int | None]) -> list[str]:
        """The differences of METS and the manifest. `folder`: the package's, in the bag."""
        faults = list(self.faults)
        for path, named in self.named.items():
            listed, size = digests.get(path), sizes.get(path)
            if listed is None:
                faults.append(f"{path}: METS names it, the manifest does not")
            elif (listed.hex(), str(size)) != (named.sha512, named.size):
                faults.append(f"{path}: METS has another digest or length ({named.size} bytes) than the bag ({size})")
        root = f"{folder}/{NAME}"
        unnamed = [path for path in digests if path not in self.named and path != root]
        faults += [f"{path}: the manifest lists it, no METS names it" for path in unnamed]
        return faults if root in digests else [*faults, f"{root}: there is none"]
