"""HDFS with two NameNodes, one active and one standby, and one DataNode; edits are shared in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import Struct

from servers import hdfs as hadoop
from servers import pins, process
from servers.pins import HOST, Ports, refuse_taken

NAME = "hdfs-ha"
NAMENODES: Final = ("nn1", "nn2")
FAILOVER = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"


class HdfsHa(Struct, frozen=True):
    """A pair of NameNodes, nn1 and nn2: their addresses, and methods to start, stop and break them."""

    folder: Path
    ports: Ports
    user: str = hadoop.SUPERUSER

    def namenode_http(self, name: str) -> str:
        """The address of WebHDFS on nn1 or nn2."""
        return f"{HOST}:{self.ports[f'{name}_http']}"

    @property
    def datanode_http(self) -> str:
        """The address to which WebHDFS redirects."""
        return f"{HOST}:{self.ports['datanode1_http']}"

    def state(self, name: str) -> str:
        """`active`, `standby`, or empty if it does not answer."""
        return str(hadoop.bean(self.ports[f"{name}_http"], "NameNodeStatus").get("State", ""))

    def activate(self, name: str) -> None:
        """Make a standby active. No other may be active; the other may be dead."""
        self._admin("-transitionToActive", "--forceactive", name)  # without force the other one must answer
        self.wait_ready(name)

    def fail_over(self, active: str, standby: str) -> None:
        """Make the active one standby, then the standby active (about 4 s), once it knows the DataNode.

        Before that, the standby is in safe mode, and the failover is refused.
        """
        self._wait_able(standby)
        self._admin("-failover", active, standby)
        self.wait_ready(standby)

    def start_namenode(self, name: str) -> None:
        """Start it as standby, and wait until it answers."""
        command = hadoop.java(self.folder, hadoop.NAMENODE_CLASS, f"-Ddfs.ha.namenode.id={name}")
        process.start(self.folder, name, command, hadoop.environment())
        process.wait_ready(self.folder, name, lambda: self.state(name) != "", hadoop.READY_SECONDS)

    def kill_namenode(self, name: str) -> None:
        """SIGKILL it; the other stays standby until `activate`."""
        process.kill(self.folder, name)

    def wait_ready(self, name: str) -> None:
        """Wait until it is active, knows the DataNode, and has left safe mode."""
        process.wait_ready(self.folder, name, lambda: self.state(name) == "active", hadoop.READY_SECONDS)
        self._wait_able(name)

    def _wait_able(self, name: str) -> None:
        port = self.ports[f"{name}_http"]
        process.wait_ready(self.folder, name, lambda: hadoop.is_ready(port, 1), hadoop.READY_SECONDS)

    def _admin(self, *arguments: str) -> None:
        hadoop.tool(self.folder, "org.apache.hadoop.hdfs.tools.DFSHAAdmin", *arguments)


def at(work: Path, ports: Ports = pins.HDFS_HA) -> HdfsHa:
    """The servers of this work folder, running or not."""
    return HdfsHa(work / NAME, ports)


def up(work: Path, ports: Ports = pins.HDFS_HA) -> HdfsHa:
    """Start what does not run; make nn1 active if none is."""
    pair = at(work, ports)
    missing = [name for name in (*NAMENODES, "datanode1") if process.running(pair.folder, name) is None]
    if len(missing) == len(NAMENODES) + 1:
        refuse_taken(NAME, ports)
        _configure(pair)
        hadoop.format_once(pair.folder, "-Ddfs.ha.namenode.id=nn1")
    if "datanode1" in missing:
        hadoop.start_datanode(pair.folder, 1, ports)
    if "nn1" in missing:
        pair.start_namenode("nn1")
    if "nn2" in missing:
        _bootstrap_once(pair.folder)
        pair.start_namenode("nn2")
    if "active" not in (pair.state("nn1"), pair.state("nn2")):
        pair.activate("nn1")
    return pair


def down(work: Path) -> list[str]:
    """End what `up` started, and return its names; files stay."""
    return [name for name in ("datanode1", "nn2", "nn1") if process.stop(work / NAME, name)]


def _bootstrap_once(folder: Path) -> None:
    """Copy the namespace of the running nn1 to nn2, unless that was done before."""
    stamp = folder / "bootstrapped"
    if not stamp.exists():
        arguments = ("-Ddfs.ha.namenode.id=nn2", "-bootstrapStandby", "-nonInteractive", "-force")
        hadoop.tool(folder, hadoop.NAMENODE_CLASS, *arguments)
        stamp.touch()


def _configure(pair: HdfsHa) -> None:
    hdfs = {
        "dfs.nameservices": "ha",
        "dfs.ha.namenodes.ha": ",".join(NAMENODES),
        "dfs.namenode.shared.edits.dir": f"file://{pair.folder / 'shared'}",
        "dfs.client.failover.proxy.provider.ha": FAILOVER,
        "dfs.ha.fencing.methods": "shell(/bin/true)",
        "dfs.ha.tail-edits.period": "1s",
        "dfs.replication": "1",
    }
    for name in NAMENODES:
        hdfs[f"dfs.namenode.rpc-address.ha.{name}"] = f"{HOST}:{pair.ports[f'{name}_rpc']}"
        hdfs[f"dfs.namenode.http-address.ha.{name}"] = pair.namenode_http(name)
        hdfs[f"dfs.namenode.name.dir.ha.{name}"] = f"file://{pair.folder / f'name-{name}'}"
    hadoop.configure(pair.folder, core={"fs.defaultFS": "hdfs://ha"}, hdfs=hdfs)
