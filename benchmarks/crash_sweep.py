"""Interrupt the line over a folder of real crawls many times, and compare the result with an undisturbed run.

    python -m benchmarks.crash_sweep FOLDER [--layout job-first] [--rounds 50] [--faults 5] [--seed 1]

Each round takes a fresh copy of FOLDER, breaks several runs at random calls
(killed, a disk error, or a full disk), checks what each has left, and then runs
undisturbed. WARCs are retired, too. Without FOLDER: breaks the bundled launch at
every call, with repeated reads, which takes half an hour.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "scripts")]  # the folders of the harness and the bundled launch

from crash import durable, runs, sweep, tree  # noqa: E402
from crash.line import SCENARIOS, Scenario, line_of, run_line  # noqa: E402
from crash.runs import Fault  # noqa: E402
from crash.sweep import Bench  # noqa: E402


def main() -> int:
    """Sweep; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crash_sweep", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="an engine's output with its jobs")
    parser.add_argument("--layout", choices=["kind-first", "job-first"], default="kind-first")
    parser.add_argument("--rounds", type=int, default=50, help="fresh copies (default: 50)")
    parser.add_argument("--faults", type=int, default=5, help="broken runs a round (default: 5)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.folder is None:
        every = argparse.Namespace(every_read=True, sample=False, each=1, at=[], kind=[])
        text, fine = sweep.run(SCENARIOS["line"], every)
        print(text)
        return 0 if fine else 1
    return corpus(args)


def corpus(args: argparse.Namespace) -> int:
    """Rounds of several faults over a folder of crawls."""
    scenario = Scenario("corpus", partial(line_of, args.folder.resolve(), args.layout), run_line)
    with sweep.workplace() as work:
        bench = sweep.prepare(scenario, work)
        wrong = list(durable.unsynced(bench.trace, bench.before, bench.reference))
        print(f"calls traced: {len(bench.trace.calls)}, markers: {len(bench.reference.needs)}", file=sys.stderr)
        tried = 0
        for faults, violations in _side_by_side(bench, args):
            tried += faults
            wrong += violations
    print(f"{args.folder.name}: rounds: {args.rounds}, points tried: {tried}, violations: {len(wrong)}")
    print(*wrong[: sweep.SHOWN], sep="\n")
    return 1 if wrong else 0


def _side_by_side(bench: Bench, args: argparse.Namespace) -> Iterator[tuple[int, list[str]]]:
    """Run rounds in parallel, one for each worker; yield for each how many faults took effect, and what was wrong."""
    numbers = list(range(args.rounds))
    for first in range(0, args.rounds, sweep.SIDE_BY_SIDE):
        batch = numbers[first : first + sweep.SIDE_BY_SIDE]
        pids = [_fork(bench, number, args) for number in batch]
        for pid, number in zip(pids, batch, strict=True):
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            note = bench.work / f"round-{number}.json"
            yield json.loads(note.read_text()) if code == 0 else (0, [f"round {number} ended with {code}"])
        print(f"rounds: {batch[-1] + 1} of {args.rounds}", file=sys.stderr)


def _fork(bench: Bench, number: int, args: argparse.Namespace) -> int:
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            result = one_round(bench, number, args)
            (bench.work / f"round-{number}.json").write_text(json.dumps(result))
            code = 0
        finally:
            sys.stderr.flush()
            os._exit(code)
    return pid


def one_round(bench: Bench, number: int, args: argparse.Namespace) -> tuple[int, list[str]]:
    """Break several runs in turn, then run undisturbed; return how many faults took effect, and what was wrong."""
    chance = random.Random(f"{args.seed} {number}")
    folder, log = runs.copy_of(bench.base, bench.work / f"round-{number}"), bench.work / f"round-{number}.log"
    met, wrong, faults = 0, [], []
    for _ in range(args.faults):  # mostly early calls: later runs make fewer, as finished work is not repeated
        fault = Fault(chance.choice(sorted(runs.KINDS)), int(len(bench.trace.calls) * chance.random() ** 3))
        status, note = runs.disturbed(bench.scenario, folder, fault, "", log)
        met += note == "reached"
        faults.append(f"{fault.kind} at {fault.at} ({status})")
        wrong += bench.reference.moment(tree.read(folder))
        if status not in (0, 1, -9):
            wrong.append(f"a run ended with {status}")
    wrong += sweep.recover(bench, folder, log)
    shutil.rmtree(folder)
    return met, [f"round {number}, {', '.join(faults)}: {violation}" for violation in wrong]


if __name__ == "__main__":
    sys.exit(main())
