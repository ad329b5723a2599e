"""Real servers for a session of tests: started when first asked for, ended with the session, met by nobody else.

Each session has a folder and free ports of its own, so neither a developer's `scripts/services up` nor another
session is disturbed. A server that cannot start is an error, never a skip.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults.tally import FaultLog, Tally
from playwright.sync_api import Browser
from xdist.scheduler.loadscope import LoadScopeScheduling

from servers import browsing, cluster, packages, pins
from servers import clamd as clamd_server
from servers import hdfs as hdfs_server
from servers import hdfs_ha as hdfs_ha_server
from servers import hdfs_kerberos as hdfs_kerberos_server
from servers import heritrix as heritrix_server
from servers import kafka as kafka_server
from servers import luigid as luigid_server
from servers import package_index as package_index_server
from servers import postgresql as postgresql_server
from servers import redis as redis_server
from servers import solr as solr_server
from servers import sshd as sshd_server
from servers import versitygw as versitygw_server
from servers import zookeeper as zookeeper_server
from servers.clamd import ClamdServer
from servers.hdfs import Hdfs
from servers.hdfs_ha import HdfsHa
from servers.hdfs_kerberos import HdfsKerberos
from servers.heritrix import HeritrixServer
from servers.kafka import KafkaServer
from servers.luigid import Luigid
from servers.postgresql import PostgresqlServer
from servers.redis import RedisServer
from servers.solr import SolrServer
from servers.sshd import Sshd
from servers.versitygw import Versitygw
from servers.zookeeper import ZookeeperServer

SESSIONS = packages.default_work() / "tests"
DOWN = (
    heritrix_server.down,
    hdfs_server.down,
    hdfs_ha_server.down,
    hdfs_kerberos_server.down,
    sshd_server.down,
    luigid_server.down,
    clamd_server.down,
    solr_server.down,
    redis_server.down,
    postgresql_server.down,
    zookeeper_server.down,
    kafka_server.down,
    package_index_server.down,
    versitygw_server.down,
    cluster.dask_down,
    cluster.spark_down,
)


FAULTS = pytest.StashKey[Tally]()
KINDS = pytest.StashKey[list[str]]()


# Files that share a worker, so that each of their servers is started once: HDFS alone takes half a minute. The longest
# group comes first, and in a group the longest file, so that no worker is left with it while another is done.
TOGETHER = (
    (
        "test_fault_sweep.py", "test_webhdfs_faults.py", "test_servers.py", "test_store_conformance.py",
        "test_submission.py", "test_s3_faults.py", "test_webhdfs_ha.py", "test_webhdfs_kerberos.py",
        "test_remote_line.py", "test_serve_remote.py",
    ),
    (
        "test_recrawl_heritrix.py", "test_pulse_heritrix.py", "test_feed_heritrix.py", "test_feed_chain.py",
        "test_documented_pulse.py", "test_heritrix_client.py",
    ),
    ("test_bus_kafka.py", "test_bus_kafka_access.py"),
    ("test_compose.py",),
    ("test_demo.py",),
)  # fmt: skip
IN_ORDER = {name: number for number, name in enumerate(name for files in TOGETHER for name in files)}
# Servers live for minutes here: the quick compiler alone halves what each start of a JVM takes.
QUICK_JVM = "-XX:TieredStopAtLevel=1"


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FAULTS] = Tally()
    os.environ["JAVA_TOOL_OPTIONS"] = QUICK_JVM


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: IN_ORDER.get(item.path.name, len(IN_ORDER)))


class ByServer(LoadScopeScheduling):
    """Gives a worker all tests of one file, or of the files that share their servers."""

    def _split_scope(self, nodeid: str) -> str:
        name = nodeid.partition("::")[0].rpartition("/")[2]
        return next((files[0] for files in TOGETHER if name in files), name)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByServer:
    return ByServer(config, log)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist hands its count to the session that started it."""
    if hasattr(session.config, "workeroutput"):
        tally = session.config.stash[FAULTS]
        session.config.workeroutput["faults"] = [tally.injected, tally.violations]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    injected, violations = getattr(node, "workeroutput", {}).get("faults", ({}, {}))
    node.config.stash[FAULTS].include(Tally(injected, violations))


@pytest.fixture
def fault_log(request: pytest.FixtureRequest) -> FaultLog:
    return FaultLog(request.config.stash[FAULTS], request.node.stash.setdefault(KINDS, []))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    for kind in item.stash.get(KINDS, []) if report.when == "call" and report.failed else []:
        item.config.stash[FAULTS].violate(kind, [f"{item.nodeid} failed"])
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    tally = config.stash[FAULTS]
    if tally.total:
        terminalreporter.section("faults injected into real servers")
        terminalreporter.write_line("\n".join([*tally.table(), *tally.wrong[:40]]))


@pytest.fixture(scope="session")
def work() -> Iterator[Path]:
    """This session's folder; what killed sessions left behind is ended and removed."""
    SESSIONS.mkdir(parents=True, exist_ok=True)
    for left in SESSIONS.iterdir():
        if not Path("/proc", left.name).exists():
            end(left)
    folder = SESSIONS / str(os.getpid())
    folder.mkdir()
    yield folder
    end(folder)


def end(folder: Path) -> None:
    for down in DOWN:
        down(folder)
    heritrix_server.down(folder / "week")  # the engine of test_week, which has a clock of its own
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the tests of a file; no longer, as its driver keeps the process's event loop."""
    with browsing.opened() as opened:
        yield opened


@pytest.fixture(scope="session")
def hdfs(work: Path) -> Hdfs:
    return hdfs_server.up(work, pins.free(pins.HDFS))


@pytest.fixture(scope="session")
def hdfs_ha(work: Path) -> HdfsHa:
    return hdfs_ha_server.up(work, pins.free(pins.HDFS_HA))


@pytest.fixture(scope="session")
def hdfs_kerberos(work: Path) -> HdfsKerberos:
    return hdfs_kerberos_server.up(work, pins.free(pins.HDFS_KERBEROS))


@pytest.fixture(scope="session")
def sshd(work: Path) -> Sshd:
    return sshd_server.up(work, pins.free(pins.SSHD))


@pytest.fixture(scope="session")
def versitygw(work: Path) -> Versitygw:
    return versitygw_server.up(work, pins.free(pins.VERSITYGW))


@pytest.fixture(scope="session")
def heritrix(work: Path) -> HeritrixServer:
    return heritrix_server.up(work, pins.free(pins.HERITRIX))


@pytest.fixture(scope="session")
def clamd(work: Path) -> ClamdServer:
    return clamd_server.up(work, pins.free(pins.CLAMD))


@pytest.fixture(scope="session")
def luigid(work: Path) -> Luigid:
    return luigid_server.up(work, pins.free(pins.LUIGID))


@pytest.fixture(scope="session")
def redis(work: Path) -> RedisServer:
    return redis_server.up(work, pins.free(pins.REDIS))


@pytest.fixture(scope="session")
def postgresql(work: Path) -> PostgresqlServer:
    return postgresql_server.up(work, pins.free(pins.POSTGRESQL))


@pytest.fixture(scope="session")
def zookeeper(work: Path) -> ZookeeperServer:
    return zookeeper_server.up(work, pins.free(pins.ZOOKEEPER))


@pytest.fixture(scope="session")
def kafka(work: Path) -> KafkaServer:
    return kafka_server.up(work, pins.free(pins.KAFKA))


@pytest.fixture(scope="session")
def solr(work: Path) -> SolrServer:
    return solr_server.up(work, pins.free(pins.SOLR))
