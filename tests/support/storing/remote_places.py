"""Roots in real servers, for tests: HDFS, sshd, S3. Opened with little patience, looked at from outside."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from storing.in_folder import InFolder

from servers.hdfs import Hdfs
from servers.sshd import Sshd
from servers.versitygw import ACCESS_KEY, BUCKET, S3Server
from warcmill.layout import SENTINEL
from warcmill.model import Root
from warcmill.stores import opening, temporary_names
from warcmill.stores.opening import Access
from warcmill.stores.remote_files import Budget
from warcmill.stores.s3.client import Bucket
from warcmill.stores.s3.place import S3Access, S3Place
from warcmill.stores.s3.store import S3Store
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
        here = self.ssh if not port else Proxied(self.ssh.user, self.ssh.host, port, behind=self.ssh)
        pool = SessionPool(str(here), lambda: here.session(self.credentials), Budget(patience))
        return SftpStore(self.root, pool, str(self.base))

    @contextmanager
    def outage(self) -> Iterator[None]:
        self.server.kill()
        try:
            yield
        finally:
            self.server.start()


class InS3:
    """A root in a bucket; an outage is a server that is gone. Its objects are files of this host."""

    def __init__(self, server: S3Server, folder: str, root: Root = "store") -> None:
        self.server, self.root, self.place = server, root, S3Place(BUCKET, folder)
        self.url = str(self.place)
        self.access = Access(s3=self.at(server.endpoint))
        self.base = server.buckets / BUCKET / folder
        opening.adopt(self.url, [root], self.access)

    def at(self, endpoint: str) -> S3Access:
        return S3Access(endpoint, "", ACCESS_KEY, secret_key_file=str(self.server.secret_key_file))

    def open(self, patience: float = 1.0, endpoint: str = "", answer_seconds: float = 60) -> S3Store:
        return S3Store(self.root, self.bucket(patience, endpoint, answer_seconds), self.place)

    def bucket(self, patience: float = 10, endpoint: str = "", answer_seconds: float = 60) -> Bucket:
        return Bucket(BUCKET, self.at(endpoint or self.server.endpoint), Budget(patience), answer_seconds)

    def files(self) -> dict[str, bytes]:
        """An upload that is not ended has its parts, under the name of the note that it has."""
        found = {str(path.relative_to(self.base)): path for path in self.base.rglob("*") if path.is_file()}
        files = {name: path.read_bytes() for name, path in found.items() if name != SENTINEL}
        return {
            name: self._uploaded(data) if temporary_names.is_temporary(name.rpartition("/")[2]) else data
            for name, data in files.items()
        }

    def _uploaded(self, note: bytes) -> bytes:
        """The parts of the upload that a note names, as the server keeps them."""
        upload, _, path = note.decode("utf-8", "replace").partition("\n")
        if not path:
            return note
        bucket, key = self.bucket(), f"{self.place.prefix}/{path}"
        (folder,) = (self.server.buckets / BUCKET / ".sgwtmp/multipart").glob(f"*/{upload}")
        numbers = [part["PartNumber"] for part in bucket.ask("list_parts", Key=key, UploadId=upload)["Parts"]]
        return b"".join((folder / str(number)).read_bytes() for number in numbers)

    def uploads(self) -> list[str]:
        """The keys of uploads that are neither published nor aborted."""
        answer = self.bucket().ask("list_multipart_uploads", Prefix=f"{self.place.prefix}/")
        return [upload["Key"] for upload in answer.get("Uploads", ())]

    def read(self, path: str) -> bytes:
        return (self.base / path).read_bytes()

    def write(self, path: str, data: bytes) -> None:
        self.bucket().ask("put_object", Key=f"{self.place.prefix}/{path}", Body=data)

    def delete(self, path: str) -> None:
        (self.base / path).unlink()

    def many(self, folder: str, count: int) -> list[str]:
        names = [f"{number:05}.warc.gz" for number in range(count)]
        bucket = self.bucket()

        def put(name: str) -> None:
            bucket.ask("put_object", Key=f"{self.place.prefix}/{folder}/{name}", Body=b"")

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(put, names))
        return names

    @contextmanager
    def outage(self) -> Iterator[None]:
        self.server.kill()
        try:
            yield
        finally:
            self.server.start()


class Proxied(SshHost, frozen=True, kw_only=True):
    """The server at the other end of a proxy: its key is pinned under its own port."""

    behind: SshHost

    @property
    def known_as(self) -> str:
        return self.behind.known_as  # type: ignore[no-any-return]


def work_folder(path: Path) -> str:
    """A name that no other test has."""
    return f"{path.parent.name}-{path.name}"
