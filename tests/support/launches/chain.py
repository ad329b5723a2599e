"""The steps of a launch one after another on a built engine's output, without Luigi."""

from __future__ import annotations

from launches.engine import Engine

from warcmill import layout
from warcmill.files import checksum, copy, read_back, retire, verify
from warcmill.markers.claim import Claim
from warcmill.model import FINAL, Item, Stage
from warcmill.output import assemble, pack_logs, stop
from warcmill.reports import crawl, seeds

BLOCK_SIZE = 128 << 20
TRANSFER = ("Checksum", "Copy", "Verify", "ReadBack", "Retire")


def assembled(engine: Engine, stage: Stage = FINAL) -> Claim:
    """Everything up to 03 of a stage, published."""
    state = engine.state
    if stage.is_final:
        _publish(engine, stop.stopped(state, engine.roots, engine.launch))
    with state.scratch() as folder:
        claim, path = pack_logs.pack(state, engine.roots, engine.launch, stage, folder)
        state.publish(claim.key, claim, path)
    return _publish(engine, assemble.assemble(state, engine.roots, engine.launch, stage))


def step(engine: Engine, name: str, stage: Stage = FINAL) -> Claim:
    """The claim of one step of the transfer, not published."""
    state, engines, store, launch = engine.state, engine.roots, engine.store, engine.launch
    if name == "Checksum":
        return checksum.checksum(state, engines, launch, stage, BLOCK_SIZE)
    if name == "Copy":
        return copy.copy(state, engines, store, launch, stage)
    if name == "Verify":
        return verify.verify(state, store, launch, stage)
    if name == "ReadBack":
        return read_back.read_back(state, store, launch, stage)
    return retire.retire(state, engines, store, launch, stage)


def upto(engine: Engine, last: str, stage: Stage = FINAL) -> Claim:
    """All steps of the transfer up to `last`, published; the claim of the last."""
    for name in TRANSFER[: TRANSFER.index(last) + 1]:
        claim = _publish(engine, step(engine, name, stage))
        if name == "Verify":
            reported(engine, stage)
    return claim


def reported(engine: Engine, stage: Stage = FINAL) -> None:
    """The reports of a verified stage; those of the seeds once the launch is complete, and every stage verified."""
    _publish(engine, crawl.report(engine.state, engine.store, engine.launch, stage))
    if engine.state.holds(layout.step("process", engine.launch)):
        parts = seeds.parts(engine.state, engine.launch)
        if all(engine.state.holds(layout.step("verify", *part)) for part in parts):
            _publish(engine, seeds.seeds(engine.state, engine.store, engine.launch))


def items(claim: Claim) -> dict[str, Item]:
    """Items by the name of the file, or of what was made of it."""
    return {(item.made or item.file).name: item for item in claim.items}


def zip_name(engine: Engine, stage: Stage = FINAL) -> str:
    """The name of a stage's 02 marker."""
    return layout.marker_name(layout.key("output.PackageLogs", engine.launch, stage=stage))


def _publish(engine: Engine, claim: Claim) -> Claim:
    engine.state.publish(claim.key, claim)
    return claim
