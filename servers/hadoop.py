"""Shared by all HDFS set-ups: configuration files, the java command line, and the NameNode's own figures."""

from __future__ import annotations

import http.client
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from servers import packages, process
from servers.pins import HOST

NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATANODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
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
    tool(folder, NAMENODE, *arguments, "-format", "-nonInteractive", "-force", options=options)
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
    process.start(folder, name, java(folder, DATANODE, *arguments, options=options), environment())


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
