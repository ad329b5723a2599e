"""An HDFS pair: whichever NameNode is active is found, and none being active is an outage."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import pytest
from faults.tally import FaultLog
from storing.remote_places import BLOCK
from storing.sources import Interrupted
from storing.store_conformance import PATH, commit, read, read_back

from servers.hdfs_ha import HdfsHa
from warcmill.errors import Unavailable
from warcmill.stores.opening import Access, adopt
from warcmill.stores.remote_files import Budget
from warcmill.stores.webhdfs.client import Client, NameNodes, UserName
from warcmill.stores.webhdfs.http import Connections
from warcmill.stores.webhdfs.store import WebHdfsStore

DATA = random.Random(4).randbytes(4 * BLOCK + 77)
SHA512 = hashlib.sha512(DATA).hexdigest()


def url(pair: HdfsHa, *names: str, folder: str) -> str:
    return f"webhdfs://{','.join(map(pair.namenode_http, names))}/{folder}?user={pair.user}"


def store(where: str, patience: float = 5) -> WebHdfsStore:
    cluster = NameNodes.parse(where)
    client = Client(cluster, Budget(patience), Connections(30), UserName(cluster.user))
    return WebHdfsStore("store", client, cluster.path, BLOCK)


def other(pair: HdfsHa, active: str) -> str:
    assert pair.state(active) == "active"
    return "nn2" if active == "nn1" else "nn1"


def active(pair: HdfsHa) -> str:
    (found,) = (name for name in ("nn1", "nn2") if pair.state(name) == "active")
    return found


def test_the_active_one_is_found_in_any_order_and_after_a_failover(
    hdfs_ha: HdfsHa, tmp_path: Path, fault_log: FaultLog
) -> None:
    now = active(hdfs_ha)
    standby = other(hdfs_ha, now)
    where = url(hdfs_ha, standby, now, folder=tmp_path.name)
    adopt(where, ["store"], Access(BLOCK))
    one = store(where)
    assert commit(one, DATA)
    assert one.stat("none") is None
    assert read_back(one) == DATA
    hdfs_ha.fail_over(now, standby)
    fault_log.injected("HDFS pair, failed over")
    assert read(one) == DATA
    assert read_back(one) == DATA
    assert not commit(one, b"another")
    assert commit(one, b"another", "another")


def test_a_standby_alone_is_an_outage_and_no_absence(hdfs_ha: HdfsHa, tmp_path: Path, fault_log: FaultLog) -> None:
    now = active(hdfs_ha)
    both = url(hdfs_ha, now, other(hdfs_ha, now), folder=tmp_path.name)
    adopt(both, ["store"], Access(BLOCK))
    with pytest.raises(Unavailable, match="StandbyException"):
        store(url(hdfs_ha, other(hdfs_ha, now), folder=tmp_path.name), 0.3)
    fault_log.injected("HDFS pair, standby alone")


def test_a_file_on_its_way_outlives_the_active_one(hdfs_ha: HdfsHa, tmp_path: Path, fault_log: FaultLog) -> None:
    now = active(hdfs_ha)
    standby = other(hdfs_ha, now)
    where = url(hdfs_ha, now, standby, folder=tmp_path.name)
    adopt(where, ["store"], Access(BLOCK))

    def change_over() -> None:
        hdfs_ha.kill_namenode(now)
        hdfs_ha.activate(standby)
        fault_log.injected("HDFS pair, the active NameNode killed")

    try:
        one = store(where, 60)
        assert one.commit_new(PATH, Interrupted(DATA, change_over), len(DATA), SHA512)
        assert read(one) == DATA
        assert [entry.name for entry in one.list(PATH.rpartition("/")[0])] == ["a.warc.gz"]
    finally:
        hdfs_ha.start_namenode(now)
