"""What luigid's page shows of a step: a percentage, a message, and the WARCs that were refused."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import luigi
from luigi.rpc import RPCError

from warcmill.model import Key, Outcome
from warcmill.progress import Sight, told
from warcmill.state import State

log = logging.getLogger(__name__)
EVERY = 5.0  # seconds: each is a request to luigid
MOST_NAMED = 3


class Visualiser:
    """Speaks of one step while it runs. A luigid that does not answer costs the step nothing but a warning."""

    def __init__(self, task: luigi.Task) -> None:
        # Luigi sets these for as long as `run` lasts; without a worker there are none.
        self._message: Callable[[str], object] | None = getattr(task, "set_status_message", None)
        self._percentage: Callable[[int], object] | None = getattr(task, "set_progress_percentage", None)
        self._shown = time.monotonic() - EVERY

    def show(self, sight: Sight) -> None:
        """How far the work has come, now and then."""
        now = time.monotonic()
        if now - self._shown >= EVERY:
            self._shown = now
            self._say(f"{told(sight.done, sight.total, sight.seconds)}, at {sight.file}")
            self._tell(self._percentage, min(100, 100 * sight.done // max(sight.total, 1)))

    def say_refused(self, state: State, key: Key) -> None:
        """When the step is done: which WARCs it has refused."""
        found = state.read(key) if self._message and "stage" in dict(key.params) else None
        names = [one.file.name for one in found.claim.items if one.outcome is Outcome.REFUSED] if found else []
        if names:
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            todo = f"warcmill why {key['job']} {key['launch_id']}"
            self._say(f"{len(names)} refused: {', '.join(names[:MOST_NAMED])}{more}; {todo}")

    def _say(self, text: str) -> None:
        self._tell(self._message, text)

    def _tell(self, send: Callable[..., object] | None, value: str | int) -> None:
        if send is None:
            return
        try:
            send(value)
        except RPCError as error:
            log.warning("luigid is told no more of this step: %s", error)
            self._message = self._percentage = None
