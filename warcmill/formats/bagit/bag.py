"""A judge of bags, by RFC 8493 (BagIt 1.0) or by the draft that a bag declares (0.93 to 0.97). Reads only.

A valid bag is complete, and all its digests match (section 3). A bag that is whole but for files that fetch.txt names
is incomplete, which is not valid; nothing is ever fetched.

A bag is read once, in the order in which its files come. The manifests' names have the digests to compute, so where
the tag files come first, as in a tar of ours, one pass is enough; else a second pass digests what came before its
manifest. Memory grows with the number of files alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO

from msgspec import Struct, field
from msgspec.structs import replace

from warcmill.base.digests import Readable, drain
from warcmill.errors import BadInput
from warcmill.formats.bagit import containers, tag_files
from warcmill.formats.bagit.containers import BagEntry, Container
from warcmill.formats.bagit.findings import BagFinding, BagVerdict, FetchLine, Findings, alike
from warcmill.formats.bagit.tag_files import DECLARATION, FETCH, OXUM, Declaration, Manifest, Summed, manifest_of
from warcmill.formats.warc import gate

TAG_FILE_LIMIT = 1 << 30  # bytes; these are read as a whole
_DEFINED = (DECLARATION, FETCH, "bag-info.txt", "package-info.txt")
_UNJUDGED = Declaration("", "")
Listener = Callable[[str, Readable], None]  # gets each payload file once: its path, and a stream to read as it likes


class DigestedFile(Struct, frozen=True):
    """A file that is there, and its digests by these algorithms."""

    size: int
    algorithms: tuple[str, ...]
    digests: tuple[bytes, ...]

    def digest(self, algorithm: str) -> bytes:
        return self.digests[self.algorithms.index(algorithm)]


class BagContents(Struct):
    """The contents of a bag: all that is needed to judge it."""

    findings: Findings = field(default_factory=Findings)
    has_payload_folder: bool = False
    files: dict[str, DigestedFile] = field(default_factory=dict)
    tag_files: dict[str, bytes] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)  # what is there, but may not be

    def payload_sizes(self) -> list[int]:
        """The size of each payload file, in bytes."""
        return [file.size for path, file in self.files.items() if path.startswith(containers.PAYLOAD)]

    def wanted(self, path: str) -> tuple[str, ...]:
        """The digests that the manifests seen so far ask of a file."""
        is_tag = not path.startswith(containers.PAYLOAD)
        manifests = filter(None, map(manifest_of, self.tag_files))
        names = {tag_files.known(algorithm) for tag, algorithm in manifests if tag == is_tag}
        return tuple(sorted(names - {""}))


def examine(container: Container) -> BagVerdict:
    """The verdict on a bag, and the gate's on each WARC in it; OSError if it cannot be read."""
    warcs: list[tuple[str, gate.FileVerdict]] = []

    def listen(path: str, stream: Readable) -> None:
        name = path.rpartition("/")[2]
        if gate.is_warc_name(name):
            warcs.append((path, gate.examine(stream, name)))

    try:
        contents = read(container, listen)
    except BadInput as bad:
        return BagVerdict("", "", (), 0, 0, (BagFinding("", bad.why),), (), (), ())
    return replace(judge(contents), warcs=tuple(warcs))


def read(container: Container, listener: Listener | None = None) -> BagContents:
    """Read a bag whole. BadInput: the archive cannot be read on."""
    contents = BagContents()
    for entry in container.entries():
        _take(contents, entry, listener)
    late = _undigested(contents)
    if late:
        for entry in container.entries():
            if late.get(entry.path) == entry.size and entry.open:
                contents.files[entry.path] = _digested(contents, entry, None)
                del late[entry.path]
    return contents


def _take(contents: BagContents, entry: BagEntry, listener: Listener | None) -> None:
    path = entry.path
    contents.has_payload_folder |= f"{path}/".startswith(containers.PAYLOAD)
    if entry.fault:
        contents.findings.fault(path, entry.fault)
        contents.refused.add(path)
    elif entry.open is None:
        return
    elif path in contents.files:
        contents.findings.fault(path, "twice in the archive")
    elif path in _DEFINED or manifest_of(path):
        _take_tag_file(contents, entry)
    else:
        contents.files[path] = _digested(contents, entry, listener if path.startswith(containers.PAYLOAD) else None)


def _take_tag_file(contents: BagContents, entry: BagEntry) -> None:
    assert entry.open is not None
    contents.files[entry.path] = DigestedFile(entry.size, (), ())
    with entry.open() as stream:
        if entry.size > TAG_FILE_LIMIT:
            contents.findings.fault(entry.path, f"{entry.size} bytes: more than a tag file of its kind may have")
            drain(stream)
            return
        pieces = list(iter(lambda: stream.read(1 << 20), b""))
    contents.tag_files[entry.path] = b"".join(pieces)


def _digested(contents: BagContents, entry: BagEntry, listener: Listener | None) -> DigestedFile:
    """Read a file to its end for the digests that are asked of it, and for who listens."""
    assert entry.open is not None
    wanted = contents.wanted(entry.path)
    with entry.open() as stream:
        summed = Summed(stream, wanted)
        if listener:
            listener(entry.path, summed)
        drain(summed)
    return DigestedFile(summed.size, wanted, summed.digests())


def _undigested(contents: BagContents) -> dict[str, int]:
    """The files that lack digests, with their sizes; tag files are digested here."""
    late: dict[str, int] = {}
    wanted = {is_payload: contents.wanted(containers.PAYLOAD if is_payload else "") for is_payload in (True, False)}
    for path, file in contents.files.items():
        needed = wanted[path.startswith(containers.PAYLOAD)]
        if path in contents.tag_files:
            summed = Summed(BytesIO(contents.tag_files[path]), needed)
            drain(summed)
            contents.files[path] = DigestedFile(file.size, needed, summed.digests())
        elif file.algorithms != needed:
            late[path] = file.size
    return late


def judge(contents: BagContents) -> BagVerdict:
    """The verdict on what was read of a bag."""
    findings = contents.findings
    declared = None
    if DECLARATION in contents.tag_files:
        declared = tag_files.parse_declaration(contents.tag_files[DECLARATION], findings)
    elif DECLARATION not in contents.refused:
        findings.fault("", f"no {DECLARATION}: not a bag")
    if declared is None:  # the rules to judge it by are unknown
        return _verdict(contents, _UNJUDGED, (), ())
    bag = _Bag(contents, declared)
    bag.judge()
    return _verdict(contents, declared, bag.manifests, bag.to_fetch())


def _verdict(
    contents: BagContents, declared: Declaration, manifests: Sequence[Manifest], to_fetch: Iterable[FetchLine]
) -> BagVerdict:
    payload = contents.payload_sizes()
    return BagVerdict(
        version=declared.version,
        encoding=declared.encoding,
        manifests=tuple(manifest.name for manifest in manifests),
        files=len(payload),
        size=sum(payload),
        faults=tuple(contents.findings.faults),
        warnings=contents.findings.all_warnings(),
        to_fetch=tuple(to_fetch),
        warcs=(),
    )


def listed(contents: BagContents, manifest: str) -> Mapping[str, bytes]:
    """The digests of a manifest, by path; none where the bag has no such manifest, or is not declared."""
    data = contents.tag_files.get(DECLARATION)
    declared = tag_files.parse_declaration(data, Findings()) if data else None
    if declared is None or manifest not in contents.tag_files:
        return {}
    text = tag_files.decode(manifest, contents.tag_files[manifest], declared.encoding, Findings())
    return tag_files.parse_manifest(manifest, text, declared, Findings()).digests


class _Bag:
    """A bag whose declaration is sound."""

    def __init__(self, contents: BagContents, declared: Declaration) -> None:
        self._contents, self._declared = contents, declared
        self._findings: Findings = contents.findings
        self.manifests = [self._manifest(name) for name in sorted(filter(tag_files.manifest_of, contents.tag_files))]
        self._payload = [manifest for manifest in self.manifests if not manifest.is_tag and manifest.algorithm]
        self._tags = [manifest for manifest in self.manifests if manifest.is_tag and manifest.algorithm]
        self._wanted: dict[str, FetchLine] = {}
        if FETCH in contents.tag_files:
            self._wanted = tag_files.parse_fetch(self._text(FETCH), declared, self._findings)

    def _text(self, name: str) -> str:
        return tag_files.decode(name, self._contents.tag_files[name], self._declared.encoding, self._findings)

    def _manifest(self, name: str) -> Manifest:
        return tag_files.parse_manifest(name, self._text(name), self._declared, self._findings)

    def judge(self) -> None:
        if not self._contents.has_payload_folder:
            self._findings.fault("", "no folder data/")
        if not any(not manifest.is_tag for manifest in self.manifests):
            self._findings.fault("", "no payload manifest")
        for manifest in (*self._payload, *self._tags):
            self._compare(manifest)
        self._judge_payload_lists()
        self._judge_tag_lists()
        self._judge_fetch()
        self._judge_info()
        alike((*self._contents.files, *self._listed()), self._findings)

    def _listed(self) -> list[str]:
        """The listed files that are not there."""
        names = {path: None for manifest in self.manifests for path in manifest.digests}
        return [path for path in names if path not in self._contents.files]

    def to_fetch(self) -> list[FetchLine]:
        """The files that fetch.txt names and that are not there."""
        return [fetch for path, fetch in self._wanted.items() if path not in self._contents.files]

    def _compare(self, manifest: Manifest) -> None:
        """Compare every digest that a manifest lists."""
        other_form = self._other_forms(manifest)
        for path, listed in manifest.digests.items():
            name = path if path in self._contents.files else other_form.get(containers.composed(path), "")
            if name:
                self._compare_one(manifest, path, name, listed)
            elif path not in self._wanted and path not in self._contents.refused:
                self._findings.fault(path, f"not there, but {manifest.name} lists it")

    def _compare_one(self, manifest: Manifest, path: str, name: str, listed: bytes) -> None:
        """Compare the digest that a manifest lists for a path with that of the file; its name may have another form."""
        if name != path:
            self._findings.warn(name, f"{manifest.name} writes its name in another form of Unicode")
        file = self._contents.files[name]
        if manifest.algorithm not in file.algorithms:
            self._findings.fault(path, "it was another file when it was read again")
        elif not tag_files.agrees(computed := file.digest(manifest.algorithm), listed):
            shown = computed[: len(listed)].hex()
            why = f"its {manifest.algorithm} is {shown}, but {manifest.name} has {listed.hex()}"
            self._findings.fault(path, why)

    def _other_forms(self, manifest: Manifest) -> dict[str, str]:
        """The files that a manifest does not list, by the composed form of their names; ASCII has one form only."""
        return {
            containers.composed(path): path
            for path in self._contents.files
            if not path.isascii() and path not in manifest.digests
        }

    def _judge_payload_lists(self) -> None:
        """Every payload file is in every payload manifest; before 1.0 one of them was enough (3)."""
        forms = {manifest.name: self._composed(manifest) for manifest in self._payload}
        for path in self._contents.files:
            if not path.startswith(containers.PAYLOAD):
                continue
            missing = [m.name for m in self._payload if path not in m.digests and path not in forms[m.name]]
            is_fault = self._declared.is_strict or len(missing) == len(self._payload)
            for name in missing if self._payload else ():
                self._findings.judge(path, f"{name} does not list it", is_fault=is_fault)

    def _composed(self, manifest: Manifest) -> set[str]:
        """The files that a manifest lists in another form of Unicode than they have."""
        listed = {containers.composed(path) for path in manifest.digests if not path.isascii()}
        return {path for form, path in self._other_forms(manifest).items() if form in listed}

    def _judge_tag_lists(self) -> None:
        """A tag manifest lists every payload manifest, no tag manifest, and should list all other tag files (2.2.1)."""
        is_fault = self._declared.is_strict
        tags = [path for path in self._contents.files if not path.startswith(containers.PAYLOAD)]
        for manifest in self._tags:
            for path in tags:
                kind = tag_files.manifest_of(path)
                if kind and not kind[0] and path not in manifest.digests:
                    self._findings.judge(path, f"{manifest.name} does not list it", is_fault=is_fault)
                elif kind is None and path not in manifest.digests:
                    self._findings.warn(path, f"{manifest.name} does not list it: nothing shows a change of it")
            for path in manifest.digests:
                if (tag_files.manifest_of(path) or (False,))[0]:
                    self._findings.judge(manifest.name, f"lists a tag manifest, {path}", is_fault=is_fault)
                elif path.startswith(containers.PAYLOAD):
                    self._findings.warn(manifest.name, f"lists a payload file, {path}")

    def _judge_fetch(self) -> None:
        """Every file of fetch.txt is in every payload manifest (2.2.3)."""
        for path in self._wanted:
            for manifest in self._payload:
                if path not in manifest.digests:
                    self._findings.fault(path, f"{FETCH} names it, but {manifest.name} does not list it")

    def _judge_info(self) -> None:
        name = tag_files.info_name(self._declared.version)
        if name not in self._contents.tag_files:
            return
        elements = tag_files.parse_info(name, self._text(name), self._declared, self._findings)
        sums = [value for label, value in elements if label.lower() == "payload-oxum"]
        if len(sums) > 1:
            self._findings.warn(name, "Payload-Oxum is there more than once")
        for value in sums:
            self._judge_oxum(name, value)

    def _judge_oxum(self, name: str, value: str) -> None:
        """Payload-Oxum is the payload's size and number of files, also of those that are still to be fetched."""
        declared = OXUM.fullmatch(value)
        if declared is None:
            self._findings.fault(name, f"Payload-Oxum is {value!r}, not OCTETS.FILES")
            return
        absent = self.to_fetch()
        sizes = self._contents.payload_sizes()
        lengths = [fetch.length for fetch in absent if fetch.length is not None]
        size, files = sum(sizes) + sum(lengths), len(sizes) + len(absent)
        fits = int(declared["size"]) == size if len(lengths) == len(absent) else int(declared["size"]) >= size
        if not fits or int(declared["files"]) != files:
            found = f"{size}.{files}" + (f", with the {len(absent)} to be fetched" if absent else "")
            self._findings.fault(name, f"Payload-Oxum is {value}, but the payload has {found}")
