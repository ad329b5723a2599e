"""formats/premis: every outcome is written, and the document is what the data dictionary asks for."""

from __future__ import annotations

import pytest
from lxml import etree
from msgspec.structs import replace
from packing.packages import GZIP, HOSTILE, SOFTWARE, agents, event
from packing.premis_checker import SPACE, faults

from warcmill.formats.sip import premis

WHOLE = premis.Identifier("local", "daily.20161019234428.final")
ARK = premis.Identifier("ARK", "ark:/99999/fk4x")


def file(name: str = "a.warc.gz", form: premis.Format = GZIP) -> premis.PremisFile:
    names = (premis.Identifier("local", name), premis.Identifier("ARK", f"ark:/99999/{name}"))
    return premis.PremisFile(names, 9, "ab" * 64, form, name, "representations/warcs/data/a", WHOLE)


def document(files: list[premis.PremisFile], events: list[premis.PremisEvent]) -> bytes:
    return b"".join(premis.write(premis.Representation((WHOLE, ARK)), files, events, agents()))


def texts(written: bytes, element: str) -> list[str]:
    return [found.text or "" for found in etree.fromstring(written).iter(f"{SPACE}{element}")]


def test_a_whole_document_is_as_the_dictionary_has_it() -> None:
    events = [event(kind, (WHOLE,), premis.PremisOutcome("success", ("all", "of it"))) for kind in premis.EventType]
    written = document([file(), file("b.warc", premis.Format("WARC", "1.1", "fmt/1281"))], events)
    assert faults(written) == []
    assert texts(written, "size") == ["9", "9"]
    assert texts(written, "messageDigest") == ["ab" * 64] * 2
    assert texts(written, "formatRegistryKey") == ["x-fmt/266", "fmt/1281"]
    assert texts(written, "formatVersion") == ["1.1"]
    assert texts(written, "agentVersion") == ["0.9"]


def test_every_outcome_and_every_note_is_written() -> None:
    outcomes = (
        premis.PremisOutcome("hit", ("Eicar-Test at offset 12 of a.warc.gz", "Eicar-Test at offset 99 of a.warc.gz")),
        premis.PremisOutcome("not scanned", ("over StreamMaxLength: 3",)),
        premis.PremisOutcome("warning", ('accepted: "a test page" <site>',)),
    )
    written = document([file()], [event(premis.EventType.VIRUS_CHECK, (WHOLE,), *outcomes)])
    assert faults(written) == []
    assert texts(written, "eventOutcome") == ["hit", "not scanned", "warning"]
    assert texts(written, "eventOutcomeDetailNote") == [note for outcome in outcomes for note in outcome.notes]


def test_an_event_without_an_outcome_and_a_package_without_a_file() -> None:
    bare = replace(event(premis.EventType.CAPTURE, (WHOLE,)), detail="")
    assert faults(document([], [bare])) == []


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_any_kind_are_read_back_as_they_are(name: str) -> None:
    written = document([file(name)], [])
    assert faults(written) == []
    assert texts(written, "originalName") == [name.replace("\x01", "\ufffd")]


def test_the_same_values_give_the_same_bytes() -> None:
    assert document([file()], []) == document([file()], [])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'version="3.0"', b'version="2.2"'),
        (b"<originalName>a.warc.gz</originalName>", b"<originalName/>"),
        (b"eventType", b"eventSort"),
        (b">capture<", b">seizure<"),
        (b"eventType/cap", b"eventType/val"),
        (b"ab</messageDigest>", b"</messageDigest>"),
        (b"<relationshipType>structural</relationshipType>", b""),
        (b"<eventDateTime>2026-11-21T08:30:00Z</eventDateTime>", b""),
        (b"<linkingAgentIdentifierValue>" + SOFTWARE.value.encode(), b"<linkingAgentIdentifierValue>nobody"),
        (b"<linkingObjectIdentifierValue>" + WHOLE.value.encode(), b"<linkingObjectIdentifierValue>nothing"),
        (b"<objectIdentifierValue>a.warc.gz", b"<objectIdentifierValue>" + WHOLE.value.encode()),
        (b"  <agent>", b"  <agent><agentName>before its identifier</agentName>"),
        (b"</premis>", b"<event><eventType>capture</eventType></event></premis>"),
    ],
)
def test_the_checker_notices(old: bytes, new: bytes) -> None:
    """Else the tests above prove nothing."""
    good = document([file()], [event(premis.EventType.CAPTURE, (WHOLE,), premis.PremisOutcome("success"))])
    assert old in good
    assert faults(good.replace(old, new)) != []
