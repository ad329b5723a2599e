"""Have work done by the workers of a Dask scheduler. The extra `dask` must be installed.

Dask gives the work of a worker that died to another one; after the fourth it gives up. A scheduler that vanishes
cancels all that was asked of it.
"""

from __future__ import annotations

from concurrent.futures import CancelledError
from importlib.metadata import version
from typing import Any

from distributed import Client
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from warcmill.errors import Unavailable
from warcmill.scale import Ready
from warcmill.scale.work import Work, WorkAnswer, answer, result, wait_for

_CONNECT = 10  # seconds that a scheduler may take to answer
_START = "start one for each core: dask worker {url} --nworkers auto --nthreads 1"


class DaskRunner:
    """The workers of a scheduler, `tcp://HOST:8786`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._known: Any = None

    def ready(self, number: int, probe: Work) -> Ready:
        """Have each worker answer which Warcmill it has, and do the probe."""
        client = self._client()
        threads = sum(client.nthreads().values())
        if not threads:
            raise Unavailable(self._url, f"it has no worker; {_START.format(url=self._url)}")
        try:
            _check(client, probe)
        except (CancelledError, CommClosedError, TimeoutError) as error:
            raise self._gone() from error
        return Ready(max(1, min(number, 2 * threads)))

    def do(self, work: Work) -> Any:
        """Have any worker do it."""
        client = self._client()
        future = client.submit(answer, work, pure=False)
        try:
            return result(wait_for(lambda seconds: future.result(timeout=seconds), self._workers, self._url, work.name))
        except KilledWorker as error:
            why = "it killed several workers, one after the other: perhaps they have too little memory. See their logs"
            raise Unavailable(work.name, f"{why}; then run the task again") from error
        except (CancelledError, CommClosedError) as error:
            raise self._gone() from error
        finally:
            future.release()

    def _workers(self) -> int:
        """The number of workers, as far as the client knows."""
        return len(self._client().nthreads())

    def _client(self) -> Any:
        """The client; a new one if the old one has lost its scheduler."""
        if self._known is None or self._known.status == "closed":
            try:
                self._known = Client(self._url, timeout=_CONNECT, set_as_default=False)
            except (OSError, ValueError) as error:
                why = f"{error}. Start the scheduler, or correct [scale] url"
                raise Unavailable(f"the Dask scheduler {self._url}", why) from error
        if self._known.status != "running":
            raise self._gone()
        return self._known

    def _gone(self) -> Unavailable:
        why = "the connection to it was lost. Start it again, then run the task again: what was done is kept"
        return Unavailable(f"the Dask scheduler {self._url}", why)


def _check(client: Any, probe: Work) -> None:
    """Unavailable, Mismatch or the probe's error for a worker that cannot do the work."""
    for worker, found in client.run(version, "warcmill", on_error="return").items():
        if not isinstance(found, str):
            why = "its Python has no Warcmill. Install it there, and start the worker again"
            raise Unavailable(f"the Dask worker {worker}", why)
    for worker, answered in client.run(answer, probe, on_error="return").items():
        if not isinstance(answered, WorkAnswer):
            raise Unavailable(f"the Dask worker {worker}", f"it cannot do Warcmill's work: {answered}")
        result(answered)
