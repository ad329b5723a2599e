"""Kinds of faults of the transfer: each breaks a run, reports whether it was met, and what the run came to."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from faults.bench import CALM, KILLED, SOON, Bench, Files
from faults.places import UNTOUCHED, HdfsPlace, SftpPlace
from faults.stage import BLOCK, Ended, Stage
from faults.wires import Address, Traffic, Trouble, somewhere

from servers import process

PATIENCE = (0.0, 0.3, 3.0)  # none, little, more than most troubles last
LONG = 60.0  # of a server that is started again


@dataclass(frozen=True)
class Done:
    """What became of a broken run."""

    met: bool
    ends: list[Ended]
    strangers: Files = field(default_factory=dict)
    wrong: tuple[str, ...] = ()


Break = Callable[[Bench, Stage, random.Random], Done]
Make = Callable[[random.Random, Traffic], Trouble]
Kinds = dict[str, Break]


def _at_a_byte(how: str, back: bool, seconds: tuple[float, ...] = (0.0,)) -> Make:
    def make(chance: random.Random, traffic: Traffic) -> Trouble:
        connection, at = somewhere(traffic, back, chance)
        return Trouble(how, back, at, connection, chance.choice(seconds))

    return make


def _each_after(size: int) -> Make:
    return lambda chance, _traffic: Trouble("cut", chance.random() < 0.5, size)


TROUBLES: dict[str, Make] = {
    "requests cut": _at_a_byte("cut", back=False),
    "answers cut": _at_a_byte("cut", back=True),
    "requests withheld": _at_a_byte("mute", back=False),
    "answers withheld (timed out, but done)": _at_a_byte("mute", back=True),
    "answers late": _at_a_byte("wait", back=True, seconds=(0.3, 1.5 * SOON)),
    "connections refused": lambda chance, _traffic: Trouble("refuse", seconds=chance.choice((0.2, 1.0))),
    "connections taken and hung up": lambda _chance, _traffic: Trouble("hang up"),
}
CUT_EVERY = {"NameNode": 1 << 11, "DataNode": 1 << 16, "sshd": 1 << 16}


def on_wire(name: str, make: Make) -> Break:
    """A run with one wire in trouble, by one that has little patience, or that has much."""

    def broken(bench: Bench, stage: Stage, chance: random.Random) -> Done:
        trouble = make(chance, bench.traffic[name])
        passes = trouble.connection is not None or trouble.how == "refuse"
        wire, ended = bench.disturbed(stage, name, trouble, chance.choice(PATIENCE if passes else PATIENCE[:2]))
        return Done(wire.met > 0, [ended])

    return broken


def killed(bench: Bench, stage: Stage, chance: random.Random) -> Done:
    """One run, killed at any moment."""
    run = bench.calm(stage)
    time.sleep(bench.seconds * chance.random())
    run.kill()
    ended = run.wait()
    return Done(ended.status == KILLED, [ended])


def race(count: int) -> Break:
    """As many runs of one stage at once: all succeed, for each finds what another has done."""

    def broken(bench: Bench, stage: Stage, _chance: random.Random) -> Done:
        ends = [run.wait() for run in [bench.calm(stage) for _ in range(count)]]
        return Done(True, ends, wrong=tuple(_failed(ends)))

    return broken


def race_one_killed(bench: Bench, stage: Stage, chance: random.Random) -> Done:
    """Two runs at once, of which one is killed: the other succeeds."""
    victim, other = bench.calm(stage), bench.calm(stage)
    time.sleep(bench.seconds * chance.random())
    victim.kill()
    ends = [victim.wait(), other.wait()]
    return Done(ends[0].status == KILLED, ends, wrong=tuple(_failed(ends[1:])))


def _failed(ends: list[Ended]) -> Iterator[str]:
    return (f"a racer failed: {one.kind} {one.message}" for one in ends if one.status != 0)


def taken(bench: Bench, stage: Stage, chance: random.Random) -> Done:
    """Another file is where one of ours belongs: it stays, and the error names it."""
    path = chance.choice(sorted(bench.files.keys() - UNTOUCHED.keys()))
    bench.place.put(path, chance.randbytes(chance.choice((0, 10, 3_000))))
    strangers = {path: bench.place.files()[path]}
    ended = bench.calm(stage).wait()
    return Done(True, [ended], strangers, _unless("another file is there" in ended.message, ended))


def _unless(told: bool, ended: Ended) -> tuple[str, ...]:
    return () if told else (f"not told of: {ended.status} {ended.kind} {ended.message}",)


def refused(word: str, before: Callable[[Bench, random.Random], object], after: Callable[[Bench], object]) -> Break:
    """A run that the server refuses something, in its own `word`, from the first or when its first files are there."""

    def broken(bench: Bench, stage: Stage, chance: random.Random) -> Done:
        before(bench, chance)
        try:
            ended = bench.calm(stage).wait()
        finally:
            after(bench)
        return Done(word in ended.message, [ended])

    return broken


def midway(
    name: str, act: Callable[[Bench, Address], object], mend: Callable[[Bench], object], patience: tuple[float, ...]
) -> Break:
    """Something happens to the server when a byte of an undisturbed run's goes by."""

    def broken(bench: Bench, stage: Stage, chance: random.Random) -> Done:
        connection, at = somewhere(bench.traffic[name], False, chance)
        trouble = Trouble("act", False, at, connection, action=lambda upstream: act(bench, upstream))
        try:
            wire, ended = bench.disturbed(stage, name, trouble, chance.choice(patience), CALM[1])
        finally:
            mend(bench)
        return Done(wire.met > 0, [ended])

    return broken


def _hdfs(bench: Bench) -> HdfsPlace:
    assert isinstance(bench.place, HdfsPlace)
    return bench.place


def _sftp(bench: Bench) -> SftpPlace:
    assert isinstance(bench.place, SftpPlace)
    return bench.place


def nobody(bench: Bench, stage: Stage, _chance: random.Random) -> Done:
    """A run by a user who may not write there."""
    ended = stage.start(lambda: _hdfs(bench).open({}, *CALM, user="nobody")).wait()
    return Done("AccessControlException" in ended.message, [ended])


def _bounce_namenode(bench: Bench, _: Address) -> None:
    _hdfs(bench).server.kill_namenode()
    _hdfs(bench).server.start_namenode()


def _kill_datanode(bench: Bench, datanode: Address) -> None:
    _hdfs(bench).server.kill_datanode(_hdfs(bench).number(datanode))


def _start_datanodes(bench: Bench) -> None:
    server = _hdfs(bench).server
    for number in (1, 2):
        if not process.running(server.folder, f"datanode{number}"):
            server.start_datanode(number)
    server.wait_ready()


def _wires(names: tuple[str, ...]) -> Kinds:
    found = {f"{name}: {what}": on_wire(name, make) for name in names for what, make in TROUBLES.items()}
    for name in names:
        size = CUT_EVERY[name]
        found[f"{name}: every connection cut after {size >> 10} KiB"] = on_wire(name, _each_after(size))
    return found


COPIERS: Kinds = {
    "copier killed": killed,
    "two copiers race": race(2),
    "four copiers race": race(4),
    "two copiers race, one is killed": race_one_killed,
    "another file in its place": taken,
}
HDFS: Kinds = {
    **_wires(("NameNode", "DataNode")),
    **COPIERS,
    "quota of names hit": refused(
        "NSQuotaExceededException",
        lambda bench, chance: _hdfs(bench).quota(names=chance.randint(1, 8)),
        lambda bench: _hdfs(bench).quota(),
    ),
    "quota of bytes hit": refused(
        "DSQuotaExceededException",
        lambda bench, chance: _hdfs(bench).quota(space=chance.randint(1, 6) * 2 * BLOCK),
        lambda bench: _hdfs(bench).quota(),
    ),
    "permission denied": nobody,
}
DEAR_HDFS: Kinds = {
    "NameNode killed and started again": midway(
        "DataNode", _bounce_namenode, lambda bench: _hdfs(bench).server.wait_ready(), (0.3, LONG)
    ),
    "safe mode entered": midway(
        "NameNode",
        lambda bench, _: _hdfs(bench).server.safe_mode(True),
        lambda bench: _hdfs(bench).server.safe_mode(False),
        (0.3,),
    ),
    "DataNode killed": midway("DataNode", _kill_datanode, _start_datanodes, (0.3, LONG)),
}
SFTP: Kinds = {
    **_wires(("sshd",)),
    **COPIERS,
    "sessions of sshd killed": midway("sshd", lambda bench, _: _sftp(bench).server.cut(), lambda _: None, PATIENCE),
    "sshd killed and started again": midway(
        "sshd", lambda bench, _: _sftp(bench).server.restart(), lambda _: None, PATIENCE
    ),
    "disk full": refused(
        "Failure",
        lambda bench, chance: _sftp(bench).server.limit_files(chance.randrange(100, 200_000)),
        lambda bench: _sftp(bench).server.limit_files(),
    ),
}
