"""The two far places, each with the wires that lead there, and a way to look at it that shares nothing with them."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from faults.stage import BLOCK
from faults.wires import Address, Wire
from storing.remote_places import InHdfs, OverSsh, Proxied, Rerouted

from servers.hdfs import Hdfs
from servers.sshd import Sshd
from warcmill.layout import SENTINEL
from warcmill.stores import Store, temporary_names
from warcmill.stores.remote_files import Budget
from warcmill.stores.sftp import ssh
from warcmill.stores.sftp.pool import SessionPool
from warcmill.stores.sftp.session import SftpSession
from warcmill.stores.sftp.ssh import connect
from warcmill.stores.sftp.store import SftpStore
from warcmill.stores.webhdfs.client import Client, NameNodes, UserName
from warcmill.stores.webhdfs.http import Address as HttpAddress
from warcmill.stores.webhdfs.store import WebHdfsStore

KINDS = ("warcs", "viral", "logs")
UNTOUCHED = {
    "warcs/other/20161019234428/another.warc.gz": b"of another launch",
    "warcs/daily/20161019234428/.BL-00003.warc.gz.elsewhere.0.1.01234567.tmp": b"half-written by another host",
}
Wires = Mapping[str, Wire]


class Place(Protocol):
    """A root on a server."""

    name: str
    upstreams: Mapping[str, tuple[Address, ...]]

    def open(self, wires: Wires, patience: float, answer: float) -> Store:
        """The root's store, through those wires; what is not named is reached as it is."""

    def files(self) -> dict[str, str]:
        """All files but the sentinel: path and sha512; half-written ones are only named."""

    def clear(self) -> None:
        """Empty but for what nobody may touch."""

    def put(self, path: str, data: bytes) -> None:
        """Put a file there."""

    def delete(self, path: str) -> None:
        """Take a file away."""


def digests(paths: list[str], read: Callable[[str], bytes]) -> dict[str, str]:
    """sha512 by path, '' for half-written files, which may not be readable."""

    def digest(path: str) -> str:
        return "" if temporary_names.is_temporary(path.rpartition("/")[2]) else hashlib.sha512(read(path)).hexdigest()

    return {path: digest(path) for path in paths if path != SENTINEL}


class HdfsPlace:
    """A root in HDFS: a wire to the NameNode, one to the DataNodes."""

    name = "HDFS"

    def __init__(self, server: Hdfs, folder: str) -> None:
        self.server, self.root = server, InHdfs(server, folder)
        self.upstreams = {
            "NameNode": (_address(server.namenode_http),),
            "DataNode": (_address(server.datanode_http(1)), _address(server.datanode_http(2))),
        }

    def open(self, wires: Wires, patience: float, answer: float, user: str = "") -> Store:
        ways = {
            HttpAddress(*upstream): HttpAddress("127.0.0.1", port)
            for name, wire in wires.items()
            for upstream, port in zip(self.upstreams[name], wire.ports, strict=True)
        }
        cluster = NameNodes.parse(self.root.url)
        client = Client(cluster, Budget(patience), Rerouted(ways, answer), UserName(user or cluster.user))
        return WebHdfsStore("store", client, cluster.path, BLOCK)

    def files(self) -> dict[str, str]:
        return digests(list(self.root.walk("")), self.root.read)

    def clear(self) -> None:
        self.quota()
        for kind in KINDS:
            self.server.webhdfs("DELETE", f"{self.root.base}/{kind}", "op=DELETE&recursive=true")
        for path, data in UNTOUCHED.items():
            self.put(path, data)

    def put(self, path: str, data: bytes) -> None:
        self.root.write(path, data)

    def delete(self, path: str) -> None:
        self.root.delete(path)

    def quota(self, *, names: int = 0, space: int = 0) -> None:
        """Leave room for so many names or bytes more; without either, lift the limits."""
        used: Any = self.server.webhdfs("GET", self.root.base, "op=GETCONTENTSUMMARY")
        summary = used["ContentSummary"]
        limits = {
            "names": summary["fileCount"] + summary["directoryCount"] + names if names else -1,
            "space": summary["spaceConsumed"] + space if space else -1,
        }
        self.server.set_quota(self.root.base, **limits)

    def number(self, datanode: Address) -> int:
        """Which DataNode listens there."""
        return 1 + self.upstreams["DataNode"].index(datanode)


class SftpPlace:
    """A root on an SSH host, which is this one: its disk is looked at directly."""

    name = "SFTP"

    def __init__(self, server: Sshd, folder: str) -> None:
        self.server, self.root = server, OverSsh(server, folder)
        self.upstreams = {"sshd": (("127.0.0.1", server.port),)}
        ssh.CONNECT_SECONDS = 1.0  # type: ignore[misc]  # a handshake that is withheld is soon given up

    def open(self, wires: Wires, patience: float, answer: float) -> Store:
        at = self.root.ssh
        here = Proxied(at.user, at.host, wires["sshd"].ports[0], behind=at) if wires else at
        pool = SessionPool(
            str(here), lambda: SftpSession(str(here), connect(here, self.root.credentials, answer)), Budget(patience)
        )
        return SftpStore("store", pool, str(self.root.base))

    def files(self) -> dict[str, str]:
        found = [path for path in self.root.base.rglob("*") if path.is_file()]
        names = [os.fsdecode(path.relative_to(self.root.base)) for path in found]
        return digests(names, lambda path: (self.root.base / path).read_bytes())

    def clear(self) -> None:
        for kind in KINDS:
            folder = self.root.base / kind
            folder.unlink() if folder.is_file() else shutil.rmtree(folder, ignore_errors=True)
        for path, data in UNTOUCHED.items():
            self.put(path, data)

    def put(self, path: str, data: bytes) -> None:
        self.root.write(path, data)

    def delete(self, path: str) -> None:
        self.root.delete(path)


def _address(text: str) -> Address:
    host, _, port = text.partition(":")
    return host, int(port)


def place_of(name: str, work: Path, ports: dict[str, int]) -> Place:
    """The place of a server that runs in a work folder, in a root that nobody else has."""
    root = f"faults-{os.getpid()}-{random.SystemRandom().randrange(1 << 32):08x}"
    if name == "hdfs":
        return HdfsPlace(Hdfs(work / "hdfs", ports), root)
    return SftpPlace(Sshd(work / "sshd", ports), root)
