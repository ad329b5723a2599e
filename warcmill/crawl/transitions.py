"""The one place where a URI changes: every move is checked by the table, and dated."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from warcmill.crawl import steady
from warcmill.crawl.status import MOVES, Status
from warcmill.crawl.uri import Uri, shown
from warcmill.errors import BadInput

Action = Callable[[Uri, Status], None]
"""Called with the URI and the status that it moves to, or has moved to."""

_FIXED = frozenset({"key", "uri", "queue", "crawl", "status", "updated"})
_CHANGEABLE = frozenset(one.name for one in dataclasses.fields(Uri)) - _FIXED


@dataclass(frozen=True, slots=True)
class Transitions:
    """The moves of a crawl's URIs, with what is done before and after a move to a status.

    An action before that raises prevents the move: the URI is as it was. Statistics and the journal hear of a visit
    from the books, once it is durable: a move may still come to nothing.
    """

    before: Mapping[Status, Sequence[Action]] = field(default_factory=dict)
    after: Mapping[Status, Sequence[Action]] = field(default_factory=dict)
    now: Callable[[], float] = steady.now

    def update(self, uri: Uri, to: Status, **changes: object) -> Status:
        """Move a URI, set its other fields, and return its status.

        BadInput for a move that is not in the table: nothing is changed.
        """
        check(uri, to)
        if changes and not changes.keys() <= _CHANGEABLE:
            raise TypeError(f"no update changes {', '.join(sorted(changes.keys() - _CHANGEABLE))}")
        for act in self.before.get(to, ()):
            act(uri, to)
        self._set(uri, to, changes)
        return to

    def _set(self, uri: Uri, to: Status, changes: dict[str, object]) -> None:
        uri.status, uri.updated = to, self.now()
        for name, value in changes.items():
            setattr(uri, name, value)
        for act in self.after.get(to, ()):
            act(uri, to)


def check(uri: Uri, to: Status) -> None:
    """BadInput, with what would be allowed, when no URI may move from its status to this one."""
    if to not in MOVES[uri.status]:
        allowed = ", ".join(sorted(MOVES[uri.status])) or "nothing"
        raise BadInput(shown(uri.key), f"no move from {uri.status} to {to}; from {uri.status} there is {allowed}")
