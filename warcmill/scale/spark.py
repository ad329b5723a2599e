"""Have work done by the executors of a Spark cluster. The extra `spark` and Java must be installed.

Each piece of work is a job of one task, so that one that fails costs no other. Spark gives the task of an executor that
died to another one; after the fourth it gives up. Executors continue without their master.
"""

from __future__ import annotations

import atexit
import os
import socket
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException

from warcmill.errors import Unavailable
from warcmill.scale import Ready
from warcmill.scale.work import Work, WorkAnswer, answer, result, wait_for

_CONNECT = 10  # seconds that a master may take to answer
_AT_ONCE = 32  # jobs that are waiting, at least: executors may come while the first ones are done
_NO_WARCMILL = ("PackageNotFoundError", "No module named 'warcmill'")


class SparkRunner:
    """The executors of a master, `spark://HOST:7077`. All other settings are Spark's own: spark-defaults.conf."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._known: Any = None
        self._waiting = ThreadPoolExecutor(_AT_ONCE)
        self._probed = 0

    def ready(self, number: int, probe: Work) -> Ready:
        """Have each slot of the cluster answer which Warcmill it has, and do the probe; again once there are more."""
        context = self._context()
        wait_for(partial(self._first_executor, context), lambda: 0, self._url, probe.name)
        slots = _slots(context)
        if slots > self._probed:
            self._everywhere(context, slots, lambda _: [version("warcmill")], probe.name)
            for answered in self._everywhere(context, slots, partial(_answers, probe), probe.name):
                result(answered)
            self._probed = slots
        return Ready(max(1, min(number, _AT_ONCE)))

    def do(self, work: Work) -> Any:
        """Have any executor do it."""
        context = self._context()
        (answered,) = self._run(context, context.parallelize([work], 1).map(answer).collect, work.name)
        return result(answered)

    def _everywhere(
        self, context: Any, slots: int, function: Callable[[Iterable[int]], list[Any]], name: str
    ) -> list[Any]:
        """Run a function in every slot, by a job whose tasks all begin together."""
        job = context.parallelize(range(slots), slots).barrier().mapPartitions(function)
        return list(self._run(context, job.collect, name))

    def _run(self, context: Any, collect: Callable[[], list[Any]], name: str) -> list[Any]:
        """Wait for a job, by a thread that can be left."""
        job = self._waiting.submit(collect)
        try:
            return wait_for(job.result, partial(_executors, context), self._url, name)
        except Unavailable:
            context.cancelAllJobs()
            raise
        except Py4JJavaError as error:
            raise Unavailable(name, _why(str(error.java_exception.getMessage()))) from error
        except (Py4JError, OSError) as error:
            raise Unavailable(f"the Spark master {self._url}", f"the session with it ended: {error}") from error

    def _first_executor(self, context: Any, seconds: float) -> None:
        """Wait until an executor is there; TimeoutError if none is."""
        job = self._waiting.submit(context.parallelize([0], 1).collect)
        try:
            job.result(seconds)
        except TimeoutError:
            context.cancelAllJobs()
            raise

    def _context(self) -> Any:
        """The session; a new one if the old one has ended."""
        if self._known is None or _has_ended(self._known):
            _reach(self._url)
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            defaults = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
            conf = SparkConf().setMaster(self._url).setAppName("warcmill")
            for name, value in defaults.items():
                conf.setIfMissing(name, value)
            try:
                self._known = SparkContext(conf=conf)
            except (Py4JError, PySparkException, OSError) as error:
                why = f"no session with it can be had: {error}. It needs Java 17; see what Spark printed above"
                raise Unavailable(f"the Spark master {self._url}", why) from error
            self._known.setLogLevel("ERROR")
            atexit.register(self._known.stop)
        return self._known


def _answers(probe: Work, _: Iterable[int]) -> list[WorkAnswer]:
    return [answer(probe)]


def _scala(context: Any) -> Any:
    """The session's own object: Spark's Python interface does not have what the following ask of it."""
    return context._jsc.sc()  # noqa: SLF001 - as above


def _executors(context: Any) -> int:
    """The number of executors; the driver is counted among them."""
    return int(_scala(context).getExecutorMemoryStatus().size()) - 1


def _slots(context: Any) -> int:
    """The number of tasks that the executors can do at a time."""
    scala = _scala(context)
    return int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))


def _has_ended(context: Any) -> bool:
    return context._jsc is None or bool(_scala(context).isStopped())  # noqa: SLF001 - None once it was stopped


def _reach(url: str) -> None:
    """Unavailable if no standalone master of the URL answers: Spark itself would try for a minute."""
    scheme, _, places = url.partition("://")
    if scheme != "spark":
        return
    for place in places.split(","):
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host, int(port)), _CONNECT).close()
        except (OSError, ValueError) as error:
            why = f"{error}. Start it, or correct [scale] url"
        else:
            return
    raise Unavailable(f"the Spark master {url}", why)


def _why(message: str) -> str:
    """Why a job failed, and what to do."""
    if any(one in message for one in _NO_WARCMILL):
        return "the Python of a Spark executor has no Warcmill. Install it there, or name another in PYSPARK_PYTHON"
    first = message.partition("\n")[0]
    return f"Spark gave up: {first} A worker that dies has perhaps too little memory. Then run the task again"
