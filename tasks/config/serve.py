"""[serve]: the address at which `warcmill serve` listens, and the pywb that replays."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from tasks.config import sections
from tasks.config.sections import FlagKey, Section, TextKey, WholeKey
from tasks.config.settings import NO_INDEX, Settings
from warcmill.errors import BadConfig
from warcmill.replay import pywb
from warcmill.replay.pywb import LOOPBACK
from warcmill.versions import cdx
from warcmill.versions.inputs import FOLDER
from warcmill.versions.publication import CURRENT
from warcmill.web import access
from warcmill.web.access import GROUP_HEADER, SHORTEST, USER_HEADER, Proxies
from warcmill.web.handover.files import KEPT_DAYS

_GB = 10**9
_TOKEN = re.compile(r"[A-Za-z0-9._~-]+")


class serve(Section):  # noqa: N801 - the section has the name of the class
    """[serve]: the pages, search and replay, over HTTP. All keys are optional."""

    listen = TextKey(default=LOOPBACK, description="address to listen at; beyond loopback only with tokens")
    port = WholeKey(default=8090, description="port of the pages")
    url = TextKey(default="", description="address of the pages as people open them; notices lead there")
    replay = FlagKey(
        default=True,
        description="whether pywb is started; false: the pages alone",
    )
    replay_listen = TextKey(default=LOOPBACK, description="address to listen at with replay; in a container")
    replay_port = WholeKey(default=8091, description="port of replay, on localhost")
    replay_url = TextKey(default="", description="address of replay behind a proxy; of another host name than search")
    pywb = TextKey(
        default="", description="path of the program wayback of pywb 2.10; empty: that of --get-replay, or on PATH"
    )
    token = TextKey(default="", description="the secret of the readers, as ${ENV}; empty: a new one each start")
    token_file = TextKey(default="", description="file with that secret as its only line")
    proxies = TextKey(default="", description="addresses of proxies that sign people in, separated by commas")
    user_header = TextKey(default=USER_HEADER, description="header in which a proxy names the user")
    group_header = TextKey(default=GROUP_HEADER, description="header with the user's groups")
    operators = TextKey(default="", description="users and groups of a proxy who are operators")
    curators = TextKey(default="", description="users and groups of a proxy who are curators")
    wacz_days = WholeKey(default=KEPT_DAYS, description="days for which a WACZ of the pages, or an upload, is kept")
    upload_gb = WholeKey(
        default=0, description="largest upload in GB; 0: as large as the disk of the state has room for"
    )


class Serving(Struct, frozen=True):
    """[serve], read and checked."""

    listen: str
    port: int
    replay: bool
    replay_port: int
    replay_listen: str
    replay_url: str
    pywb: str
    token: str
    proxies: Proxies
    wacz_days: int = KEPT_DAYS
    largest_upload: int = 0

    @property
    def is_loopback(self) -> bool:
        """True if only this machine can ask."""
        return ipaddress.ip_address(self.listen).is_loopback


def serving() -> Serving:
    """The section [serve], or BadConfig."""
    keys = sections.read(serve)
    for key, port in (("port", keys.port), ("replay_port", keys.replay_port)):
        if not 0 < port < 1 << 16:
            raise BadConfig(f"[serve] {key}", f"is {port}, not a port from 1 to 65535")
    if keys.port == keys.replay_port:
        raise BadConfig("[serve] replay_port", f"is {keys.port}, as port; replay needs a port of its own")
    url = _url("replay_url", keys.replay_url)
    pages_url()
    addresses = (_listen("listen", keys.listen), _listen("replay_listen", keys.replay_listen))
    ports = (keys.port, keys.replay, keys.replay_port)
    for key, number, least in (("wacz_days", keys.wacz_days, 1), ("upload_gb", keys.upload_gb, 0)):
        if number < least:
            raise BadConfig(f"[serve] {key}", f"is {number}, not {least} or more")
    kept = (keys.wacz_days, keys.upload_gb * _GB)
    return Serving(addresses[0], *ports, addresses[1], url, keys.pywb, _token(), _proxies(keys), *kept)


def index_of(config: Settings) -> Path:
    """The link to the current version of the CDX, or BadConfig."""
    if not config.index:
        raise BadConfig("[warcmill] index", f"is not set, {NO_INDEX}")
    return Path(config.index) / FOLDER / cdx.NAME / CURRENT


def replay_folder(config: Settings) -> Path:
    """Where `warcmill serve --get-replay` installs pywb."""
    return Path(config.state).resolve().parent / pywb.FOLDER


def program_of(config: Settings, asked: Serving) -> Path:
    """The pywb that replays: of [serve] pywb, else of `--get-replay`, else on PATH. BadConfig if none fits."""
    installed = None if asked.pywb else pywb.program(replay_folder(config))
    return pywb.command(str(installed) if installed else asked.pywb)


def _listen(key: str, text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        raise BadConfig(f"[serve] {key}", f"is {text!r}, not an address such as 127.0.0.1 or 0.0.0.0") from error


def _proxies(keys: serve) -> Proxies:
    """The proxies, or BadConfig for an invalid address."""
    try:
        networks = access.networks(_words(keys.proxies))
    except ValueError as error:
        raise BadConfig("[serve] proxies", f"{error}: an address is 10.0.0.1, a network 10.0.0.0/8") from error
    headers = (keys.user_header.strip().lower(), keys.group_header.strip().lower())
    who = (frozenset(_words(text)) for text in (keys.operators, keys.curators))
    return Proxies(networks, *headers, *who)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for part in text.split(",") if (word := part.strip()))


def pages_url() -> str:
    """[serve] url without a stroke at its end, '' where it is not set; or BadConfig."""
    return _url("url", sections.read(serve).url)


def _url(key: str, text: str) -> str:
    try:
        parts = urlsplit(text)
        wrong = text and (parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment)
    except ValueError:
        wrong = True
    if wrong:
        raise BadConfig(f"[serve] {key}", f"is {text!r}, not an address such as https://archive.library.example")
    return text.rstrip("/")


def _token() -> str:
    token = sections.secret("serve", "token")
    if token and not (_TOKEN.fullmatch(token) and len(token) >= SHORTEST):
        raise BadConfig("[serve] token", f"is not {SHORTEST} or more letters, digits and . _ ~ -")
    return token
