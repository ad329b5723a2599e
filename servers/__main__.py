"""`./scripts/services up|down|status|logs [NAME ...]`."""

from __future__ import annotations

import argparse
import fcntl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from servers import (
    clamd,
    cluster,
    hdfs,
    hdfs_ha,
    hdfs_kerberos,
    heritrix,
    kafka,
    luigid,
    package_index,
    packages,
    pins,
    postgresql,
    process,
    redis,
    solr,
    sshd,
    versitygw,
    zookeeper,
)
from servers.pins import HOST, Ports
from warcmill.errors import WarcmillError


class ServerModule(Struct, frozen=True):
    """A server that this command controls: the interface of its module."""

    up: Callable[[Path], object]
    down: Callable[[Path], list[str]]
    ports: Ports


SERVERS = {
    heritrix.NAME: ServerModule(heritrix.up, heritrix.down, pins.HERITRIX),
    hdfs.NAME: ServerModule(hdfs.up, hdfs.down, pins.HDFS),
    hdfs_ha.NAME: ServerModule(hdfs_ha.up, hdfs_ha.down, pins.HDFS_HA),
    hdfs_kerberos.NAME: ServerModule(hdfs_kerberos.up, hdfs_kerberos.down, pins.HDFS_KERBEROS),
    sshd.NAME: ServerModule(sshd.up, sshd.down, pins.SSHD),
    luigid.NAME: ServerModule(luigid.up, luigid.down, pins.LUIGID),
    clamd.NAME: ServerModule(clamd.up, clamd.down, pins.CLAMD),
    solr.NAME: ServerModule(solr.up, solr.down, pins.SOLR),
    redis.NAME: ServerModule(redis.up, redis.down, pins.REDIS),
    postgresql.NAME: ServerModule(postgresql.up, postgresql.down, pins.POSTGRESQL),
    zookeeper.NAME: ServerModule(zookeeper.up, zookeeper.down, pins.ZOOKEEPER),
    kafka.NAME: ServerModule(kafka.up, kafka.down, pins.KAFKA),
    package_index.NAME: ServerModule(package_index.up, package_index.down, pins.PACKAGE_INDEX),
    versitygw.NAME: ServerModule(versitygw.up, versitygw.down, pins.VERSITYGW),
    cluster.DASK: ServerModule(cluster.dask_up, cluster.dask_down, pins.DASK),
    cluster.SPARK: ServerModule(cluster.spark_up, cluster.spark_down, pins.SPARK),
}
USUAL = ("heritrix", "hdfs", "sshd", "luigid")


def main(arguments: list[str]) -> int:
    """Run the command line; return 0, or the exit code of a server that could not be started, ended or found."""
    parser = argparse.ArgumentParser(prog="./scripts/services", description="Real servers on loopback.")
    parser.add_argument("verb", choices=("up", "down", "status", "logs"))
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(SERVERS)}; up starts {', '.join(USUAL)}"
    )
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.names) - set(SERVERS)
    if unknown:
        parser.error(f"no server is called {', '.join(sorted(unknown))}; there are {', '.join(SERVERS)}")
    work = packages.default_work()
    try:
        for name in chosen.names or (USUAL if chosen.verb == "up" else SERVERS):
            VERBS[chosen.verb](work, name)
    except WarcmillError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def _up(work: Path, name: str) -> None:
    with _locked(work, name):
        before = _alive(work, name)
        SERVERS[name].up(work)
    print(f"{name}: {'is up already' if before == _alive(work, name) else 'is up'}, {_addresses(name)}")


def _down(work: Path, name: str) -> None:
    with _locked(work, name):
        ended = SERVERS[name].down(work)
    print(f"{name}: {'ended ' + ', '.join(ended) if ended else 'was not up'}")


@contextmanager
def _locked(work: Path, name: str) -> Iterator[None]:
    """Wait until no other `scripts/services` starts or ends this server, and keep others out."""
    work.mkdir(parents=True, exist_ok=True)
    with (work / f".{name}.lock").open("w") as lock:  # released when this process ends; no server inherits it
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _status(work: Path, name: str) -> None:
    alive = _alive(work, name)
    parts = process.names(work / name)
    state = "down" if not alive else "up" if len(alive) == len(parts) else "partly up"
    pids = " ".join(f"{part}:{pid}" for part, pid in alive.items())
    print(f"{name:<14} {state:<10} {_addresses(name) if alive else '':<40} {pids}".rstrip())


def _logs(work: Path, name: str) -> None:
    for part in process.names(work / name):
        print(process.tail(work / name, part, lines=40))


def _alive(work: Path, name: str) -> dict[str, int]:
    folder = work / name
    processes = {part: process.running(folder, part) for part in process.names(folder)}
    return {part: running.pid for part, running in processes.items() if running is not None}


def _addresses(name: str) -> str:
    """The address that a user connects to first: HTTP if there is one."""
    ports = SERVERS[name].ports
    use = next((use for use in ports if use.endswith("http")), next(iter(ports)))
    return f"{HOST}:{ports[use]} ({use})"


VERBS = {"up": _up, "down": _down, "status": _status, "logs": _logs}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
