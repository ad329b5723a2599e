"""The bad days of an SSH host: whatever breaks, a file is there whole or not at all, and strangers learn nothing."""

from __future__ import annotations

import hashlib
import io
import os
import random
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from faults.tally import FaultLog
from storing.cutting_proxy import NEVER, proxy
from storing.remote_places import OverSsh, work_folder
from storing.sources import Interrupted
from storing.store_conformance import PATH, Asked, commit, read

from servers import sshd as sshd_server
from servers.sshd import Sshd
from warcmill.errors import BadConfig, Unavailable
from warcmill.stores.opening import Access, open_store
from warcmill.stores.sftp.ssh import Credentials, SftpUrl, SshHost, connect

DATA = random.Random(1).randbytes((3 << 20) + 12_345)
SHA512 = hashlib.sha512(DATA).hexdigest()


@pytest.fixture
def there(sshd: Sshd, tmp_path: Path) -> OverSsh:
    return OverSsh(sshd, work_folder(tmp_path))


def one_cut_after(count: int) -> Callable[[], int]:
    """The first connection is cut after so many bytes, the others are not."""
    left = [count]
    return lambda: left.pop() if left else NEVER


def test_a_source_that_can_be_read_again_survives_a_cut(there: OverSsh, fault_log: FaultLog) -> None:
    for point in (1, 3_000, 1 << 20, len(DATA)):
        with proxy("127.0.0.1", there.server.port, cut_after=one_cut_after(point)) as between:
            store = there.open(10, between.port)
            assert store.commit_new(PATH, io.BytesIO(DATA), len(DATA), SHA512)
            assert between.cuts == 1
            fault_log.injected("SFTP, an upload cut")
        assert there.files() == {PATH: DATA}
        there.delete(PATH)


def test_a_cut_download_continues_where_it_broke(there: OverSsh, fault_log: FaultLog) -> None:
    commit(there.open(), DATA)
    points = iter((1 << 20, 1 << 19, 10_000))
    cut_after = lambda: next(points, NEVER)  # noqa: E731
    with proxy("127.0.0.1", there.server.port, cut_after=cut_after, answers=True) as between:
        assert read(there.open(10, between.port)) == DATA
        assert between.cuts == 3
    fault_log.injected("SFTP, a download cut", 3)


def test_a_connection_cut_every_64_kib_loses_nothing_and_reports_it(there: OverSsh) -> None:
    with proxy("127.0.0.1", there.server.port, cut_after=lambda: 1 << 16) as between:
        store = there.open(port=between.port)
        with pytest.raises(Unavailable):
            commit(store, DATA)
        assert commit(store, DATA[:30_000], "small")
    assert there.files()["small"] == DATA[:30_000]
    assert PATH not in there.files()
    assert commit(there.open(), DATA)


@pytest.mark.parametrize("another", [b"", b"another's"])
def test_a_remove_whose_answer_is_lost_is_done_and_spares_anothers_file(
    there: OverSsh, fault_log: FaultLog, another: bytes
) -> None:
    """The server has removed the file, and the connection is cut before it reports it; another may take the name."""
    commit(there.open(), DATA)
    seen: list[bytes] = []

    def is_removed(data: bytes) -> bool:
        """The first answer since the file is gone: it is that to the REMOVE."""
        if seen or (there.base / PATH).exists():
            return False
        seen.append(data)
        if another:
            there.write(PATH, another)
        return True

    with proxy("127.0.0.1", there.server.port, watch_answers=is_removed, passes_last=False) as between:
        store = there.open(10, between.port)
        found = store.stat(PATH)
        assert found is not None
        store.remove(PATH, found)
        assert between.cuts == 1
    assert there.files() == ({PATH: another} if another else {})
    fault_log.injected("SFTP, the answer to a remove lost")


def test_sessions_killed_mid_upload_are_begun_again(there: OverSsh, fault_log: FaultLog) -> None:
    for sha512 in (SHA512, Asked(True, there)):
        source = Interrupted(DATA, there.server.cut)
        assert there.open(10).commit_new(PATH, source, len(DATA), sha512)
        fault_log.injected("SFTP, sessions of sshd killed")
        assert there.files() == {PATH: DATA}
        assert isinstance(sha512, str) or sha512.digests == [SHA512]
        there.delete(PATH)


def test_an_sshd_restarted_mid_upload_is_waited_for(there: OverSsh, fault_log: FaultLog) -> None:
    source = Interrupted(DATA, there.server.restart)
    assert there.open(20).commit_new(PATH, source, len(DATA), SHA512)
    fault_log.injected("SFTP, sshd killed and started again")
    assert there.files() == {PATH: DATA}


def test_a_folder_that_another_makes_while_it_is_listed_is_listed(
    there: OverSsh, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = there.open()
    stat = store.stat

    def made_first(path: str) -> object:
        there.write("folder/file", DATA)
        return stat(path)

    monkeypatch.setattr(store, "stat", made_first)
    assert [entry.path for entry in store.list("folder")] == ["folder/file"]


def test_names_of_any_bytes_are_listed_and_read(there: OverSsh) -> None:
    """An engine's folder may hold names that are not UTF-8."""
    raw = [b"\xff\xfe.warc", "u\u0308 \u2603".encode(), b"new\nline", b"-rf"]
    for name in raw:
        (there.base / os.fsdecode(name)).write_bytes(name)
    store = there.open()
    found = [entry.name for entry in store.list("") if not entry.name.startswith(".")]
    assert sorted(map(os.fsencode, found)) == sorted(raw)
    assert [read(store, name) for name in found] == [os.fsencode(name) for name in found]


def test_links_and_pipes_are_not_followed(there: OverSsh) -> None:
    (there.base / "real").write_bytes(DATA)
    (there.base / "link").symlink_to("real")
    os.mkfifo(there.base / "pipe")
    store = there.open()
    assert {entry.name: entry.kind for entry in store.list("")}["link"] == "other"
    for name in ("link", "pipe"):
        with pytest.raises(Unavailable, match="plain file"):
            store.open(name)
    assert not commit(store, DATA, "link")


def test_a_folder_that_may_not_be_written_is_reported(there: OverSsh) -> None:
    """The server refuses; as root it would not, so the folder is one that nobody can write to."""
    store = there.open()
    with pytest.raises(Unavailable):
        store._pool.ask(lambda session: session.mkdir(b"/proc/none"))


def test_a_host_whose_key_is_not_pinned_is_not_spoken_to(there: OverSsh, tmp_path: Path) -> None:
    empty = tmp_path / "known_hosts"
    empty.touch()
    for known in (str(empty), "", str(tmp_path / "none")):
        with pytest.raises(BadConfig, match="known_hosts"):
            open_store("store", there.url, Access(known_hosts=known, key_file=there.credentials.key_file))


def test_a_host_that_shows_another_key_is_a_stranger(
    there: OverSsh, tmp_path: Path, sshd: Sshd, fault_log: FaultLog
) -> None:
    commit(there.open(), DATA)
    kept = tmp_path / "kept"
    kept.mkdir()
    for name in ("host_key", "host_key.pub"):
        shutil.copy(sshd.folder / name, kept)
    sshd.change_host_key()
    try:
        with pytest.raises(Unavailable, match="which is not the one in known_hosts"):
            there.open(0.1)
        fault_log.injected("SFTP, another host key")
    finally:
        for name in ("host_key", "host_key.pub"):
            shutil.copy(kept / name, sshd.folder)
        sshd.restart()
    assert read(there.open()) == DATA


def test_a_key_that_the_host_does_not_know_is_reported(there: OverSsh, tmp_path: Path) -> None:
    sshd_server._make_key(tmp_path / "other")
    with pytest.raises(Unavailable, match="does not let in"):
        there.ssh.session(Credentials(there.credentials.known_hosts, str(tmp_path / "other")))
    for key in ("", str(tmp_path / "none"), there.credentials.known_hosts):
        with pytest.raises(BadConfig, match="key_file"):
            there.ssh.session(Credentials(there.credentials.known_hosts, key))


def test_a_connection_cut_while_we_are_let_in_is_no_refusal(there: OverSsh, fault_log: FaultLog) -> None:
    """paramiko calls both an authentication that failed; only the first is worth another try."""
    cuts = 0
    for point in range(1_500, 2_500, 40):
        with proxy("127.0.0.1", there.server.port, cut_after=one_cut_after(point), answers=True) as between:
            assert there.open(5, between.port).stat("none") is None
            cuts += between.cuts
    fault_log.injected("SFTP, a login cut", cuts)
    assert cuts > 10


def test_the_connection_is_encrypted_with_aes_gcm_and_sends_at_once(there: OverSsh) -> None:
    wire = connect(there.ssh, there.credentials)
    transport = wire.close.__self__  # type: ignore[attr-defined]
    try:
        assert transport.remote_cipher == "aes128-gcm@openssh.com"
        assert transport.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    finally:
        wire.close()


@pytest.mark.parametrize(
    "url",
    [
        "sftp://a:secret@h/x",
        "sftp://h/x",
        "sftp://a@h",
        "sftp://a@h/",
        "sftp://a@h:99999/x",
        "sftp://a@h/x?y=1",
        "sftp://a@/x",
    ],
)
def test_urls_that_are_none_are_refused_without_their_secrets(url: str) -> None:
    with pytest.raises(BadConfig) as caught:
        SftpUrl.parse(url)
    assert "secret" not in str(caught.value)


def test_a_url_is_taken_apart() -> None:
    assert SftpUrl.parse("sftp://a@h/x/y/") == SftpUrl(SshHost("a", "h", 22), "/x/y")
    assert SftpUrl.parse("sftp://a@h:2222/x").server.known_as == "[h]:2222"
