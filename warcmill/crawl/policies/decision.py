"""What a policy says of a URI, and how several are asked: the first that has something against it wins."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple, Protocol

from warcmill.crawl.uri import Uri


class Verdict(StrEnum):
    """Whether a URI is accepted, rejected or deferred."""

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


class AtOffer(Protocol):
    """A policy about what a page links to, before that is offered to the frontier."""

    @property
    def name(self) -> str:
        """Its name in the job's file and in the log."""
        ...

    def judge(self, uri: Uri) -> Decision | None:
        """Return what it has against a URI; None for nothing."""
        ...

    def taken(self, uri: Uri) -> None:
        """Hear of a URI that the frontier took."""
        ...


def judge(policies: Iterable[AtOffer], uri: Uri) -> Decision:
    """Ask the policies in their order."""
    for policy in policies:
        if decision := policy.judge(uri):
            return decision
    return ACCEPTED
