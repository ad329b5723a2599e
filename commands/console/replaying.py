"""A replay: what pywb reads, for `warcmill serve`; and a pywb of a command's own, which ends with its block.

Listens on loopback alone.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.config.serve import program_of, serving
from tasks.config.settings import Settings
from tasks.line import OpenRoots
from warcmill.errors import Unavailable
from warcmill.replay.captures import TEMPLATE, CaptureServer
from warcmill.replay.pywb import LOOPBACK, Pywb, ReplaySources
from warcmill.stores import LocalStore, Store
from warcmill.stores.opening import is_remote, open_folder
from warcmill.versions.index_inputs import WARCS
from warcmill.web import warcs
from warcmill.web.access import new_secret
from warcmill.web.rendering import STYLE

SECONDS = 120.0  # that pywb has to begin


@contextmanager
def replay_sources(
    config: Settings, state: LocalStore, open_store: Callable[[], Store], program: Path | str
) -> Iterator[ReplaySources]:
    """The places that pywb reads while the block runs: the WARCs, in their folder or at a server on loopback; and the
    index, of which there is none where nothing is replayed, as `program` is a reason then."""
    with _warcs(config, open_store) as place:
        if not config.index or isinstance(program, str):
            yield ReplaySources(place, "")
            return
        server = CaptureServer(state, lambda: open_folder("index", config.index))
        with warcs.keyed(server) as address:
            yield ReplaySources(place, f"{address}/?{TEMPLATE}")


@contextmanager
def _warcs(config: Settings, open_store: Callable[[], Store]) -> Iterator[str]:
    if is_remote(config.store):
        with warcs.serving(open_store) as address:
            yield address
    else:
        yield f"{config.store.rstrip('/')}/{WARCS}"


@contextmanager
def own_replay(line: OpenRoots) -> Iterator[str]:
    """The address of a replay before the time and the URL of a capture, while the block runs.

    BadConfig where pywb is missing; Unavailable if pywb does not begin.
    """
    program = program_of(line.settings, serving())
    with replay_sources(line.settings, line.state.store, lambda: line.store, program) as places:
        pywb = Pywb(program, places, _free_port(), new_secret(), STYLE, framed=False)
        pywb.start()
        try:
            until = time.monotonic() + SECONDS
            while pywb.state() != "ready":
                if time.monotonic() > until:
                    raise Unavailable(str(program), f"it was started, and did not answer in {SECONDS:.0f} s")
                time.sleep(0.1)
            yield pywb.address
        finally:
            pywb.stop()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind((LOOPBACK, 0))
        return int(one.getsockname()[1])
