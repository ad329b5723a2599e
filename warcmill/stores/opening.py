"""Open the store of a configured root: a folder, `webhdfs://...`, `sftp://...` or `s3://...`."""

from __future__ import annotations

import hashlib
import io
import os
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from warcmill.errors import BadConfig, Unavailable
from warcmill.layout import SENTINEL
from warcmill.model import Root
from warcmill.stores import Store, sentinel, temporary_names
from warcmill.stores.engine_folder import EngineFolder, LinkRules, OtherFolder
from warcmill.stores.file import FileStore
from warcmill.stores.remote_files import Budget
from warcmill.stores.s3.place import S3Access, S3Place

if TYPE_CHECKING:
    from warcmill.stores.s3.client import Bucket
    from warcmill.stores.sftp import ssh
    from warcmill.stores.sftp.pool import SessionPool
    from warcmill.stores.webhdfs.client import Client

SCHEMES: dict[Root, tuple[str, ...]] = {
    "store": ("webhdfs", "sftp", "s3"),
    "output": ("sftp",),
    "jobs": ("sftp",),
    "state": (),
    "index": (),
    "destination": ("webhdfs", "sftp"),
    "verified_at": ("webhdfs", "sftp"),
}
_WRITERS = ("sftp",)
S3_EXTRA = "warcmill[s3]"


class Access(Struct, frozen=True):
    """The settings of roots besides their paths and URLs; `block_size` is HDFS's, in bytes."""

    block_size: int = 128 << 20
    known_hosts: str = ""
    key_file: str = ""
    s3: S3Access = field(default_factory=S3Access)
    links: LinkRules = field(default_factory=LinkRules)


def is_remote(url: str) -> bool:
    """True if a root is on another host."""
    return "://" in url


def open_store(root: Root, url: str, access: Access, *, new: bool = False) -> Store:
    """Open the store at an absolute path or URL. BadConfig for a place that this root cannot have; Unavailable when it
    is not there. `new`: it will become a root, and has no sentinel yet."""
    scheme = _scheme(root, url)
    if scheme == "webhdfs":
        return _open_webhdfs(root, url, access, new)
    if scheme == "sftp":
        return _open_sftp(root, url, access, new)
    if scheme == "s3":
        return _open_s3(root, url, access, new)
    folder = open_folder(root, url)
    return folder if root in sentinel.OWN else EngineFolder(root, folder.base, access.links)


def check_place(root: Root, url: str) -> None:
    """BadConfig for a place that this root cannot have. Nothing is asked for: it may be away."""
    scheme = _scheme(root, url)
    if scheme == "webhdfs":
        from warcmill.stores.webhdfs.client import NameNodes  # noqa: PLC0415 - a line of folders needs no client

        NameNodes.parse(url)
    elif scheme == "sftp":
        from warcmill.stores.sftp import ssh  # noqa: PLC0415 - as below

        ssh.SftpUrl.parse(url)
    elif scheme == "s3":
        S3Place.parse(url)
    else:
        _check_absolute(root, url)


def _scheme(root: Root, url: str) -> str:
    """The scheme of a place; '' for a folder. BadConfig for one that this root cannot have."""
    scheme = url.partition("://")[0] if is_remote(url) else ""
    schemes = SCHEMES.get(root, _WRITERS)
    if scheme and scheme not in schemes:
        places = " or ".join(("an absolute path", *(f"{known}://..." for known in schemes)))
        raise BadConfig(_key(root), f"{scheme}:// is not a place for it: {places}")
    return scheme


def open_other(root: Root, url: str, access: Access) -> Store:
    """Open a place that belongs to another system, to read it: it has no sentinel."""
    if is_remote(url):
        return open_store(root, url, access, new=True)
    _check_absolute(root, url)
    return OtherFolder(root, Path(url))


def open_folder(root: Root, path: str) -> FileStore:
    """Open the store of a root that must be a folder; BadConfig for a path that is not absolute."""
    _check_absolute(root, path)
    return FileStore(root, Path(path))


def _check_absolute(root: Root, path: str) -> None:
    if not path.startswith("/"):
        raise BadConfig(_key(root), f"{path!r} is not an absolute path")


def _key(root: Root) -> str:
    """Return the key of luigi.cfg that names a root."""
    return f"[{'package' if root in ('destination', 'verified_at') else 'warcmill'}] {root}"


def adopt(url: str, names: list[Root], access: Access) -> None:
    """Write the sentinel of a remote folder that will be these roots. Safe to repeat.

    BadConfig when it is another root already, when the store or the destination would begin in a folder that is not
    empty, or when a server of S3 does not keep what a store promises. Unavailable when there is no such folder on
    sftp://, as a new empty one would look like an engine without files, or no such bucket.
    """
    store, text = open_store(names[0], url, access, new=True), sentinel.sentinel(names)
    if url.startswith("sftp://") and store.stat("") is None:
        raise Unavailable(url, "there is no such folder; correct the URL, or make the folder on that host")
    if url.startswith("s3://") and store.stat("") is None:
        raise Unavailable(url, "there is no such bucket; correct the URL, or make the bucket")
    if store.stat(SENTINEL) is None:
        content = (entry.name for entry in store.list("") if not temporary_names.is_temporary(entry.name))
        if set(names) & set(sentinel.OWN) and list(islice(content, 1)):
            raise BadConfig(names[0], f"{url} holds files and was not made by 'warcmill init'; choose an empty folder")
        prove(store)
        store.commit_new(SENTINEL, io.BytesIO(text), len(text), hashlib.sha512(text).hexdigest())
    with store.open(SENTINEL) as file:
        written = file.read(len(text) + 1)
    if written != text:
        raise BadConfig(", ".join(names), f"{url}/{SENTINEL} has other contents, {written!r}; choose another folder")


def prove(store: Store) -> str:
    """Return the name of the server if there are others that do not keep what a store promises, and this one does;
    BadConfig if it does not. Small files are written for that, and removed."""
    server = getattr(store, "prove", None)
    return str(server()) if server else ""


def _open_webhdfs(root: Root, url: str, access: Access, new: bool) -> Store:
    from warcmill.stores.webhdfs.store import WebHdfsStore  # noqa: PLC0415

    client = _client(os.getpid(), url)
    return WebHdfsStore(root, client, client.cluster.path, access.block_size, new=new)


@cache
def _client(_process: int, url: str) -> Client:
    """One for each process: all steps share its connections and its budget; a forked process has its own."""
    from warcmill.stores.webhdfs.client import Client, NameNodes, UserName  # noqa: PLC0415
    from warcmill.stores.webhdfs.http import Connections  # noqa: PLC0415
    from warcmill.stores.webhdfs.kerberos import Kerberos  # noqa: PLC0415

    cluster = NameNodes.parse(url)
    who = Kerberos() if cluster.kerberos else UserName(cluster.user)
    return Client(cluster, Budget(), Connections(), who)


def _open_sftp(root: Root, url: str, access: Access, new: bool) -> Store:
    from warcmill.stores.sftp import ssh  # noqa: PLC0415 - paramiko is slow to import
    from warcmill.stores.sftp.store import SftpStore  # noqa: PLC0415

    place = ssh.SftpUrl.parse(url)
    credentials = ssh.Credentials(access.known_hosts, access.key_file)
    return SftpStore(root, _pool(os.getpid(), place.server, credentials), place.path, new=new)


@cache
def _pool(_process: int, server: ssh.SshHost, credentials: ssh.Credentials) -> SessionPool:
    """As `_client`: one for all roots on a host."""
    from warcmill.stores.sftp.pool import SessionPool  # noqa: PLC0415

    return SessionPool(str(server), lambda: server.session(credentials), Budget())


def _open_s3(root: Root, url: str, access: Access, new: bool) -> Store:
    try:
        from warcmill.stores.s3 import store  # noqa: PLC0415 - boto3 is an extra, and slow to import
    except ModuleNotFoundError as error:
        raise BadConfig(_key(root), f"is {url}, and {error.name} is missing: pip install '{S3_EXTRA}'") from error
    place = S3Place.parse(url)
    return store.S3Store(root, _bucket(os.getpid(), place.bucket, access.s3), place, new=new)


@cache
def _bucket(_process: int, bucket: str, access: S3Access) -> Bucket:
    """As `_client`."""
    from warcmill.stores.s3.client import Bucket  # noqa: PLC0415 - as above

    return Bucket(bucket, access, Budget())
