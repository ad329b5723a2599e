"""WARCs read for the index by two cores, or two workers, beside one: elapsed time, on an otherwise idle machine.

    scripts/bench scale
    WARCS=40 RUN_ON=processes scripts/bench scale    # without the clusters, which take minutes

Each WARC is the sample, eight times. Ours is two, peer is one; the ratio is how many times faster two are. One core:
this process, bound to one. Start-up is shown apart: the seconds until all workers have answered and done a first WARC.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from benchmarks.gate import SAMPLE
from benchmarks.stores import seconds, started
from servers import cluster as dask
from servers import cluster as spark
from servers import pins
from warcmill.base.threads import side_by_side
from warcmill.extracts.per_warc import ExtractOrder, ExtractPlace, ExtractWanted, make, reach
from warcmill.formats.text import document
from warcmill.scale import Runner
from warcmill.scale.opening import RunOn, open_runner
from warcmill.scale.processes import ProcessRunner
from warcmill.scale.work import Work, versions
from warcmill.stores import sentinel
from warcmill.stores.opening import Access

Row = tuple[str, str, str, str, str]
WARCS = int(os.environ.get("WARCS", "16"))
TIMES = 8  # the sample, in each WARC
BY_PROCESSES, BY_CLUSTER = ">= 1.8 x one core", ">= 1.7 x one worker"
RECORD = (
    "WARC/1.0\r\nWARC-Type: warcinfo\r\nWARC-Record-ID: <urn:uuid:{id}>\r\nWARC-Date: 2026-11-21T08:17:35Z\r\n"
    "Content-Length: 0\r\n\r\n\r\n\r\n"
)


class Archive(NamedTuple):
    """A store with WARCs, by path and digest, and a folder for index roots."""

    base: Path
    warcs: list[tuple[str, str]]

    def works(self, what: ExtractWanted, name: str, cores: int = 1) -> list[Work]:
        """What has to be done for an index root of its own."""
        index = self.base / name
        sentinel.adopt({"index": index})
        place = ExtractPlace(str(self.base / "store"), Access(), str(index))
        orders = [ExtractOrder(what, place, *warc, frozenset(), cores) for warc in self.warcs]
        return [Work(order.path, make, order, versions(document.PACKAGES)) for order in orders]


def rows() -> Iterator[Row]:
    """What, two, one, ratio, target."""
    chosen = os.environ.get("RUN_ON", ",".join(RunOn)).split(",")
    with tempfile.TemporaryDirectory() as folder:
        archive = _archive(Path(folder))
        if RunOn.PROCESSES in chosen:
            yield from _processes(archive)
        if RunOn.DASK in chosen:
            with started(dask, pins.DASK) as cluster:
                sys.path.insert(0, cluster.libraries)
                yield from _cluster(archive, RunOn.DASK, cluster)
        if RunOn.SPARK in chosen:
            with started(spark, pins.SPARK) as cluster:
                os.environ.update(cluster.environment)
                sys.path.insert(0, cluster.environment["PYTHONPATH"])
                yield from _cluster(archive, RunOn.SPARK, cluster)


def _archive(base: Path) -> Archive:
    sentinel.adopt({"store": base / "store"})
    (sample,) = (path.read_bytes() for path in SAMPLE.rglob("*.warc.gz"))
    warcs = []
    for number in range(WARCS):
        data = sample * TIMES + gzip.compress(RECORD.format(id=UUID(int=number)).encode())
        path = base / "store" / "warcs" / f"{number}.warc.gz"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        warcs.append((f"warcs/{path.name}", hashlib.sha512(data).hexdigest()))
    return Archive(base, warcs)


def _processes(archive: Archive) -> Iterator[Row]:
    """Two processes beside this one, bound to a core."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    for what in ExtractWanted:
        os.sched_setaffinity(0, cores[:1])
        one = _run(ProcessRunner(1), archive.works(what, f"one-{what}"))
        os.sched_setaffinity(0, cores)
        two = ProcessRunner(2)
        begin = seconds(lambda: _begin(two, archive.works(what, f"begin-{what}")))  # noqa: B023 - called at once
        yield _row(f"{what}, processes", _run(two, archive.works(what, f"two-{what}")), one, BY_PROCESSES, begin)
        two.close()


def _cluster(archive: Archive, run_on: RunOn, cluster: dask.DaskCluster | spark.SparkCluster) -> Iterator[Row]:
    """Two workers beside one."""
    runner = open_runner(run_on, cluster.url)
    begin = seconds(lambda: _begin(runner, archive.works(ExtractWanted.CDX, f"begin-{run_on}")))
    two = _run(runner, archive.works(ExtractWanted.CDX, f"two-{run_on}"))
    cluster.kill("two")
    _begin(runner, archive.works(ExtractWanted.CDX, f"alone-{run_on}"))
    one = _run(runner, archive.works(ExtractWanted.CDX, f"one-{run_on}"))
    yield _row(f"cdx, {run_on}", two, one, BY_CLUSTER, begin)


def _begin(runner: Runner, works: list[Work]) -> None:
    """Have every worker answer, and do a few WARCs, which are not measured."""
    _run(runner, works[:4])


def _run(runner: Runner, works: list[Work]) -> float:
    """Seconds for all of it, but for what `ready` takes."""
    place = works[0].order.place
    ready = runner.ready(len(works), Work("what workers need", reach, place, works[0].versions))
    return seconds(lambda: side_by_side(runner.do, works, ready.at_once))


def _row(what: str, two: float, one: float, target: str, begin: float) -> Row:
    what = f"{WARCS} WARCs of {TIMES * 1.5:.0f} MB: {what}, started in {begin:.1f} s"
    return what, f"{two:.1f} s", f"{one:.1f} s", f"{one / two:.2f}", target
