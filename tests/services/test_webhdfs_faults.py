"""The bad days of an HDFS: whatever breaks, a file is there whole or not at all, and an outage is not absence."""

from __future__ import annotations

import hashlib
import io
import json
import random
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from faults.tally import FaultLog
from storing.cutting_proxy import NEVER, proxy
from storing.remote_places import BLOCK, InHdfs, Rerouted, work_folder
from storing.sources import Interrupted
from storing.store_conformance import PATH, Asked, commit, read, read_back

from servers.hdfs import Hdfs
from warcmill.errors import BadInput, Mismatch, Unavailable
from warcmill.formats.hdfs_checksum import Hasher
from warcmill.stores.remote_files import SMALL, Broken
from warcmill.stores.webhdfs.client import NameNodes
from warcmill.stores.webhdfs.http import Address, Connections, HdfsRefusal, HdfsResponse

DATA = random.Random(1).randbytes(5 * BLOCK + 12_345)
SHA512 = hashlib.sha512(DATA).hexdigest()
AWAY = 9  # seconds; eight threads that each counted them would have spent the minute


@pytest.fixture
def there(hdfs: Hdfs, tmp_path: Path) -> InHdfs:
    return InHdfs(hdfs, work_folder(tmp_path))


def address(text: str) -> Address:
    host, _, port = text.partition(":")
    return Address(host, int(port))


def proxied_datanodes(there: InHdfs, cut_after: Callable[[], int], **more: object) -> tuple[ExitStack, Rerouted]:
    """Connections that reach both DataNodes through a proxy each."""
    stack, ways = ExitStack(), {}
    for number in (1, 2):
        at = address(there.server.datanode_http(number))
        found = stack.enter_context(proxy(at.host, at.port, cut_after=cut_after, **more))
        ways[at] = Address("127.0.0.1", found.port)
    return stack, Rerouted(ways)


def one_cut_after(count: int) -> Callable[[], int]:
    """The first connection is cut after so many bytes, the others are not."""
    left = [count]
    return lambda: left.pop() if left else NEVER


def test_a_source_that_can_be_read_again_survives_a_cut(there: InHdfs, fault_log: FaultLog) -> None:
    for point in (1, 1_000, BLOCK, 3 * BLOCK, len(DATA) + 300):
        stack, connections = proxied_datanodes(there, one_cut_after(point))
        with stack:
            assert there.open(10, connections).commit_new(PATH, io.BytesIO(DATA), len(DATA), SHA512)
        fault_log.injected("HDFS, an upload cut")
        assert there.files()[PATH] == DATA
        there.delete(PATH)


def test_a_cut_download_continues_where_it_broke(there: InHdfs, fault_log: FaultLog) -> None:
    commit(there.open(), DATA)
    points = iter((1, 50, 1_000, BLOCK, 3 * BLOCK))
    fault_log.injected("HDFS, a download cut", 5)
    stack, connections = proxied_datanodes(there, lambda: next(points, NEVER), answers=True)
    with stack:
        assert read(there.open(10, connections)) == DATA
    assert next(points, None) is None


def test_a_datanode_killed_while_files_are_read_back_is_left_out(there: InHdfs, fault_log: FaultLog) -> None:
    """Redirects to the dead one continue until the NameNode notices."""
    store, large = there.open(30), DATA * 4
    assert commit(store, large)
    with store.read_back(PATH) as file:
        begun = file.read(1)
        there.server.kill_datanode(1)
        fault_log.injected("HDFS, DataNode killed")
        try:
            assert begun + file.read() == large
            assert all(read_back(store) == large for _ in range(6))
        finally:
            there.server.start_datanode(1)
            there.server.wait_ready()


def test_a_namenode_restarted_while_a_file_is_read_back_is_waited_for(there: InHdfs, fault_log: FaultLog) -> None:
    store = there.open(120)
    assert commit(store, DATA)
    there.server.kill_namenode()
    there.server.start_namenode()
    fault_log.injected("HDFS, NameNode killed and started again")
    assert read_back(store) == DATA
    there.server.wait_ready()


def test_reading_back_what_no_datanode_has_is_unavailable(there: InHdfs, fault_log: FaultLog) -> None:
    store = there.open()
    assert commit(store, DATA)
    for number in (1, 2):
        there.server.kill_datanode(number)
        fault_log.injected("HDFS, DataNode killed")
    try:
        with pytest.raises(Unavailable):
            read_back(store)
    finally:
        for number in (1, 2):
            there.server.start_datanode(number)
        there.server.wait_ready()


def test_a_connection_cut_every_64_kib_loses_nothing_and_reports_it(there: InHdfs) -> None:
    stack, connections = proxied_datanodes(there, lambda: 1 << 16)
    with stack:
        store = there.open(connections=connections)
        with pytest.raises(Unavailable):
            commit(store, DATA)
        assert commit(store, DATA[:50_000], "small")
    assert PATH not in there.files()
    assert commit(there.open(), DATA)


@pytest.mark.parametrize("answered", [True, False], ids=["it happened", "it did not"])
def test_a_rename_whose_answer_is_lost_is_looked_up(there: InHdfs, answered: bool, fault_log: FaultLog) -> None:
    """The proxy hangs up when it sees a RENAME: after it has passed it on, or before."""
    namenode = address(there.server.namenode_http)
    seen = []

    def watch(data: bytes) -> bool:
        if b"op=RENAME" not in data or seen:
            return False
        seen.append(data)
        return True

    with lost_rename(namenode, watch, answered) as between:
        connections = Rerouted({namenode: Address("127.0.0.1", between.port)})
        asked = Asked(True, there)
        assert there.open(10, connections).commit_new(PATH, io.BytesIO(DATA), len(DATA), asked)
    assert seen
    assert asked.digests == [SHA512]
    fault_log.injected("HDFS, a rename or its answer lost")
    assert there.files() == {PATH: DATA}


def lost_rename(namenode: Address, watch: Callable[[bytes], bool], answered: bool):  # type: ignore[no-untyped-def]
    return proxy(namenode.host, namenode.port, watch=watch, passes_last=answered)


def test_the_servers_checksum_is_the_one_that_is_made_locally(there: InHdfs) -> None:
    store = there.open()
    for size in (0, 1, 512, BLOCK - 1, BLOCK, BLOCK + 1, len(DATA)):
        hasher = Hasher(BLOCK)
        hasher.update(DATA[:size])
        assert commit(store, DATA[:size], f"{size}")
        assert ":".join(store.server_digest(f"{size}") or ()) == hasher.result()


def test_safe_mode_refuses_writes_and_is_no_absence(there: InHdfs, fault_log: FaultLog) -> None:
    store = there.open()
    commit(store, b"before", "before")
    there.server.safe_mode(True)
    fault_log.injected("HDFS, safe mode")
    try:
        assert store.stat("before")
        assert store.stat(PATH) is None
        assert read(store, "before") == b"before"
        with pytest.raises(Unavailable, match="SafeModeException"):
            commit(store, DATA)
        assert there.files() == {"before": b"before"}
    finally:
        there.server.safe_mode(False)
    assert commit(store, DATA)


def test_a_namenode_restarted_mid_copy_is_waited_for(there: InHdfs, fault_log: FaultLog) -> None:
    def bounce() -> None:
        there.server.kill_namenode()
        there.server.start_namenode()
        fault_log.injected("HDFS, NameNode killed and started again")

    store = there.open(120)
    assert store.commit_new(PATH, Interrupted(DATA, bounce), len(DATA), SHA512)
    there.server.wait_ready()
    assert there.files()[PATH] == DATA


def test_a_starting_namenode_is_waited_for_and_its_state_is_no_absence(there: InHdfs) -> None:
    commit(there.open(), DATA)
    there.server.kill_namenode()
    there.server.start_namenode()
    found = there.open(120).stat(PATH)
    assert found
    assert found.size == len(DATA)
    there.server.wait_ready()


def test_a_datanode_killed_mid_put_is_left_out_of_the_next_try(there: InHdfs, fault_log: FaultLog) -> None:
    connections, killed = Rerouted({}), []

    def kill() -> None:
        number = next(one for one in (1, 2) if address(there.server.datanode_http(one)) == connections.last)
        killed.append(number)
        there.server.kill_datanode(number)
        fault_log.injected("HDFS, DataNode killed")

    store = there.open(30, connections)
    try:
        assert store.commit_new(PATH, Interrupted(DATA, kill), len(DATA), SHA512)
        assert killed
        assert commit(store, b"another", "another")
    finally:
        for number in killed:
            there.server.start_datanode(number)
        there.server.wait_ready()
    assert there.files() == {PATH: DATA, "another": b"another"}


def test_without_any_datanode_a_file_is_unavailable_and_not_absent(there: InHdfs, fault_log: FaultLog) -> None:
    store = there.open()
    commit(store, DATA)
    for number in (1, 2):
        there.server.kill_datanode(number)
        fault_log.injected("HDFS, DataNode killed")
    try:
        assert store.stat(PATH)
        with pytest.raises(Unavailable):
            read(store)
        with pytest.raises(Unavailable):
            store.server_digest(PATH)
        with pytest.raises(Unavailable):
            commit(store, DATA, "another")
        assert store.stat("another") is None
    finally:
        for number in (1, 2):
            there.server.start_datanode(number)
        there.server.wait_ready()
    assert read(there.open(60)) == DATA


def test_a_namenode_that_is_away_is_waited_for_by_many_threads(there: InHdfs, fault_log: FaultLog) -> None:
    """Eight threads spent the minute in eight seconds: each counted its own waiting."""
    store = there.open(60)
    there.server.kill_namenode()
    comes_back = threading.Timer(AWAY, there.server.start_namenode)
    comes_back.start()
    fault_log.injected(f"HDFS, NameNode away for {AWAY} s, eight threads at work")
    try:
        with ThreadPoolExecutor(8) as threads:
            assert all(threads.map(lambda number: commit(store, DATA[:1_000], f"{number}"), range(24)))
    finally:
        comes_back.join()
        there.server.wait_ready()
    assert there.files() == {f"{number}": DATA[:1_000] for number in range(24)}


class Replacing(Connections):
    """Connections on which the answer to the first DELETE is lost, whereupon something happens."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__(30)
        self._meanwhile, self.deleted = meanwhile, 0

    def ask(self, at: Address, method: str, *more: Any, **others: Any) -> HdfsResponse:
        answer = super().ask(at, method, *more, **others)
        if method == "DELETE":
            self.deleted += 1
            if self.deleted == 1:
                self._meanwhile()
                raise Broken(str(at), "the answer is lost")
        return answer


def test_a_delete_whose_answer_is_lost_is_not_repeated_on_anothers_file(there: InHdfs, fault_log: FaultLog) -> None:
    connections = Replacing(lambda: there.write(PATH, b"another's"))
    store = there.open(10, connections)
    commit(store, DATA)
    found = store.stat(PATH)
    assert found
    store.remove(PATH, found)
    fault_log.injected("HDFS, the answer to a delete lost")
    assert connections.deleted == 1
    assert there.files() == {PATH: b"another's"}


def test_a_delete_that_did_not_happen_is_repeated(there: InHdfs, fault_log: FaultLog) -> None:
    store = there.open(30)
    commit(store, DATA)
    found = store.stat(PATH)
    assert found
    there.server.safe_mode(True)
    leaves = threading.Timer(1, there.server.safe_mode, [False])
    leaves.start()
    store.remove(PATH, found)
    leaves.join()
    fault_log.injected("HDFS, safe mode")
    assert there.files() == {}


@pytest.mark.parametrize("kind", ["names", "space"])
def test_a_full_quota_is_reported_by_name_and_leaves_nothing(there: InHdfs, kind: str, fault_log: FaultLog) -> None:
    store = there.open()
    there.server.set_quota(there.base, **{"names": 2} if kind == "names" else {"space": 4 * BLOCK})
    try:
        with pytest.raises(HdfsRefusal, match=r"(NS|DS)QuotaExceededException"):
            commit(store, DATA)
        fault_log.injected(f"HDFS, quota of {'names' if kind == 'names' else 'bytes'} hit")
        assert there.files() == {}
    finally:
        there.server.set_quota(there.base)
    assert commit(store, DATA)


def test_what_is_there_already_needs_no_quota_and_no_end_of_safe_mode(there: InHdfs, fault_log: FaultLog) -> None:
    store = there.open()
    assert commit(store, b"small")
    there.server.set_quota(there.base, names=1)
    try:
        assert not commit(store, b"small")
        fault_log.injected("HDFS, quota of names hit")
    finally:
        there.server.set_quota(there.base)
    there.server.safe_mode(True)
    try:
        assert not commit(store, b"small")
        fault_log.injected("HDFS, safe mode")
    finally:
        there.server.safe_mode(False)


def test_a_large_file_that_is_there_is_not_sent_again(there: InHdfs) -> None:
    store, large = there.open(), io.BytesIO(bytes(SMALL + 1))
    assert commit(store, large.getvalue())
    assert not store.commit_new(PATH, large, SMALL + 1, "")
    assert large.tell() == 0


def test_a_small_file_costs_five_requests(there: InHdfs) -> None:
    """Of its time in HDFS nearly all is requests: two to write, two for the checksum, and one for the name."""
    connections = Counting(30)
    store = there.open(connections=connections)
    assert commit(store, DATA[:100], "first")
    connections.asked.clear()
    assert commit(store, DATA[:100], "second")
    assert connections.asked == ["CREATE", "CREATE", "GETFILECHECKSUM", "GETFILECHECKSUM", "RENAME"]


@pytest.mark.parametrize("size", [1, 512, BLOCK, len(DATA) - 1])
def test_a_file_that_lost_its_end_on_the_way_is_not_published(there: InHdfs, size: int, fault_log: FaultLog) -> None:
    """Between us and the DataNode something lets the rest go, and the write is acknowledged."""
    with pytest.raises(Mismatch, match=rf"as HDFS keeps it .*, found \({size},"):
        commit(there.open(connections=Shortening(size)), DATA)
    fault_log.injected("HDFS, the end of an upload lost, and acknowledged")
    assert there.files() == {}
    assert commit(there.open(), DATA)


class Shortening(Connections):
    """Connections that send so many bytes of a body, and let the rest go."""

    def __init__(self, size: int) -> None:
        super().__init__(30)
        self._left = size

    def ask(self, at: Address, method: str, target: str, headers: dict[str, str], body: Iterable[bytes] | None = None
            ) -> HdfsResponse:  # fmt: skip
        return super().ask(at, method, target, headers, self._beginning(body) if body else None)

    def _beginning(self, body: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in body:
            part, self._left = chunk[: self._left], self._left - len(chunk[: self._left])
            if part:
                yield part


class Counting(Connections):
    """Connections that remember which operations went by."""

    def __init__(self, timeout: float) -> None:
        super().__init__(timeout)
        self.asked: list[str] = []

    def ask(self, at: Address, method: str, target: str, *more: Any, **others: Any) -> HdfsResponse:
        self.asked += parse_qs(urlsplit(target).query).get("op", [])
        return super().ask(at, method, target, *more, **others)


def test_a_namenode_that_is_gone_is_skipped(there: InHdfs) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        gone = taken.getsockname()[1]
    store = there.open(namenodes=f"127.0.0.1:{gone},{there.server.namenode_http}")
    assert commit(store, DATA)
    assert read(store) == DATA


@pytest.mark.parametrize("path", ["u\u0308", "\u00fc", "a:b", "\u2603/x"])
def test_names_that_hdfs_would_fold_or_refuse_are_refused_first(there: InHdfs, path: str) -> None:
    with pytest.raises(BadInput, match="HDFS"):
        commit(there.open(), DATA, path)


@pytest.fixture
def impostor() -> Iterator[tuple[str, list[str]]]:
    """A NameNode that lists one DataNode and redirects to another host, with a token; and what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            if self.path.startswith("/jmx"):
                nodes = {"dn:1": {"infoAddr": "127.0.0.1:1", "xferaddr": "127.0.0.1:2"}}
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps({"beans": [{"LiveNodes": json.dumps(nodes)}]}).encode())
            else:
                self.send_response(307)
                port = self.server.server_address[1]
                self.send_header("Location", f"http://localhost:{port}/webhdfs/v1/x?op=OPEN&delegation=SECRET")
                self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()


def test_a_redirect_to_a_stranger_is_neither_followed_nor_logged(
    there: InHdfs, impostor: tuple[str, list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    where, asked = impostor
    store = there.open()
    store._client.cluster = NameNodes((address(where),), "/x", "")
    store._client._active = address(where)
    with pytest.raises(Unavailable, match="not among the DataNodes it lists") as caught:
        store._client.fetch("/x", "GETFILECHECKSUM")
    assert "SECRET" not in str(caught.value) + caplog.text
    assert not [path for path in asked if "SECRET" in path]
