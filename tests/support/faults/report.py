"""A sweep in processes of its own, one a place, while this one reads what they tell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from faults.tally import Tally

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Share:
    """What one process is to do: a place, its server's ports, cheap faults, dear ones, chosen by a seed."""

    place: str
    ports: Mapping[str, int]
    count: int
    dear: int
    seed: int


def sweep(work: Path, shares: list[Share], tally: Tally, told: Callable[[], object] = bool) -> None:
    """All shares side by side; into `tally`. `told` is called after each fault."""
    threads = [threading.Thread(target=_follow, args=(work, share, tally, told)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def rounds(ports: Mapping[str, Mapping[str, int]], cheap: int, crawls: int, dear: int, seed: int) -> list[list[Share]]:
    """Faults by three servers, in two rounds of shares side by side: an HDFS whose servers are killed is left alone."""
    some = -(-cheap // 4)
    first = [
        Share("hdfs", ports["hdfs"], 0, dear, seed),
        Share("sshd", ports["sshd"], some, 0, seed + 1),
        Share("heritrix", ports["heritrix"], crawls, dear, seed),
    ]
    return [first, [Share(name, ports[name], some, 0, seed + 2 + n) for n, name in enumerate(("hdfs", "hdfs", "sshd"))]]


def _follow(work: Path, share: Share, tally: Tally, told: Callable[[], object]) -> None:
    with subprocess.Popen(
        _command(work, share),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / one) for one in ("", "tests/support", "scripts"))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stderr
        said: list[str] = []
        reader = threading.Thread(target=_read, args=(process.stderr, said))
        reader.start()
        for line in _lines(process.stdout):
            one = json.loads(line)
            if one["met"]:
                tally.add(one["kind"])
            tally.violate(one["kind"], one["wrong"])
            told()
        reader.join()
    if process.returncode:
        tally.violate(share.place, [f"the sweep ended with {process.returncode}: {''.join(said)[-3000:]}"])


def _command(work: Path, share: Share) -> list[str]:
    ports = json.dumps(dict(share.ports))
    counts = ("--count", str(share.count), "--dear", str(share.dear), "--seed", str(share.seed))
    return [sys.executable, "-m", "faults.sweep", share.place, "--work", str(work), "--ports", ports, *counts]


def _read(stream: IO[str], said: list[str]) -> None:
    said.extend(stream)


def _lines(stream: IO[str]) -> Iterator[str]:
    return (line for line in stream if line.startswith("{"))
