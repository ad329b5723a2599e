"""The bus in files: what every bus must do, its files, and what a kill, a full disk and other hands leave of them."""

from __future__ import annotations

import errno
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from requesting.bus_conformance import *  # noqa: F403 - the tests of every bus
from requesting.bus_conformance import PATIENCE, SHORT, Place, numbered, take

from warcmill.clients.bus import LONGEST, Bus
from warcmill.clients.bus.opening import open_bus
from warcmill.clients.bus.spool import Spool
from warcmill.errors import BadConfig, BadInput, Unavailable

TOPIC = "demo.incoming"
DAY = date(2026, 11, 26)
WRITER = """
import sys
from pathlib import Path
from warcmill.clients.bus.spool import Spool
bus = Spool(Path(sys.argv[1]))
for number in range(1_000_000):
    bus.append("demo.incoming", [b"%s-%d-%s" % (sys.argv[2].encode(), number, b"x" * 5_000) for _ in range(2)])
    print(number, flush=True)
"""
READER = """
import sys
from pathlib import Path
from warcmill.clients.bus.spool import Spool
reader = Spool(Path(sys.argv[1])).reader("demo.incoming", "g")
while True:
    for message in reader.read(7, 0.1):
        print(message.value.decode(), flush=True)
    reader.commit()
"""


class OfFiles:
    """A folder of topics."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count()

    def open(self) -> Bus:
        return open_bus("spool", self.folder)

    def topic(self) -> str:
        return f"demo.topic-{next(self._numbers)}"


@pytest.fixture
def there(tmp_path: Path) -> Place:
    return OfFiles(tmp_path / "spool")


def on(folder: Path, day: date, days: int = 7) -> Spool:
    return Spool(folder, days, lambda: day)


def values(reader: Any, most: int = 100) -> list[bytes]:
    return [message.value for message in reader.read(most, 0)]


def test_a_topic_has_a_file_of_lines_for_each_day(tmp_path: Path) -> None:
    on(tmp_path, DAY).append(TOPIC, [b'{"a": 1}', b'{"a": 2}'])
    on(tmp_path, DAY + timedelta(1)).append(TOPIC, [b'{"a": 3}'])
    assert (tmp_path / TOPIC / "2026-11-26.jsonl").read_bytes() == b'{"a": 1}\n{"a": 2}\n'
    assert (tmp_path / TOPIC / "2026-11-27.jsonl").read_bytes() == b'{"a": 3}\n'
    reader = on(tmp_path, DAY).reader(TOPIC, "g")
    places = [message.place.split(":") for _ in range(2) for message in reader.read(10, 0)]
    assert [(day, start) for day, _, start, _ in places] == [
        ("2026-11-26", "0"), ("2026-11-26", "9"), ("2026-11-27", "0"),
    ]  # fmt: skip


def test_a_clock_that_is_set_back_does_not_hide_messages_from_who_read_on(tmp_path: Path) -> None:
    on(tmp_path, DAY).append(TOPIC, [b"a"])
    reader = on(tmp_path, DAY).reader(TOPIC, "g")
    assert values(reader) == [b"a"]
    on(tmp_path, DAY - timedelta(3)).append(TOPIC, [b"b"])
    assert values(reader) == [b"b"]
    assert [path.name for path in (tmp_path / TOPIC).glob("*.jsonl")] == ["2026-11-26.jsonl"]


def test_old_files_go_when_a_new_day_begins_but_not_those_that_a_group_has_not_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for days in range(4):
        on(tmp_path, DAY + timedelta(days)).append(TOPIC, [str(days).encode()])
    slow, none = (on(tmp_path, DAY).reader(TOPIC, group) for group in ("slow", None))
    assert (values(slow), values(slow)) == ([b"0"], [b"1"])
    slow.commit()
    on(tmp_path, DAY + timedelta(10), days=7).append(TOPIC, [b"10"])
    names = sorted(path.name for path in (tmp_path / TOPIC).glob("*.jsonl"))
    assert names == ["2026-11-27.jsonl", "2026-11-28.jsonl", "2026-11-29.jsonl", "2026-12-06.jsonl"]
    assert "kept from 2026-11-27.jsonl on, as group slow has not read it" in caplog.text
    assert [values(slow) for _ in range(3)] == [[b"2"], [b"3"], [b"10"]]
    slow.commit()
    on(tmp_path, DAY + timedelta(11), days=7).append(TOPIC, [b"11"])
    assert min(path.name for path in (tmp_path / TOPIC).glob("*.jsonl")) == "2026-12-06.jsonl"
    assert values(none) == [b"10"], "who keeps no place goes on with what is there"


def test_old_files_stay_for_a_group_that_has_read_and_never_committed(tmp_path: Path) -> None:
    on(tmp_path, DAY).append(TOPIC, [b"a"])
    reader = on(tmp_path, DAY).reader(TOPIC, "failing")
    assert values(reader) == [b"a"]
    reader.close()
    on(tmp_path, DAY + timedelta(30)).append(TOPIC, [b"b"])
    again = on(tmp_path, DAY).reader(TOPIC, "failing")
    assert (values(again), values(again)) == ([b"a"], [b"b"])


def test_writers_whose_clocks_differ_lose_nothing_over_many_midnights(tmp_path: Path) -> None:
    """One is eight hours behind. A reader keeps up; another begins days later, when old files should be gone."""
    hour = 0

    def spool(behind: int) -> Spool:
        return Spool(tmp_path, 1, lambda: DAY + timedelta((hour - behind) // 24))

    writers = {b"a": spool(0), b"b": spool(8)}
    prompt, slow = (spool(0).reader(TOPIC, group) for group in ("prompt", "slow"))
    sent: list[bytes] = []
    found: dict[str, list[bytes]] = {"prompt": [], "slow": []}
    for hour in range(24 * 6):
        for name, writer in writers.items():
            sent.append(b"%s%d" % (name, hour))
            writer.append(TOPIC, sent[-1:])
        found["prompt"] += [*values(prompt), *values(prompt)]
        prompt.commit()
        if hour >= 100:
            found["slow"] += values(slow, 20)
            slow.commit()
    while some := values(slow):
        found["slow"] += some
    assert found == {"prompt": sent, "slow": sent}
    names = sorted(path.name for path in (tmp_path / TOPIC).glob("*.jsonl"))
    assert names[0] > f"{DAY}.jsonl"
    assert len(names) < 6, names


def test_the_names_of_folders_that_another_process_made_just_now_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spool" / TOPIC).mkdir(parents=True)
    synced: set[str] = set()
    real = os.fsync

    def noted(descriptor: int) -> None:
        synced.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    on(tmp_path / "spool", DAY).append(TOPIC, [b"a"])
    assert {str(tmp_path), str(tmp_path / "spool"), str(tmp_path / "spool" / TOPIC)} <= synced


def test_a_line_without_its_end_is_not_read_and_the_next_append_takes_its_place(tmp_path: Path) -> None:
    bus = on(tmp_path, DAY)
    bus.append(TOPIC, [b"whole"])
    path = tmp_path / TOPIC / "2026-11-26.jsonl"
    with path.open("ab") as file:
        file.write(b"x" * 600_000)  # a kill left it; longer than what is looked at in one piece
    reader = bus.reader(TOPIC, "g")
    assert (values(reader), values(reader)) == ([b"whole"], [])
    end = bus.reader(TOPIC, None, from_end=True)
    bus.append(TOPIC, [b"next"])
    assert path.read_bytes() == b"whole\nnext\n"
    assert (values(reader), values(end)) == ([b"next"], [b"next"])


def test_a_file_that_is_nothing_but_a_torn_line(tmp_path: Path) -> None:
    bus = on(tmp_path, DAY)
    (tmp_path / TOPIC).mkdir(parents=True)
    (tmp_path / TOPIC / "2026-11-26.jsonl").write_bytes(b"torn")
    reader = bus.reader(TOPIC, "g", from_end=True)
    on(tmp_path, DAY + timedelta(1)).append(TOPIC, [b"next"])
    assert values(reader) == [b"next"]
    assert (tmp_path / TOPIC / "2026-11-26.jsonl").read_bytes() == b"torn", "the file of a day that is over is left"


def test_a_line_that_is_too_long_gives_its_beginning_and_those_after_it_are_read(tmp_path: Path) -> None:
    bus = on(tmp_path, DAY)
    bus.append(TOPIC, [b"a"])
    with (tmp_path / TOPIC / "2026-11-26.jsonl").open("ab") as file:
        for _ in range(30):
            file.write(b"y" * (1 << 20))
        file.write(b"\nb\n")
    reader = bus.reader(TOPIC, None)
    assert values(reader) == [b"a", b"y" * LONGEST]
    assert values(reader) == [b"b"]


def test_few_long_messages_are_read_at_a_time(tmp_path: Path) -> None:
    bus = on(tmp_path, DAY)
    for _ in range(5):
        bus.append(TOPIC, [b"z" * (LONGEST - 1)])
    reader = bus.reader(TOPIC, None)
    assert [len(values(reader)) for _ in range(4)] == [2, 2, 1, 0]


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_is_unavailable_and_what_was_there_is_read_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    bus = on(tmp_path, DAY)
    bus.append(TOPIC, [b"before"])
    real, left = getattr(os, call), iter([True, False])

    def failing(descriptor: int, *rest: Any) -> Any:
        if call == "write" and next(left):
            return real(descriptor, rest[0][:12])  # a whole line, and a part of the next
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as broken:
        broken.setattr(os, call, failing)
        with pytest.raises(Unavailable, match="No space left on device; make room"):
            bus.append(TOPIC, [b"one more", b"another"])
    reader = bus.reader(TOPIC, "g")
    bus.append(TOPIC, [b"one more", b"another"])
    found = values(reader)
    assert found[0] == b"before"
    assert found[-2:] == [b"one more", b"another"]
    assert set(found) == {b"before", b"one more", b"another"}, "repeats at most"


def test_a_place_that_cannot_be_kept_is_unavailable_and_the_old_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = on(tmp_path, DAY)
    bus.append(TOPIC, numbered("m", range(3)))
    reader = bus.reader(TOPIC, "g")
    assert values(reader, 1) == [b"m0"]
    reader.commit()
    assert values(reader, 1) == [b"m1"]
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
        with pytest.raises(Unavailable, match="Input/output error"):
            reader.commit()
    reader.close()
    assert values(bus.reader(TOPIC, "g")) == [b"m1", b"m2"]


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b'{"file": 1, "offset": 0}', b'{"file": "x", "offset": -1}'])
def test_a_damaged_place_is_named_and_disturbs_no_other_group_and_no_append(tmp_path: Path, damaged: bytes) -> None:
    bus = on(tmp_path, DAY)
    bus.append(TOPIC, [b"a"])
    place = tmp_path / ".places" / "g" / f"{TOPIC}.json"
    place.parent.mkdir(parents=True)
    place.write_bytes(damaged)
    for _ in range(2):
        with pytest.raises(BadInput, match="it is not a place in a topic; delete it") as refused:
            bus.reader(TOPIC, "g")
        assert str(place) in str(refused.value)
    on(tmp_path, DAY + timedelta(30)).append(TOPIC, [b"b"])
    other = bus.reader(TOPIC, "other")
    assert (values(other), values(other)) == ([b"a"], [b"b"]), "nothing was removed that the group may need"


def test_a_file_that_is_shorter_than_the_place_is_read_again(tmp_path: Path) -> None:
    bus = on(tmp_path, DAY)
    bus.append(TOPIC, numbered("message", range(3)))
    reader = bus.reader(TOPIC, "g")
    assert len(values(reader)) == 3
    reader.commit()
    (tmp_path / TOPIC / "2026-11-26.jsonl").write_bytes(b"other\n")
    assert values(reader) == [b"other"]


def test_a_folder_that_is_moved_away_is_begun_anew_and_its_new_messages_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    bus = Spool(folder)
    bus.append("t", [b"one", b"two"])
    reader, group = bus.reader("t", None), bus.reader("t", "g")
    before = set()
    for one in (reader, group):
        found = one.read(10, 0)
        assert [message.value for message in found] == [b"one", b"two"]
        before |= {message.place for message in found}
    group.commit()
    folder.rename(tmp_path / "away")
    assert reader.read(10, 0) == []
    bus.append("t", [b"1", b"2", b"3", b"4"])
    assert [message.value for message in reader.read(10, 0)] == [b"1", b"2", b"3", b"4"]
    found = group.read(10, 0)
    assert [message.value for message in found] == [b"1", b"2", b"3", b"4"]
    assert found[0].place not in before, "who has taken a message by its place must not take this for the same"
    with pytest.raises(Unavailable):
        group.commit()
    group.close()
    again = bus.reader("t", "g")
    assert [message.value for message in again.read(10, 0)] == [b"1", b"2", b"3", b"4"]
    again.commit()
    assert again.read(10, 0) == []


def test_a_second_reader_of_a_group_waits_until_the_first_has_died(tmp_path: Path) -> None:
    bus = Spool(tmp_path)
    bus.append(TOPIC, numbered("m", range(3)))
    with started(READER, tmp_path) as first:
        assert first.stdout
        assert [first.stdout.readline() for _ in range(3)] == [b"m0\n", b"m1\n", b"m2\n"]
        reader = bus.reader(TOPIC, "g")
        assert reader.read(10, SHORT) == []
        bus.append(TOPIC, [b"m3"])
        assert first.stdout.readline() == b"m3\n"
        first.kill()
    bus.append(TOPIC, [b"m4"])
    assert take(reader, 1)[-1] == b"m4"


def test_kills_lose_no_acknowledged_message_and_tear_none(tmp_path: Path) -> None:
    """Writers and readers are killed at any moment; each message is there, and read by the group, until its end."""
    acknowledged: set[bytes] = set()
    seen: set[bytes] = set()
    for turn in range(6):
        writers = {f"{turn}{name}": started(WRITER, tmp_path, f"{turn}{name}") for name in "ab"}
        reader = started(READER, tmp_path)
        for writer in writers.values():
            assert writer.stdout
            assert writer.stdout.readline() == b"0\n"
        time.sleep(0.02 * turn)
        for process in (*writers.values(), reader):
            process.send_signal(signal.SIGKILL)
        for name, writer in writers.items():
            last = [0, *map(int, whole_lines(writer))][-1]
            acknowledged |= {message(name, number) for number in range(last + 1)}
        seen |= set(whole_lines(reader))
    Spool(tmp_path).append(TOPIC, [b"end"])
    found = until_the_end(tmp_path, None)
    assert acknowledged <= found
    assert all(re.fullmatch(rb"\d[ab]-\d+-x{5000}", value) for value in found), "one is torn"
    assert seen | until_the_end(tmp_path, "g") == found, "what was committed was read, and all else is read now"


def message(name: str, number: int) -> bytes:
    return b"%s-%d-" % (name.encode(), number) + b"x" * 5_000


def whole_lines(process: subprocess.Popen[bytes]) -> list[bytes]:
    """The lines of a killed process that it wrote to their end."""
    printed, _ = process.communicate()
    return printed.split(b"\n")[:-1]


def until_the_end(folder: Path, group: str | None) -> set[bytes]:
    reader, found = Spool(folder).reader(TOPIC, group), [b""]
    while found[-1] != b"end":
        found += [message.value for message in reader.read(1000, PATIENCE)]
    reader.close()
    return set(found[1:-1])


def started(program: str, folder: Path, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", program, folder, *words], stdout=subprocess.PIPE)


@pytest.mark.parametrize(
    "named",
    ["", "Spool", "kafka://", "kafka://h", "kafka://h:9092/x", "redis://h:1", "kafka://h:1,"],
)
def test_another_bus_is_refused(tmp_path: Path, named: str) -> None:
    with pytest.raises(BadConfig, match=r"\[requests\] bus: .*is not a bus; set spool, or kafka://"):
        open_bus(named, tmp_path)
