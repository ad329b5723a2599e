"""Fault after fault over one place, each told as a line of JSON: `python -m faults.sweep PLACE --work FOLDER ...`.

A process of its own, for it forks a child for every run. The servers run already.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from contextlib import closing
from pathlib import Path

from faults import kinds, pulse
from faults.bench import Bench
from faults.kinds import Break, Kinds
from faults.places import place_of
from faults.rest import between
from loopback_site import site

from servers.heritrix import HeritrixServer

DRAWS = 40  # a fault that so many runs in a row did not meet cannot be met


def sweep(bench: Bench, chosen: Kinds, count: int, seed: int) -> None:
    """So many faults, of all kinds in turn; each has a chance of its own, so that it can be repeated alone."""
    for number in range(count):
        name, begin = list(chosen)[number % len(chosen)], time.monotonic()
        for draw in range(DRAWS):
            met, wrong = trial(bench, chosen[name], random.Random(f"{seed} {number} {draw}"))
            if met or wrong:
                break
        else:
            wrong = [f"could not be injected in {DRAWS} runs"]
        tell(f"{bench.place.name}, {name}", met, [f"{one} (fault {number})" for one in wrong], begin)


def tell(kind: str, met: bool, wrong: list[str], begin: float) -> None:
    """One line for the process that started this one."""
    told = {"kind": kind, "met": met, "wrong": wrong, "ms": round(1000 * (time.monotonic() - begin))}
    print(json.dumps(told), flush=True)  # noqa: T201


def trial(bench: Bench, broken: Break, chance: random.Random) -> tuple[bool, list[str]]:
    """One broken run, and the next: whether the fault was met, and what was wrong."""
    stage = bench.fresh()
    done = broken(bench, stage, chance)
    wrong = [*done.wrong, *bench.moment(stage, done.ends, done.strangers)] if done.met else []
    for path in done.strangers:
        bench.place.delete(path)
    wrong += bench.end(stage)
    shutil.rmtree(stage.base)
    return done.met, wrong


def main() -> None:
    """Sweep one place."""
    parser = argparse.ArgumentParser(prog="python -m faults.sweep", description=__doc__)
    parser.add_argument("place", choices=("hdfs", "sshd", "heritrix"))
    parser.add_argument("--work", type=Path, required=True, help="the work folder of the servers")
    parser.add_argument("--ports", type=json.loads, required=True, help="the ports of this one, in JSON")
    parser.add_argument("--count", type=int, required=True, help="cheap faults")
    parser.add_argument("--dear", type=int, default=0, help="faults that take a server many seconds")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--kind", default="", help="only kinds with this in their name")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        (_engine if args.place == "heritrix" else _store)(args, Path(folder))


def _store(args: argparse.Namespace, folder: Path) -> None:
    cheap, dear = (kinds.HDFS, kinds.DEAR_HDFS) if args.place == "hdfs" else (kinds.SFTP, {})
    bench = Bench(place_of(args.place, args.work, args.ports), folder)
    bench.prepare()
    for found, count in ((cheap, args.count), (dear, args.dear)):
        chosen = {name: broken for name, broken in found.items() if args.kind in name}
        sweep(bench, chosen, count, args.seed)


def _engine(args: argparse.Namespace, folder: Path) -> None:
    server = HeritrixServer(args.work / "heritrix", args.ports)
    with site() as port, between(server, folder) as proxy, closing(pulse.Bench(server, proxy, folder, port)) as bench:
        for found, count in ((pulse.CHEAP, args.count), (pulse.KILLS, args.dear)):
            chosen = [kind for kind in found if args.kind in pulse.NAMES.get(kind, kind)]
            pulse.Sweep(bench, chosen, random.Random(args.seed), tell).run(count)


if __name__ == "__main__":
    main()
