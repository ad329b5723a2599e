"""The decision of a policy about a URI, and the order in which several are asked. Pure, but for the policies of others.

Those are objects that an installed package names in the entry point group `warcmill.policies`:

    [project.entry-points."warcmill.policies"]
    no-calendars = "ours.policies:NoCalendars"

The entry point is called without arguments, once a launch. Its object has `at_offer(uri)`, `at_lease(uri)`, or both,
which return a Decision, or None for nothing against the URI. A job names them in the order in which they are asked,
among the built-in ones; built-in ones that it does not name come first.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from warcmill.crawl.uri import Uri
from warcmill.errors import BadConfig

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


GROUP, WHERE = "warcmill.policies", "crawl.toml policies"
AT_OFFER, AT_LEASE = "at_offer", "at_lease"
BUILT_IN = ("scope", "traps", "patterns", "extensions", "expiry", "quotas")
"""The built-in policies that a job may name. Those that need the network are asked after all others."""
Failed = Callable[[str, Uri, str], None]
"""Hears of a policy that failed: its name, the URI, a traceback."""


class Verdict(StrEnum):
    """A URI is accepted, rejected or deferred."""

    ACCEPT = "accept"
    REJECT = "reject"
    DEFER = "defer"


class Decision(NamedTuple):
    """A verdict, the policy that gave it, and why, for the log; `until` is when a deferred URI is asked about again.

    `bound` is the name in `BOUNDS` of the bound that rejects, and `limit` its value; '' where it is not a bound.
    """

    verdict: Verdict
    policy: str = ""
    why: str = ""
    until: float = 0.0
    bound: str = ""
    limit: int = 0


ACCEPTED = Decision(Verdict.ACCEPT)
Ask = Callable[[Uri], Decision | None]
"""A policy as it is asked: it returns what it has against a URI; None for nothing."""


def judge(policies: Iterable[Ask], uri: Uri) -> Decision:
    """Ask the policies in their order: the first that rejects decides, else the first that defers.

    So a deferral is not a way around those after it.
    """
    deferred = ACCEPTED
    for ask in policies:
        if found := ask(uri):
            if found.verdict is Verdict.REJECT:
                return found
            if deferred is ACCEPTED:
                deferred = found
    return deferred


class Own:
    """The policies that a job names, in its order. One that fails costs its decision alone: the next is asked."""

    def __init__(self, names: tuple[str, ...], failed: Failed) -> None:
        self._names, self._failed = names, failed
        self._made = load(names)

    def among(self, built_in: Mapping[str, Ask], when: str) -> dict[str, Ask]:
        """Return these built-in policies, and others that are asked at an offer or at a lease, in the job's order."""
        asks = {name: partial(self._ask, name, ask) for name, made in self._made if (ask := getattr(made, when, None))}
        order = (*(name for name in built_in if name not in self._names), *self._names)
        return {name: ask for name in order if (ask := built_in.get(name) or asks.get(name))}

    def _ask(self, name: str, ask: Callable[[Uri], Decision | None], uri: Uri) -> Decision | None:
        try:
            found = ask(uri)
            if found is not None and not isinstance(found, Decision):
                raise TypeError(f"it returned {found!r}, which is neither a Decision nor None")
        except Exception:  # noqa: BLE001 its code is not ours, and must not end the crawl
            self._failed(name, uri, traceback.format_exc())
            return None
        return found._replace(policy=name) if found and found.verdict is not Verdict.ACCEPT else None


def load(names: tuple[str, ...]) -> list[tuple[str, object]]:
    """Make the policies of these names that are not built in; BadConfig for one that is neither built in nor
    installed, for one that cannot be made, and for a name that means two."""
    installed = _installed() if names else {}
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise BadConfig(f"{WHERE} {twice}", "is named twice; leave one")
    if both := next((name for name in names if name in BUILT_IN and name in installed), ""):
        raise BadConfig(f"{WHERE} {both}", f"{installed[both].value} has the name of a built-in policy; rename it")
    return [(name, _made(name, installed)) for name in names if name not in BUILT_IN]


def _installed() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415 it imports much, and few jobs have own policies

    return {point.name: point for point in entry_points(group=GROUP)}


def _made(name: str, installed: dict[str, EntryPoint]) -> object:
    where = f"{WHERE} {name}"
    if name not in installed:
        there = f"installed are {', '.join(sorted(installed))}" if installed else "none is installed"
        ours = f"built in are {', '.join(BUILT_IN)}"
        raise BadConfig(where, f"no package here has such a policy, in the entry points {GROUP}; {there}; {ours}")
    try:
        made: object = installed[name].load()()
    except Exception as error:  # its code is not ours
        raise BadConfig(where, f"{installed[name].value} cannot be made: {type(error).__name__}: {error}") from error
    if not any(hasattr(made, when) for when in (AT_OFFER, AT_LEASE)):
        raise BadConfig(where, f"{installed[name].value} has neither {AT_OFFER} nor {AT_LEASE}")
    return made
