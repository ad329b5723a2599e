"""Submit a SIP: hand it over at the destination, after the SIP before it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import BinaryIO

from warcmill import layout
from warcmill.base.digests import Readable
from warcmill.base.progress import Progress
from warcmill.markers.claim import Claim, Evidence, claim_digest
from warcmill.markers.facts import Packaged, Submitted
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Launch, Stage
from warcmill.package import destination
from warcmill.package.handover import Submission
from warcmill.package.sips import BUILD
from warcmill.stores import Store

SUBMIT = "package.SubmitSip"


def submit(state: MarkerStore, store: Store, to: Store, launch: Launch, stage: Stage) -> Claim:
    """Hand a SIP over at the destination `to`; return the claim of 06.submitted.

    A destination that has the receipt of the submission's key gets nothing.
    NotReady while the SIP before this one is not submitted. Conflict when an operator has to look at the destination.
    """
    key = layout.key(SUBMIT, launch, stage=stage)
    built = state.require(layout.key(BUILD, launch, stage=stage))
    facts = Packaged.from_claim(built.claim)
    before = [state.require(layout.key(SUBMIT, launch, stage=facts.before))] if facts.before else []
    own = key_of(built)
    former = built.digest if built.digest != own else None  # earlier versions counted the orphaned SIPs too
    name, digest = layout.sip_name(launch, facts.sip.path), str(facts.sip.sha512)
    sip = Submission(name, own, facts.sip.size, digest, former)
    sending = Progress(str(key), sip.size)
    destination.hand_over(to, sip, lambda: _opened(store, facts.sip, sending))
    return Claim(key, rests_on(built, *before), facts=Submitted(sip.name, sip.sha512, sip.key).facts())


def key_of(built: Evidence) -> str:
    """The key of a SIP's submission: the digest of the claim of its 05, as if that listed no orphaned SIPs.

    Those are of the store, not of the SIP: built again once they are noted, or moved away, it is the one submitted.
    """
    known = Packaged.from_claim(built.claim)
    if not known.orphaned:
        return built.digest
    return claim_digest(replace(built.claim, facts=replace(known, orphaned=()).facts()))


@contextmanager
def _opened(store: Store, sip: FileRef, sending: Progress) -> Iterator[Readable]:
    with store.open(sip.path) as stream:
        yield _Counted(stream, sip.name, sending)


@dataclass
class _Counted:
    """A stream whose bytes are counted as progress. A store whose connection broke reads it again from the start."""

    stream: BinaryIO
    name: str
    sending: Progress

    def read(self, size: int, /) -> bytes:
        data = self.stream.read(size)
        self.sending.add(len(data), self.name)
        return data

    def seek(self, offset: int, /) -> int:
        self.sending.add(offset - self.stream.tell(), self.name)
        return self.stream.seek(offset, io.SEEK_SET)
