"""Open the runner of a configuration. Each process has one, for all its steps: a cluster takes seconds to reach."""

from __future__ import annotations

import os
from enum import StrEnum
from functools import cache

from warcmill.scale import Runner


class RunOn(StrEnum):
    """The value of `[scale] run_on`."""

    PROCESSES = "processes"
    DASK = "dask"
    SPARK = "spark"


def open_runner(run_on: RunOn, url: str) -> Runner:
    """The runner of this process; a cluster is reached when it is first needed. `url`: its scheduler, or master."""
    return _runner(os.getpid(), run_on, url)


@cache
def _runner(_process: int, run_on: RunOn, url: str) -> Runner:
    """One for each process: a forked one cannot use what it inherits."""
    if run_on is RunOn.DASK:
        from warcmill.scale.dask import DaskRunner  # noqa: PLC0415 the extra need not be installed

        return DaskRunner(url)
    if run_on is RunOn.SPARK:
        from warcmill.scale.spark import SparkRunner  # noqa: PLC0415 as above

        return SparkRunner(url)
    from warcmill.scale.processes import ProcessRunner  # noqa: PLC0415 most verbs have no such work

    return ProcessRunner()
