"""Break a run at every call it makes, run it again, and compare: `python -m crash.sweep SCENARIO ...`."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from crash import durable, runs, tree
from crash.line import SCENARIOS, Scenario, sweep_up
from crash.runs import Fault, Trace
from crash.tree import Reference

from warcmill import layout

SIDE_BY_SIDE = 2
SHOWN = 40
NAMES = ("link", "rename")  # calls that give a file its final name


@dataclass(frozen=True)
class Bench:
    """A scenario with its undisturbed run, ready to be broken."""

    scenario: Scenario
    base: Path
    trace: Trace
    before: tree.Tree
    reference: Reference
    work: Path


def prepare(scenario: Scenario, work: Path) -> Bench:
    """Lay out, run undisturbed, twice: traced, and not, which must come to the same."""
    base = work / "base"
    status, _ = runs.child(lambda: bool(scenario.prepare(base) is None), work / "prepare.log")
    if status != 0:
        raise AssertionError((work / "prepare.log").read_text())
    folder = runs.copy_of(base, work / "undisturbed")
    before, needs = tree.read(folder), tree.needs_of(folder)
    trace = runs.trace(scenario, folder, work / "trace")
    reference = Reference.of(tree.proofs(before), needs, folder)
    again = runs.copy_of(base, work / "again")
    status = runs.undisturbed(scenario, again, work / "again.log")
    wrong = [
        *trace.unseen,
        *reference.end(tree.read(again)),
        *durable.differences(before, trace.calls, folder),
    ]
    if status != 0 or wrong:
        raise AssertionError(f"undisturbed: {status}, {wrong[:SHOWN]}")
    return Bench(scenario, base, trace, before, reference, work)


def points(trace: Trace, every_read: bool = False) -> list[Fault]:
    """Every call that changes or syncs something, in every way that it can go wrong; reads that fail, or are killed.

    Of reads of one path by one chain of steps the first stands for all, unless `every_read`.
    """
    seen: set[tuple[str, str]] = set()
    faults: list[Fault] = []
    for at, call in enumerate(trace.calls):
        mark = (trace.chain_at(at), str(call))
        if every_read or not runs.is_read(call) or mark not in seen:
            faults += [Fault(kind, at) for kind in runs.kinds_for(call)]
        seen.add(mark)
    return faults


def sample(trace: Trace, faults: Sequence[Fault]) -> list[Fault]:
    """A fixed part of the points, in their order: two of each step, and each way to go wrong at least once.

    A step is killed at the call that names its marker, and just after that.
    """
    kinds = {fault.kind: fault for fault in reversed(faults)}
    by_step: dict[str, list[Fault]] = {}
    for fault in faults:
        by_step.setdefault(trace.step_at(fault.at), []).append(fault)
    some = {*kinds.values(), *(fault for found in by_step.values() for fault in _around_its_marker(trace, found))}
    return [fault for fault in faults if fault in some]


def _around_its_marker(trace: Trace, faults: Sequence[Fault]) -> Iterator[Fault]:
    """The points of a step at the call that names its marker: without one, its last file; without that, its first."""
    naming = [fault.at for fault in faults if trace.calls[fault.at].op in NAMES]
    markers = [at for at in naming if layout.parse_marker_path(trace.calls[at].to.removeprefix("state/"))]
    at = [faults[0].at, *naming, *markers][-1]
    yield from [fault for fault in faults if fault.at >= at and fault.kind == "kill"][:2]


def names(trace: Trace, faults: Sequence[Fault]) -> Iterator[str]:
    """The points, a line for each step, each as `--at` and `--kind` take it."""
    by_step: dict[str, list[str]] = {}
    for fault in faults:
        step = trace.step_at(fault.at) or ("after the last step" if trace.steps else "no step")
        by_step.setdefault(step, []).append(f"{fault.at} {fault.kind}")
    yield from (f"    {step}: {', '.join(found)}" for step, found in by_step.items())


def try_point(bench: Bench, fault: Fault) -> list[str]:
    """One broken run, and one that follows it; what is wrong."""
    name = f"{fault.at}-{fault.kind}"
    folder = runs.copy_of(bench.base, bench.work / name)
    log = bench.work / f"{name}.log"
    call = bench.trace.calls[fault.at]
    status, met = runs.disturbed(bench.scenario, folder, fault, str(call), log)
    wrong = [] if met == "reached" else [met]
    wrong += _dishonest(bench, fault, status, folder)
    wrong += bench.reference.moment(tree.read(folder))
    said = log.read_text(errors="replace")
    log.write_text("")
    wrong += recover(bench, folder, log)
    said += log.read_text(errors="replace") if wrong else ""
    shutil.rmtree(folder)
    log.unlink()
    telling = [line for line in said.splitlines() if wrong and re.search("WARN|ERROR|Error|[Tt]raceback", line)]
    place = f"{bench.scenario.name}, call {fault.at} ({call}), {fault.kind}"
    return [*(f"{place}: {one}" for one in wrong), *(f"  it said: {line}" for line in telling[:6])]


def _dishonest(bench: Bench, fault: Fault, status: int, folder: Path) -> Iterator[str]:
    """A killed run was killed; another reports that it failed, or has done everything."""
    if fault.kind.startswith("kill"):
        if status != -9:
            yield f"the run ended with {status}, it should have been killed"
    elif status == 0:
        sweep_up(folder)
        wrong = bench.reference.end(tree.read(folder), but_summaries=True)  # they tell their trouble in the log
        yield from (f"the run says it succeeded, but {one}" for one in wrong)
    elif status != 1:
        yield f"the run ended with {status}, neither a success nor a failure"


def recover(bench: Bench, folder: Path, log: Path) -> Iterator[str]:
    """Run again, sweep, and compare with the undisturbed run."""
    status = runs.undisturbed(bench.scenario, folder, log)
    if status != 0:
        yield f"the run that follows ended with {status}"
    sweep_up(folder)
    yield from bench.reference.end(tree.read(folder))
    yield from tree.settled_twice(folder)


def sweep(bench: Bench, faults: Sequence[Fault]) -> list[str]:
    """Try all points, two at a time; what is wrong."""
    notes = [bench.work / f"notes-{number}" for number in range(SIDE_BY_SIDE)]
    pids = [_worker(bench, faults[number::SIDE_BY_SIDE], note) for number, note in enumerate(notes)]
    ended = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    wrong = [line for note in notes for line in json.loads(note.read_text() or "[]")]
    return wrong + [f"a worker of the harness ended with {code}" for code in ended if code != 0]


def _worker(bench: Bench, faults: Sequence[Fault], note: Path) -> int:
    note.touch()
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            found = [line for fault in faults for line in try_point(bench, fault)]
            note.write_text(json.dumps(found))
            code = 0
        except BaseException:  # noqa: BLE001 - nothing may get out of a forked child
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return pid


@contextmanager
def workplace() -> Iterator[Path]:
    """A folder in memory where there is one: a kill leaves the same there as on a disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None, prefix="warcmill-") as folder:
        yield Path(folder).resolve()


def report(name: str, faults: Sequence[Fault], calls: int, wrong: Sequence[str]) -> str:
    """The result in a few lines."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(fault.kind for fault in faults).items()))
    violations = sum(not line.startswith("  ") for line in wrong)
    head = f"{name}: calls traced: {calls}, points tried: {len(faults)} ({kinds}), violations: {violations}"
    return "\n".join([head, *wrong[:SHOWN]])


def run(scenario: Scenario, args: argparse.Namespace) -> tuple[str, bool]:
    """Sweep one scenario; its report, and whether all is well."""
    with workplace() as work:
        bench = prepare(scenario, work)
        wrong = list(durable.unsynced(bench.trace, bench.before, bench.reference))
        found = points(bench.trace, args.every_read)
        faults = [one for one in found if one.at in (args.at or [one.at]) and one.kind in (args.kind or runs.KINDS)]
        some = sample(bench.trace, faults) if args.sample else faults
        wrong += sweep(bench, some)
        text = report(scenario.name, some, len(bench.trace.calls), wrong)
        if args.sample:
            text = "\n".join([text, f"  a fixed sample of {len(faults)} points:", *names(bench.trace, some)])
        return text, not wrong


def main() -> int:
    """Sweep the scenarios named; 1 when anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m crash.sweep", description=__doc__)
    parser.add_argument("scenarios", nargs="+", choices=SCENARIOS)
    parser.add_argument("--at", type=int, action="append", default=[], help="only this call, to look into a finding")
    parser.add_argument("--kind", action="append", default=[], choices=runs.KINDS, help="only faults of this kind")
    parser.add_argument("--sample", action="store_true", help="only a fixed part of the points, which it prints")
    parser.add_argument("--every-read", action="store_true", help="fail also reads that a step does again")
    args = parser.parse_args()
    fine = True
    for name in args.scenarios:
        text, good = run(SCENARIOS[name], args)
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
        fine = fine and good
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
