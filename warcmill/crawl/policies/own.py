"""Policies of others: objects that an installed package names in the entry point group `warcmill.policies`.

    [project.entry-points."warcmill.policies"]
    no-calendars = "ours.policies:NoCalendars"

The entry point is called without arguments, once a launch. What it makes has `at_offer(uri)`, `at_lease(uri)`, or both,
which return a Decision, or None for nothing against the URI. Each is asked after the policies of Warcmill.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points

from warcmill.crawl.policies.decision import Decision, Verdict
from warcmill.crawl.uri import Uri
from warcmill.errors import BadConfig

GROUP = "warcmill.policies"
AT_OFFER, AT_LEASE = "at_offer", "at_lease"
Failed = Callable[[str, Uri, str], None]
"""Hears of a policy that failed: its name, the URI, a traceback."""


class Own:
    """The policies that a job names, in its order. One that fails costs its decision alone: the next is asked."""

    def __init__(self, policies: Sequence[tuple[str, object]], failed: Failed) -> None:
        self._asked = {
            when: [(name, ask) for name, made in policies if (ask := getattr(made, when, None))]
            for when in (AT_OFFER, AT_LEASE)
        }
        self._failed = failed

    def judge(self, when: str, uri: Uri) -> Decision | None:
        """Return the first decision against a URI, at its offer or its lease."""
        return next((found for name, ask in self._asked[when] if (found := self._ask(name, ask, uri))), None)

    def _ask(self, name: str, ask: Callable[[Uri], Decision | None], uri: Uri) -> Decision | None:
        try:
            found = ask(uri)
            if found is not None and not isinstance(found, Decision):
                raise TypeError(f"it returned {found!r}, which is neither a Decision nor None")
        except Exception:  # noqa: BLE001 its code is not ours, and must not end the crawl
            self._failed(name, uri, traceback.format_exc())
            return None
        return found._replace(policy=name) if found and found.verdict is not Verdict.ACCEPT else None


def load(names: Iterable[str]) -> list[tuple[str, object]]:
    """Make the policies of these names; BadConfig for one that is not installed, or cannot be made."""
    wanted = list(names)
    installed = {point.name: point for point in entry_points(group=GROUP)} if wanted else {}  # it reads every package
    return [(name, _made(name, installed)) for name in wanted]


def _made(name: str, installed: dict[str, EntryPoint]) -> object:
    where = f"crawl.toml policies {name}"
    if name not in installed:
        there = f"installed are {', '.join(sorted(installed))}" if installed else "none is installed"
        raise BadConfig(where, f"no package here has such a policy, in the entry points {GROUP}; {there}")
    try:
        made: object = installed[name].load()()
    except Exception as error:  # its code is not ours
        raise BadConfig(where, f"{installed[name].value} cannot be made: {type(error).__name__}: {error}") from error
    if not any(hasattr(made, when) for when in (AT_OFFER, AT_LEASE)):
        raise BadConfig(where, f"{installed[name].value} has neither {AT_OFFER} nor {AT_LEASE}")
    return made
