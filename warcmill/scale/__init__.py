"""Have work done by other processes: on all cores of this machine, or on the workers of a Dask or Spark cluster.

`Runner` is the protocol; `processes`, `dask` and `spark` implement it, and `opening` chooses one. A piece of work is a
function that every process can import, and its order (`work`). Runners do not know its work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from warcmill.scale.work import Work


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
