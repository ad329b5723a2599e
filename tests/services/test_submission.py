"""SIPs handed over on a real sshd and in a real HDFS: raced, killed, through an outage; each is received once."""

from __future__ import annotations

import hashlib
import io
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from storing.remote_places import InHdfs, OverSsh, work_folder

from servers.hdfs import Hdfs
from servers.sshd import Sshd
from warcmill import layout
from warcmill.audit.health import Level
from warcmill.audit.health_services import check_verified_at
from warcmill.errors import Unavailable
from warcmill.package.submit import Submission, hand_over
from warcmill.stores import opening

Place = InHdfs | OverSsh
SIZE = 3 << 20
SIPS = [f"daily.2016101923442{number}.final.tar" for number in range(6)]
LIMIT = 600  # seconds for one child


@pytest.fixture(params=["sshd", "hdfs"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A destination on a server."""
    folder = work_folder(tmp_path)
    if request.param == "hdfs":
        server: Hdfs = request.getfixturevalue("hdfs")
        return InHdfs(server, folder, "destination")
    sshd: Sshd = request.getfixturevalue("sshd")
    return OverSsh(sshd, folder, "destination")


def data_of(name: str) -> bytes:
    return random.Random(name).randbytes(SIZE)


def submit(place: Place, names: list[str]) -> None:
    store = opening.open_store("destination", place.url, place.access)
    for name in names:
        data = data_of(name)
        sip = Submission(name, hashlib.sha512(name.encode()).hexdigest(), SIZE, hashlib.sha512(data).hexdigest())
        hand_over(store, sip, lambda data=data: io.BytesIO(data))


def child(body: Callable[[], None]) -> int:
    """A process that does it; its pid. Its exit code is 0 when it has."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(LIMIT)
            body()
            code = 0
        except BaseException:  # noqa: BLE001 - nothing may get out of a forked child
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return pid


class Ingest:
    """The ingesting system: it takes away what is in the watched folder, whenever it looks."""

    def __init__(self, place: Place) -> None:
        self.place, self.received = place, Counter[str]()

    def look(self) -> None:
        for name in self._names():
            data = self.place.read(f"ingest/{name}") if isinstance(self.place, InHdfs) else self._local(name)
            assert data == data_of(name), f"{name} is not whole"
            self.place.delete(f"ingest/{name}")
            self.received[name] += 1

    def _names(self) -> list[str]:
        if isinstance(self.place, OverSsh):
            return sorted(path.name for path in (self.place.base / "ingest").glob("*"))
        found = self.place.server.webhdfs("GET", self.place.base, "op=LISTSTATUS")
        folders = [entry["pathSuffix"] for entry in found["FileStatuses"]["FileStatus"]]  # type: ignore[index]
        return [path.rpartition("/")[2] for path in self.place.walk("ingest")] if "ingest" in folders else []

    def _local(self, name: str) -> bytes:
        assert isinstance(self.place, OverSsh)
        return (self.place.base / "ingest" / name).read_bytes()

    def until(self, *pids: int) -> list[int]:
        """Look again and again until these processes have ended; their exit codes."""
        left, codes = list(pids), dict[int, int]()
        while left:
            self.look()
            for pid in list(left):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    left.remove(pid)
                    codes[pid] = os.waitstatus_to_exitcode(status)
            time.sleep(0.05)  # looking takes the processors that the submitters need
        self.look()
        return [codes[pid] for pid in pids]


def slips(place: Place) -> set[str]:
    return {path for path in place.files() if path.startswith(("staging/", "receipts/"))}


def all_slips() -> set[str]:
    return {path(name) for name in SIPS for path in (layout.sending_path, layout.receipt_path)}


def test_of_three_submitters_at_once_each_sip_is_received_once(place: Place) -> None:
    ingest = Ingest(place)
    codes = ingest.until(*(child(lambda: submit(place, SIPS)) for _ in range(3)))
    assert (codes, ingest.received) == ([0, 0, 0], Counter(SIPS))
    assert slips(place) == all_slips()


def test_submitters_that_are_killed_again_and_again_hand_each_sip_over_once(place: Place) -> None:
    """At moments that are spread over the time that one takes alone."""
    ingest, chance = Ingest(place), random.Random(7)
    begun = time.monotonic()
    assert ingest.until(child(lambda: submit(place, SIPS[:1]))) == [0]
    alone = time.monotonic() - begun
    kills = 0
    for _ in range(12):
        pid = child(lambda: submit(place, SIPS))
        time.sleep(chance.random() * alone * 2)
        ingest.look()
        os.kill(pid, signal.SIGKILL)
        kills += ingest.until(pid) == [-signal.SIGKILL]
    assert ingest.until(child(lambda: submit(place, SIPS))) == [0]
    assert ingest.received == Counter(SIPS)
    assert kills > 0
    assert {path for path in slips(place) if path.endswith(".json")} == all_slips()


def test_a_destination_that_goes_away_is_an_outage_and_then_the_sip_is_handed_over(place: Place) -> None:
    ingest = Ingest(place)
    submit(place, SIPS[:1])
    impatient = place.open()
    sip = Submission(SIPS[1], "a" * 128, SIZE, "b" * 128)
    with place.outage(), pytest.raises(Unavailable):
        hand_over(impatient, sip, io.BytesIO)
    ingest.look()
    assert ingest.until(child(lambda: submit(place, SIPS[:2]))) == [0]
    assert ingest.received == Counter(SIPS[:2])


def test_doctor_sees_whether_the_place_where_sips_are_read_again_is_there(place: Place) -> None:
    place.write("a.tar", b"")
    folder, mark, query = place.url.partition("?")
    found = {name: check_verified_at(f"{folder}{name}{mark}{query}", place.access) for name in ("", "/gone", "/a.tar")}
    assert {name: one.level for name, one in found.items()} == {
        "": Level.OK,
        "/gone": Level.FAIL,
        "/a.tar": Level.FAIL,
    }
    assert "there is no such folder" in found["/gone"].text
