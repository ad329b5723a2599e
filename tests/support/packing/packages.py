"""E-ARK packages made with the writers, and written to a folder, as a SIP holds them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from lxml import etree

from warcmill.formats.sip import eark, mets, premis, xml
from warcmill.formats.sip.tar import PackageDocument

IDENTIFIER = "weekly.20261121081735.final"
SOFTWARE = premis.Identifier("local", "Warcmill 0.9")
GZIP = premis.Format("GZIP Format", pronom="x-fmt/266")
# A name of 255 bytes; NFC beside NFD, and upper beside lower case: two files each.
HOSTILE = (
    "100%25 & <done> + 'it' \"all\".warc.gz",
    "a line\nbreak\r\tand a tab.warc.gz",
    "caf\u00e9.warc.gz",
    "cafe\u0301.warc.gz",
    "CAF\u00c9.warc.gz",
    "100_25 & <done> + 'it' \"all\".warc.gz",
    "\u00fc" * 123 + "x.warc.gz",
    "control \x01\x7f.warc",
    "-rf ~user #1?a=b;c:d@e[f]{g}|h\\i^j`k.warc.gz",
    "..warc.gz",
)


def payload(kind: eark.Kind, name: str, data: bytes) -> eark.PackageFile:
    sha512 = hashlib.sha512(data).hexdigest()
    ark = f"ark:/99999/fk4{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return eark.PackageFile(kind, name, len(data), sha512, "2026-11-21T08:17:35Z", GZIP, ark)


def package(files: Mapping[tuple[eark.Kind, str], bytes], *, replaces: str = "") -> eark.Package:
    """A package of these files, with one event of each kind of outcome."""
    held = eark.placed(payload(kind, name, data) for (kind, name), data in files.items())
    header = mets.Header(
        identifier=IDENTIFIER,
        created="2026-11-21T09:00:00Z",
        software="Warcmill",
        version="0.9",
        organisation="National Library & Archive",
        organisation_code="XX-NL",
        agreement="agreement 2026/1",
        replaces=replaces,
    )
    described = xml.Description(
        title=("The <weekly> crawl & more",), creator=("Web archiving team",), source=("http://docs.example/",)
    )
    return eark.Package(header, described, held, events(held), agents(), ark="ark:/99999/fk4package")


def events(files: list[eark.PackageFile]) -> list[premis.PremisEvent]:
    whole = (eark.package_identifier(IDENTIFIER),)
    first = tuple(eark.file_identifier(IDENTIFIER, file) for file in files[:1])
    hit = premis.PremisOutcome("hit", ("Eicar-Test at offset 1234, http://a.example/?a=1&b=<2>",))
    return [
        event(premis.EventType.CAPTURE, whole, premis.PremisOutcome("success")),
        event(premis.EventType.MESSAGE_DIGEST_CALCULATION, whole, premis.PremisOutcome("success")),
        event(premis.EventType.VALIDATION, first, premis.PremisOutcome("fail", ("cut at offset 10",))),
        event(
            premis.EventType.VIRUS_CHECK,
            first,
            hit,
            premis.PremisOutcome("not scanned", ("coding x: 1", "too large: 2")),
        ),
        event(premis.EventType.FORMAT_IDENTIFICATION, whole),
    ]


def event(
    kind: premis.EventType, objects: tuple[premis.Identifier, ...], *outcomes: premis.PremisOutcome
) -> premis.PremisEvent:
    identifier = premis.Identifier("local", f"{IDENTIFIER}/{kind.name.lower()}")
    return premis.PremisEvent(identifier, kind, "2026-11-21T08:30:00Z", "a step", outcomes, (SOFTWARE,), objects)


def agents() -> list[premis.Agent]:
    library = premis.Identifier("local", "National Library")
    return [
        premis.Agent(SOFTWARE, "Warcmill", "software", "0.9", "packaged it"),
        premis.Agent(library, "National Library & Archive", "organization"),
    ]


def write(made: eark.Package, folder: Path, files: Mapping[tuple[eark.Kind, str], bytes]) -> Path:
    """Write a package under `folder`; its own folder."""
    home = folder / made.header.identifier
    for member in eark.members(made.files, eark.documents(made)):
        path = home / member.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(member, PackageDocument):
            path.write_bytes(b"".join(member.chunks()))
        else:
            path.write_bytes(files[member.kind, member.name])
    return home


def schema_of(home: Path) -> etree.XMLSchema:
    """The METS schema that a package carries, parsed without a network."""
    parser = etree.XMLParser(no_network=True, resolve_entities=False, load_dtd=False)
    return etree.XMLSchema(etree.parse(home / "schemas" / mets.SCHEMA, parser))
