"""Judge a PREMIS 3.0 document by the data dictionary: which elements, in which order, how often, and what they name.

There is no schema to install, so the units of PREMIS Data Dictionary 3.0 (2015) that a package can have are written
down here, from the dictionary and not from the writer. An element that is not in the table is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from lxml import etree

SPACE = "{http://www.loc.gov/premis/v3}"
XSI_TYPE = "{http://www.w3.org/2001/XMLSchema-instance}type"
LOC = "http://id.loc.gov/vocabulary/preservation/"

# Unit: its parts in order, each with "" (once), "?" (at most once), "*" or "+".
IDENTIFIER = "{0}Type {0}Value"
UNITS = {
    "premis": "object+ event* agent* rights*",
    "file": "objectIdentifier+ preservationLevel* significantProperties* objectCharacteristics+ originalName? storage*"
    " signatureInformation* relationship* linkingEventIdentifier* linkingRightsStatementIdentifier*",
    "representation": "objectIdentifier+ preservationLevel* significantProperties* originalName? storage*"
    " relationship* linkingEventIdentifier* linkingRightsStatementIdentifier*",
    "objectIdentifier": IDENTIFIER.format("objectIdentifier"),
    "objectCharacteristics": "compositionLevel? fixity* size? format+ creatingApplication* inhibitors*"
    " objectCharacteristicsExtension*",
    "fixity": "messageDigestAlgorithm messageDigest messageDigestOriginator?",
    "format": "formatDesignation? formatRegistry? formatNote*",
    "formatDesignation": "formatName formatVersion?",
    "formatRegistry": "formatRegistryName formatRegistryKey formatRegistryRole?",
    "storage": "contentLocation? storageMedium?",
    "contentLocation": "contentLocationType contentLocationValue",
    "relationship": "relationshipType relationshipSubType relatedObjectIdentifier+ relatedEventIdentifier*"
    " relatedEnvironmentPurpose* relatedEnvironmentCharacteristic?",
    "relatedObjectIdentifier": IDENTIFIER.format("relatedObjectIdentifier") + " relatedObjectSequence?",
    "event": "eventIdentifier eventType eventDateTime eventDetailInformation* eventOutcomeInformation*"
    " linkingAgentIdentifier* linkingObjectIdentifier*",
    "eventIdentifier": IDENTIFIER.format("eventIdentifier"),
    "eventDetailInformation": "eventDetail? eventDetailExtension*",
    "eventOutcomeInformation": "eventOutcome? eventOutcomeDetail*",
    "eventOutcomeDetail": "eventOutcomeDetailNote? eventOutcomeDetailExtension*",
    "linkingAgentIdentifier": IDENTIFIER.format("linkingAgentIdentifier") + " linkingAgentRole*",
    "linkingObjectIdentifier": IDENTIFIER.format("linkingObjectIdentifier") + " linkingObjectRole*",
    "agent": "agentIdentifier+ agentName* agentType? agentVersion? agentNote* agentExtension*"
    " linkingEventIdentifier* linkingRightsStatementIdentifier*",
    "agentIdentifier": IDENTIFIER.format("agentIdentifier"),
}
# Of the Library of Congress, each with its code: the terms a web archive's package may use.
TERMS = {
    "eventType": {
        "capture": "cap",
        "message digest calculation": "mes",
        "fixity check": "fix",
        "virus check": "vir",
        "validation": "val",
        "format identification": "for",
        "replication": "rep",
        "information package creation": "ipc",
    },
    "eventOutcome": {"success": "suc", "fail": "fai", "warning": "war"},
    "agentType": {"software": "sof", "organization": "org", "person": "per", "hardware": "har"},
}


def faults(document: bytes) -> list[str]:
    """What is wrong with a document; an empty list is praise."""
    root = etree.fromstring(document, etree.XMLParser(resolve_entities=False, no_network=True))
    if root.tag != f"{SPACE}premis" or root.get("version") != "3.0":
        return [f"the root is {root.tag}, version {root.get('version')}"]
    return [*_structure(root), *_terms(root), *_names(root)]


def _structure(element: etree._Element) -> Iterator[str]:
    unit = _unit(element)
    children = [_local(child) for child in element]
    if unit not in UNITS:
        if children or not (element.text or "").strip():
            yield f"{unit} is not a unit with parts, or has no value"
        return
    if (element.text or "").strip():
        yield f"{unit} has text beside its parts"
    pattern = "".join(f"(?:{part.rstrip('?*+')} ){part[len(part.rstrip('?*+')) :]}" for part in UNITS[unit].split())
    if not children or not re.fullmatch(pattern, "".join(f"{child} " for child in children)):
        yield f"{unit} has {children}, not {UNITS[unit]}"
    for child in element:
        yield from _structure(child)


def _terms(root: etree._Element) -> Iterator[str]:
    for name, terms in TERMS.items():
        for element in root.iter(f"{SPACE}{name}"):
            uri = LOC + name
            expected = {"authority": name, "authorityURI": uri, "valueURI": f"{uri}/{terms.get(element.text)}"}
            if element.text in terms and dict(element.attrib) != expected:
                yield f"{name} {element.text} has {dict(element.attrib)}"
            if element.text not in terms and (element.attrib or name == "eventType"):
                yield f"{name} {element.text} is no term"
    for element in root.iter(f"{SPACE}eventDateTime"):
        datetime.strptime(element.text or "", "%Y-%m-%dT%H:%M:%S%z")
    for element in root.iter(f"{SPACE}messageDigest"):
        if not re.fullmatch("[0-9a-f]{128}", element.text or ""):
            yield f"{element.text} is no SHA-512"


def _names(root: etree._Element) -> Iterator[str]:
    for what, links in (("object", ("linkingObject", "relatedObject")), ("agent", ("linkingAgent",)), ("event", ())):
        known = [_pair(one) for one in root.iter(f"{SPACE}{what}Identifier")]
        if len(set(known)) < len(known):
            yield f"two {what}s have one name"
        for link in links:
            named = {_pair(one) for one in root.iter(f"{SPACE}{link}Identifier")}
            yield from (f"{link} {pair} is nowhere" for pair in sorted(named - set(known)))


def _pair(identifier: etree._Element) -> tuple[str, str]:
    return (identifier[0].text or "", identifier[1].text or "")


def _unit(element: etree._Element) -> str:
    return element.get(XSI_TYPE, "?") if _local(element) == "object" else _local(element)


def _local(element: etree._Element) -> str:
    return str(element.tag).removeprefix(SPACE)
