"""HDFS: a NameNode and two DataNodes with WebHDFS on, without security. Superuser: `hdfs`."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from servers import hadoop, pins, process
from servers.pins import HOST, Ports
from servers.ports import answers, refuse_taken
from warcmill.errors import Unavailable

NAME = "hdfs"
NAMENODE = "namenode"


@dataclass(frozen=True)
class Hdfs:
    """An HDFS: its addresses, and methods to start, stop and break it. DataNodes are numbered 1 and 2."""

    folder: Path
    ports: Ports
    user: str = hadoop.SUPERUSER

    @property
    def namenode_http(self) -> str:
        """The address of WebHDFS: `127.0.0.1:9870`."""
        return f"{HOST}:{self.ports['namenode_http']}"

    def datanode_http(self, number: int) -> str:
        """The address to which WebHDFS redirects."""
        return f"{HOST}:{self.ports[f'datanode{number}_http']}"

    def datanode_transfer(self, number: int) -> str:
        """The address of a DataNode for `excludedatanodes`."""
        return f"{HOST}:{self.ports[f'datanode{number}']}"

    def wait_ready(self, datanodes: int = 2) -> None:
        """Wait until the NameNode counts that many live DataNodes, has left safe mode, and running DataNodes answer.

        The NameNode's count is not enough: it includes a killed DataNode for 14 s, also while that one restarts.
        """

        def ready() -> bool:
            running = [number for number in (1, 2) if process.running(self.folder, f"datanode{number}")]
            listening = all(answers(self.ports[f"datanode{number}_http"]) for number in running)
            return listening and hadoop.is_ready(self.ports["namenode_http"], datanodes)

        process.wait_ready(self.folder, NAMENODE, ready, hadoop.READY_SECONDS)

    def start_namenode(self) -> None:
        """Start it without waiting: at first it refuses requests in several ways."""
        process.start(self.folder, NAMENODE, hadoop.java(self.folder, hadoop.NAMENODE), hadoop.environment())

    def stop_namenode(self) -> None:
        """End it by SIGTERM."""
        process.stop(self.folder, NAMENODE)

    def kill_namenode(self) -> None:
        """SIGKILL it; what it acknowledged is back after `start_namenode`."""
        process.kill(self.folder, NAMENODE)

    def restart_namenode(self) -> None:
        """Kill, start, wait until ready with two DataNodes: 6 to 20 s."""
        self.kill_namenode()
        self.start_namenode()
        self.wait_ready()

    def start_datanode(self, number: int) -> None:
        """Start it without waiting for the NameNode to know it."""
        hadoop.start_datanode(self.folder, number, self.ports)

    def kill_datanode(self, number: int) -> None:
        """SIGKILL it; the NameNode still sends writers there for about 14 s."""
        process.kill(self.folder, f"datanode{number}")

    def safe_mode(self, on: bool) -> None:
        """Enter or leave safe mode: reads work, writes are refused."""
        self.admin("-safemode", "enter" if on else "leave")

    def admin(self, *arguments: str) -> str:
        """Run `hdfs dfsadmin` (2 s of Java start)."""
        return hadoop.tool(self.folder, "org.apache.hadoop.hdfs.tools.DFSAdmin", *arguments)

    def shell(self, *arguments: str) -> str:
        """Run `hdfs dfs` (3 s of Java start): the peer to compare checksums and speed with."""
        return hadoop.tool(self.folder, "org.apache.hadoop.fs.FsShell", *arguments)

    def set_quota(self, path: str, *, names: int = -1, space: int = -1) -> None:
        """Limit a folder's names and bytes, replicas included; -1 lifts the limit."""
        self.webhdfs("PUT", path, f"op=SETQUOTA&namespacequota={names}&storagespacequota={space}")

    def webhdfs(self, method: str, path: str, query: str) -> object:
        """Make one call as superuser, without body and redirect; return its JSON, or None if there is none."""
        connection = http.client.HTTPConnection(HOST, self.ports["namenode_http"], timeout=30)
        try:
            connection.request(method, f"/webhdfs/v1{quote(path)}?user.name={self.user}&{query}")
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"WebHDFS at {self.namenode_http}", str(error)) from error
        finally:
            connection.close()
        if answer.status != 200:
            raise Unavailable(f"WebHDFS at {self.namenode_http}", f"{method} {path}: {answer.status} {body[:500]!r}")
        return json.loads(body) if body else None


def at(work: Path, ports: Ports = pins.HDFS) -> Hdfs:
    """The servers of this work folder, running or not."""
    return Hdfs(work / NAME, ports)


def up(work: Path, ports: Ports = pins.HDFS) -> Hdfs:
    """Start what does not run, and wait until HDFS accepts files: 12 to 25 s the first time."""
    server = at(work, ports)
    missing = [name for name in (NAMENODE, "datanode1", "datanode2") if not process.running(server.folder, name)]
    if len(missing) == 3:
        refuse_taken(NAME, ports)
        _configure(server)
        hadoop.format_once(server.folder)
    if NAMENODE in missing:
        server.start_namenode()
    for number in (1, 2):
        if f"datanode{number}" in missing:
            server.start_datanode(number)
    server.wait_ready()
    return server


def down(work: Path) -> list[str]:
    """End what `up` started, and return its names; files stay."""
    folder = work / NAME
    return [name for name in ("datanode1", "datanode2", NAMENODE) if process.stop(folder, name)]


def _configure(server: Hdfs) -> None:
    rpc = f"{HOST}:{server.ports['namenode_rpc']}"
    hadoop.configure(
        server.folder,
        core={"fs.defaultFS": f"hdfs://{rpc}"},
        hdfs={
            "dfs.namenode.name.dir": f"file://{server.folder / 'name'}",
            "dfs.namenode.rpc-address": rpc,
            "dfs.namenode.http-address": server.namenode_http,
            "dfs.replication": "2",
        },
    )
