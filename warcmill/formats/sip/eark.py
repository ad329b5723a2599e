"""The layout of an E-ARK submission package (CSIP and SIP 2.2.0): its documents, and the place of each file.

    {identifier}/METS.xml
    {identifier}/metadata/descriptive/dc.xml
    {identifier}/metadata/preservation/premis.xml
    {identifier}/representations/{warcs,viral,logs}/METS.xml
    {identifier}/representations/{warcs,viral,logs}/data/NAME
    {identifier}/schemas/*.xsd

A package's folder is named as its METS/@OBJID (CSIP1). A representation without a file is left out. A file keeps the
name that its engine gave it, unless it cannot have it in every bag and on every disk: `placed`. Documents are generated
as they are read, and can be read again: one of 100,000 files is never in memory.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from importlib import resources
from itertools import count
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from warcmill.errors import BadInput
from warcmill.formats.sip import mets, premis, xml
from warcmill.formats.sip.tar import Make, PackageDocument, measured
from warcmill.formats.sip.xml import href

Kind = Literal["warcs", "viral", "logs"]
KINDS: Final[tuple[Kind, ...]] = ("warcs", "viral", "logs")
DESCRIPTIVE: Final = "metadata/descriptive/dc.xml"
PRESERVATION: Final = "metadata/preservation/premis.xml"
ROOT: Final = "METS.xml"
SCHEMAS: Final = ("DILCISExtensionMETS.xsd", "DILCISExtensionSIPMETS.xsd", "mets.xsd", mets.SCHEMA, "xlink.xsd")
_XML: Final = "application/xml"
# Types of IANA's list only (CSIP68): `application/warc` is not in it.
_MIME: Final = {"gz": "application/gzip", "zip": "application/zip"}
_OTHER_MIME: Final = "application/octet-stream"
_made = tuple.__new__  # a named tuple of all its members, in half the time: a package has several of each file


class PackageFile(NamedTuple):  # cheap to make: a package may have 100,000
    """A file of the archive: `name` is its own, not the store's percent-encoded one; `ark` may be empty.

    `renamed` is its name in the package, where that is another one.
    """

    kind: Kind
    name: str
    size: int
    sha512: str
    created: str
    format: premis.Format
    ark: str = ""
    renamed: str = ""

    @property
    def path(self) -> str:
        """Where it is in the package's folder."""
        return path_of(self.kind, self.renamed or self.name)


def path_of(kind: str, name: str) -> str:
    """Return where a file of this kind is in the package's folder, by its name in the package."""
    return f"representations/{kind}/data/{name}"


class Package(Struct, frozen=True):
    """All that a package states. `files` is read several times, in its order."""

    header: mets.Header
    description: xml.Description
    files: Sequence[PackageFile]
    events: Sequence[premis.PremisEvent]
    agents: Sequence[premis.Agent]
    ark: str = ""


def documents(package: Package, make: Make = measured) -> list[PackageDocument]:
    """Return every document of a package, by path. Each is read once to be made, for its size and digest.

    BadInput for a name that is not a file's, and for two files that would be at one path.
    """
    _check_names(package.files)
    header = package.header
    described = make(DESCRIPTIVE, partial(xml.write, package.description))
    preserved = make(PRESERVATION, partial(_premis, package))
    schemas = [make(f"schemas/{name}", partial(_schema_chunks, name)) for name in SCHEMAS]
    kinds = [kind for kind in KINDS if any(file.kind == kind for file in package.files)]
    representations = [
        make(f"representations/{kind}/METS.xml", partial(_representation, package, kind)) for kind in kinds
    ]
    listed = partial(_listed, header.created)
    root = partial(
        mets.package,
        header,
        listed(described),
        listed(preserved),
        [listed(schema) for schema in schemas],
        [listed(one) for one in representations],
    )
    return sorted([described, preserved, *schemas, *representations, make(ROOT, root)], key=_path_bytes)


def members(files: Iterable[PackageFile], made: Sequence[PackageDocument]) -> list[PackageFile | PackageDocument]:
    """Return files of a package and its documents in the order of their paths' bytes."""
    everything: list[PackageFile | PackageDocument] = [*files, *made]
    return sorted(everything, key=_path_bytes)


_LONGEST: Final = 255  # bytes of a name, on most disks
_UNSAFE: Final = re.compile("[%\x00-\x1f\x7f-\x9f\u2028\u2029]").sub
_END: Final = re.compile(r"(?:\.(?:w?arc|gz|open|zip))*\Z", re.IGNORECASE).search


def placed(files: Iterable[PackageFile]) -> list[PackageFile]:
    """Return the files, in their order, each with the name that it has in the package.

    A `%` and what ends a line become `_`, since readers of manifests differ on them. Of names that differ by case or
    by Unicode's normal form alone, which many disks take for one, one keeps its own: the first in NFC, if any is. A
    number is added to the others. The names alone decide, not their order.
    """
    held = list(files)
    renamed: dict[tuple[str, str], str] = {}
    for kind in KINDS:
        found = _renamed({file.name for file in held if file.kind == kind})
        renamed |= {(kind, name): other for name, other in found.items()}
    if not renamed:
        return held
    return [file._replace(renamed=renamed.get((file.kind, file.name), "")) for file in held]


def _renamed(names: Iterable[str]) -> dict[str, str]:
    """The names of one folder that have another name in the package, and that one."""
    safe = {name: _UNSAFE("_", name) for name in names}
    taken: set[str] = set()
    again = []
    for name in sorted(safe, key=lambda name: (safe[name] != name, not unicodedata.is_normalized("NFC", name), name)):
        known = len(taken)
        taken.add(_folded(safe[name]))
        if len(taken) == known:
            again.append(name)
    for name in again:
        safe[name] = next(one for one in _numbered(safe[name]) if _folded(one) not in taken)
        taken.add(_folded(safe[name]))
    return {name: other for name, other in safe.items() if other != name}


def _folded(name: str) -> str:
    """The name as disks compare it: equal for two names that some disk takes for one."""
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", name).casefold())


def _numbered(name: str) -> Iterator[str]:
    """The names `NAME~2.warc.gz`, `NAME~3.warc.gz`..., as long as a disk takes."""
    end = found[0] if (found := _END(name)) else ""
    stem = name.removesuffix(end) if end else name
    for number in count(2):
        more = f"~{number}{end}"
        kept = stem.encode()[: _LONGEST - len(more.encode())].decode(errors="ignore")
        yield f"{kept}{more}"


def package_identifier(identifier: str) -> premis.Identifier:
    """Return the name by which events speak of the whole package."""
    return premis.Identifier("local", identifier)


def file_identifier(identifier: str, file: PackageFile) -> premis.Identifier:
    """Return the name by which events speak of a file of the package `identifier`. It has each byte of its own name."""
    return premis.Identifier("local", f"{identifier}/{href(path_of(file.kind, file.name))}")


@cache
def _schema(name: str) -> bytes:
    return resources.files("warcmill.formats").joinpath("schemas", name).read_bytes()


def _check_names(files: Sequence[PackageFile]) -> None:
    known: dict[Kind, set[str]] = {kind: set() for kind in KINDS}
    for file in files:
        if file.name in ("", ".", "..") or "/" in file.name or "\0" in file.name:
            raise BadInput(ascii(file.name), f"is not a name that a file in {file.kind} can have; look at its marker")
        if file.name in known[file.kind]:
            raise BadInput(ascii(file.name), f"would be in {file.kind} of one package twice; look at its marker")
        known[file.kind].add(file.name)


def _schema_chunks(name: str) -> Iterator[bytes]:
    yield _schema(name)


def _path_bytes(member: PackageFile | PackageDocument) -> bytes:
    return member.path.encode()


def _listed(created: str, document: PackageDocument) -> mets.MetsFile:
    return mets.MetsFile(document.path, document.size, document.sha512, created, _XML)


def _representation(package: Package, kind: Kind) -> Iterator[bytes]:
    files = (_data(file) for file in package.files if file.kind == kind)
    return mets.representation(package.header, kind, files)


def _data(file: PackageFile) -> mets.MetsFile:
    mime = _MIME.get(file.name.rpartition(".")[2], _OTHER_MIME)
    known = file.format
    facts = file.size, file.sha512, file.created, mime, known.name, known.version, known.pronom
    return _made(mets.MetsFile, (f"data/{file.renamed or file.name}", *facts))


def _premis(package: Package) -> Iterator[bytes]:
    identifier = package.header.identifier
    whole = package_identifier(identifier)
    named = (whole, *_ark(package.ark))
    files = (_object(identifier, whole, file) for file in package.files)
    return premis.write(premis.Representation(named), files, package.events, package.agents)


def _object(identifier: str, whole: premis.Identifier, file: PackageFile) -> premis.PremisFile:
    location = named = path_of(file.kind, href(file.name))  # of a path, only the name has what is encoded
    if file.renamed:
        location = path_of(file.kind, href(file.renamed))
    local = _made(premis.Identifier, ("local", f"{identifier}/{named}"))
    names = (local, _made(premis.Identifier, ("ARK", file.ark))) if file.ark else (local,)
    return _made(premis.PremisFile, (names, file.size, file.sha512, file.format, file.name, location, whole))


def _ark(ark: str) -> tuple[premis.Identifier, ...]:
    return (premis.Identifier("ARK", ark),) if ark else ()
