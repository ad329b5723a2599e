"""The ARKs of a stage's files and of its SIP: derived, or given by a minter and published before they are used."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from warcmill import layout
from warcmill.clients import minter
from warcmill.errors import BadInput, Conflict
from warcmill.formats.sip import ark
from warcmill.markers.claim import Claim
from warcmill.markers.facts.package import GivenArks, Packaged
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Item, Key, Launch, Outcome, Stage
from warcmill.package.sips import Terms

log = logging.getLogger(__name__)
GIVE = "package.GiveArks"


class ArkFile(NamedTuple):
    """A stored file with its own name."""

    name: str
    stored: FileRef


def of_files(
    state: MarkerStore, launch: Launch, stage: Stage, files: Sequence[ArkFile], terms: Terms
) -> Mapping[str, str]:
    """The ARKs of a stage's files by stored path; '' where the configuration has no ARKs.

    An ARK that a minter gave once is kept and used for ever, whatever the configuration is now.
    """
    given = state.read(_key(launch, stage))
    if given is None and terms.minter:
        given = state.require(_published(state, launch, stage, files, terms.minter))
    if given:
        known = GivenArks.from_claim(given.claim)
        return {file.stored.path: _given(known, launch, stage, file.stored) for file in files}
    return {stored.path: _derived(terms, launch, name, stored.sha512 or "") for name, stored in files}


def of_sip(state: MarkerStore, launch: Launch, stage: Stage, bag: str, files: Sequence[ArkFile], terms: Terms) -> str:
    """The ARK of the SIP of a stage: it names the content, so a SIP that is built again keeps it."""
    given = state.read(_key(launch, stage))
    if given:
        return GivenArks.from_claim(given.claim).sip
    content = hashlib.sha512()
    for file in sorted(files, key=lambda one: one.stored.path):
        content.update(f"{file.stored.sha512}  {file.name}\0".encode())
    return _derived(terms, launch, bag, content.hexdigest())


def zone_beside(state: MarkerStore, launch: Launch, stage: Stage, covers: Sequence[Stage], terms: Terms) -> str:
    """Where the ARK of a SIP was given, and those of a stage in it are derived: the `NAAN/shoulder` of these; else ''.

    A minter that was switched on or off between two stages makes such a SIP.
    """
    given = {one: state.read(_key(launch, one)) is not None for one in (stage, *covers)}
    is_mixed = bool(terms.naan) and given[stage] and not all(given.values())
    return f"{terms.naan}/{terms.shoulder}" if is_mixed else ""


def zone_of(state: MarkerStore, launch: Launch, stage: Stage, sip: Packaged) -> tuple[str, str] | None:
    """The NAAN and the shoulder of the derived ARKs in the SIP of a stage; None when it has none that are derived."""
    if sip.zone:
        naan, _, shoulder = sip.zone.partition("/")
        return naan, shoulder
    is_derived = bool(sip.ark) and state.read(_key(launch, stage)) is None
    return ark.zone_of(sip.ark) if is_derived else None


def _derived(terms: Terms, launch: Launch, name: str, sha512: str) -> str:
    return ark.derived(terms.naan, terms.shoulder, launch.job, launch.id, name, sha512) if terms.naan else ""


def _given(known: GivenArks, launch: Launch, stage: Stage, file: FileRef) -> str:
    try:
        return known.files[file.path, file.sha512]
    except KeyError:
        name = layout.marker_name(_key(launch, stage))
        redo = f"'warcmill redo {launch.job} {launch.id} {name}' has new ones given"
        why = f"{name} has no ARK for these bytes of it; {redo}"
        raise BadInput(f"store:{file.path}", why) from None


def _published(state: MarkerStore, launch: Launch, stage: Stage, files: Sequence[ArkFile], url: str) -> Key:
    """Have ARKs given, and publish them; the first who does so has given them for all."""
    key = _key(launch, stage)
    first, *rest = minter.arks(url, len(files) + 1)
    items = tuple(
        Item(file.stored, Outcome.OK, facts={"ark": one})
        for file, one in zip(sorted(files, key=lambda file: file.stored.path), rest, strict=True)
    )
    try:
        state.publish(key, Claim(key, items=items, facts={"sip": first, "minter": minter.shown(url)}))
    except Conflict:
        log.info("%s: another worker was given ARKs first; they are used", layout.marker_name(key))
    return key


def _key(launch: Launch, stage: Stage) -> Key:
    return layout.key(GIVE, launch, stage=stage)
