"""The configuration as one frozen value, read when it is needed, never at import."""

from __future__ import annotations

import os
from datetime import timedelta
from itertools import filterfalse
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct
from msgspec.structs import replace

from tasks.config import chains, scale, sections
from tasks.config import roots as places
from tasks.config.folders import NO_ARCHIVE, VARIABLE, config_file, find
from tasks.config.sections import FlagKey, Section, TextKey, WholeKey, while_unchanged
from tasks.config.source import configuration
from warcmill import chain
from warcmill.base.escapes import did_you_mean
from warcmill.chain import Wanted
from warcmill.errors import BadConfig
from warcmill.launches.roots import EngineSection, RootMap
from warcmill.layout import OutputLayout
from warcmill.markers.state import MarkerStore
from warcmill.stores import Store
from warcmill.stores.engine_folder import LinkRules
from warcmill.stores.file import FileStore
from warcmill.stores.opening import Access, is_remote, open_folder, open_store
from warcmill.stores.s3.place import S3Access
from warcmill.stores.sentinel import check_index

if TYPE_CHECKING:
    from warcmill.clients.notice import Channels
    from warcmill.extracts.extracts import Extracts

NO_INDEX = "the folder for files that can be rebuilt; set it, then run 'warcmill init --adopt index'"
_HARDENED = {
    ("retcode", "already_running"): "10",
    ("retcode", "missing_data"): "20",
    ("retcode", "not_run"): "25",
    ("retcode", "task_failed"): "30",
    ("retcode", "scheduling_error"): "35",
    ("retcode", "unhandled_exception"): "40",
    ("worker", "check_complete_on_run"): "true",
}


class warcmill(Section):  # noqa: N801 - the section has the name of the class
    """[warcmill]: the roots, of which only the index is optional; `warcmill init` writes them."""

    output = TextKey(description="where engines write WARCs, logs and reports: a folder or sftp://; only read")
    jobs = TextKey(description="the engines' jobs (job.log, seeds, crawler-beans.cxml): a folder or sftp://; only read")
    state = TextKey(description="folder of the markers; local or NFS")
    store = TextKey(
        description="the archive: a folder, webhdfs://HOST:PORT[,HOST:PORT]/PATH?user=NAME, sftp:// or s3://"
    )
    index = TextKey(
        default="", description="folder of files that can be rebuilt; local or NFS; never backed up; empty: none"
    )
    output_layout = TextKey(description="kind-first or job-first")
    follow_links = TextKey(
        default="", description="folders, separated by commas; symbolic links to what is below them are followed"
    )


class files(Section):  # noqa: N801
    """[files]: transfer to the store."""

    hdfs_block_size = WholeKey(default=128 << 20, description="bytes; for the HDFS checksum computed locally")
    retire = FlagKey(
        default=False,
        description="remove WARCs from the output root once they are read back from the store",
    )


class sftp(Section):  # noqa: N801
    """[sftp]: how to reach sftp:// roots."""

    known_hosts = TextKey(default="", description="file of trusted host keys, in the format of ssh")
    key_file = TextKey(default="", description="private key of the user in the URL, without passphrase")


class s3(Section):  # noqa: N801
    """[s3]: how to reach an s3:// store; what is empty is for boto3 to find, as in AWS_* of the environment."""

    endpoint = TextKey(default="", description="URL of the server; empty: Amazon's")
    region = TextKey(default="", description="its region; empty: boto3's, else us-east-1")
    access_key = TextKey(default="", description="who we are; empty: boto3 finds that, and the secret")
    secret_key = TextKey(default="", description="the secret of that key, as ${ENV}")
    secret_key_file = TextKey(default="", description="file with that secret as its only line")


class notice(Section):  # noqa: N801
    """[notice]: where to send a notice when a scan ends with something refused, failed or stale; nowhere by default."""

    mail_to = TextKey(default="", description="addresses, separated by commas")
    mail_from = TextKey(default="", description="sender of notices; needed for mail_to")
    smtp_host = TextKey(default="localhost", description="mail server")
    smtp_port = WholeKey(default=25, description="its port")
    smtp_tls = TextKey(default="none", description="none, starttls or tls")
    smtp_user = TextKey(default="", description="user to log in as; needs smtp_tls")
    smtp_password = TextKey(default="", description="its password, as ${ENV}")
    smtp_password_file = TextKey(default="", description="file with that password as its only line")
    webhook = TextKey(default="", description="https or http URL that takes JSON by POST; a secret one as ${ENV}")
    webhook_file = TextKey(default="", description="file with that URL as its only line, instead of webhook")
    proxy = TextKey(default="", description="proxy for the webhook, http://HOST:PORT")
    silent_hours = WholeKey(
        default=24, description="hours without a sign of its engine after which a running launch is reported; 0: never"
    )


class Settings(Struct, frozen=True):
    """All that a step may need of the configuration. Roots are absolute paths or URLs."""

    output: str
    jobs: str
    state: str
    store: str
    output_layout: OutputLayout
    hdfs_block_size: int
    retire: bool
    access: Access
    follow_links: tuple[str, ...] = ()
    index: str = ""

    def rootmap(self) -> RootMap:
        """Which folders serve which job, or BadConfig. Each root is opened when it is needed."""
        rootmap = places.rootmap(self.site, lambda root, url: open_store(root, url, access))
        access = replace(self.access, links=self.links(rootmap))
        return rootmap

    def links(self, rootmap: RootMap) -> LinkRules:
        """Which symbolic links are followed in the roots that are folders."""
        levels = {self.state: 0, self.store: 0, **rootmap.levels()}
        if self.index:
            levels[self.index] = 0
        return LinkRules(self.follow_links, {place: number for place, number in levels.items() if not is_remote(place)})

    def check_index(self) -> None:
        """BadConfig for an index that cannot be one; none need be set."""
        if self.index:
            own, others = (self.state, self.store), self.rootmap().levels()
            check_index(self.index, *(filterfalse(is_remote, places) for places in (own, others)))

    @property
    def site(self) -> EngineSection:
        """[warcmill]'s own roots, which serve every job that no engine lists."""
        return EngineSection("[warcmill]", self.output.rstrip("/"), self.jobs.rstrip("/"), self.output_layout)

    def open_imported(self) -> FileStore:
        """The root of imported launches, to write to it; BadConfig without one, or Unavailable."""
        site = places.imported()
        if site is None:
            why = "there is no such section: the root of imported launches. To have one: warcmill init --adopt"
            raise BadConfig(f"[{places.IMPORTED}]", f"{why} {places.IMPORTED}")
        return open_folder("output", site.output)

    @while_unchanged
    def wanted(self) -> Wanted:
        """The switches that are on, for steps that depend on one; or BadConfig."""
        wanted = chains.wanted() | chains.switches(has_index=bool(self.index))
        for name in ("index", chains.TEXT, chains.COLUMNS, chains.PYPI, chains.DOCUMENTS):
            if name in wanted and not self.index:
                raise BadConfig(f"[{name}] since", f"is set without [warcmill] index, {NO_INDEX}")
        if "index" in wanted:
            chains.cdx_server()
            scale.run_on()
        if chains.TEXT in wanted:
            chains.check_text_installed()
            chains.solr()
            scale.run_on()
        if chains.COLUMNS in wanted:
            chains.check_columns_installed()
        if chains.DOCUMENTS in wanted:
            chains.check_readers_installed(chains.DOCUMENTS)
            scale.run_on()
        if chains.PYPI in wanted and wanted[chains.PYPI].jobs is None:
            raise BadConfig("[pypi] since", "is set without jobs; name the jobs that mirror the index")
        return wanted

    def scans(self) -> tuple[str, ...]:
        """The scans that have a step to schedule, in the order in which they run; or BadConfig."""
        return chain.scans(chain.switched_on(chain.ROWS, self.wanted()))

    def open_state(self) -> MarkerStore:
        """The markers, or Unavailable."""
        return MarkerStore(open_folder("state", self.state))

    def open_store(self) -> Store:
        """The archive, or Unavailable."""
        return open_store("store", self.store, self.access)

    def store_uri(self, folder: str) -> str:
        """The URI of a folder of the archive, as other programs know it: without the user's name."""
        if not is_remote(self.store):
            return (Path(self.store) / folder).absolute().as_uri()
        parts = urlsplit(self.store)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, f"{parts.path.rstrip('/')}/{folder}", "", ""))

    def open_extracts(self) -> Extracts | None:
        """The extracts of the index root, or Unavailable; None for a line without an index."""
        from warcmill.extracts.extracts import Extracts  # most verbs read none

        return Extracts(open_folder("index", self.index)) if self.index else None


def settings() -> Settings:
    """The configuration as it is now, or BadConfig.

    A missing file is an error too: Luigi would read the luigi.cfg of the working folder in its place.
    """
    if missing := _missing_file():
        raise BadConfig("[warcmill]", f"{missing}. Correct it; for a new line: warcmill init FOLDER")
    return _read()


@while_unchanged
def _read() -> Settings:
    """The sections of the line, read together; BadConfig for a key that is missing or wrong."""
    if key := sections.missing(warcmill):
        raise BadConfig("[warcmill]", _missing(key)) if _is_ours() else BadConfig("archive", _no_archive())
    roots, transfer, ssh = sections.read(warcmill), sections.read(files), sections.read(sftp)
    try:
        layout = OutputLayout(roots.output_layout)
    except ValueError as error:
        raise BadConfig("[warcmill] output_layout", f"is {roots.output_layout}; kind-first or job-first") from error
    return Settings(
        roots.output,
        roots.jobs,
        roots.state,
        roots.store,
        layout,
        transfer.hdfs_block_size,
        transfer.retire,
        Access(transfer.hdfs_block_size, ssh.known_hosts, ssh.key_file, _s3_access()),
        _folders(roots.follow_links),
        roots.index.rstrip("/") or roots.index,
    )


def _s3_access() -> S3Access:
    """The access to s3://, or BadConfig. The secret's file is read when the server is first asked."""
    keys = sections.read(s3)
    if keys.secret_key_file:
        if keys.secret_key:
            raise BadConfig("[s3] secret_key_file", "is set beside secret_key; keep one of them")
        return S3Access(keys.endpoint, keys.region, keys.access_key, secret_key_file=keys.secret_key_file)
    return S3Access(keys.endpoint, keys.region, keys.access_key, sections.secret("s3", "secret_key"))


def _folders(text: str) -> tuple[str, ...]:
    """The folders that [warcmill] follow_links names, or BadConfig."""
    folders = tuple(folder for part in text.split(",") if (folder := part.strip()))
    for folder in folders:
        if not folder.startswith("/"):
            raise BadConfig("[warcmill] follow_links", f"{folder!r} is not an absolute path")
    return folders


def silent_after() -> timedelta | None:
    """The time that an engine may be silent before its running launch is reported; None: for ever. Or BadConfig."""
    hours = int(sections.read(notice).silent_hours)
    if not 0 <= hours <= 24 * 366:
        raise BadConfig("[notice] silent_hours", f"is {hours}; hours, from 0 (never) up to a year's")
    return timedelta(hours=hours) if hours else None


def notice_channels() -> Channels:
    """Where notices go, or BadConfig."""
    from warcmill.clients.notice import Channels  # most verbs send none

    keys = sections.read(notice)
    url = keys.webhook
    if keys.webhook_file:
        if url:
            raise BadConfig("[notice] webhook_file", "is set beside webhook; keep one of them")
        try:
            url = Path(keys.webhook_file).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BadConfig("[notice] webhook_file", str(error)) from error
    mail = (keys.mail_to, keys.mail_from, keys.smtp_host, keys.smtp_port)
    login = (keys.smtp_tls, keys.smtp_user, sections.secret("notice", "smtp_password"))
    channels = Channels(*mail, *login, webhook=url, proxy=keys.proxy)
    channels.check()
    return channels


def _missing(key: str) -> str:
    """The missing key, and what is set in its place."""
    others = set(configuration().options("warcmill")) - {known.name for known in warcmill.listed()}
    return f"the key '{key}' is missing{did_you_mean(key, others) or '; each root has one'}"


def _no_archive() -> str:
    """Why the configuration that Luigi has read is of no archive."""
    found = find()
    if found is None:
        return NO_ARCHIVE
    if VARIABLE not in os.environ and found.parent != Path.cwd():
        return f"luigi does not look for {found}: export {VARIABLE}={found}"
    return f"{found} has no section [warcmill]; 'warcmill init FOLDER' writes a whole one"


@while_unchanged
def check_hardened() -> None:
    """BadConfig unless Luigi is set to fail loudly: by default it exits 0 over failed tasks and missing outputs."""
    for (section, name), wanted in _HARDENED.items():
        value = configuration().text(section, name) or ""
        if value.lower() != wanted:
            raise BadConfig(
                f"[{section}] {name}",
                f"must be {wanted}, is {value or 'not set'}. {_where_to_look()}",
            )


def _where_to_look() -> str:
    """The way to correct a configuration that is not hardened: edit the file, or point Luigi to it."""
    if _is_ours():
        return f"Correct it in {config_file()}"
    return _missing_file() or "Luigi found no hardened luigi.cfg: run from its folder, or set LUIGI_CONFIG_PATH"


def _is_ours() -> bool:
    """True if the configuration that was read belongs to this line, even if it has a mistake."""
    return bool(configuration().has_section("warcmill")) and not _missing_file()


def _missing_file() -> str:
    """A sentence if LUIGI_CONFIG_PATH names a missing file, else ''."""
    path = os.environ.get("LUIGI_CONFIG_PATH", "")
    return f"LUIGI_CONFIG_PATH names {path}, and there is no such file" if path and not Path(path).is_file() else ""
