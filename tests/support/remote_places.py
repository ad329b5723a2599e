"""Roots in a real HDFS and on a real sshd, for tests: opened with little patience, looked at from outside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from in_folder import InFolder

from servers.hdfs import Hdfs
from servers.sshd import Sshd
from warcmill.layout import SENTINEL
from warcmill.model import Root
from warcmill.stores import opening
from warcmill.stores.opening import Access
from warcmill.stores.remote_files import Budget
from warcmill.stores.sftp.pool import SessionPool
from warcmill.stores.sftp.ssh import Credentials, SshHost
from warcmill.stores.sftp.store import SftpStore
from warcmill.stores.webhdfs.client import Client, NameNodes, UserName
from warcmill.stores.webhdfs.http import Address, Connections
from warcmill.stores.webhdfs.store import WebHdfsStore

BLOCK = 1 << 20


class InHdfs:
    """A root in HDFS; an outage is a NameNode that is gone."""

    def __init__(self, server: Hdfs, folder: str, root: Root = "store") -> None:
        self.access, self.root = Access(BLOCK), root
        self.server, self.base = server, f"/{folder}"
        self.url = f"webhdfs://{server.namenode_http}{self.base}?user={server.user}"
        opening.adopt(self.url, [root], self.access)

    def open(self, patience: float = 1.0, connections: Connections | None = None, namenodes: str = "") -> WebHdfsStore:
        url = self.url.replace(self.server.namenode_http, namenodes) if namenodes else self.url
        cluster = NameNodes.parse(url)
        client = Client(cluster, Budget(patience), connections or Connections(30), UserName(cluster.user))
        return WebHdfsStore(self.root, client, cluster.path, BLOCK)

    def files(self) -> dict[str, bytes]:
        found = {path: self.read(path) for path in self.walk("")}
        return {path: data for path, data in found.items() if path != SENTINEL}

    def walk(self, folder: str) -> Iterator[str]:
        answer = self.server.webhdfs("GET", f"{self.base}/{folder}".rstrip("/"), "op=LISTSTATUS")
        for entry in answer["FileStatuses"]["FileStatus"]:  # type: ignore[index]
            path = f"{folder}/{entry['pathSuffix']}".lstrip("/")
            if entry["type"] == "DIRECTORY":
                yield from self.walk(path)
            else:
                yield path

    def read(self, path: str) -> bytes:
        """By another connection, and without the store's reader."""
        place = self.server.webhdfs("GET", f"{self.base}/{path}", "op=OPEN&noredirect=true")
        location = str(place["Location"])  # type: ignore[index]
        host, _, port = location.split("/")[2].partition(":")
        answer = Connections(30).ask(Address(host, int(port)), "GET", location.partition(f":{port}")[2], {})
        assert answer.status == 200, answer
        return answer.data

    def write(self, path: str, data: bytes) -> None:
        self._client().create(f"{self.base}/{path}", [data] if data else [], overwrite="true")

    def delete(self, path: str) -> None:
        assert self.server.webhdfs("DELETE", f"{self.base}/{path}", "op=DELETE") == {"boolean": True}

    def many(self, folder: str, count: int) -> list[str]:
        """Folders: a file takes ten times as long."""
        names = [f"{number:05}" for number in range(count)]
        client = self._client()
        for name in names:
            client.ask("PUT", f"{self.base}/{folder}/{name}", "MKDIRS")
        return names

    @contextmanager
    def outage(self) -> Iterator[None]:
        self.server.kill_namenode()
        try:
            yield
        finally:
            self.server.start_namenode()
            self.server.wait_ready()

    def _client(self) -> Client:
        cluster = NameNodes.parse(self.url)
        return Client(cluster, Budget(5), Connections(30), UserName(cluster.user))


class Rerouted(Connections):
    """Connections that lead elsewhere than their addresses say, and that remember where they led last."""

    def __init__(self, ways: dict[Address, Address], timeout: float = 30) -> None:
        super().__init__(timeout)
        self.ways, self.last = ways, Address("", 0)

    def _connect(self, at: Address):  # type: ignore[no-untyped-def]
        self.last = at
        return super()._connect(self.ways.get(at, at))


class OverSsh(InFolder):
    """A root on an SSH host; an outage is an sshd that is gone. The host is this one, so its disk can be looked at."""

    def __init__(self, server: Sshd, folder: str, root: Root = "store") -> None:
        self.server, self.base, self.root = server, server.root / folder, root
        self.base.mkdir()
        self.ssh = SshHost(server.user, "127.0.0.1", server.port)
        self.credentials = Credentials(str(server.known_hosts), str(server.key))
        self.url = f"sftp://{self.ssh}{quote(str(self.base))}"
        self.access = Access(known_hosts=self.credentials.known_hosts, key_file=self.credentials.key_file)
        opening.adopt(self.url, [root], self.access)

    def open(self, patience: float = 1.0, port: int = 0) -> SftpStore:
        """Through another port, the key is still that of the server."""
        here = self.ssh if not port else Proxied(self.ssh.user, self.ssh.host, port, self.ssh)
        pool = SessionPool(str(here), lambda: here.session(self.credentials), Budget(patience))
        return SftpStore(self.root, pool, str(self.base))

    @contextmanager
    def outage(self) -> Iterator[None]:
        self.server.kill()
        try:
            yield
        finally:
            self.server.start()


class Proxied(SshHost):
    """The server at the other end of a proxy: its key is pinned under its own port."""

    def __init__(self, user: str, host: str, port: int, behind: SshHost) -> None:
        super().__init__(user, host, port)
        object.__setattr__(self, "_behind", behind)

    __slots__ = ("_behind",)

    @property
    def known_as(self) -> str:
        return self._behind.known_as  # type: ignore[no-any-return]


def work_folder(path: Path) -> str:
    """A name that no other test has."""
    return f"{path.parent.name}-{path.name}"
