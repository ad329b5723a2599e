"""From a root as it is configured to its store: a folder, `webhdfs://...` or `sftp://...`."""

from __future__ import annotations

import hashlib
import io
import os
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from warcmill import roots
from warcmill.errors import BadConfig, Unavailable
from warcmill.layout import SENTINEL
from warcmill.model import Root
from warcmill.stores import Store, temporary
from warcmill.stores.budget import Budget
from warcmill.stores.engine_folder import EngineFolder
from warcmill.stores.file import FileStore
from warcmill.stores.links import Links
from warcmill.stores.sftp import SftpStore
from warcmill.stores.sftp_pool import Pool
from warcmill.stores.webhdfs import WebHdfsStore
from warcmill.stores.webhdfs_client import Client, Cluster, UserName
from warcmill.stores.webhdfs_http import Connections
from warcmill.stores.webhdfs_kerberos import Kerberos

if TYPE_CHECKING:
    from warcmill.stores import sftp_ssh

SCHEMES: dict[Root, tuple[str, ...]] = {
    "store": ("webhdfs", "sftp"),
    "output": ("sftp",),
    "jobs": ("sftp",),
    "state": (),
}
_WRITERS = ("sftp",)


@dataclass(frozen=True, slots=True)
class Access:
    """What the configuration says of roots beside their paths and URLs."""

    block_size: int = 128 << 20
    known_hosts: str = ""
    key_file: str = ""
    links: Links = field(default_factory=Links)


def is_remote(url: str) -> bool:
    """Whether a root lies on another host."""
    return "://" in url


def open_store(root: Root, url: str, access: Access, *, new: bool = False) -> Store:
    """The store at an absolute path or URL. BadConfig for one that this root cannot be; Unavailable when it is not
    there. `new`: it is to become a root, and has no sentinel yet."""
    scheme = url.partition("://")[0] if is_remote(url) else ""
    schemes = SCHEMES.get(root, _WRITERS)
    if scheme and scheme not in schemes:
        known = " or ".join(("an absolute path", *(f"{one}://..." for one in schemes)))
        raise BadConfig(f"[warcmill] {root}", f"{scheme}:// is not a place for it: {known}")
    if scheme == "webhdfs":
        return _open_webhdfs(root, url, access, new)
    if scheme == "sftp":
        return _open_sftp(root, url, access, new)
    folder = open_folder(root, url)
    return folder if root in roots.OWN else EngineFolder(root, folder.base, access.links)


def open_folder(root: Root, path: str) -> FileStore:
    """A store that is a folder, for a root that can be nothing else."""
    if not path.startswith("/"):
        raise BadConfig(f"[warcmill] {root}", f"{path!r} is not an absolute path")
    return FileStore(root, Path(path))


def adopt(url: str, names: list[Root], access: Access) -> None:
    """Make a remote folder these roots by writing its sentinel. Safe to repeat; BadConfig when it is another root
    already, or when the store would begin in a folder that holds something else. Unavailable when there is no such
    folder behind sftp://: it is not made, for an engine's that is empty would pass for a crawl without output."""
    store, text = open_store(names[0], url, access, new=True), roots.sentinel(names)
    if url.startswith("sftp://") and store.stat("") is None:
        raise Unavailable(url, "there is no such folder; correct the URL, or make the folder on that host")
    if store.stat(SENTINEL) is None:
        found = (entry.name for entry in store.list("") if not temporary.is_temporary(entry.name))
        if set(names) & set(roots.OWN) and list(islice(found, 1)):
            raise BadConfig(names[0], f"{url} holds files and was not made by 'warcmill init'; choose an empty folder")
        store.commit_new(SENTINEL, io.BytesIO(text), len(text), hashlib.sha512(text).hexdigest())
    with store.open(SENTINEL) as file:
        written = file.read(len(text) + 1)
    if written != text:
        raise BadConfig(", ".join(names), f"{url}/{SENTINEL} says something else: {written!r}; choose another folder")


def _open_webhdfs(root: Root, url: str, access: Access, new: bool) -> Store:
    client = _client(os.getpid(), url)
    return WebHdfsStore(root, client, client.cluster.path, access.block_size, new=new)


@cache
def _client(_process: int, url: str) -> Client:
    """One a process: its connections and its budget are shared by all steps, and not with a process forked off."""
    cluster = Cluster.parse(url)
    who = Kerberos() if cluster.kerberos else UserName(cluster.user)
    return Client(cluster, Budget(), Connections(), who)


def _open_sftp(root: Root, url: str, access: Access, new: bool) -> Store:
    from warcmill.stores import sftp_ssh  # noqa: PLC0415 - paramiko takes long to import: a line of folders is spared it

    place = sftp_ssh.Place.parse(url)
    credentials = sftp_ssh.Credentials(access.known_hosts, access.key_file)
    return SftpStore(root, _pool(os.getpid(), place.server, credentials), place.path, new=new)


@cache
def _pool(_process: int, server: sftp_ssh.Server, credentials: sftp_ssh.Credentials) -> Pool:
    """As `_client`; one for all roots on a host."""
    return Pool(str(server), lambda: server.session(credentials), Budget())
