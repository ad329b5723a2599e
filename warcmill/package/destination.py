"""Hand a SIP over at the destination, exactly once: the I/O around `handover.decide`."""

from __future__ import annotations

import hashlib
import io
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass

from warcmill import layout
from warcmill.base.digests import Readable
from warcmill.errors import Conflict, Mismatch, NotReady
from warcmill.package import handover
from warcmill.package.handover import Next, Seen, Slip, Submission, Torn
from warcmill.stores import Stat, Store, temporary

log = logging.getLogger(__name__)
Open = Callable[[], AbstractContextManager[Readable]]


def hand_over(store: Store, sip: Submission, open_sip: Open) -> None:
    """Hand a SIP over, unless that was done before. Conflict when an operator has to look; nothing was sent then.

    Safe to repeat after a kill at any moment, and to run in two processes at once.
    """
    for folder in (layout.STAGING, layout.RECEIPTS):
        store.sweep(folder)
    desk, sent = _Desk(store, sip, open_sip), ""
    while (step := handover.decide(sip, seen := desk.look(), sent=bool(sent))) is not Next.DONE:
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


@dataclass(frozen=True)
class _Desk:
    """The destination, as one submission sees it."""

    store: Store
    sip: Submission
    open_sip: Open

    def look(self) -> Seen:
        """Read what is there. In this order: a racer may do a step in between, and then nothing wrong is concluded.

        `ingest` comes before the staged file: if both are there, the file in `ingest` is not the staged one.
        """
        name = self.sip.name
        receipt = self._slip(layout.receipt_path(name), sending=False)
        is_taken = self.store.stat(layout.ingest_path(name)) is not None
        sending = self._slip(layout.sending_path(name), sending=True)
        staged = self._stat(sending) if isinstance(sending, Slip) else None
        return Seen(receipt, is_taken, sending, staged.size if staged else None)

    def stage(self) -> str:
        """Send the SIP under a name of its own; return the name."""
        for entry in self.staged():
            if temporary.is_dead(_wrapped(entry.name)) and self.store.stat(layout.sending_path(self.sip.name)) is None:
                self.remove(entry)  # its process is dead, and wrote no slip: nobody else ever names this file
        name = temporary.name(self.sip.name)[1:].removesuffix(".tmp")  # no half-written file: `sweep` leaves it
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
            if entry.name.startswith(f"{self.sip.name}.") and temporary.is_temporary(_wrapped(entry.name)):
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
                return handover.decode(file.read(handover.LARGEST + 1), sending=sending)
        except NotReady:
            return None


def _wrapped(name: str) -> str:
    """The name of a staged file as `temporary` reads it."""
    return f".{name}.tmp"
