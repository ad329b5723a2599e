"""Have work done by other processes: on all cores of this machine, or on the workers of a Dask or Spark cluster.

`Runner` is the protocol; `processes`, `dask` and `spark` implement it, and `opening` chooses one. A piece of work is a
function that every process can import, and its order (`work`). Runners do not know its work.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from warcmill.base.threads import is_given_up
from warcmill.errors import Unavailable
from warcmill.scale.work import Work

log = logging.getLogger(__name__)
PATIENCE = 60  # seconds for which a cluster may be without a worker
_LOOK = 2  # seconds between two looks whether there is one, or Ctrl-C was typed
Result = TypeVar("Result")


class Ready(Struct, frozen=True):
    """The number of pieces of work that are done at a time, and the cores that each has for processes of its own."""

    at_once: int
    cores: int = 1


class Runner(Protocol):
    """Does work elsewhere."""

    def ready(self, number: int, probe: Work) -> Ready:
        """Have every worker do the probe, before so many pieces of work start.

        Unavailable if no worker is reached, or if one lacks Warcmill; Mismatch if one has another version of it; any
        error of the probe.
        """

    def do(self, work: Work) -> Any:
        """Do a piece of work, and wait for its result. May be called by several threads at a time.

        Any error that it raises there is raised here; Unavailable if its worker died, or the cluster is gone.
        """


def wait_for(result: Callable[[float], Result], workers: Callable[[], int], where: str, name: str) -> Result:
    """Wait for a result, which raises TimeoutError after the seconds it gets; `name`: the piece of work.

    Unavailable once all workers are gone, or this process was interrupted.
    """
    alone = 0
    while True:
        try:
            return result(_LOOK)
        except TimeoutError:
            if is_given_up():
                log.warning("%s: given up, as this process was interrupted; the next run does it", name)
                raise Unavailable(name, "it was interrupted") from None
            alone = 0 if workers() else alone + _LOOK
            if alone >= PATIENCE:
                why = f"for {alone} s it has had no worker; start one, then run the task again"
                raise Unavailable(where, why) from None
