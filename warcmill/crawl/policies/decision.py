"""What a policy says of a URI, and how several are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

from warcmill.crawl.uri import Uri


class Verdict(StrEnum):
    """A URI is accepted, rejected or deferred."""

    ACCEPT = "accept"
    REJECT = "reject"
    DEFER = "defer"


class Decision(NamedTuple):
    """A verdict, the policy that gave it, and why, for the log; `until` is when a deferred URI is asked about again."""

    verdict: Verdict
    policy: str = ""
    why: str = ""
    until: float = 0.0


ACCEPTED = Decision(Verdict.ACCEPT)
Ask = Callable[[Uri], Decision | None]
"""A policy as it is asked: it returns what it has against a URI; None for nothing."""


def judge(policies: Iterable[Ask], uri: Uri) -> Decision:
    """Ask the policies in their order: the first that rejects decides, else the first that defers.

    So a deferral is no way around those after it.
    """
    deferred = ACCEPTED
    for ask in policies:
        if found := ask(uri):
            if found.verdict is Verdict.REJECT:
                return found
            if deferred is ACCEPTED:
                deferred = found
    return deferred
