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
    """A running HDFS, its addresses and its faults. DataNodes are numbered 1 and 2."""

    folder: Path
    ports: Ports
    user: str = hadoop.SUPERUSER

    @property
    def namenode_http(self) -> str:
        """Where WebHDFS is: `127.0.0.1:9870`."""
        return f"{HOST}:{self.ports['namenode_http']}"

    def datanode_http(self, number: int) -> str:
        """Where WebHDFS's redirects lead."""
        return f"{HOST}:{self.ports[f'datanode{number}_http']}"

    def datanode_transfer(self, number: int) -> str:
        """The address that `excludedatanodes` understands."""
        return f"{HOST}:{self.ports[f'datanode{number}']}"

    def wait_ready(self, datanodes: int = 2) -> None:
        """Until the NameNode counts that many living DataNodes and is out of safe mode, and those that run answer.

        The NameNode alone does not tell: it counts a killed one for 14 s more, also while that one starts again.
        """

        def ready() -> bool:
            running = [number for number in (1, 2) if process.running(self.folder, f"datanode{number}")]
            listening = all(answers(self.ports[f"datanode{number}_http"]) for number in running)
            return listening and hadoop.is_ready(self.ports["namenode_http"], datanodes)

        process.wait_ready(self.folder, NAMENODE, ready, hadoop.READY_SECONDS)

    def start_namenode(self) -> None:
        """Start it, not waiting: right now it answers with refusals of several kinds."""
        process.start(self.folder, NAMENODE, hadoop.java(self.folder, hadoop.NAMENODE), hadoop.environment())

    def stop_namenode(self) -> None:
        """An orderly end."""
        process.stop(self.folder, NAMENODE)

    def kill_namenode(self) -> None:
        """SIGKILL; what it had acknowledged is there again after `start_namenode`."""
        process.kill(self.folder, NAMENODE)

    def restart_namenode(self) -> None:
        """Kill, start, wait until ready with two DataNodes: 6 to 20 s."""
        self.kill_namenode()
        self.start_namenode()
        self.wait_ready()

    def start_datanode(self, number: int) -> None:
        """Start it, not waiting until the NameNode knows it."""
        hadoop.start_datanode(self.folder, number, self.ports)

    def kill_datanode(self, number: int) -> None:
        """SIGKILL; the NameNode goes on sending writers there for about 14 s."""
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
        """One call that needs no body and no redirect, as superuser; returns its JSON, None if it sends none."""
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
    """The server of this work folder, running or not."""
    return Hdfs(work / NAME, ports)


def up(work: Path, ports: Ports = pins.HDFS) -> Hdfs:
    """Start what does not run, and wait until HDFS takes files: 12 to 25 s the first time."""
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
    """End what `up` started; files stay. Returns the names of what was ended."""
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
