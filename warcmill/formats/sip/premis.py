"""A writer of PREMIS 3.0: the events of a package's files, the agent of each, and its outcome. Pure.

All is given: identifiers, times, agents. The same values give the same bytes. The order of elements is the
schema's (PREMIS Data Dictionary 3.0, 2015), types and outcomes are terms of the Library of Congress where it has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from warcmill.formats.sip.xml import DECLARATION, chunks, escape

NAMESPACE = "http://www.loc.gov/premis/v3"
VOCABULARY = "http://id.loc.gov/vocabulary/preservation"
PRONOM = "PRONOM"


class EventType(Enum):
    """The kind of a step, with its code at id.loc.gov/vocabulary/preservation/eventType."""

    CAPTURE = ("capture", "cap")
    MESSAGE_DIGEST_CALCULATION = ("message digest calculation", "mes")
    FIXITY_CHECK = ("fixity check", "fix")
    VIRUS_CHECK = ("virus check", "vir")
    VALIDATION = ("validation", "val")
    FORMAT_IDENTIFICATION = ("format identification", "for")
    REPLICATION = ("replication", "rep")
    PACKAGING = ("information package creation", "ipc")


OUTCOMES = {"success": "suc", "fail": "fai", "warning": "war"}  # of VOCABULARY/eventOutcome
AGENT_TYPES = {"software": "sof", "organization": "org", "person": "per"}  # of VOCABULARY/agentType


class Identifier(NamedTuple):  # cheap to make, like File: a package has 100,000 of them
    """A name of a thing, and what kind of name: `ARK`, `local`."""

    kind: str
    value: str


class Format(Struct, frozen=True):
    """A file's format: its name, its version if it has one, and its key in PRONOM (`fmt/1355`) if it is known."""

    name: str
    version: str = ""
    pronom: str = ""


class Representation(Struct, frozen=True):
    """The package as a whole: the object that events without a file speak of."""

    identifiers: tuple[Identifier, ...]


class PremisFile(NamedTuple):
    """A file of the package: `name` as its engine gave it, `location` as a URI reference, whole of `part_of`."""

    identifiers: tuple[Identifier, ...]
    size: int
    sha512: str
    format: Format
    name: str
    location: str
    part_of: Identifier


class PremisOutcome(Struct, frozen=True):
    """One outcome of an event and what it rests on. `success`, `fail` and `warning` are terms of the vocabulary."""

    word: str
    notes: tuple[str, ...] = ()


class PremisEvent(Struct, frozen=True):
    """A deed at a time, with every outcome, the agents that did it and the objects it was done to."""

    identifier: Identifier
    type: EventType
    time: str
    detail: str
    outcomes: tuple[PremisOutcome, ...]
    agents: tuple[Identifier, ...]
    objects: tuple[Identifier, ...]


class Agent(Struct, frozen=True):
    """Who did it: `software` with its version, an `organization`, a `person`."""

    identifier: Identifier
    name: str
    type: str
    version: str = ""
    note: str = ""


def write(
    package: Representation, files: Iterable[PremisFile], events: Iterable[PremisEvent], agents: Iterable[Agent]
) -> Iterator[bytes]:
    """Yield the document: objects, then events, then agents, each in the order given."""
    return chunks(_pieces(package, files, events, agents))


def _pieces(
    package: Representation, files: Iterable[PremisFile], events: Iterable[PremisEvent], agents: Iterable[Agent]
) -> Iterator[str]:
    yield DECLARATION
    yield f'<premis xmlns="{NAMESPACE}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" version="3.0">\n'
    yield f'  <object xsi:type="representation">\n{_names("object", package.identifiers)}  </object>\n'
    yield from map(_file, files)
    yield from map(_event, events)
    yield from map(_agent, agents)
    yield "</premis>\n"


def _file(file: PremisFile) -> str:
    identifiers, size, sha512, known, name, location, part_of = file
    return f"""\
  <object xsi:type="file">
{_names("object", identifiers)}\
    <objectCharacteristics>
      <fixity><messageDigestAlgorithm>SHA-512</messageDigestAlgorithm>\
<messageDigest>{sha512}</messageDigest></fixity>
      <size>{size}</size>
{_format(known)}\
    </objectCharacteristics>
    <originalName>{escape(name)}</originalName>
    <storage><contentLocation><contentLocationType>URI</contentLocationType>\
<contentLocationValue>{escape(location)}</contentLocationValue></contentLocation></storage>
    <relationship><relationshipType>structural</relationshipType>\
<relationshipSubType>is part of</relationshipSubType>{_part_of(part_of)}</relationship>
  </object>
"""


@lru_cache(maxsize=64)  # most files of a package are of one or two formats
def _format(known: Format) -> str:
    version = known.version and f"<formatVersion>{escape(known.version)}</formatVersion>"
    registry = known.pronom and (
        f"<formatRegistry><formatRegistryName>{PRONOM}</formatRegistryName>"
        f"<formatRegistryKey>{escape(known.pronom)}</formatRegistryKey></formatRegistry>"
    )
    name = f"<formatDesignation><formatName>{escape(known.name)}</formatName>{version}</formatDesignation>"
    return f"      <format>{name}{registry}</format>\n"


@lru_cache(maxsize=1)
def _part_of(whole: Identifier) -> str:
    return _name("relatedObject", whole)


def _event(event: PremisEvent) -> str:
    label, code = event.type.value
    return "".join(
        (
            f"  <event>\n{_names('event', (event.identifier,))}",
            f"    {_term('eventType', 'eventType', label, code)}\n",
            f"    <eventDateTime>{escape(event.time)}</eventDateTime>\n",
            _detail(event.detail),
            *map(_outcome, event.outcomes),
            *(f"    {_name('linkingAgent', agent)}\n" for agent in event.agents),
            *(f"    {_name('linkingObject', linked)}\n" for linked in event.objects),
            "  </event>\n",
        )
    )


def _detail(text: str) -> str:
    detail = f"<eventDetail>{escape(text)}</eventDetail>"
    return text and f"    <eventDetailInformation>{detail}</eventDetailInformation>\n"


def _outcome(outcome: PremisOutcome) -> str:
    notes = (f"<eventOutcomeDetailNote>{escape(note)}</eventOutcomeDetailNote>" for note in outcome.notes)
    details = (f"      <eventOutcomeDetail>{note}</eventOutcomeDetail>\n" for note in notes)
    word = _term("eventOutcome", "eventOutcome", outcome.word, OUTCOMES.get(outcome.word))
    return f"    <eventOutcomeInformation>\n      {word}\n{''.join(details)}    </eventOutcomeInformation>\n"


def _agent(agent: Agent) -> str:
    return "".join(
        (
            f"  <agent>\n{_names('agent', (agent.identifier,))}",
            f"    <agentName>{escape(agent.name)}</agentName>\n",
            f"    {_term('agentType', 'agentType', agent.type, AGENT_TYPES.get(agent.type))}\n",
            agent.version and f"    <agentVersion>{escape(agent.version)}</agentVersion>\n",
            agent.note and f"    <agentNote>{escape(agent.note)}</agentNote>\n",
            "  </agent>\n",
        )
    )


def _term(element: str, vocabulary: str, label: str, code: str | None) -> str:
    if code is None:
        return f"<{element}>{escape(label)}</{element}>"
    uri = f"{VOCABULARY}/{vocabulary}"
    attributes = f'authority="{vocabulary}" authorityURI="{uri}" valueURI="{uri}/{code}"'
    return f"<{element} {attributes}>{escape(label)}</{element}>"


def _names(what: str, identifiers: Iterable[Identifier]) -> str:
    return "".join(f"    {_name(what, identifier)}\n" for identifier in identifiers)


def _name(what: str, identifier: Identifier) -> str:
    before, after = _around(what, identifier.kind)
    return f"{before}{escape(identifier.value)}{after}"


@lru_cache(maxsize=64)  # a package has few kinds of names, and 100,000 of each
def _around(what: str, kind: str) -> tuple[str, str]:
    """The text before and after the value of an identifier."""
    tag = f"{what}Identifier"
    return f"<{tag}><{tag}Type>{escape(kind)}</{tag}Type><{tag}Value>", f"</{tag}Value></{tag}>"
