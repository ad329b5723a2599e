"""HDFS: a NameNode and two DataNodes with WebHDFS on, without security. Superuser: `hdfs`.

The functions before `Hdfs` serve the other HDFS set-ups too: configuration files, the java command line, figures.
"""

from __future__ import annotations

import http.client
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import escape

from msgspec import Struct

from servers import packages, pins, process
from servers.pins import HOST, Ports, answers, refuse_taken
from warcmill.errors import Unavailable

NAMENODE_CLASS = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATANODE_CLASS = "org.apache.hadoop.hdfs.server.datanode.DataNode"
READY_SECONDS = 300
TOOL_SECONDS = 300
HEAP = "-Xmx192m"
SUPERUSER = "hdfs"
LOG4J = """log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""
# Allow small blocks, notice a dead DataNode after 14 s, and do not wait 400 ms when a file is closed.
COMMON_HDFS = {
    "dfs.namenode.datanode.registration.ip-hostname-check": "false",
    "dfs.namenode.fs-limits.min-block-size": "1024",
    "dfs.namenode.safemode.extension": "0",
    "dfs.namenode.safemode.min.datanodes": "1",
    "dfs.heartbeat.interval": "1",
    "dfs.namenode.heartbeat.recheck-interval": "2000",
    "dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER",
    "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
}
NAME = "hdfs"
NAMENODE = "namenode"


def configure(folder: Path, core: Mapping[str, str], hdfs: Mapping[str, str]) -> None:
    """Write `conf/`: the two site files, the log format, and the empty webapps that a daemon needs to start."""
    conf = folder / "conf"
    for webapp in ("hdfs", "datanode", "static"):
        (conf / "webapps" / webapp).mkdir(parents=True, exist_ok=True)
    (conf / "core-site.xml").write_text(_site({"hadoop.tmp.dir": str(folder / "tmp"), **core}), encoding="utf-8")
    (conf / "hdfs-site.xml").write_text(_site({**COMMON_HDFS, **hdfs}), encoding="utf-8")
    (conf / "log4j.properties").write_text(LOG4J, encoding="utf-8")


def java(folder: Path, main: str, *arguments: str, options: tuple[str, ...] = ()) -> list[str]:
    """The command line that runs the class `main` with the configuration of `folder`."""
    path = f"{folder / 'conf'}:{packages.hadoop() / 'lib'}/*"
    jvm = (HEAP, "-XX:+UseSerialGC", "-Djava.net.preferIPv4Stack=true", *options)
    return [str(packages.java()), *jvm, "-cp", path, main, *arguments]


def environment() -> dict[str, str]:
    """The environment that makes daemons and tools run as HDFS's superuser."""
    return {"HADOOP_USER_NAME": SUPERUSER}


def tool(folder: Path, main: str, *arguments: str, options: tuple[str, ...] = ()) -> str:
    """Run a Java tool (at least 2 s) and return its output; `Unavailable` if it fails."""
    what = f"{main.rsplit('.', 1)[-1]} {' '.join(arguments)}"
    return process.run(what, folder, java(folder, main, *arguments, options=options), TOOL_SECONDS, environment())


def format_once(folder: Path, *arguments: str, options: tuple[str, ...] = ()) -> None:
    """Format the NameNode, unless it is formatted already. An interrupted format is repeated."""
    stamp = folder / "formatted"
    if stamp.exists():
        return
    for name in ("name", "name-nn1", "name-nn2", "shared", "data1", "data2", "bootstrapped"):
        left = folder / name
        left.unlink() if left.is_file() else shutil.rmtree(left, ignore_errors=True)
    tool(folder, NAMENODE_CLASS, *arguments, "-format", "-nonInteractive", "-force", options=options)
    stamp.touch()


def start_datanode(folder: Path, number: int, ports: Mapping[str, int], *, host: str = HOST,
                   options: tuple[str, ...] = ()) -> None:  # fmt: skip
    """Start DataNode `number`, with its own data folder and ports. `host` is the name in redirects."""
    name = f"datanode{number}"
    arguments = (
        f"-Ddfs.datanode.hostname={host}",
        f"-Ddfs.datanode.data.dir=file://{folder / f'data{number}'}",
        f"-Ddfs.datanode.address={host}:{ports[name]}",
        f"-Ddfs.datanode.ipc.address={host}:{ports[f'{name}_ipc']}",
        f"-Ddfs.datanode.http.address={host}:{ports[f'{name}_http']}",
    )
    process.start(folder, name, java(folder, DATANODE_CLASS, *arguments, options=options), environment())


def bean(port: int, name: str) -> dict[str, object]:
    """The NameNode's figures of the bean `Hadoop:service=NameNode,name=...`; empty while it does not answer."""
    connection = http.client.HTTPConnection(HOST, port, timeout=10)
    try:
        connection.request("GET", f"/jmx?qry=Hadoop:service=NameNode,name={name}")
        beans = json.loads(connection.getresponse().read())["beans"]
    except (OSError, http.client.HTTPException, ValueError, KeyError):
        return {}
    finally:
        connection.close()
    return dict(beans[0]) if beans else {}


def is_ready(port: int, datanodes: int) -> bool:
    """True if the NameNode counts that many live DataNodes and has left safe mode."""
    live = bean(port, "FSNamesystem").get("NumLiveDataNodes") == datanodes
    return live and bean(port, "NameNodeInfo").get("Safemode") == ""


def _site(properties: Mapping[str, str]) -> str:
    entries = (
        f"  <property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
        for name, value in properties.items()
    )
    return f"<configuration>\n{''.join(entries)}</configuration>\n"


class Hdfs(Struct, frozen=True):
    """An HDFS: its addresses, and methods to start, stop and break it. DataNodes are numbered 1 and 2."""

    folder: Path
    ports: Ports
    user: str = SUPERUSER

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
            return listening and is_ready(self.ports["namenode_http"], datanodes)

        process.wait_ready(self.folder, NAMENODE, ready, READY_SECONDS)

    def start_namenode(self) -> None:
        """Start it without waiting: at first it refuses requests in several ways."""
        process.start(self.folder, NAMENODE, java(self.folder, NAMENODE_CLASS), environment())

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
        start_datanode(self.folder, number, self.ports)

    def kill_datanode(self, number: int) -> None:
        """SIGKILL it; the NameNode still sends writers there for about 14 s."""
        process.kill(self.folder, f"datanode{number}")

    def safe_mode(self, on: bool) -> None:
        """Enter or leave safe mode: reads work, writes are refused."""
        self.admin("-safemode", "enter" if on else "leave")

    def admin(self, *arguments: str) -> str:
        """Run `hdfs dfsadmin` (2 s of Java start)."""
        return tool(self.folder, "org.apache.hadoop.hdfs.tools.DFSAdmin", *arguments)

    def shell(self, *arguments: str) -> str:
        """Run `hdfs dfs` (3 s of Java start): the peer to compare checksums and speed with."""
        return tool(self.folder, "org.apache.hadoop.fs.FsShell", *arguments)

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
        format_once(server.folder)
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
    configure(
        server.folder,
        core={"fs.defaultFS": f"hdfs://{rpc}"},
        hdfs={
            "dfs.namenode.name.dir": f"file://{server.folder / 'name'}",
            "dfs.namenode.rpc-address": rpc,
            "dfs.namenode.http-address": server.namenode_http,
            "dfs.replication": "2",
        },
    )
