"""Requests by a real Kafka: a page that is fed is on the topic. Broker and role are killed, and nothing is lost.

The line comes by SASL over TLS; its password is nowhere but in its file.
"""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from requesting.requests_line import HOSTS, JOB, RequestsLine, requests_line, role, served
from sites.several_hosts import Page, page
from waiting import wait_for

from servers import kafka as kafka_server
from servers import pins
from servers.kafka import PASSWORD, USER, KafkaServer
from warcmill.clients.bus.kafka import KafkaBus
from warcmill.errors import Unavailable

PATIENCE = 90.0  # seconds until a message is on a topic
NUMBER = 300  # requests


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[KafkaServer]:
    """A broker that may be killed."""
    yield kafka_server.up(tmp_path / "kafka", pins.free(pins.KAFKA))
    kafka_server.down(tmp_path / "kafka")


@contextmanager
def by_kafka(
    folder: Path, server: KafkaServer, web: dict[tuple[str, str], Page] | None = None
) -> Iterator[RequestsLine]:
    with requests_line(folder, web) as line:
        config = folder / "luigi.cfg"
        text = config.read_text()
        assert "bus=spool" in text
        password = folder / "password"
        password.touch(0o600)
        password.write_text(PASSWORD)
        config.write_text(
            text.replace("bus=spool", f"bus={server.at('SASL_SSL')}")
            + f"\n[kafka]\nprotocol=SASL_SSL\nca_file={server.authority}\nmechanism=SCRAM-SHA-256\nuser={USER}\n"
            f"password_file={password}\n[kafka_settings]\nclient.id=line\n"
        )
        line.bus = KafkaBus(server.hosts)
        yield line
        kept = (path for path in folder.rglob("*") if path.is_file() and path != password)
        assert [path for path in kept if PASSWORD.encode() in path.read_bytes()] == []


def pages(server: KafkaServer, number: int) -> list[dict[str, Any]]:
    """The messages of the topic of pages, once it has those of so many."""
    deadline, found = time.monotonic() + PATIENCE, list[dict[str, Any]]()
    reader = KafkaBus(server.hosts).reader("demo.crawled_firehose", None)
    try:
        while len({one["id"] for one in found}) < number and time.monotonic() < deadline:
            try:
                found += [json.loads(message.value) for message in reader.read(100, 1)]
            except Unavailable:
                continue
    finally:
        reader.close()
    return found


def results(folder: Path) -> int:
    """The lines of results.jsonl."""
    return sum(path.read_bytes().count(b"\n") for path in (folder / "output").rglob("results.jsonl*"))


def test_pages_are_on_the_topic_though_kafka_was_killed_meanwhile(tmp_path: Path, own_kafka: KafkaServer) -> None:
    with by_kafka(tmp_path / "line", own_kafka) as line, served(line):
        line.feed(line.crawl("/30", "before", attrs={"k": 1}))
        (first,) = pages(own_kafka, 1)
        assert (first["crawlid"], first["attrs"], first["status_code"]) == ("before", {"k": 1}, 200)
        assert first["body"].startswith("<")
        line.control("pause")
        line.feed(*(line.crawl(f"/{n}", "during") for n in range(20)))
        wait_for(lambda: sum(one["total"] for one in line.control("tally")["waiting"]) == 20, line.log)
        own_kafka.kill()
        line.control("resume")
        wait_for(lambda: results(tmp_path / "line") == 21, line.log)  # crawling goes on, results wait in their file
        own_kafka.start()
        found = pages(own_kafka, 21)
        assert {one["url"] for one in found} == {line.url(f"/{n}") for n in [30, *range(20)]}, line.log()
        assert len({one["id"] for one in found}) == 21
        line.feed(line.crawl("/31", "after"))
        assert len({one["id"] for one in pages(own_kafka, 22)}) == 22, line.log()


def test_one_of_two_roles_is_killed_amid_requests_and_each_is_one_page(tmp_path: Path, own_kafka: KafkaServer) -> None:
    """The first role sends, and reads some of the partitions; another one takes its place."""
    web = {(host, f"/{n}"): page([]) for host in HOSTS for n in range(NUMBER // len(HOSTS))}
    with by_kafka(tmp_path / "line", own_kafka, web) as line, served(line) as first, role(line):
        asked = [{"url": line.url(path, host), "appid": "testapp", "crawlid": "c"} for host, path in web]
        for number in range(0, NUMBER // 2, 10):
            line.feed(*asked[number : number + 10])
        assert pages(own_kafka, NUMBER // 10)
        for number in range(NUMBER // 2, NUMBER, 10):
            line.feed(*asked[number : number + 10])
            if number == NUMBER * 3 // 4:
                first.kill()
                assert first.wait() == -signal.SIGKILL
        with role(line):
            pages(own_kafka, NUMBER)
            wait_for(lambda: not line.control("tally")["waiting"], line.log)
    found = pages(own_kafka, NUMBER)
    by_id = {one["id"]: one for one in found}
    assert Counter(one["url"] for one in by_id.values()) == Counter(one["url"] for one in asked)
    fed = (tmp_path / "line" / "jobs" / JOB / "requests.jsonl").read_bytes().splitlines()
    assert len(fed) == results(tmp_path / "line") == NUMBER
