"""What comes next at the destination, for everything that may lie there."""

from __future__ import annotations

from itertools import product

import pytest

from warcmill.errors import Conflict
from warcmill.package.submit import Destination, Next, Slip, Submission, Torn, decide, decode

SIP = Submission("daily.20161019234428.final.tar", "a" * 128, 10, "b" * 128)
OURS, OTHERS, TORN = Slip(SIP.key, SIP.sha512), Slip("c" * 128, SIP.sha512), Torn("cut")
SENDING = Slip(SIP.key, SIP.sha512, f"{SIP.name}.host.boot.1.abcdef01")
OTHER_BYTES = Slip(SIP.key, "d" * 128)

RECEIPTS = (None, OURS, OTHERS, OTHER_BYTES, TORN)
SLIPS = (None, SENDING, OTHERS, TORN)


def expected(seen: Destination, sent: bool) -> Next | str:
    """The table, written down a second time: the first line that fits. A text is part of a Conflict's."""
    for fits, answer in (
        (seen.receipt == OURS, Next.DONE),
        (seen.receipt is TORN, "receipt.json: cannot be read"),
        (seen.receipt is not None, "receipt.json: is of another SIP"),
        (seen.sending is TORN, "sending.json: cannot be read"),
        (seen.sending == OTHERS, "sending.json: is of another SIP"),
        (seen.sending is None and seen.is_taken, "no slip names its owner"),
        (seen.sending is None and sent, Next.INTEND),
        (seen.sending is None, Next.STAGE),
        (seen.staged is None, Next.ACKNOWLEDGE),
        (seen.staged == 9, "has 9 bytes, not 10"),
        (seen.is_taken, "ours is still in the staging folder"),
        (True, Next.HAND_OVER),
    ):
        if fits:
            return answer
    raise AssertionError(seen)


@pytest.mark.parametrize("sent", [False, True])
def test_every_state_has_one_next_step_or_needs_an_operator(sent: bool) -> None:
    for receipt, taken, sending, staged in product(RECEIPTS, (False, True), SLIPS, (None, 9, 10)):
        seen = Destination(receipt, taken, sending, staged)
        wanted = expected(seen, sent)
        if isinstance(wanted, Next):
            assert decide(SIP, seen, sent=sent) is wanted, seen
        else:
            with pytest.raises(Conflict, match="When a submission stands") as told:
                decide(SIP, seen, sent=sent)
            assert wanted in str(told.value), seen


def test_nothing_is_sent_or_renamed_once_the_file_of_a_sending_slip_is_gone() -> None:
    for receipt, taken, sent in product((None, OURS), (False, True), (False, True)):
        assert decide(SIP, Destination(receipt, taken, SENDING, None), sent=sent) in (Next.ACKNOWLEDGE, Next.DONE)


@pytest.mark.parametrize("slip", [OURS, SENDING])
def test_a_slip_is_read_as_it_was_written(slip: Slip) -> None:
    assert decode(slip.encode(), sending=bool(slip.staged)) == slip


@pytest.mark.parametrize(
    ("data", "sending"),
    [
        (b"", False),
        (SENDING.encode()[:40], True),
        (b"\xff", False),
        (b"[]", False),
        (b"[" * 100_000, False),
        (b'{"key": "a"}', False),
        (b'{"key": 1, "sha512": "a"}', False),
        (OURS.encode(), True),
        (Slip("a", "b", "../ingest/x").encode(), True),
    ],
    ids=["empty", "cut", "not UTF-8", "a list", "deep", "no digest", "a number", "no staged file", "a path"],
)
def test_a_slip_that_cannot_be_read_is_torn_and_never_absent(data: bytes, sending: bool) -> None:
    assert isinstance(decode(data, sending=sending), Torn)
