"""The bad days of an S3 server: whatever breaks, a file is there whole or not at all, and no upload is left."""

from __future__ import annotations

import hashlib
import io
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from faults.tally import FaultLog
from storing.cutting_proxy import NEVER, Proxy, proxy
from storing.remote_places import InS3, work_folder
from storing.sources import Interrupted
from storing.store_conformance import PATH, Asked, commit

from servers import process
from servers.versitygw import Versitygw
from warcmill.errors import BadConfig, Unavailable
from warcmill.stores import opening
from warcmill.stores.remote_files import Budget
from warcmill.stores.s3.client import Bucket
from warcmill.stores.s3.place import S3Access
from warcmill.stores.s3.store import PART, S3Store

SMALL = random.Random(1).randbytes(300_000)
DATA = random.Random(2).randbytes(2 * PART + 12_345)
SHA512 = hashlib.sha512(DATA).hexdigest()
LEFT_BEHIND = """
import hashlib, os, signal, sys
from warcmill.stores.remote_files import Budget
from warcmill.stores.s3.client import Bucket
from warcmill.stores.s3.place import S3Access, S3Place
from warcmill.stores.s3.store import S3Store

endpoint, key, secret, bucket, prefix, path, size = sys.argv[1:]
access = S3Access(endpoint, "", key, secret_key_file=secret)
store = S3Store("store", Bucket(bucket, access, Budget(5)), S3Place(bucket, prefix))


class Dying:
    left = int(size)

    def read(self, amount):
        self.left -= amount
        if self.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return bytes(amount)


store.commit_new(path, Dying(), 2 * int(size), "0" * 128)
"""
FLAT = """
import hashlib, resource, sys
from warcmill.stores.remote_files import Budget
from warcmill.stores.s3.client import Bucket
from warcmill.stores.s3.place import S3Access, S3Place
from warcmill.stores.s3.store import S3Store

endpoint, key, secret, bucket, prefix, path, size = sys.argv[1:]
access = S3Access(endpoint, "", key, secret_key_file=secret)
store = S3Store("store", Bucket(bucket, access, Budget(5)), S3Place(bucket, prefix))


class Zeros:
    left = int(size)

    def read(self, amount):
        data = bytes(min(amount, self.left))
        self.left -= len(data)
        return data


store.stat("none")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert store.commit_new(path, Zeros(), int(size), lambda digest: True)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.fixture
def there(versitygw: Versitygw, tmp_path: Path) -> InS3:
    return InS3(versitygw, work_folder(tmp_path))


def through(between: Proxy) -> str:
    return f"http://127.0.0.1:{between.port}"


def beyond(there: InS3) -> tuple[str, int]:
    return "127.0.0.1", there.server.ports["http"]


def one_cut_after(count: int) -> Callable[[], int]:
    left = [count]
    return lambda: left.pop() if left else NEVER


class Once:
    """A source that can be read only once."""

    def __init__(self, data: bytes) -> None:
        self._stream = io.BytesIO(data)

    def read(self, size: int, /) -> bytes:
        return self._stream.read(size)


@pytest.mark.parametrize("point", [1, 2_000, 200_000, PART, len(DATA)])
@pytest.mark.parametrize("data", [SMALL, DATA], ids=["one PUT", "parts"])
def test_even_a_source_that_is_read_once_survives_a_cut(
    there: InS3, fault_log: FaultLog, data: bytes, point: int
) -> None:
    """What is sent is in memory, a part at a time."""
    with proxy(*beyond(there), cut_after=one_cut_after(point)) as between:
        store = there.open(10, through(between))
        assert store.commit_new(PATH, Once(data), len(data), hashlib.sha512(data).hexdigest())
        fault_log.injected("S3, an upload cut", between.cuts)
    assert there.files() == {PATH: data}
    assert there.uploads() == []


def test_a_connection_cut_every_64_kib_publishes_nothing_long(there: InS3, fault_log: FaultLog) -> None:
    with proxy(*beyond(there), cut_after=lambda: 1 << 16) as between:
        store = there.open(1, through(between))
        with pytest.raises(Unavailable):
            commit(store, DATA)
        assert commit(store, SMALL[:30_000], "small")
        fault_log.injected("S3, an upload cut", between.cuts)
    assert there.files() == {"small": SMALL[:30_000]}
    assert there.uploads() == []
    assert commit(there.open(), DATA)


def test_a_cut_download_continues_where_it_broke(there: InS3, fault_log: FaultLog) -> None:
    commit(there.open(), DATA)
    points: list[int] = []
    with proxy(*beyond(there), cut_after=lambda: points.pop() if points else NEVER, answers=True) as between:
        store = there.open(10, through(between))
        with store.open(PATH) as file:  # what came before took connections of its own
            points += (1 << 20, 1 << 19, 10_000)
            between.close_all()
            assert file.read() == DATA
        assert between.cuts == 3
    fault_log.injected("S3, a download cut", 3)


@pytest.mark.parametrize("another", [False, True], ids=["ours", "another's"])
@pytest.mark.parametrize("data", [SMALL, DATA], ids=["one PUT", "parts"])
def test_who_made_the_file_decides_when_the_answer_is_lost(
    there: InS3, fault_log: FaultLog, data: bytes, another: bool
) -> None:
    """The server has published the file, and the connection is cut before it reports it."""
    seen: list[bool] = []

    def is_published(_: bytes) -> bool:
        if seen or not (there.base / PATH).exists():
            return False
        seen.append(True)
        if another:
            there.delete(PATH)
            there.write(PATH, b"another's")
        return True

    with proxy(*beyond(there), watch_answers=is_published, passes_last=False) as between:
        assert commit(there.open(10, through(between)), data) is not another
        assert between.cuts == 1
    assert there.files() == {PATH: b"another's" if another else data}
    assert there.uploads() == []
    fault_log.injected("S3, the answer to a publication lost")


def test_a_server_killed_mid_upload_is_waited_for(there: InS3, fault_log: FaultLog) -> None:
    for sha512 in (SHA512, Asked(True, there)):
        source = Interrupted(DATA, there.server.restart)
        assert there.open(20).commit_new(PATH, source, len(DATA), sha512)
        fault_log.injected("S3, the server killed and started again")
        assert there.files() == {PATH: DATA}
        assert there.uploads() == []
        there.delete(PATH)


def test_an_upload_that_somebody_aborts_is_begun_again(there: InS3, fault_log: FaultLog) -> None:
    def abort() -> None:
        bucket, key = there.bucket(), there.uploads()[0]
        (upload,) = bucket.ask("list_multipart_uploads", Prefix=key)["Uploads"]
        bucket.ask("abort_multipart_upload", Key=key, UploadId=upload["UploadId"])

    assert there.open(10).commit_new(PATH, Interrupted(DATA, abort), len(DATA), SHA512)
    fault_log.injected("S3, an upload aborted by another")
    assert there.files() == {PATH: DATA}
    assert there.uploads() == []


def arguments(there: InS3, size: int) -> list[str]:
    access = there.at(there.server.endpoint)
    keys = [access.endpoint, access.access_key, access.secret_key_file]
    return [*keys, there.place.bucket, there.place.prefix, PATH, str(size)]


def test_what_a_killed_process_left_is_swept_and_what_lives_is_not(there: InS3, fault_log: FaultLog) -> None:
    died = subprocess.run([sys.executable, "-c", LEFT_BEHIND, *arguments(there, 3 * PART)], check=False)
    assert died.returncode == -signal.SIGKILL
    fault_log.injected("S3, a writer killed mid-upload")
    assert [len(data) > PART for data in there.files().values()] == [True]
    key = f"{there.place.prefix}/{PATH}"
    assert there.uploads() == [key]
    store = there.open()
    with pytest.raises(Unavailable, match="is away"):
        store.commit_new(PATH, Sweeping(store), len(DATA), SHA512)
    assert (there.uploads(), there.files()) == ([], {})
    assert commit(store, DATA)


class Sweeping:
    """A source that sweeps while its own upload lives."""

    def __init__(self, store: S3Store) -> None:
        self._store, self._left = store, DATA

    def read(self, size: int, /) -> bytes:
        data, self._left = self._left[:size], self._left[size:]
        if not data:
            assert self._store.sweep(PATH.rpartition("/")[0]) == 1
            assert self._store.sweep(PATH.rpartition("/")[0]) == 0
            raise Unavailable("the source", "is away")
        return data if len(self._left) > 100 else data[:-50]


def test_a_long_file_takes_little_memory(there: InS3) -> None:
    size = 24 * PART
    done = subprocess.run(
        [sys.executable, "-c", FLAT, *arguments(there, size)], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) < 6 * PART // 1024
    assert (there.base / PATH).stat().st_size == size


def test_a_server_that_never_answers_is_an_outage(there: InS3, fault_log: FaultLog) -> None:
    with proxy(*beyond(there), watch=lambda _: True, passes_last=False) as between, pytest.raises(Unavailable):
        there.open(0.5, through(between))
    store = there.open()
    silent = there.server
    os.kill(pid_of(silent), signal.SIGSTOP)
    try:
        slow = Bucket(there.place.bucket, there.at(silent.endpoint), Budget(0.5), 1)
        store._s3 = slow
        with pytest.raises(Unavailable, match=r"timed out|timeout"):
            store.stat(PATH)
        fault_log.injected("S3, a server that is silent")
    finally:
        os.kill(pid_of(silent), signal.SIGCONT)
    assert store.stat(PATH) is None


def pid_of(server: Versitygw) -> int:
    running = process.running(server.folder, "versitygw")
    assert running
    return running.pid


def test_a_wrong_secret_is_refused_and_not_printed(there: InS3, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("another-secret\n")
    access = there.at(there.server.endpoint)
    wrong = S3Access(access.endpoint, "", access.access_key, secret_key_file=str(secret))
    with pytest.raises(Unavailable, match=r"403.*Check the keys of \[s3\]") as caught:
        S3Store("store", Bucket(there.place.bucket, wrong, Budget(0)), there.place)
    assert "another-secret" not in str(caught.value)


def test_a_bucket_that_is_not_there_is_no_empty_store(there: InS3) -> None:
    with pytest.raises(Unavailable, match="no such bucket"):
        opening.adopt("s3://another-bucket/line", ["store"], there.access)
    with pytest.raises(Unavailable, match="404 NoSuchBucket"):
        opening.open_store("store", "s3://another-bucket/line", there.access)


def test_the_root_of_another_kind_is_refused(there: InS3) -> None:
    with pytest.raises(BadConfig, match="not a place for it"):
        opening.open_store("output", there.url, there.access)
