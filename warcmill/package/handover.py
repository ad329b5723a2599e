"""Decide the next step of handing a SIP over, from what is at the destination. Pure.

    staging/{name}.{process}      the SIP, whole; only the process that sends it ever makes a file of this name
    staging/{name}.sending.json   the slip that names that file: it is about to be renamed into the watched folder
    ingest/{name}                 where the ingesting system finds the SIP, and takes it away
    receipts/{name}.receipt.json  the slip that the SIP was handed over

A sending slip is written once, is never replaced, and stays. So only one file may ever be renamed; and if the slip
is there and that file is gone, the SIP was handed over: it is never sent again, whatever was killed or raced before.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum

from warcmill import layout
from warcmill.errors import Conflict

LARGEST = 1 << 16  # bytes of a slip
_GUIDE = "see 'When a submission stands' in docs/operate/publishing.md"


class Next(StrEnum):
    """What to do next."""

    STAGE = "send the SIP into the staging folder"
    INTEND = "write the sending slip"
    HAND_OVER = "rename the SIP into the watched folder"
    ACKNOWLEDGE = "write the receipt"
    DONE = "nothing"


@dataclass(frozen=True, slots=True)
class Submission:
    """A SIP to hand over: its file's name there, its key (the digest of the claim of 05), its size and digest.

    `former`: the key that earlier versions gave to this very SIP; None where it is the same.
    """

    name: str
    key: str
    size: int
    sha512: str
    former: str | None = None


@dataclass(frozen=True, slots=True)
class Slip:
    """A note at the destination: the key and digest of a SIP. A sending slip names the staged file, too."""

    key: str
    sha512: str
    staged: str = ""

    def encode(self) -> bytes:
        """Return the slip as a file: one JSON object in a line."""
        members = {"key": self.key, "sha512": self.sha512, **({"staged": self.staged} if self.staged else {})}
        return (json.dumps(members, sort_keys=True) + "\n").encode()


@dataclass(frozen=True, slots=True)
class Torn:
    """A slip that cannot be read, and why."""

    why: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What is at the destination, in the order in which it is read.

    `is_taken`: something in the watched folder has the SIP's name. `staged`: the bytes of the file that the sending
    slip names; None when it is gone.
    """

    receipt: Slip | Torn | None = None
    is_taken: bool = False
    sending: Slip | Torn | None = None
    staged: int | None = None


def decode(data: bytes, *, sending: bool) -> Slip | Torn:
    """Read a slip; a sending slip has to name a staged file."""
    try:
        members = json.loads(data.decode("utf-8"))
        slip = Slip(members["key"], members["sha512"], members.get("staged", ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return Torn(f"{error!r}")
    if not all(isinstance(text, str) for text in (slip.key, slip.sha512, slip.staged)):
        return Torn("a member of it is no text")
    if sending and (not slip.staged or "/" in slip.staged or "\0" in slip.staged):
        return Torn("it names no staged file")
    return slip


def decide(sip: Submission, seen: Seen, *, sent: bool) -> Next:
    """Return the next step. `sent`: this process has staged the SIP.

    Conflict when what is there is another's, or cannot be known: then an operator has to look.
    """
    if seen.receipt is not None:
        _refuse_other(layout.receipt_path(sip.name), sip, seen.receipt)
        return Next.DONE
    if seen.sending is None:
        if seen.is_taken:
            raise _taken(sip, "no slip says whose it is")
        return Next.INTEND if sent else Next.STAGE
    _refuse_other(layout.sending_path(sip.name), sip, seen.sending)
    return Next.ACKNOWLEDGE if seen.staged is None else _hand_over(sip, seen, seen.staged)


def _hand_over(sip: Submission, seen: Seen, staged: int) -> Next:
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
