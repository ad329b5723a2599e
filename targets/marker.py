"""The only Target, a marker: it stands alone, between the tasks, which know Luigi, and the library. Reads only."""

from __future__ import annotations

import logging

import luigi

from warcmill import layout
from warcmill.errors import WarcmillError
from warcmill.markers.state import MarkerStore
from warcmill.model import Key

log = logging.getLogger(__name__)


class MarkerTarget(luigi.Target):
    """The marker of a key in the state root. It exists when it is there *and* valid."""

    def __init__(self, state: MarkerStore, key: Key) -> None:
        self.state, self.key = state, key

    @property
    def path(self) -> str:
        """Its path inside the state root."""
        return layout.marker_path(self.key)

    def exists(self) -> bool:
        """True if the marker is there and valid.

        False for an outage or a foreign marker, rather than an error: an error here would keep
        Luigi from running every other task of the same scan. The step itself reads its
        marker first, meets the same error, and fails with its message.
        """
        try:
            return self.state.read(self.key) is not None
        except WarcmillError as error:
            log.error("%s", error)
            return False
