"""HDFS behind Kerberos: tickets, cookies, and tokens that nobody sees."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from storing.remote_places import BLOCK
from storing.store_conformance import PATH, commit, read, read_back

from servers.hdfs_kerberos import HdfsKerberos
from warcmill.errors import Unavailable
from warcmill.layout import SENTINEL
from warcmill.stores.opening import Access, adopt
from warcmill.stores.remote_files import Budget
from warcmill.stores.webhdfs.client import Client, NameNodes, UserName
from warcmill.stores.webhdfs.hdfscli import HdfsCli
from warcmill.stores.webhdfs.http import Connections
from warcmill.stores.webhdfs.kerberos import Kerberos
from warcmill.stores.webhdfs.store import WebHdfsStore

DATA = random.Random(3).randbytes(2 * BLOCK + 5)


@pytest.fixture
def url(hdfs_kerberos: HdfsKerberos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An adopted root, and an environment in which tickets are to be had."""
    for name, value in hdfs_kerberos.kdc.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'tickets'}")
    found = f"webhdfs://{hdfs_kerberos.namenode_http}/{tmp_path.parent.name}-{tmp_path.name}?auth=kerberos"
    adopt(found, ["store"], Access(BLOCK))
    return found


def store(url: str, who: Kerberos | UserName) -> WebHdfsStore:
    cluster = NameNodes.parse(url)
    return WebHdfsStore("store", Client(cluster, Budget(1), Connections(30), who), cluster.path, BLOCK)


def test_files_are_published_listed_read_and_compared(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    one = store(url, Kerberos())
    assert commit(one, DATA)
    assert not commit(one, DATA)
    assert read(one) == DATA
    assert read_back(one) == DATA
    assert [entry.path for entry in one.list("")] == [SENTINEL, "warcs"]
    assert one.server_digest(PATH)
    assert "delegation" not in caplog.text


def test_a_cookie_spares_the_handshake_and_a_worn_one_is_renewed(url: str) -> None:
    who = Kerberos()
    one = store(url, who)
    ((at, cookie),) = who._cookies.items()
    assert one.stat(SENTINEL)
    assert who._cookies == {at: cookie}
    who._cookies[at] = "hadoop.auth=worn"
    assert one.stat(SENTINEL)
    assert who._cookies[at] not in ("hadoop.auth=worn", cookie)


def test_reading_back_uses_tickets_cookies_and_no_token_of_ours_at_datanodes(
    url: str, caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(0)
    one = store(url, who := Kerberos())
    assert commit(one, DATA)
    who._cookies = dict.fromkeys(who._cookies, "hadoop.auth=worn")
    assert read_back(one) == DATA
    assert "hadoop.auth=worn" not in who._cookies.values()
    assert "delegation" not in caplog.text
    found = one._plain_file(PATH)
    who._cookies.clear()
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(tmp_path / "none"))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'no-tickets'}")
    with pytest.raises(Unavailable, match="kinit"):
        HdfsCli(one._client).read(one._real(found.path), 0)


def test_without_a_ticket_nothing_is_sent(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(tmp_path / "none"))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'no-tickets'}")
    with pytest.raises(Unavailable, match=r"a Kerberos ticket for HTTP@localhost.*kinit"):
        store(url, Kerberos())


def test_a_name_alone_is_not_let_in(url: str) -> None:
    with pytest.raises(Unavailable, match=r"401.*does not let us in"):
        store(url, UserName("hdfs"))
