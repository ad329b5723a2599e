"""A SIP, built in the store as it is sent: a bag in a tar, whose payload is an E-ARK package. Writes to the store.

    sips/{job}/{launch}/{stage}.tar       {job}.{launch}.{stage}/bagit.txt, its other tag files, then its payload:
                                          data/{job}.{launch}.{stage}/METS.xml, metadata/, representations/, schemas/
    sips/{job}/{launch}/{stage}.2.tar     one that was built again, with other bytes: it replaces the first

The same markers give the same bytes: every time in it is of a marker's run, and none is the present one.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path

from msgspec import Struct

from warcmill import __version__, layout
from warcmill.base import digests
from warcmill.base.progress import Progress
from warcmill.errors import Conflict, Mismatch
from warcmill.extracts.extracts import Extracts
from warcmill.formats.bagit import writer
from warcmill.formats.sip import eark, tar
from warcmill.formats.sip.eark import Package, PackageFile
from warcmill.formats.sip.tar import Chunks, DocumentSpool, Make, PackageDocument, TarMember, TarStream
from warcmill.formats.sip.xml import href
from warcmill.markers.claim import Claim
from warcmill.markers.facts.package import Packaged
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Launch, Stage
from warcmill.package import identifiers, sips
from warcmill.package.contents import Collector, SipContents, replacing
from warcmill.package.sips import Terms
from warcmill.stores import Store


class Sip(Struct, frozen=True):
    """A SIP that can be sent: its path in the store, its bag's folder, and its members, the tag files first."""

    path: str
    bag: str
    members: list[TarMember]
    size: int
    time: int

    def stream(self, progress: Progress) -> TarStream:
        """The tar, to be read once."""
        watched = [
            TarMember(file.name, file.size, file.sha512, partial(_watched, file.chunks, progress, file.name))
            for file in self.members
        ]
        return TarStream(watched, self.time)


@contextmanager
def without_garbage_search() -> Iterator[None]:
    """Search for no garbage meanwhile: a SIP's many members have no cycles, and each search would visit all of them."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@without_garbage_search()
def build(
    state: MarkerStore, store: Store, extracts: Extracts | None, launch: Launch, stage: Stage, terms: Terms
) -> Claim:
    """Build the SIP of a stage in the store; return the claim of 05. BadInput for a stage that another SIP covers.

    Mismatch when a stored file is no longer as it was verified; then nothing is published.
    """
    key = layout.key(sips.BUILD, launch, stage=stage)
    coverage = sips.coverage(state, launch)
    sips.refuse_covered(coverage, launch, stage)
    contents = Collector(state, store, extracts, launch, terms).collect(coverage, stage)
    if terms.form == "reference":
        _refuse_missing(store, contents)
    store.sweep(f"sips/{launch}")
    with state.scratch() as folder:
        numbers = _numbers(state, store, launch, stage)
        tried = (_numbered(state, store, contents, terms, number, folder) for number in numbers)
        bag, built = next(filter(None, tried))
    zone = identifiers.zone_beside(state, launch, stage, contents.covers, terms)
    left = sips.of_stages(state, store, launch, contents.covers, built.path)
    ark, renamed = contents.package.ark, contents.renamed
    facts = Packaged(contents.covers, contents.before, terms.form, bag, built, ark, zone, left, renamed)
    return Claim(key, tuple(sorted(contents.inputs)), (built,), counts=_counts(contents), facts=facts.facts())


def _numbers(state: MarkerStore, store: Store, launch: Launch, stage: Stage) -> Iterator[int]:
    """The numbers to try: of the stage's stored SIPs, which may be this one; of lost ones; then new ones.

    The number of one that no 05 has named is not given again, even where its file was moved away.
    """
    stored = _numbers_in(stage, (entry.name for entry in store.list(f"sips/{launch}")))
    named = _numbers_in(stage, (sip.sip.name for sip in sips.moved(state, launch)))
    yield from sorted(stored)
    yield from sorted(named - stored, reverse=True)
    yield from count(max(stored | named, default=0) + 1)


def _numbers_in(stage: Stage, names: Iterable[str]) -> set[int]:
    sip_names = filter(None, map(layout.parse_sip_name, names))
    return {number for of, number in sip_names if of == stage}


def _numbered(
    state: MarkerStore, store: Store, contents: SipContents, terms: Terms, number: int, folder: Path
) -> tuple[str, FileRef] | None:
    """Publish the SIP of a number; return its bag's name and itself, or None when other bytes have its name."""
    with DocumentSpool(folder) as spool:
        sip = _prepared(store, contents, terms, number, spool.keep)
        built = _published(state, store, contents, sip)
    return (sip.bag, built) if built else None


def _prepared(store: Store, contents: SipContents, terms: Terms, number: int, make: Make) -> Sip:
    """The SIP of this number: the first, or the one that replaces the one before."""
    package = replacing(contents.package, number)
    bag = package.header.identifier
    made = eark.documents(package, make)
    tags = writer.tag_files(_about(contents, package, terms), _Payload(bag, contents, made, terms), make)
    members = [TarMember(f"{bag}/{tag.path}", tag.size, tag.sha512, tag.chunks) for tag in _in_order(tags)]
    stored = {file: entry.stored for entry in contents.entries if not _is_left_out(file := entry.payload, terms)}
    for part in eark.members(stored, made):
        chunks = part.chunks if isinstance(part, PackageDocument) else _stored(store, stored[part])
        members.append(TarMember(f"{bag}/{_in_data(bag, part.path)}", part.size, part.sha512, chunks))
    size = tar.size_of((member.name, member.size) for member in members)
    name = f"{contents.stage}.tar" if number == 1 else f"{contents.stage}.{number}.tar"
    path = layout.stored_path("sips", contents.launch, name)
    return Sip(path, bag, members, size, int(datetime.fromisoformat(contents.time).timestamp()))


def _about(contents: SipContents, package: Package, terms: Terms) -> Iterator[tuple[str, str]]:
    yield "Source-Organization", terms.organisation
    yield "External-Identifier", package.ark or package.header.identifier
    yield "External-Description", package.description.title[0]
    yield "Bag-Group-Identifier", f"{contents.launch.job}.{contents.launch.id}"
    yield "Bagging-Date", contents.time[:10]
    yield "Bag-Software-Agent", f"Warcmill {__version__}"
    yield "BagIt-Profile-Identifier", writer.PROFILE


def _in_order(tags: Iterable[PackageDocument]) -> list[PackageDocument]:
    """`bagit.txt` first: it declares what the others are."""
    return sorted(tags, key=lambda tag: (tag.path != "bagit.txt", tag.path))


def _in_data(bag: str, path: str) -> str:
    return f"{writer.PAYLOAD}{bag}/{path}"


def _is_left_out(file: PackageFile, terms: Terms) -> bool:
    return terms.form == "reference" and file.kind != "logs"


_made = tuple.__new__  # a named tuple of all its members, in half the time: a bag of 100,000 files has each twice


class _Payload(Struct, frozen=True):
    """The payload of the bag: the package's documents, then its files. Made as it is read: there may be 100,000."""

    bag: str
    contents: SipContents
    made: Sequence[PackageDocument]
    terms: Terms

    def __iter__(self) -> Iterator[writer.PayloadFile]:
        data, locate, terms = _in_data(self.bag, ""), self.terms.locate.rstrip("/"), self.terms
        for document in self.made:
            yield writer.PayloadFile(data + document.path, document.size, document.sha512)
        for file, (_, path, *_) in self.contents.entries:
            url = f"{locate}/{href(path)}" if _is_left_out(file, terms) else ""
            yield _made(writer.PayloadFile, (data + file.path, file.size, file.sha512, url))


def _stored(store: Store, file: FileRef) -> Chunks:
    return tar.file_chunks(partial(store.open, file.path))


def _published(state: MarkerStore, store: Store, contents: SipContents, sip: Sip) -> FileRef | None:
    """Publish a SIP; return it, also when these very bytes are there already; None when other ones are."""
    digest: list[str] = []

    def accept(sha512: str) -> bool:
        _refuse_change(state, contents)  # another may have been built meanwhile that covers the same stages
        digest.append(sha512)
        return True

    progress = Progress(f"{contents.launch} {contents.stage}", sip.size)
    if not store.commit_new(sip.path, sip.stream(progress), sip.size, accept):
        there = store.stat(sip.path)
        if there is None or there.size != sip.size:
            return None
        own = digests.sha512(sip.stream(progress))[1]
        with store.open(sip.path) as file:
            if digests.sha512(file)[1] != own:
                return None
        digest.append(own)
    return FileRef("store", sip.path, sip.size, digest[-1])


def _watched(chunks: Chunks, progress: Progress, name: str) -> Iterator[bytes]:
    for chunk in chunks():
        progress.add(len(chunk), name)
        yield chunk


def _refuse_missing(store: Store, contents: SipContents) -> None:
    """Raise Mismatch when a file that the SIP refers to is missing from the store, or has another length there."""
    wanted = {entry.stored.path: entry.stored.size for entry in contents.entries}
    for folder in sorted({path.rpartition("/")[0] for path in wanted}):
        for path, _, found, *_ in store.list(folder):
            size = wanted.pop(path, found)
            if found != size:
                raise _changed(path, size, f"{found} bytes")
    for path, size in wanted.items():
        raise _changed(path, size, "no file")


def _refuse_change(state: MarkerStore, contents: SipContents) -> None:
    now = sips.coverage(state, contents.launch)
    if (now.covers(contents.stage), now.before(contents.stage)) != (contents.covers, contents.before):
        where = layout.marker_path(layout.key(sips.BUILD, contents.launch, stage=contents.stage))
        raise Conflict(where, "another SIP of the launch was built meanwhile; run the step again")


def _changed(path: str, size: int, found: str) -> Mismatch:
    return Mismatch(f"store:{path} changed since it was verified; length", f"{size} bytes", found)


def _counts(contents: SipContents) -> dict[str, int]:
    sizes = [entry.payload.size for entry in contents.entries]
    return {"files": len(sizes), "bytes": sum(sizes)}
