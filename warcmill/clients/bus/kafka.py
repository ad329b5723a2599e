"""The bus by a cluster of Kafka, from 3.9 on. Writes to its topics. The extra `kafka` must be installed.

A group is a consumer group: its readers share the partitions, and a message is read once by the group as long as its
readers live. Messages of one append go to one partition, and keep their order.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from warcmill.clients.bus import LONGEST, SECONDS, Message, TooLong, check_name, check_values
from warcmill.errors import Unavailable

_log = logging.getLogger(__name__)
_JOIN_SECONDS: Final = 60  # a group takes some seconds to agree who reads which partition
_SESSION_SECONDS: Final = 10  # then the partitions of a killed reader are given to others
_LOOK: Final = 0.1
_ROOM: Final = LONGEST + (1 << 16)  # bytes of a message with its frame
_MOVING: Final = (  # the group is about to give its partitions to other readers
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.UNKNOWN_MEMBER_ID,
)
_GONE: Final = (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._RESOLVE)  # noqa: SLF001 their names


class KafkaBus:
    """Topics of a Kafka. `seconds`: for so long it may not answer before that is an error."""

    def __init__(self, hosts: str, seconds: float = SECONDS) -> None:
        self._hosts, self._seconds = hosts, seconds
        self._partitions: dict[str, int] = {}  # of the topics that are known
        self._lock = threading.Lock()
        self._producer = self._new_producer()
        self._admin = AdminClient(self._shared)

    def _new_producer(self) -> Producer:
        milliseconds = int(self._seconds * 1000)
        own = {
            "acks": "all",
            "enable.idempotence": True,  # keeps the order when one is sent again
            "linger.ms": 5,
            "compression.type": "gzip",  # every client has it, such as those of Scrapy Cluster, which have no lz4
            "compression.level": 1,
            "message.max.bytes": _ROOM,
            "delivery.timeout.ms": milliseconds,
            "request.timeout.ms": milliseconds,
        }
        return Producer({**self._shared, **own})

    @property
    def _shared(self) -> dict[str, Any]:
        return {"bootstrap.servers": self._hosts, "client.id": "warcmill", "log_level": 2, "error_cb": _ignore}

    def append(self, topic: str, values: Sequence[bytes]) -> None:
        check_values(topic, values)
        if not values:
            return
        partition = secrets.randbelow(self._make(topic))
        answers: list[KafkaError | None] = []

        def answered(error: KafkaError | None, _: object) -> None:
            answers.append(error)

        producer = self._producer
        for value in values:
            self._produce(producer, topic, partition, value, answered)
        producer.flush(self._seconds + _LOOK)
        wrong = next((error for error in answers if error is not None), None)
        if wrong is not None and wrong.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            raise _too_long(topic, max(values, key=len))
        if wrong is not None or len(answers) < len(values):
            raise self._failed(producer, topic, wrong.str() if wrong else "it did not acknowledge in time")

    def reader(self, topic: str, group: str | None, *, from_end: bool = False) -> KafkaReader:
        check_name("topic", topic)
        if group is not None:
            check_name("group", group)
        return KafkaReader(self._shared, self._hosts, topic, self._make(topic), group, from_end=from_end)

    def topics(self) -> list[str]:
        return sorted(name for name in self._described() if not name.startswith("__"))

    def close(self) -> None:
        self._producer.flush(self._seconds)

    def _failed(self, producer: Producer, topic: str, why: str) -> Unavailable:
        """Begin anew, as some faults end a producer, and a topic may have been made again with fewer partitions."""
        with self._lock:
            self._partitions.pop(topic, None)
            if self._producer is producer:
                self._producer = self._new_producer()
        producer.purge()  # nothing of it is sent later, behind what is appended again
        return self._unavailable(why)

    def _produce(
        self, producer: Producer, topic: str, partition: int, value: bytes, answered: Callable[..., None]
    ) -> None:
        while True:
            try:
                producer.produce(topic, value, partition=partition, on_delivery=answered)
            except BufferError:  # the client's queue is full
                producer.poll(_LOOK)
            except KafkaException as error:
                if _fault(error).code() == KafkaError.MSG_SIZE_TOO_LARGE:
                    raise _too_long(topic, value) from None
                raise self._failed(producer, topic, _fault(error).str()) from error
            else:
                return

    def _make(self, topic: str) -> int:
        """Make a topic unless it is there, as the broker's settings have it, and return its number of partitions."""
        with self._lock:
            if topic in self._partitions:
                return self._partitions[topic]
            deadline = time.monotonic() + self._seconds
            if not self._count(topic):
                self._create(topic)
            while not (number := self._count(topic)):
                if time.monotonic() > deadline:
                    raise self._unavailable(f"it has no partition of {topic}")
                time.sleep(_LOOK)
            return self._partitions.setdefault(topic, number)

    def _create(self, topic: str) -> None:
        made = self._admin.create_topics([NewTopic(topic)], request_timeout=self._seconds)[topic]
        try:
            made.result(self._seconds + 1)
        except TimeoutError as error:
            raise self._unavailable(f"it did not make {topic} in time") from error
        except KafkaException as error:
            if _fault(error).code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise self._unavailable(f"it does not make {topic}: {_fault(error).str()}") from error

    def _count(self, topic: str) -> int:
        found = self._described().get(topic)
        return 0 if found is None or found.error is not None else len(found.partitions)

    def _described(self) -> dict[str, Any]:
        try:
            return dict(self._admin.list_topics(timeout=self._seconds).topics)
        except KafkaException as error:
            raise Unavailable(f"Kafka at {self._hosts}", _fault(error).str()) from error

    def _unavailable(self, why: str) -> Unavailable:
        return Unavailable(f"Kafka at {self._hosts}", f"{why}. What was not acknowledged has to be sent again")


class KafkaReader:
    """A consumer of one topic. It is given its partitions before it is returned, so `from_end` is from now on.

    While partitions are given to other readers, what was read and not committed may be read again by them.
    """

    def __init__(
        self, shared: dict[str, Any], hosts: str, topic: str, partitions: int, group: str | None, *, from_end: bool
    ) -> None:
        self._hosts, self._topic, self._keeps, self._from_end = hosts, topic, group is not None, from_end
        self._joined = False
        self._away: KafkaError | None = None
        self._waiting: list[tuple[int, int, bytes, int]] = []  # partition, offset, value, time: not yet returned
        self._returned: dict[int, int] = {}  # the next offset of each partition, to be committed
        own = {
            "group.id": group or "warcmill-none",  # its client wants one, and joins none
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": _SESSION_SECONDS * 1000,
            "fetch.message.max.bytes": _ROOM,
            "error_cb": self._failed,
        }
        self._consumer = Consumer({**shared, **own})
        if group is None:
            self._begin_alone(partitions)
            return
        self._consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked)
        deadline = time.monotonic() + _JOIN_SECONDS
        while not self._joined and time.monotonic() < deadline and self._away is None:
            self._take(1, _LOOK)
        if from_end and not self._joined:
            self._consumer.close()
            raise self._unavailable("it gave no partition in time, so its end is not known")

    def _begin_alone(self, partitions: int) -> None:
        """Take all partitions, in no group: a reader that was away for long is where it was."""
        places = [TopicPartition(self._topic, number, OFFSET_BEGINNING) for number in range(partitions)]
        try:
            for place in places if self._from_end else ():
                place.offset = self._consumer.get_watermark_offsets(place, timeout=SECONDS)[1]
            self._consumer.assign(places)
        except KafkaException as error:
            self._consumer.close()
            raise self._unavailable(f"its end is not known: {_fault(error).str()}") from error

    def read(self, most: int, seconds: float) -> list[Message]:
        deadline = time.monotonic() + seconds
        while not self._waiting:
            left = deadline - time.monotonic()
            self._take(most, max(0.0, min(_LOOK, left)))
            if self._away is not None and not self._waiting:
                away, self._away = self._away, None
                raise self._unavailable(f"{away.str()}. It is retried")
            if left <= 0:
                break
        found, self._waiting = self._waiting[:most], self._waiting[most:]
        self._returned.update({partition: offset + 1 for partition, offset, _, _ in found})
        # With its time: in a topic that was deleted and made anew, offsets begin again.
        return [Message(self._topic, f"{partition}:{offset}:{at}", value) for partition, offset, value, at in found]

    def commit(self) -> None:
        deadline = time.monotonic() + _JOIN_SECONDS
        while self._returned and self._keeps:
            try:
                kept = self._consumer.commit(offsets=self._partitions(self._returned), asynchronous=False)
                wrong = next((one.error for one in kept or () if one.error is not None), None)
                if wrong is not None:  # of one partition: only where all fail it is raised
                    raise KafkaException(wrong)
                self._returned.clear()
            except KafkaException as error:
                if _fault(error).code() not in _MOVING or time.monotonic() > deadline:
                    raise self._unavailable(f"the place is not kept: {_fault(error).str()}") from error
                self._take(1, _LOOK)  # has the group agree; partitions that go to others are forgotten here

    def close(self) -> None:
        self._consumer.close()

    def _partitions(self, offsets: dict[int, int]) -> list[TopicPartition]:
        return [TopicPartition(self._topic, partition, offset) for partition, offset in offsets.items()]

    def _take(self, most: int, seconds: float) -> None:
        try:
            messages = self._consumer.consume(most, seconds)
        except KafkaException as error:  # of what is done when partitions are given
            raise self._unavailable(_fault(error).str()) from error
        for message in messages:
            fault, partition, offset, value = message.error(), message.partition(), message.offset(), message.value()
            if fault is not None:
                self._failed(fault)
            elif partition is not None and offset is not None:
                self._waiting.append(
                    (partition, offset, value if isinstance(value, bytes) else b"", message.timestamp()[1])
                )
                self._away = None

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Begin at the end where that is asked for, and keep that place."""
        for partition, kept in zip(partitions, self._kept(consumer, partitions), strict=True):
            if kept < 0:
                partition.offset = consumer.get_watermark_offsets(partition, timeout=SECONDS)[1]
                if self._keeps:
                    consumer.commit(offsets=[partition], asynchronous=False)
        consumer.incremental_assign(partitions)
        self._joined = True

    def _kept(self, consumer: Consumer, partitions: list[TopicPartition]) -> list[int]:
        """The places of the group; negative for none that counts here."""
        if not self._from_end or not partitions:
            return [0] * len(partitions)
        return [found.offset for found in consumer.committed(partitions, timeout=SECONDS)]

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Forget what others read from now on."""
        gone = {partition.partition for partition in partitions}
        self._waiting = [one for one in self._waiting if one[0] not in gone]
        self._returned = {partition: offset for partition, offset in self._returned.items() if partition not in gone}
        with contextlib.suppress(KafkaException):  # they are somebody else's already
            consumer.incremental_unassign(partitions)

    def _unavailable(self, why: str) -> Unavailable:
        return Unavailable(f"Kafka at {self._hosts}", why)

    def _failed(self, error: KafkaError) -> None:
        if error.code() in _GONE or error.fatal():
            self._away = error
        else:
            _log.info("Kafka at %s: %s", self._hosts, error.str())


def _fault(error: KafkaException) -> KafkaError:
    return cast("KafkaError", error.args[0])


def _too_long(topic: str, value: bytes) -> TooLong:
    return TooLong(f"topic {topic}", f"a message of {len(value):,} bytes is longer than Kafka takes")


def _ignore(error: KafkaError) -> None:
    """An append learns of it by the answer that does not come."""
    _log.info("Kafka: %s", error.str())
