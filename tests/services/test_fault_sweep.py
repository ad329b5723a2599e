"""Scores of faults of real servers, by chance: nothing lost, no false marker, a clear message, the next run finishes.

What each fault is followed by is in tests/support/faults/bench.py and pulse.py. `python -m benchmarks.fault_sweep`
does as many as are wanted; the table at the end of a session counts those of all tests.
"""

from __future__ import annotations

from pathlib import Path

from faults.report import rounds, sweep
from faults.tally import FaultLog

from servers.hdfs import Hdfs
from servers.heritrix import HeritrixServer
from servers.sshd import Sshd

SEED = 20_261_121  # the same faults every time: a failure can be looked into
LEAST = 60


def test_whatever_is_cut_withheld_killed_or_refused_nothing_is_lost_and_no_marker_false(
    work: Path, hdfs: Hdfs, sshd: Sshd, heritrix: HeritrixServer, fault_log: FaultLog
) -> None:
    tally = fault_log.tally
    before = tally.total
    ports = {"hdfs": hdfs.ports, "sshd": sshd.ports, "heritrix": heritrix.ports}
    for shares in rounds(ports, cheap=60, crawls=4, dear=2, seed=SEED):
        sweep(work, shares, tally)
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.total - before >= LEAST
