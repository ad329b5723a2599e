"""Measure the transfer to a real sshd beside the `sftp` command; that has no digests, and syncs only with `put -f`."""

from __future__ import annotations

import getpass
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.stores import MB, seconds, stage, started
from servers import packages, pins, sshd
from servers.sshd import Sshd
from warcmill.stores import Store
from warcmill.stores.opening import Access, adopt, open_store

Row = tuple[str, str, str, str, str]
LARGE, SMALL = (20, 50 * MB), (1_000, MB // 10)


def rows() -> Iterator[Row]:
    """Rates up and down, of large and small files, on one server started for this benchmark only."""
    with started(sshd, pins.SSHD) as server, tempfile.TemporaryDirectory() as folder:
        for count, size in (LARGE, SMALL):
            base = Path(folder) / str(count)
            base.mkdir()
            yield from _both_ways(server, base, count, size)


def _both_ways(server: Sshd, base: Path, count: int, size: int) -> Iterator[Row]:
    files, store = stage(base, count, size), _store(server, base / "there")
    peer, synced = base / "peer", base / "synced"
    peer.mkdir()
    synced.mkdir()
    copied, put = seconds(lambda: files.copy(store)), seconds(lambda: _sftp(server, f"put {files.folder}/* {peer}/"))
    safely_put = seconds(lambda: _sftp(server, f"put -f {files.folder}/* {synced}/"))
    verified, got = seconds(lambda: files.verify(store)), seconds(lambda: _sftp(server, f"get {peer}/* {base}/"))
    what = f"{count:,} x {size // 1000:,} KB by SFTP"
    target = "at most 1.3x the time" if size > MB else "-"
    yield _row(f"{what}: Copy, MB/s", count * size, copied, put, "put", target)
    yield _row("  the same, each file synced by both, MB/s", count * size, copied, safely_put, "put -f", "-")
    yield _row(f"{what}: Verify, which reads all, MB/s", count * size, verified, got, "get", target)


def _row(what: str, size: int, ours: float, peer: float, verb: str, target: str) -> Row:
    return what, f"{size / MB / ours:.0f}", f"{size / MB / peer:.0f} (sftp {verb})", f"{ours / peer:.2f}x", target


def _store(server: Sshd, folder: Path) -> Store:
    folder.mkdir()
    url = f"sftp://{getpass.getuser()}@127.0.0.1:{server.port}{folder}"
    access = Access(known_hosts=str(server.known_hosts), key_file=str(server.key))
    adopt(url, ["store"], access)
    return open_store("store", url, access)


def _sftp(server: Sshd, line: str) -> None:
    options = ["-o", f"UserKnownHostsFile={server.known_hosts}", "-i", str(server.key), "-P", str(server.port)]
    command = [str(packages.program("sftp", "openssh-client")), "-q", "-b", "-", *options, f"{server.user}@127.0.0.1"]
    subprocess.run(command, input=line.encode(), check=True, stdout=subprocess.DEVNULL)
