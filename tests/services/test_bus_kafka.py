"""The bus by a real Kafka: what every bus must do, and a broker that is killed."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from requesting.bus_conformance import *  # noqa: F403 - the tests of every bus
from requesting.bus_conformance import PATIENCE, Place, take

from servers import kafka as kafka_server
from servers import pins
from servers.kafka import KafkaServer
from warcmill.clients.bus import Bus, TooLong
from warcmill.clients.bus.kafka import KafkaBus
from warcmill.clients.bus.opening import open_bus
from warcmill.errors import Unavailable

_numbers = itertools.count()
READER = """
import sys
from warcmill.clients.bus.kafka import KafkaBus
reader = KafkaBus(sys.argv[1]).reader(sys.argv[2], "g")
print([message.value for message in reader.read(10, 120)], flush=True)
sys.stdin.read()
"""

SUSPENDED = """
import sys
from warcmill.clients.bus.kafka import KafkaBus
bus = KafkaBus(sys.argv[1])
of_group, alone = (bus.reader(sys.argv[2], group, from_end=True) for group in ("witness", None))
print("is at the end", flush=True)
while True:
    for message in alone.read(10, 120):
        print(message.value.decode(), flush=True)
"""


class OfKafka:
    """Topics of the broker, each new."""

    def __init__(self, server: KafkaServer) -> None:
        self.server = server
        self.opened: list[Bus] = []

    def open(self) -> Bus:
        self.opened.append(open_bus(self.server.url, Path("nowhere")))
        return self.opened[-1]

    def topic(self) -> str:
        return f"demo.topic-{next(_numbers)}"


@pytest.fixture
def there(kafka: KafkaServer) -> Iterator[Place]:
    place = OfKafka(kafka)
    yield place
    for bus in place.opened:
        bus.close()


def test_a_message_above_the_brokers_limit_is_too_long_and_a_shorter_one_passes(there: Place) -> None:
    topic, bus = there.topic(), there.open()
    with pytest.raises(TooLong, match="longer than Kafka takes"):
        bus.append(topic, [json.dumps(list(range(2_000_000))).encode().ljust(9 << 20)[: 9 << 20]])
    bus.append(topic, [b"short"])
    assert take(bus.reader(topic, None), 1) == [b"short"]


def test_messages_are_packed_by_gzip_which_clients_have_that_know_no_other_codec(
    there: Place, kafka: KafkaServer
) -> None:
    """The attributes of a batch, at byte 21, have its codec in three bits; gzip is 1 (KIP-98)."""
    topic, bus = there.topic(), there.open()
    bus.append(topic, [b"x" * 10_000])
    logs = [path.read_bytes() for path in kafka.folder.rglob("*.log") if path.parent.name.startswith(f"{topic}-")]
    (batch,) = (data for data in logs if data)
    assert (batch[16], int.from_bytes(batch[21:23], "big") & 7) == (2, 1)
    assert len(batch) < 1000


def test_a_reader_that_is_killed_has_its_messages_read_by_another_one(there: Place, kafka: KafkaServer) -> None:
    topic, bus = there.topic(), there.open()
    bus.append(topic, [b"a", b"b"])
    words = [sys.executable, "-c", READER, kafka.hosts, topic]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"[b'a', b'b']\n"
        process.kill()
    reader = bus.reader(topic, "g")
    assert take(reader, 2) == [b"a", b"b"]
    reader.close()


def test_a_reader_without_a_group_that_was_away_continues_where_it_was(there: Place, kafka: KafkaServer) -> None:
    """It is away until the broker has given up on a reader of the same process that has a group."""
    topic, bus = there.topic(), there.open()
    bus.append(topic, [b"before"])
    words = [sys.executable, "-c", SUSPENDED, kafka.hosts, topic]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"is at the end\n"
        process.send_signal(signal.SIGSTOP)
        bus.append(topic, [b"meanwhile"])
        witness = bus.reader(topic, "witness")
        assert take(witness, 1) == [b"meanwhile"]
        witness.close()
        bus.append(topic, [b"later"])
        process.send_signal(signal.SIGCONT)
        assert {process.stdout.readline() for _ in range(2)} == {b"meanwhile\n", b"later\n"}
        process.kill()


def test_a_broker_that_is_killed_is_unavailable_and_what_it_acknowledged_is_there_again(tmp_path: Path) -> None:
    server = kafka_server.up(tmp_path, pins.free(pins.KAFKA))
    try:
        bus = KafkaBus(server.hosts, seconds=4)
        bus.append("demo.incoming", [b"kept"])
        reader = bus.reader("demo.incoming", "g")
        server.kill()
        with pytest.raises(Unavailable, match="Kafka at 127"):
            bus.append("demo.incoming", [b"not acknowledged"])
        with pytest.raises(Unavailable, match="Kafka at 127"):
            KafkaBus(server.hosts, seconds=1).append("demo.other", [b"x"])
        server.start()
        found: list[bytes] = []
        deadline = time.monotonic() + PATIENCE
        while not {b"kept", b"after"} <= set(found):  # they may be in two partitions
            assert time.monotonic() < deadline, found
            try:
                if b"after" not in found:
                    bus.append("demo.incoming", [b"after"])
                found += [message.value for message in reader.read(10, 5)]
            except Unavailable:
                continue
        assert found.count(b"kept") == 1
        reader.commit()
        reader.close()
    finally:
        kafka_server.down(tmp_path)
