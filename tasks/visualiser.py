"""Show a step on luigid's page: a percentage, a message, and the refused WARCs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import luigi
from luigi.rpc import RPCError

from warcmill.base.progress import Snapshot, describe
from warcmill.markers.state import MarkerStore
from warcmill.model import Key, Outcome

log = logging.getLogger(__name__)
EVERY = 5.0  # seconds: each is a request to luigid
MOST_NAMED = 3


class Visualiser:
    """Reports one running step to luigid. If luigid does not answer, the step continues, with a warning in the log."""

    def __init__(self, task: luigi.Task) -> None:
        # Luigi sets these while `run` runs; without a worker there are none.
        self._message: Callable[[str], object] | None = getattr(task, "set_status_message", None)
        self._percentage: Callable[[int], object] | None = getattr(task, "set_progress_percentage", None)
        self._shown = time.monotonic() - EVERY

    def show(self, sight: Snapshot) -> None:
        """Send progress, at most every 5 seconds."""
        now = time.monotonic()
        if now - self._shown >= EVERY:
            self._shown = now
            self._send_message(f"{describe(sight.done, sight.total, sight.seconds)}, at {sight.file}")
            self._send(self._percentage, min(100, 100 * sight.done // max(sight.total, 1)))

    def show_refused(self, state: MarkerStore, key: Key) -> None:
        """When the step is done, name the WARCs it refused."""
        marker = state.read(key) if self._message and "stage" in dict(key.params) else None
        names = [item.file.name for item in marker.claim.items if item.outcome is Outcome.REFUSED] if marker else []
        if names:
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            todo = f"warcmill why {key['job']} {key['launch_id']}"
            self._send_message(f"{len(names)} refused: {', '.join(names[:MOST_NAMED])}{more}; {todo}")

    def _send_message(self, text: str) -> None:
        self._send(self._message, text)

    def _send(self, send: Callable[..., object] | None, value: str | int) -> None:
        if send is None:
            return
        try:
            send(value)
        except RPCError as error:
            log.warning("no more progress of this step is sent to luigid: %s", error)
            self._message = self._percentage = None
