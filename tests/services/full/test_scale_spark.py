"""The index by a real Spark cluster, and our Parquet read by it. It takes minutes: `scripts/test full` runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from indexing.scaled import MANY, ScaledLine, assert_nothing_is_lost, assert_the_same, build, copy_of

from servers import cluster as spark_server
from servers import pins, process
from servers.cluster import WORKERS, SparkCluster

READ = """
import json, sys
from pyspark.sql import SparkSession
session = SparkSession.builder.master(sys.argv[1]).config("spark.ui.enabled", "false").getOrCreate()
table = session.read.parquet(sys.argv[2])
table.createOrReplaceTempView("captures")
counted = session.sql("SELECT content_mime_type, count(*) AS n FROM captures GROUP BY 1 ORDER BY 2 DESC, 1")
kinds = [[row.content_mime_type, row.n] for row in counted.collect()]
some = session.sql("SELECT url, warc_record_offset, crawl, text_length FROM captures WHERE url = 'http://e.x/000.warc.gz'")
print("FOUND " + json.dumps([dict(table.dtypes), kinds, [list(row) for row in some.collect()]]))
"""


@pytest.fixture(scope="session")
def cluster(work: Path) -> SparkCluster:
    return spark_server.spark_up(work, pins.free(pins.SPARK))


@pytest.fixture
def spark(cluster: SparkCluster) -> Iterator[SparkCluster]:
    """The master with its two workers; put right again after a test has broken them."""
    yield cluster
    if process.running(cluster.folder, "master") is None:
        spark_server.spark_down(cluster.folder.parent)
        cluster.start()
    for name in WORKERS:
        if process.running(cluster.folder, name) is None:
            cluster.add(name)


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("many"), MANY)


def line_on(spark: SparkCluster, built: Path, to: Path, **more: str) -> ScaledLine:
    section = f"[scale]\nrun_on=spark\nurl={spark.url}\n"
    memory = {"PYSPARK_SUBMIT_ARGS": "--driver-memory 512m --executor-memory 512m pyspark-shell"}
    return copy_of(built, to, section, spark.environment | memory | more)


def test_processes_and_spark_leave_the_same_claims_and_extracts(spark: SparkCluster, tmp_path: Path) -> None:
    built = build(tmp_path / "built", 4)
    here, there = copy_of(built, tmp_path / "here"), line_on(spark, built, tmp_path / "there")
    assert_the_same(here, there, 4)


def test_spark_reads_the_parquet_files(spark: SparkCluster, tmp_path: Path) -> None:
    line = copy_of(build(tmp_path / "built", 1), tmp_path / "line", "[columns]\nsince=2016-01-01\n")
    for word in ("cdx", "text", "columns"):
        line.index(word)
    folder = line.folders["index"] / "columns"
    command = [sys.executable, "-c", READ, spark.url, str(folder)]
    done = subprocess.run(command, env=spark.environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    types, kinds, some = json.loads(done.stdout.partition("FOUND ")[2])
    assert sum(number for _, number in kinds) == 269
    assert (types["warc_record_offset"], types["fetch_time"], types["url"]) == ("bigint", "timestamp", "string")
    ((url, offset, crawl, length),) = some
    assert (url, crawl, offset > 0, length is None or length >= 0) == (
        "http://e.x/000.warc.gz",
        "daily-20161019234428",
        True,
        True,
    )


def test_a_worker_that_is_killed_in_the_middle_costs_nothing(spark: SparkCluster, many: Path, tmp_path: Path) -> None:
    assert_nothing_is_lost(line_on(spark, many, tmp_path / "line"), spark.kill, "two")


def test_a_master_that_vanishes_in_the_middle_costs_nothing_and_then_is_named(
    spark: SparkCluster, many: Path, tmp_path: Path
) -> None:
    assert_nothing_is_lost(line_on(spark, many, tmp_path / "line"), spark.kill, "master")
    later = line_on(spark, many, tmp_path / "later")
    code, printed = later.ended(later.luigi("cdx"))
    assert code == 30
    assert f"the Spark master {spark.url} is unavailable" in printed
    assert "Start it, or correct [scale] url" in printed


def test_an_executor_without_warcmill_is_named_before_anything_is_begun(
    spark: SparkCluster, many: Path, tmp_path: Path
) -> None:
    line = line_on(spark, many, tmp_path / "line", PYSPARK_PYTHON=getattr(sys, "_base_executable", sys.executable))
    code, printed = line.ended(line.luigi("cdx"))
    assert code == 30
    assert "the Python of a Spark executor has no Warcmill. Install it there" in printed
    assert (line.settled(), line.extracts()) == (0, {})
