"""The rows of the catalogue for one SIP, from the markers of its launch alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from warcmill import layout
from warcmill.formats import ark
from warcmill.launches import holdings
from warcmill.launches.holdings import StageHoldings
from warcmill.markers.claim import Evidence
from warcmill.markers.facts import GivenArks, Packaged
from warcmill.markers.state import MarkerStore
from warcmill.model import Key, Launch, Stage
from warcmill.package import identifiers
from warcmill.package.identifiers import GIVE
from warcmill.package.sips import BUILD
from warcmill.package.submit import SUBMIT
from warcmill.package.verify import VERIFY

NOT_STORED: Final = "not stored"  # the word of a WARC whose name the store cannot have
_STATES: Final = {BUILD: "packaged", SUBMIT: "submitted", VERIFY: "verified"}  # the last one that is there
STATES: Final = tuple(_STATES.values())
Row = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class RowSet:
    """The rows of one SIP by table, as `catalogue.TABLES` names their columns."""

    launch: Launch
    stage: Stage
    sips: tuple[Row, ...]
    warcs: tuple[Row, ...]
    arks: tuple[Row, ...]
    events: tuple[Row, ...]


def row_set(state: MarkerStore, launch: Launch, stage: Stage) -> RowSet:
    """Return the rows of a SIP. NotReady without its 05, or a marker of a stage that it covers."""
    built = state.require(layout.key(BUILD, launch, stage=stage))
    facts = Packaged.from_claim(built.claim)
    proofs = [built, *_later(state, launch, stage)]
    name, (word, claim) = layout.sip_name(launch, facts.sip.path), _standing(proofs)
    held = [holdings.of_stage(state, launch, covered) for covered in facts.covers]

    def rows(some: Iterable[Row]) -> tuple[Row, ...]:
        return tuple(sorted({(launch.job, launch.id, str(stage), *row) for row in some}))

    file = facts.sip.path, facts.sip.size, str(facts.sip.sha512)
    sip = name, *file, facts.form, " ".join(map(str, facts.covers)), str(facts.before or ""), word, claim
    return RowSet(
        launch,
        stage,
        rows([sip]),
        rows(row for one in held for row in _warcs(one)),
        rows(_arks(state, held, facts, name, identifiers.zone_of(state, launch, stage, facts))),
        rows(_events(state, proofs)),
    )


def standing(state: MarkerStore, launch: Launch, stage: Stage) -> tuple[str, str] | None:
    """The state of a SIP and the digest of the claim of its 05, as its row has them; None without a 05."""
    built = state.read(layout.key(BUILD, launch, stage=stage))
    return _standing([built, *_later(state, launch, stage)]) if built else None


def _standing(proofs: list[Evidence]) -> tuple[str, str]:
    return _STATES[proofs[-1].claim.key.task], proofs[0].digest


def _later(state: MarkerStore, launch: Launch, stage: Stage) -> Iterator[Evidence]:
    """The proofs that came after 05, in order."""
    for task in list(_STATES)[1:]:
        if marker := state.read(layout.key(task, launch, stage=stage)):
            yield marker


def _warcs(held: StageHoldings) -> Iterator[Row]:
    for one in held.holdings:
        yield str(held.stage), one.name, str(one.word), one.stored.path, one.stored.size, str(one.stored.sha512)
    for left in held.unstored:
        yield str(held.stage), left.name, NOT_STORED, "", left.size, ""


def _arks(
    state: MarkerStore, held: list[StageHoldings], sip: Packaged, name: str, zone: tuple[str, str] | None
) -> Iterator[Row]:
    """The ARK of the SIP, and those of its files: as a minter gave them, or derived, stage by stage."""
    if sip.ark:
        yield sip.ark, sip.sip.path, name
    for one in held:
        given = state.read(layout.key(GIVE, one.launch, stage=one.stage))
        known = GivenArks.from_claim(given.claim).files if given else {}
        files = [(holding.name, holding.stored) for holding in one.holdings]
        for own, stored in (*files, *((file.name, file) for file in one.logs)):
            if found := known.get((stored.path, stored.sha512)):
                yield found, stored.path, own
            elif given is None and zone:
                derived = ark.derived(*zone, one.launch.job, one.launch.id, own, str(stored.sha512))
                yield derived, stored.path, own


def _events(state: MarkerStore, proofs: list[Evidence]) -> Iterator[Row]:
    """An event for each marker that the proofs rest on, directly or not, and for themselves."""
    met: dict[str, Evidence | None] = {}
    waiting = [layout.marker_path(proof.claim.key) for proof in proofs]
    while waiting:
        path = waiting.pop()
        if path in met:
            continue
        key = layout.parse_marker_path(path)
        met[path] = marker = state.read(key) if key else None
        waiting += [source.marker for source in marker.claim.inputs] if marker else []
    for path, marker in met.items():
        if marker:
            run = state.run_of(marker)
            done = run.host, run.started, run.finished
            yield path, marker.claim.key.task, _stage(marker.claim.key), marker.digest, *done


def _stage(key: Key) -> str:
    return dict(key.params).get("stage", "")
