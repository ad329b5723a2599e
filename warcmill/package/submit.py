"""The hand-over of a SIP at the destination: exactly once, after the SIP before it. Writes to the destination only.

    staging/{name}.{process}      the SIP, whole; only the process that sends it ever makes a file of this name
    staging/{name}.sending.json   the slip that names that file: it is about to be renamed into the watched folder
    ingest/{name}                 where the ingesting system finds the SIP, and takes it away
    receipts/{name}.receipt.json  the slip that the SIP was handed over

A sending slip is written once, is never replaced, and stays. So only one file may ever be renamed; and if the slip
is there and that file is gone, the SIP was handed over: it is never sent again, whatever was killed or raced before.
`decide` is pure: it names the next step from what is at the destination.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from enum import StrEnum
from typing import BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from warcmill import layout
from warcmill.base.digests import Readable
from warcmill.base.progress import Progress
from warcmill.errors import Conflict, Mismatch, NotReady
from warcmill.markers.claim import Claim, Evidence, claim_digest
from warcmill.markers.facts.package import Packaged, Submitted
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Launch, Stage
from warcmill.package.sips import BUILD
from warcmill.stores import Stat, Store, temporary_names

SUBMIT = "package.SubmitSip"
LARGEST = 1 << 16  # bytes of a slip
_GUIDE = "see 'When a submission stands' in docs/operate/publishing.md"
log = logging.getLogger(__name__)
Open = Callable[[], AbstractContextManager[Readable]]


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
    hand_over(to, sip, lambda: _opened(store, facts.sip, sending))
    return Claim(key, rests_on(built, *before), facts=Submitted(sip.name, sip.sha512, sip.key).facts())


def key_of(built: Evidence) -> str:
    """The key of a SIP's submission: the digest of the claim of its 05, as if that listed no orphaned SIPs.

    Those are of the store, not of the SIP: built again once they are noted, or moved away, it is the one submitted.
    """
    packaged = Packaged.from_claim(built.claim)
    if not packaged.orphaned:
        return built.digest
    return claim_digest(replace(built.claim, facts=replace(packaged, orphaned=()).facts()))


class Submission(Struct, frozen=True):
    """A SIP to hand over: its file's name there, its key (the digest of the claim of 05), its size and digest.

    `former`: the key that earlier versions gave to this very SIP; None where it is the same.
    """

    name: str
    key: str
    size: int
    sha512: str
    former: str | None = None


class Slip(Struct, frozen=True):
    """A note at the destination: the key and digest of a SIP. A sending slip names the staged file, too."""

    key: str
    sha512: str
    staged: str = ""

    def encode(self) -> bytes:
        """Return the slip as a file: one JSON object in a line."""
        members = {"key": self.key, "sha512": self.sha512, **({"staged": self.staged} if self.staged else {})}
        return (json.dumps(members, sort_keys=True) + "\n").encode()


class Torn(Struct, frozen=True):
    """A slip that cannot be read, and why."""

    why: str


class Destination(Struct, frozen=True):
    """The files at the destination, in the order in which it is read.

    `is_taken`: something in the watched folder has the SIP's name. `staged`: the bytes of the file that the sending
    slip names; None when it is gone.
    """

    receipt: Slip | Torn | None = None
    is_taken: bool = False
    sending: Slip | Torn | None = None
    staged: int | None = None


class Next(StrEnum):
    """The next step."""

    STAGE = "send the SIP into the staging folder"
    INTEND = "write the sending slip"
    HAND_OVER = "rename the SIP into the watched folder"
    ACKNOWLEDGE = "write the receipt"
    DONE = "nothing"


def hand_over(store: Store, sip: Submission, open_sip: Open) -> None:
    """Hand a SIP over, unless that was done before. Conflict when an operator has to look; nothing was sent then.

    Safe to repeat after a kill at any moment, and to run in two processes at once.
    """
    for folder in (layout.STAGING, layout.RECEIPTS):
        store.sweep(folder)
    desk, sent = _Desk(store, sip, open_sip), ""
    while (step := decide(sip, seen := desk.look(), sent=bool(sent))) is not Next.DONE:
        log.info("%s: %s", sip.name, step)
        match step:
            case Next.STAGE:
                sent = desk.stage()
            case Next.INTEND:
                desk.write(layout.sending_path(sip.name), Slip(sip.key, sip.sha512, sent))
            case Next.HAND_OVER:
                desk.rename(seen.sending)
            case Next.ACKNOWLEDGE:
                desk.write(layout.receipt_path(sip.name), Slip(sip.key, sip.sha512))
    for entry in desk.staged():
        desk.remove(entry)  # of one that came second, or was killed before it wrote its slip


def decide(sip: Submission, seen: Destination, *, sent: bool) -> Next:
    """Return the next step. `sent`: this process has staged the SIP.

    Conflict when what is there is another's, or cannot be known: then an operator has to look.
    """
    if seen.receipt is not None:
        _refuse_other(layout.receipt_path(sip.name), sip, seen.receipt)
        return Next.DONE
    if seen.sending is None:
        if seen.is_taken:
            raise _taken(sip, "no slip names its owner")
        return Next.INTEND if sent else Next.STAGE
    _refuse_other(layout.sending_path(sip.name), sip, seen.sending)
    return Next.ACKNOWLEDGE if seen.staged is None else _hand_over(sip, seen, seen.staged)


def _hand_over(sip: Submission, seen: Destination, staged: int) -> Next:
    if staged != sip.size:
        why = f"the staged file that it names has {staged} bytes, not {sip.size}; it was not handed over. {_GUIDE}"
        raise Conflict(f"destination:{layout.sending_path(sip.name)}", why)
    if seen.is_taken:
        raise _taken(sip, "ours is still in the staging folder")
    return Next.HAND_OVER


def _refuse_other(path: str, sip: Submission, slip: Slip | Torn) -> None:
    """Raise Conflict unless a slip is of this submission."""
    if isinstance(slip, Torn):
        why = f"cannot be read ({slip.why}), so it is not known whether the SIP was handed over; nothing was sent"
        raise Conflict(f"destination:{path}", f"{why}. {_GUIDE}")
    if slip.key not in (sip.key, sip.former) or slip.sha512 != sip.sha512:
        why = f"is of another SIP, with key {slip.key[:16]}...; the one to send has {sip.key[:16]}.... Nothing was sent"
        raise Conflict(f"destination:{path}", f"{why}. Two lines need a destination each; else {_GUIDE}")


def _taken(sip: Submission, but: str) -> Conflict:
    why = f"a file is there already, and {but}. It was left as it is, and nothing was handed over. {_GUIDE}"
    return Conflict(f"destination:{layout.ingest_path(sip.name)}", why)


class _Desk(Struct, frozen=True):
    """The destination, as one submission sees it."""

    store: Store
    sip: Submission
    open_sip: Open

    def look(self) -> Destination:
        """Read what is there. In this order: a racer may do a step in between, and then nothing wrong is concluded.

        `ingest` comes before the staged file: if both are there, the file in `ingest` is not the staged one.
        """
        name = self.sip.name
        receipt = self._slip(layout.receipt_path(name), sending=False)
        is_taken = self.store.stat(layout.ingest_path(name)) is not None
        sending = self._slip(layout.sending_path(name), sending=True)
        staged = self._stat(sending) if isinstance(sending, Slip) else None
        return Destination(receipt, is_taken, sending, staged.size if staged else None)

    def stage(self) -> str:
        """Send the SIP under a name of its own; return the name."""
        for entry in self.staged():
            if (
                temporary_names.is_dead(_wrapped(entry.name))
                and self.store.stat(layout.sending_path(self.sip.name)) is None
            ):
                self.remove(entry)  # its process is dead, and wrote no slip: nobody else ever names this file
        name = temporary_names.name(self.sip.name)[1:].removesuffix(".tmp")  # no half-written file: `sweep` leaves it
        path, sip = f"{layout.STAGING}/{name}", self.sip
        with self.open_sip() as source:
            self.store.commit_new(path, source, sip.size, sip.sha512)
        return name

    def write(self, path: str, slip: Slip) -> None:
        """Write a slip. If a racer's is there already, it stays; the next look reads it."""
        data = slip.encode()
        self.store.commit_new(path, io.BytesIO(data), len(data), hashlib.sha512(data).hexdigest())

    def rename(self, sending: Slip | Torn | None) -> None:
        """Rename the staged file into the watched folder. If a racer is doing it, the next look shows what became."""
        staged = self._stat(sending) if isinstance(sending, Slip) else None
        if staged:
            with suppress(Conflict):
                self.store.move_aside(staged.path, layout.ingest_path(self.sip.name), staged)

    def staged(self) -> Iterator[Stat]:
        """The whole files of this SIP in the staging folder, of any process."""
        for entry in self.store.list(layout.STAGING):
            if entry.name.startswith(f"{self.sip.name}.") and temporary_names.is_temporary(_wrapped(entry.name)):
                yield entry

    def remove(self, entry: Stat) -> None:
        """Remove a staged file that will not be needed, unless a racer did."""
        with suppress(Mismatch):
            self.store.remove(entry.path, entry)

    def _stat(self, sending: Slip) -> Stat | None:
        return self.store.stat(f"{layout.STAGING}/{sending.staged}")

    def _slip(self, path: str, *, sending: bool) -> Slip | Torn | None:
        try:
            with self.store.open(path) as file:
                return decode(file.read(LARGEST + 1), sending=sending)
        except NotReady:
            return None


def decode(data: bytes, *, sending: bool) -> Slip | Torn:
    """Read a slip; a sending slip has to name a staged file."""
    try:
        members = json.loads(data.decode("utf-8"))
        slip = Slip(members["key"], members["sha512"], members.get("staged", ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return Torn(f"{error!r}")
    if not all(isinstance(text, str) for text in (slip.key, slip.sha512, slip.staged)):
        return Torn("a member of it is not text")
    if sending and (not slip.staged or "/" in slip.staged or "\0" in slip.staged):
        return Torn("it names no staged file")
    return slip


def _wrapped(name: str) -> str:
    """The name of a staged file as `temporary` reads it."""
    return f".{name}.tmp"


@contextmanager
def _opened(store: Store, sip: FileRef, sending: Progress) -> Iterator[Readable]:
    with store.open(sip.path) as stream:
        yield _Counted(stream, sip.name, sending)


class _Counted(Struct):
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
