"""METS.xml of an E-ARK package and of each of its representations (CSIP and SIP 2.2.0, METS 1.12). Pure.

A package's METS names its metadata, its schemas and the METS of each representation; that one names the files. So a
package of many files has one small document and one large, and the large one is written file by file.
The numbers in comments are requirements of E-ARK CSIP and SIP. Its vocabularies fix some words, and leave others open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from warcmill.formats.sip.xml import DECLARATION, chunks, escape, href

PROFILE: Final = "https://earksip.dilcis.eu/profile/E-ARK-SIP-v2-2-0.xml"  # SIP2
_TYPE: Final = "Websites"  # CSIP2, of the vocabulary of content categories
_CONTENT_INFORMATION_TYPE: Final = "warcmill_webarchive_v1_0"  # docs/content-information-type.md
_CONTENT_TYPE: Final = (  # CSIP4, CSIP5
    f'csip:CONTENTINFORMATIONTYPE="OTHER" csip:OTHERCONTENTINFORMATIONTYPE="{_CONTENT_INFORMATION_TYPE}"'
)
_REPLACES: Final = "REPLACES"  # type of altRecordID: the specification has none for a package made instead of another
_DESCRIPTIVE: Final = 'MDTYPE="DC" MDTYPEVERSION="1.1"'
_PRESERVATION: Final = 'MDTYPE="PREMIS" MDTYPEVERSION="3.0"'
# The schema that knows all the others: METS, xlink and the two extensions.
SCHEMA: Final = "warcmill-sip.xsd"
_NAMESPACES: Final = (
    'xmlns="http://www.loc.gov/METS/" xmlns:xlink="http://www.w3.org/1999/xlink"'
    ' xmlns:csip="https://DILCIS.eu/XML/METS/CSIPExtensionMETS" xmlns:sip="https://DILCIS.eu/XML/METS/SIPExtensionMETS"'
    ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
)


class MetsFile(NamedTuple):  # cheap to make: a package has 100,000 of them
    """A file as METS lists it: `path` from the folder of the METS that lists it, not percent-encoded."""

    path: str
    size: int
    sha512: str
    created: str
    mime: str
    format_name: str = ""
    format_version: str = ""
    pronom: str = ""


class Header(Struct, frozen=True):
    """Who made a package and when. `replaces` is the package that this one is made instead of."""

    identifier: str
    created: str
    software: str
    version: str
    organisation: str = ""
    organisation_code: str = ""
    agreement: str = ""
    replaces: str = ""


def package(
    header: Header,
    descriptive: MetsFile,
    preservation: MetsFile,
    schemas: Iterable[MetsFile],
    representations: Iterable[MetsFile],
) -> Iterator[bytes]:
    """Yield the root METS. `representations` are the METS of each, `representations/NAME/METS.xml`."""
    return chunks(_package(header, descriptive, preservation, list(schemas), list(representations)))


def representation(header: Header, name: str, files: Iterable[MetsFile]) -> Iterator[bytes]:
    """Yield the METS of the representation `name`, which lists its files."""
    return chunks(_representation(header, name, files))


def _package(
    header: Header,
    descriptive: MetsFile,
    preservation: MetsFile,
    schemas: list[MetsFile],
    representations: list[MetsFile],
) -> Iterator[str]:
    yield from _root(header, header.identifier, "schemas/")
    yield f'  <dmdSec ID="dmd" CREATED="{escape(descriptive.created)}" STATUS="CURRENT">\n'
    yield f"    {_md_ref('dmd-ref', descriptive, _DESCRIPTIVE)}\n  </dmdSec>\n"
    yield '  <amdSec ID="amd">\n'
    yield f'    <digiprovMD ID="digiprov" CREATED="{escape(preservation.created)}" STATUS="CURRENT">\n'
    yield f"      {_md_ref('digiprov-ref', preservation, _PRESERVATION)}\n    </digiprovMD>\n  </amdSec>\n"
    yield '  <fileSec ID="files">\n'
    yield from _group("schemas", "Schemas", schemas)
    for mets in representations:
        name = _name(mets)
        yield from _group(f"representation-{name}", f"Representations/{name}", [mets])  # CSIP114
    yield "  </fileSec>\n"
    yield from _struct_map(header, representations, has_schemas=bool(schemas))
    yield "</mets>\n"


def _representation(header: Header, name: str, files: Iterable[MetsFile]) -> Iterator[str]:
    yield from _root(header, name, "../../schemas/")
    yield f'  <fileSec ID="{name}-files">\n'
    yield from _group(f"{name}-data", "Data", files)
    yield f"""\
  </fileSec>
  <structMap ID="{name}-map" TYPE="PHYSICAL" LABEL="CSIP">
    <div ID="{name}-root" LABEL="{name}">
      <div ID="{name}-data-div" LABEL="Data"><fptr FILEID="{name}-data"/></div>
    </div>
  </structMap>
</mets>
"""


def _root(header: Header, identifier: str, schemas: str) -> Iterator[str]:
    yield DECLARATION
    yield f'<mets {_namespaces(schemas)}\n    OBJID="{escape(identifier)}" TYPE="{_TYPE}"'
    yield f' PROFILE="{PROFILE}"\n    {_CONTENT_TYPE}>\n'
    status = "REPLACEMENT" if header.replaces else "NEW"  # SIP3
    yield f'  <metsHdr CREATEDATE="{escape(header.created)}" RECORDSTATUS="{status}" csip:OAISPACKAGETYPE="SIP">\n'
    yield '    <agent ROLE="CREATOR" TYPE="OTHER" OTHERTYPE="SOFTWARE">'  # CSIP10 to CSIP16
    yield f"<name>{escape(header.software)}</name>"
    yield f'<note csip:NOTETYPE="SOFTWARE VERSION">{escape(header.version)}</note></agent>\n'
    if header.organisation:
        code = header.organisation_code
        note = code and f'<note csip:NOTETYPE="IDENTIFICATIONCODE">{escape(code)}</note>'
        name = f"<name>{escape(header.organisation)}</name>"
        yield f'    <agent ROLE="CREATOR" TYPE="ORGANIZATION">{name}{note}</agent>\n'  # SIP15 to SIP20
    if header.agreement:
        yield f'    <altRecordID TYPE="SUBMISSIONAGREEMENT">{escape(header.agreement)}</altRecordID>\n'  # SIP5
    if header.replaces:
        yield f'    <altRecordID TYPE="{_REPLACES}">{escape(header.replaces)}</altRecordID>\n'
    yield "  </metsHdr>\n"


def _namespaces(schemas: str) -> str:
    """Return the declarations of a METS root whose schemas are in the folder `schemas`, relative to it."""
    located = f"http://www.loc.gov/METS/ {schemas}mets.xsd http://www.w3.org/1999/xlink {schemas}xlink.xsd"
    return f'{_NAMESPACES}\n    xsi:schemaLocation="{located}"'


def _group(identifier: str, use: str, files: Iterable[MetsFile]) -> Iterator[str]:
    kind = f" {_CONTENT_TYPE}" if use.startswith("Representations/") else ""  # CSIP62, CSIP63
    yield f'    <fileGrp ID="{identifier}" USE="{use}"{kind}>\n'
    for number, (path, size, sha512, created, mime, *format_) in enumerate(files, 1):
        yield (
            f'      <file ID="{identifier}-{number}" {_facts(size, sha512, created, mime)}{_format(*format_)}>'
            f'<FLocat LOCTYPE="URL" xlink:type="simple" xlink:href="{href(path)}"/></file>\n'
        )
    yield "    </fileGrp>\n"


def _struct_map(header: Header, representations: list[MetsFile], *, has_schemas: bool) -> Iterator[str]:
    yield '  <structMap ID="map" TYPE="PHYSICAL" LABEL="CSIP">\n'
    yield f'    <div ID="root" LABEL="{escape(header.identifier)}">\n'
    yield '      <div ID="metadata-div" LABEL="Metadata" DMDID="dmd" ADMID="digiprov"/>\n'
    if has_schemas:
        yield '      <div ID="schemas-div" LABEL="Schemas"><fptr FILEID="schemas"/></div>\n'
    for mets in representations:
        name = _name(mets)
        yield (
            f'      <div ID="representation-{name}-div" LABEL="Representations/{name}">'
            f'<mptr LOCTYPE="URL" xlink:type="simple" xlink:href="{href(mets.path)}"'
            f' xlink:title="representation-{name}"/></div>\n'  # CSIP107 to CSIP112
        )
    yield "    </div>\n  </structMap>\n"


def _name(mets_of_representation: MetsFile) -> str:
    return mets_of_representation.path.split("/")[-2]


def _md_ref(identifier: str, file: MetsFile, kind: str) -> str:
    where = f'LOCTYPE="URL" xlink:type="simple" xlink:href="{href(file.path)}"'
    return f'<mdRef ID="{identifier}" {where} {kind} {_facts(file.size, file.sha512, file.created, file.mime)}/>'


def _facts(size: int, sha512: str, created: str, mime: str) -> str:
    return f'MIMETYPE="{mime}" SIZE="{size}" CREATED="{_escaped(created)}" CHECKSUM="{sha512}" CHECKSUMTYPE="SHA-512"'


_escaped = lru_cache(maxsize=64)(escape)  # the files of a stage have one time


@lru_cache(maxsize=64)  # most files of a package are of one or two formats
def _format(name: str, version: str, pronom: str) -> str:
    """SIP32 to SIP35."""
    named = name and f' sip:FILEFORMATNAME="{escape(name)}"'
    versioned = version and f' sip:FILEFORMATVERSION="{escape(version)}"'
    key = pronom and f' sip:FORMATREGISTRY="PRONOM" sip:FORMATREGISTRYKEY="{escape(pronom)}"'
    return f"{named}{versioned}{key}"
