"""SIPs without their content: 05 markers that rest on a launch's own, with a file of a few bytes in the store."""

from __future__ import annotations

import hashlib
import io

from launches.engine import FourRoots

from warcmill import layout
from warcmill.markers.claim import Claim
from warcmill.markers.facts.package import Packaged
from warcmill.markers.state import input_of
from warcmill.model import FINAL, FileRef, Launch, Stage


def built(
    line: FourRoots,
    launch: Launch,
    stage: Stage = FINAL,
    covers: tuple[Stage, ...] = (),
    before: Stage | None = None,
    data: bytes = b"a bag",
) -> Claim:
    """The claim of 05 of a stage, published, over the files.verified of the stages that it covers."""
    path = layout.stored_path("sips", launch, f"{stage}.tar")
    sip = FileRef("store", path, len(data), hashlib.sha512(data).hexdigest())
    line.store.commit_new(path, io.BytesIO(data), sip.size, str(sip.sha512))
    covers = covers or (stage,)
    keys = [layout.key("files.Verify", launch, stage=one) for one in covers]
    keys += [layout.key("package.BuildSip", launch, stage=before)] if before else []
    facts = Packaged(covers, before, "value", f"{launch.job}.{launch.id}.{stage}", sip).facts()
    claim = Claim(
        layout.key("package.BuildSip", launch, stage=stage),
        tuple(input_of(line.state, key) for key in keys),
        outputs=(sip,),
        facts=facts,
    )
    line.state.publish(claim.key, claim)
    return claim
