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

from warcmill.clients.bus import LONGEST, SECONDS, BusRefused, Message, TooLong, check_name, check_values
from warcmill.clients.bus.access import SECTION, SETTINGS, Client, KafkaAccess
from warcmill.clients.bus.refusals import GROUPS, Complaints
from warcmill.errors import BadConfig, Unavailable

_log = logging.getLogger(__name__)
_JOIN_SECONDS: Final = 60  # a group takes some seconds to agree who reads which partition
_SESSION_SECONDS: Final = 10  # then the partitions of a killed reader are given to others
_AGAIN: Final = "What was not acknowledged has to be sent again"
_LOOK: Final = 0.1
_FIRST: Final = 1.0  # seconds after which a refusal counts, without the whole patience
_ROOM: Final = LONGEST + (1 << 16)  # bytes of a message with its frame
_MOVING: Final = (  # the group is about to give its partitions to other readers
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.UNKNOWN_MEMBER_ID,
)
# ruff: noqa: SLF001 - the names that the client has for errors of its own begin with an underscore
_GONE: Final = (
    *(KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._RESOLVE),
    *(KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError.TOPIC_AUTHORIZATION_FAILED),
)


class _Clients:
    """Makes the clients of a Kafka, each by the files of its access as they are then."""

    def __init__(self, hosts: str, access: KafkaAccess, seconds: float) -> None:
        self._hosts, self._access, self._seconds = hosts, access, seconds
        milliseconds = int(seconds * 1000)
        self._own: dict[Client, dict[str, Any]] = {
            "admin": {},
            "producer": {
                "acks": "all",
                "enable.idempotence": True,  # keeps the order when one is sent again
                "linger.ms": 5,
                "compression.type": "gzip",  # every client has it, such as those of Scrapy Cluster, which have no lz4
                "compression.level": 1,
                "message.max.bytes": _ROOM,
                "delivery.timeout.ms": milliseconds,
                "request.timeout.ms": milliseconds,
            },
            "consumer": {
                "group.id": "warcmill-none",  # its client wants one, and joins none
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": "cooperative-sticky",
                "session.timeout.ms": _SESSION_SECONDS * 1000,
                "fetch.message.max.bytes": _ROOM,
            },
        }

    @property
    def patience(self) -> float:
        """The seconds that an append may take."""
        return max(self._seconds, int(self._access.settings.get("delivery.timeout.ms", 0)) / 1000)

    def check(self) -> None:
        """Raise BadConfig for an access that no client can be made of. Nothing is asked."""
        self._access.check()
        if self._access == KafkaAccess():
            return
        kinds: dict[Client, Callable[..., Any]] = {"producer": Producer, "consumer": Consumer}
        for kind, make in kinds.items():
            try:
                made = make({"log_level": 2, **self._own[kind], **self._access.without_login(kind)})
            except KafkaException as error:
                raise _not_made(_fault(error).str(), self._access) from error
            if kind == "consumer":
                made.close()

    def complaints(self) -> Complaints:
        """A list for the errors of one client."""
        return Complaints(self._hosts, self._access)

    def new(self, kind: Client, make: Callable[..., Any], heard: Complaints, **more: Any) -> Any:
        """Make a client. BusRefused when its files are not as they were at first, Unavailable for an old token."""
        shared = {"bootstrap.servers": self._hosts, "client.id": "warcmill", "log_level": 2, "error_cb": heard.hear}
        try:
            return make({**shared, **self._own[kind], **self._access.of_client(kind), **more})
        except BadConfig as error:
            raise BusRefused(heard.name, f"is not asked. {error}") from error
        except KafkaException as error:
            raise BusRefused(heard.name, f"is not asked. {_not_made(_fault(error).str(), self._access)}") from error


class KafkaBus:
    """Topics of a Kafka. `seconds`: for so long it may not answer before that is an error. BadConfig for an access
    that is invalid."""

    def __init__(self, hosts: str, seconds: float = SECONDS, access: KafkaAccess | None = None) -> None:
        self._hosts, self._seconds = hosts, seconds
        self._clients = _Clients(hosts, access or KafkaAccess(), seconds)
        self._clients.check()
        self._partitions: dict[str, int] = {}  # of the topics that are known
        self._lock = threading.RLock()
        self._heard = self._clients.complaints()  # of the producer
        self._producer: Producer | None = None
        self._admin: tuple[AdminClient, Complaints] | None = None

    def append(self, topic: str, values: Sequence[bytes]) -> None:
        check_values(topic, values)
        if not values:
            return
        partition = secrets.randbelow(self._make(topic))
        answers: list[KafkaError | None] = []

        def answered(error: KafkaError | None, _: object) -> None:
            answers.append(error)

        producer = self._sender()
        for value in values:
            self._produce(producer, topic, partition, value, answered)
        producer.flush(self._clients.patience + _LOOK)
        wrong = next((error for error in answers if error is not None), None)
        if wrong is not None and wrong.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            raise _too_long(topic, max(values, key=len))
        if wrong is not None or len(answers) < len(values):
            raise self._failed(producer, topic, wrong)

    def reader(self, topic: str, group: str | None, *, from_end: bool = False) -> KafkaReader:
        check_name("topic", topic)
        if group is not None:
            check_name("group", group)
        return KafkaReader(self._clients, topic, self._make(topic), group, from_end=from_end)

    def topics(self) -> list[str]:
        return sorted(name for name in self._described() if not name.startswith("__"))

    def close(self) -> None:
        if self._producer is not None:
            self._producer.flush(self._seconds)

    def _sender(self) -> Producer:
        with self._lock:
            if self._producer is None:
                self._heard = self._clients.complaints()
                self._producer = cast("Producer", self._clients.new("producer", Producer, self._heard))
            return self._producer

    def _failed(self, producer: Producer, topic: str, error: KafkaError | None) -> Unavailable:
        """Begin anew, as some faults end a producer, and a topic may have been made again with fewer partitions."""
        heard = self._heard
        with self._lock:
            self._partitions.pop(topic, None)
            if self._producer is producer:
                self._producer = None
        producer.purge()  # nothing of it is sent later, behind what is appended again
        why = error.str() if error else "it did not acknowledge in time"
        return heard.error(f"{why}. {_AGAIN}", error, topic=topic)

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
                raise self._failed(producer, topic, _fault(error)) from error
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
                    raise self._hidden(topic)
                time.sleep(_LOOK)
            return self._partitions.setdefault(topic, number)

    def _create(self, topic: str) -> None:
        admin, heard = self._asker()
        made = admin.create_topics([NewTopic(topic)], request_timeout=self._seconds)[topic]
        try:
            made.result(self._seconds + 1)
        except TimeoutError as error:
            raise heard.error(f"it did not make {topic} in time. {_AGAIN}") from error
        except KafkaException as error:
            if _fault(error).code() != KafkaError.TOPIC_ALREADY_EXISTS:
                admin.poll(0)  # calls error_cb
                why = f"it does not make {topic}: {_fault(error).str()}"
                raise heard.error(why, _fault(error), topic=f"{topic}, or make it") from error
            if not self._count(topic):  # there, and not shown
                raise self._hidden(topic) from error

    def _hidden(self, topic: str) -> Unavailable:
        """Why a topic is not among those that are shown."""
        admin, heard = self._asker()
        try:
            found = admin.list_topics(topic, timeout=self._seconds).topics.get(topic)
            error = found.error if found else None
        except KafkaException as silent:
            error = _fault(silent)
        return heard.error(f"it has no partition of {topic}. {_AGAIN}", error, topic=topic)

    def _count(self, topic: str) -> int:
        found = self._described().get(topic)
        return 0 if found is None or found.error is not None else len(found.partitions)

    def _described(self) -> dict[str, Any]:
        """All topics. A refusal counts after a moment, and is not waited for."""
        admin, heard = self._asker()
        first = min(_FIRST, self._seconds)
        for seconds in (first, max(self._seconds - first, _LOOK)):
            try:
                return dict(admin.list_topics(timeout=seconds).topics)
            except KafkaException as error:
                admin.poll(0)  # calls error_cb
                found = heard.error(_fault(error).str(), _fault(error))
            if isinstance(found, BusRefused):
                break
        with self._lock:
            self._admin = None  # the next one reads its files anew
        raise found

    def _asker(self) -> tuple[AdminClient, Complaints]:
        with self._lock:
            if self._admin is None:
                heard = self._clients.complaints()
                self._admin = self._clients.new("admin", AdminClient, heard), heard
            return self._admin


class KafkaReader:
    """A consumer of one topic. It is given its partitions before it is returned, so `from_end` is from now on.

    While partitions are given to other readers, what was read and not committed may be read again by them.
    """

    def __init__(self, clients: _Clients, topic: str, partitions: int, group: str | None, *, from_end: bool) -> None:
        self._topic, self._group, self._from_end = topic, group or "", from_end
        self._heard = clients.complaints()
        self._joined = False
        self._away: KafkaError | None = None
        self._waiting: list[tuple[int, int, bytes, int]] = []  # partition, offset, value, time: not yet returned
        self._returned: dict[int, int] = {}  # the next offset of each partition, to be committed
        more = {"group.id": group} if group else {}
        self._consumer: Consumer = clients.new("consumer", Consumer, self._heard, error_cb=self._failed, **more)
        if group is None:
            self._begin_alone(partitions)
            return
        self._consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked)
        deadline = time.monotonic() + _JOIN_SECONDS
        while not self._joined and time.monotonic() < deadline and self._away is None:
            self._take(1, _LOOK)
        if from_end and not self._joined:
            self._consumer.close()
            raise self._error("it gave no partition in time, so its end is not known", self._away)

    def _begin_alone(self, partitions: int) -> None:
        """Take all partitions, in no group: a reader that was away for long is where it was."""
        places = [TopicPartition(self._topic, number, OFFSET_BEGINNING) for number in range(partitions)]
        try:
            for place in places if self._from_end else ():
                place.offset = self._consumer.get_watermark_offsets(place, timeout=SECONDS)[1]
            self._consumer.assign(places)
        except KafkaException as error:
            self._consumer.close()
            raise self._error(f"its end is not known: {_fault(error).str()}", _fault(error)) from error

    def read(self, most: int, seconds: float) -> list[Message]:
        deadline = time.monotonic() + seconds
        while not self._waiting:
            left = deadline - time.monotonic()
            self._take(most, max(0.0, min(_LOOK, left)))
            if self._away is not None and not self._waiting:
                away, self._away = self._away, None
                raise self._error(f"{away.str()}. It is retried", away)
            if left <= 0:
                break
        found, self._waiting = self._waiting[:most], self._waiting[most:]
        self._returned.update({partition: offset + 1 for partition, offset, _, _ in found})
        # With its time: in a topic that was deleted and made anew, offsets begin again.
        return [Message(self._topic, f"{partition}:{offset}:{at}", value) for partition, offset, value, at in found]

    def commit(self) -> None:
        deadline = time.monotonic() + _JOIN_SECONDS
        while self._returned and self._group:
            try:
                kept = self._consumer.commit(offsets=self._partitions(self._returned), asynchronous=False)
                wrong = next((one.error for one in kept or () if one.error is not None), None)
                if wrong is not None:  # of one partition: only where all fail it is raised
                    raise KafkaException(wrong)
                self._returned.clear()
            except KafkaException as error:
                if _fault(error).code() not in _MOVING or time.monotonic() > deadline:
                    raise self._error(f"the place is not kept: {_fault(error).str()}", _fault(error)) from error
                self._take(1, _LOOK)  # has the group agree; partitions that go to others are forgotten here

    def close(self) -> None:
        self._consumer.close()

    def _partitions(self, offsets: dict[int, int]) -> list[TopicPartition]:
        return [TopicPartition(self._topic, partition, offset) for partition, offset in offsets.items()]

    def _take(self, most: int, seconds: float) -> None:
        try:
            messages = self._consumer.consume(most, seconds)
        except KafkaException as error:  # of what is done when partitions are given
            raise self._error(_fault(error).str(), _fault(error)) from error
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
                if self._group:
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

    def _error(self, why: str, error: KafkaError | None = None) -> Unavailable:
        return self._heard.error(why, error, topic=self._topic, group=self._group)

    def _failed(self, error: KafkaError) -> None:
        self._heard.hear(error)
        of_group = self._group and error.code() in (*GROUPS, KafkaError.GROUP_AUTHORIZATION_FAILED)
        if error.code() in _GONE or of_group or error.fatal():
            self._away = error
        else:
            _log.info("%s: %s", self._heard.name, error.str())


def _fault(error: KafkaException) -> KafkaError:
    return cast("KafkaError", error.args[0])


def _too_long(topic: str, value: bytes) -> TooLong:
    return TooLong(f"topic {topic}", f"a message of {len(value):,} bytes is longer than Kafka takes")


def _not_made(why: str, access: KafkaAccess) -> BadConfig:
    """The key that a client could not be made by."""
    if "ssl.key.location" in why:
        todo = f"{access.key_file} is not the key of {access.certificate_file}, or its password is another one"
        return BadConfig(f"[{SECTION}] key_file", todo)
    for name in ("ca", "certificate"):
        if f"ssl.{name}.location" in why:
            path = access.ca_file if name == "ca" else access.certificate_file
            return BadConfig(f"[{SECTION}] {name}_file", f"{path or 'not set'} has no certificate in PEM: {why}")
    return BadConfig(f"[{SETTINGS}]", why)
