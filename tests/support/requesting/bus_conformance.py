"""What every bus must do, whatever is behind it: imported by the tests of each, run against the real thing.

A module that takes these in has a fixture `there`, the place where a bus is.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

import pytest

from warcmill.clients.bus import LONGEST, Bus, TooLong, TopicReader
from warcmill.errors import BadInput

PATIENCE = 120.0
SHORT = 0.3


class Place(Protocol):
    """Where a bus is."""

    def open(self) -> Bus:
        """The bus, by a handle of its own."""

    def topic(self) -> str:
        """A topic that nobody has used."""


def take(reader: TopicReader, number: int, most: int = 100) -> list[bytes]:
    """Read until there are so many."""
    found: list[bytes] = []
    for _ in range(1000):
        found += [message.value for message in reader.read(most, PATIENCE)]
        if len(found) >= number:
            return found
    raise AssertionError(f"{len(found)} of {number} came")


def numbered(prefix: str, numbers: Sequence[int]) -> list[bytes]:
    return [f"{prefix}{number}".encode() for number in numbers]


def test_messages_come_in_their_order_and_as_they_were(there: Place) -> None:
    topic, values = there.topic(), [b'{"a": 1}', b"", b"\xff\xfe", b'{"url": nope', b"\r", b"\0", b"x" * 500_000]
    bus = there.open()
    bus.append(topic, values[:3])
    bus.append(topic, [])
    bus.append(topic, values[3:])
    reader = there.open().reader(topic, "g")
    found = [message for _ in range(2) for message in reader.read(100, SHORT)]
    while len(found) < len(values):
        found += reader.read(100, PATIENCE)
    assert sorted(message.value for message in found) == sorted(values)
    by_value = [message.value for message in found]
    for part in (values[:3], values[3:]):
        assert [value for value in by_value if value in part] == part, "one append keeps its order"
    assert {message.topic for message in found} == {topic}
    assert len({message.place for message in found}) == len(values)
    assert reader.read(100, SHORT) == []
    reader.close()


def test_a_reader_waits_for_what_is_appended_later_also_to_a_topic_that_is_not_there_yet(there: Place) -> None:
    topic = there.topic()
    reader = there.open().reader(topic, "g")
    assert reader.read(1, SHORT) == []
    appending = threading.Timer(0.2, lambda: there.open().append(topic, [b"late"]))
    appending.start()
    assert take(reader, 1) == [b"late"]
    appending.join()
    reader.close()


def test_a_group_goes_on_behind_what_it_committed(there: Place) -> None:
    topic, bus = there.topic(), there.open()
    bus.append(topic, numbered("m", range(5)))
    first = bus.reader(topic, "g")
    assert take(first, 2, most=2) == [b"m0", b"m1"]
    first.commit()
    first.commit()
    assert take(first, 2, most=2) == [b"m2", b"m3"]
    first.close()
    second = there.open().reader(topic, "g")
    assert take(second, 3) == [b"m2", b"m3", b"m4"], "what was not committed comes again"
    second.commit()
    second.close()
    third = there.open().reader(topic, "g")
    assert third.read(10, SHORT) == []
    bus.append(topic, [b"more"])
    assert take(third, 1) == [b"more"]
    third.close()


def test_groups_do_not_see_each_other(there: Place) -> None:
    topic, bus = there.topic(), there.open()
    bus.append(topic, [b"a", b"b"])
    readers = [bus.reader(topic, group) for group in ("one", "two")]
    for reader in readers:
        assert take(reader, 2) == [b"a", b"b"]
        reader.commit()
        reader.close()


def test_a_reader_may_begin_at_the_end(there: Place) -> None:
    topic, bus = there.topic(), there.open()
    bus.append(topic, numbered("old", range(3)))
    reader = bus.reader(topic, "g", from_end=True)
    bus.append(topic, [b"new"])
    reader.close()
    again = there.open().reader(topic, "g", from_end=True)
    assert take(again, 1) == [b"new"], "the end is kept as the group's place"
    again.commit()
    again.close()


def test_without_a_group_nothing_is_kept_and_nobody_is_kept_from_reading(there: Place) -> None:
    topic, bus = there.topic(), there.open()
    bus.append(topic, [b"a"])
    for _ in range(2):
        reader = bus.reader(topic, None)
        assert take(reader, 1) == [b"a"]
        reader.commit()
        reader.close()
    first, second = (bus.reader(topic, None, from_end=True) for _ in range(2))
    bus.append(topic, [b"b"])
    assert (take(first, 1), take(second, 1)) == ([b"b"], [b"b"])
    first.close()
    second.close()


def test_readers_of_one_group_get_each_message_once_and_take_over_from_each_other(there: Place) -> None:
    topic, bus = there.topic(), there.open()
    readers = [there.open().reader(topic, "g") for _ in range(2)]
    came, once, alone = (numbered(word, range(20)) for word in ("came", "once", "alone"))
    send(bus, topic, came)
    assert set(take_by_turns(readers, came)) == set(came), "perhaps twice, while the group agrees who reads what"
    send(bus, topic, once)
    assert sorted(take_by_turns(readers, once)) == sorted(once)
    readers[0].close()
    send(bus, topic, alone)
    assert sorted(take(readers[1], len(alone))) == sorted(alone)
    readers[1].close()


def send(bus: Bus, topic: str, values: Sequence[bytes]) -> None:
    """Append each by itself: they may go to several partitions."""
    for value in values:
        bus.append(topic, [value])


def take_by_turns(readers: Sequence[TopicReader], wanted: Sequence[bytes]) -> list[bytes]:
    """Read and commit until all came, and a while longer: none may come again."""
    found: list[bytes] = []
    quiet = 0
    while quiet < len(readers) or not set(wanted) <= set(found):
        for reader in readers:
            new = [message.value for message in reader.read(3, SHORT)]
            reader.commit()
            found += new
            quiet = 0 if new else quiet + 1
    return found


def test_several_append_at_once_and_nothing_is_lost_or_torn(there: Place) -> None:
    topic, bus = there.topic(), there.open()
    bus.append(topic, [b"first"])
    batches = [[numbered(f"{name}-{batch}-", range(5)) for batch in range(8)] for name in "abc"]
    threads = [
        threading.Thread(target=lambda some=some: [bus.append(topic, part) for part in some]) for some in batches
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reader = bus.reader(topic, None)
    found = take(reader, 1 + 3 * 8 * 5)
    assert sorted(found) == sorted([b"first", *(value for some in batches for part in some for value in part)])
    for some in batches:
        for part in some:
            assert [value for value in found if value in part] == part
    reader.close()


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "a b", "ü", "a\n", "x" * 250, "a\0"])
def test_a_name_that_no_bus_can_have_is_refused(there: Place, name: str) -> None:
    bus = there.open()
    for act in (
        lambda: bus.append(name, [b"x"]),
        lambda: bus.reader(name, "g"),
        lambda: bus.reader("topic", name),
    ):
        with pytest.raises(BadInput, match="take 1 to 249"):
            act()


def test_a_message_that_no_bus_can_have_is_refused_and_none_of_its_append_is_there(there: Place) -> None:
    topic, bus = there.topic(), there.open()
    with pytest.raises(BadInput, match="line break"):
        bus.append(topic, [b"whole", b"in two\nlines"])
    with pytest.raises(TooLong, match="are the most"):
        bus.append(topic, [b"whole", b"x" * (LONGEST + 1)])
    bus.append(topic, [b"after"])
    reader = bus.reader(topic, None)
    assert take(reader, 1) == [b"after"]
    reader.close()


def test_topics_are_listed(there: Place) -> None:
    bus, topics = there.open(), [there.topic() for _ in range(2)]
    for topic in topics:
        bus.append(topic, [b"x"])
    assert set(topics) <= set(bus.topics())
    assert bus.topics() == sorted(bus.topics())
