"""The configuration as one frozen value, read when asked for, never at import."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import luigi
from luigi.configuration import get_config

from tasks import places, sections
from warcmill.chain import Wanted
from warcmill.errors import BadConfig
from warcmill.layout import OutputLayout
from warcmill.nearest import did_you_mean
from warcmill.notice import Channels
from warcmill.sites import Site, Sites
from warcmill.state import State
from warcmill.stores import Store
from warcmill.stores.links import Links
from warcmill.stores.places import Access, is_remote, open_folder, open_store

_INIT = "'warcmill init FOLDER', then set LUIGI_CONFIG_PATH=FOLDER/luigi.cfg"
_HARDENED = {
    ("retcode", "already_running"): "10",
    ("retcode", "missing_data"): "20",
    ("retcode", "not_run"): "25",
    ("retcode", "task_failed"): "30",
    ("retcode", "scheduling_error"): "35",
    ("retcode", "unhandled_exception"): "40",
    ("worker", "check_complete_on_run"): "true",
}


class warcmill(luigi.Config):  # noqa: N801 - Luigi names the section after the class
    """[warcmill]: the four roots, none with a default; `warcmill init` writes them."""

    output = luigi.Parameter(  # type: ignore[assignment]  # hides Task.output, which a Config never uses
        description="where engines write WARCs, logs and reports, a folder or sftp://; only read"
    )
    jobs = luigi.Parameter(
        description="the engines' jobs: job.log, seeds, crawler-beans.cxml; a folder or sftp://; only read"
    )
    state = luigi.Parameter(description="folder of the markers; local or NFS")
    store = luigi.Parameter(
        description="the archive: a folder, webhdfs://HOST:PORT[,HOST:PORT]/PATH?user=NAME or sftp://"
    )
    output_layout = luigi.Parameter(description="kind-first or job-first")
    follow_links = luigi.Parameter(
        default="", description="folders, with commas between: links to what lies below them are followed"
    )


class files(luigi.Config):  # noqa: N801
    """[files]: transfer to the store."""

    hdfs_block_size = luigi.IntParameter(default=128 << 20, description="bytes; for the HDFS checksum made locally")
    retire = luigi.BoolParameter(
        default=False,
        parsing=luigi.BoolParameter.EXPLICIT_PARSING,
        description="remove WARCs from the output root once they are read back from the store",
    )


class sftp(luigi.Config):  # noqa: N801
    """[sftp]: how roots whose URL is sftp:// are reached."""

    known_hosts = luigi.Parameter(default="", description="file with the host keys that are trusted, as ssh has it")
    key_file = luigi.Parameter(default="", description="private key of the user in the URL, without a passphrase")


class notice(luigi.Config):  # noqa: N801
    """[notice]: where to tell when a scan ends with something refused, failed or stale; by default nowhere."""

    mail_to = luigi.Parameter(default="", description="addresses, with commas between them")
    mail_from = luigi.Parameter(default="", description="address that notices come from; needed for mail_to")
    smtp_host = luigi.Parameter(default="localhost", description="mail server")
    smtp_port = luigi.IntParameter(default=25, description="its port")
    smtp_tls = luigi.Parameter(default="none", description="none, starttls or tls")
    smtp_user = luigi.Parameter(default="", description="name to log in by; needs smtp_tls")
    smtp_password = luigi.Parameter(default="", description="its password, as ${ENV}")
    smtp_password_file = luigi.Parameter(default="", description="file whose one line is that password")
    webhook = luigi.Parameter(default="", description="https or http URL that takes JSON by POST; a secret as ${ENV}")
    webhook_file = luigi.Parameter(default="", description="file whose one line is that URL, in place of webhook")
    proxy = luigi.Parameter(default="", description="http://HOST:PORT by which the webhook is posted to")
    silent_hours = luigi.IntParameter(
        default=24, description="hours without a sign of its engine, after which a running launch is told of; 0: never"
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a step may ask of the configuration."""

    output: str
    jobs: str
    state: str
    store: str
    output_layout: OutputLayout
    hdfs_block_size: int
    retire: bool
    access: Access
    follow_links: tuple[str, ...] = ()

    def sites(self) -> Sites:
        """Which folders serve which job, or BadConfig. None is opened before it is needed."""
        found = places.sites(self.site, lambda root, url: open_store(root, url, access))
        access = replace(self.access, links=self.links(found))
        return found

    def links(self, found: Sites) -> Links:
        """Which symbolic links are followed in the roots that are folders."""
        levels = {self.state: 0, self.store: 0, **found.levels()}
        return Links(self.follow_links, {place: number for place, number in levels.items() if not is_remote(place)})

    @property
    def site(self) -> Site:
        """[warcmill]'s own roots, which serve every job that no engine lists."""
        return Site("[warcmill]", self.output.rstrip("/"), self.jobs.rstrip("/"), self.output_layout)

    def wanted(self) -> Wanted:
        """The switches that are on: of steps that are due only where they are. There is none yet."""
        return {}

    def open_state(self) -> State:
        """The markers, or Unavailable."""
        return State(open_folder("state", self.state))

    def open_store(self) -> Store:
        """The archive, or Unavailable."""
        return open_store("store", self.store, self.access)


def settings() -> Settings:
    """The configuration of this moment, or BadConfig: also for a file that is not there, in whose place
    Luigi would read the luigi.cfg of the folder that it is run from."""
    if gone := _not_there():
        raise BadConfig("[warcmill]", f"{gone}. Correct it; for a new line: warcmill init FOLDER")
    try:
        roots, transfer, ssh = sections.read(warcmill), sections.read(files), sections.read(sftp)
        layout = OutputLayout(roots.output_layout)
    except luigi.parameter.MissingParameterException as error:
        raise BadConfig("[warcmill]", _missing(error)) from error
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
        Access(transfer.hdfs_block_size, ssh.known_hosts, ssh.key_file),
        _folders(roots.follow_links),
    )


def _folders(text: str) -> tuple[str, ...]:
    """The folders that [warcmill] follow_links names, or BadConfig."""
    found = tuple(folder for part in text.split(",") if (folder := part.strip()))
    for folder in found:
        if not folder.startswith("/"):
            raise BadConfig("[warcmill] follow_links", f"{folder!r} is not an absolute path")
    return found


def silent_after() -> timedelta | None:
    """After which silence of its engine a running launch is told of; None: never. BadConfig for no number of hours."""
    hours = int(sections.read(notice).silent_hours)
    if not 0 <= hours <= 24 * 366:
        raise BadConfig("[notice] silent_hours", f"is {hours}; hours, from 0 (never) up to a year's")
    return timedelta(hours=hours) if hours else None


def notice_channels() -> Channels:
    """Where notices go, or BadConfig."""
    found = sections.read(notice)
    url = found.webhook
    if found.webhook_file:
        if url:
            raise BadConfig("[notice] webhook_file", "stands beside webhook; keep one of them")
        try:
            url = Path(found.webhook_file).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BadConfig("[notice] webhook_file", str(error)) from error
    mail = (found.mail_to, found.mail_from, found.smtp_host, found.smtp_port)
    login = (found.smtp_tls, found.smtp_user, sections.secret("notice", "smtp_password"))
    channels = Channels(*mail, *login, webhook=url, proxy=found.proxy)
    channels.check()
    return channels


def _missing(error: Exception) -> str:
    """Which key Luigi misses, and what stands there in its place; Luigi names the section's class, too."""
    found = re.search(r"requires the '(\w+)' parameter", str(error))
    what = f"the key '{found[1]}' is missing" if found else str(error)
    if _is_ours():
        others = set(get_config().options("warcmill")) - set(warcmill.get_param_names())
        return f"{what}{did_you_mean(found[1] if found else '', others) or '; each root has one'}"
    return f"{what}. {_not_there() or 'Run ' + _INIT}"


def check_hardened() -> None:
    """BadConfig unless Luigi is told to fail loudly: by itself it exits 0 over failed tasks and missing outputs."""
    config = get_config()
    for (section, name), wanted in _HARDENED.items():
        found = config.get(section, name, "")
        if found.lower() != wanted:
            raise BadConfig(
                f"[{section}] {name}",
                f"must be {wanted}, is {found or 'not set'}. {_where_to_look()}",
            )


def _where_to_look() -> str:
    """What to do about a configuration that is not hardened: mend the file, or have it read."""
    if _is_ours():
        return f"Correct it in {os.environ.get('LUIGI_CONFIG_PATH') or 'luigi.cfg'}"
    return _not_there() or "Luigi found no hardened luigi.cfg: run from its folder, or set LUIGI_CONFIG_PATH"


def _is_ours() -> bool:
    """Whether the configuration that was read is one of this line, be it with a mistake."""
    return bool(get_config().has_section("warcmill")) and not _not_there()


def _not_there() -> str:
    """That LUIGI_CONFIG_PATH names a file that is not there; '' when it does not."""
    path = os.environ.get("LUIGI_CONFIG_PATH", "")
    return f"LUIGI_CONFIG_PATH names {path}, and there is no such file" if path and not Path(path).is_file() else ""
