"""[serve]: the address at which `warcmill serve` listens, and the pywb that replays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import luigi

from tasks.config import sections
from tasks.config.settings import NO_INDEX, Settings
from warcmill.errors import BadConfig
from warcmill.stores import Store
from warcmill.stores.opening import is_remote
from warcmill.versions import cdx
from warcmill.versions.index_inputs import WARCS
from warcmill.versions.inputs import FOLDER
from warcmill.versions.publication import CURRENT
from warcmill.web import replay
from warcmill.web.http import SHORTEST
from warcmill.web.warcs import serving as serving_warcs

_TOKEN = re.compile(r"[A-Za-z0-9._~-]+")


class serve(luigi.Config):  # noqa: N801 - Luigi names the section after the class
    """[serve]: search and replay over HTTP, on loopback. All keys are optional."""

    port = luigi.IntParameter(default=8090, description="port of search, on 127.0.0.1")
    replay_port = luigi.IntParameter(default=8091, description="port of replay, on localhost")
    replay_url = luigi.Parameter(
        default="", description="address of replay behind a proxy; of another host name than search"
    )
    pywb = luigi.Parameter(
        default="", description="path of the program wayback of pywb 2.10; empty: that of --get-replay, or on PATH"
    )
    token = luigi.Parameter(default="", description="the secret of the readers, as ${ENV}; empty: a new one each start")
    token_file = luigi.Parameter(default="", description="file with that secret as its only line")


@dataclass(frozen=True, slots=True)
class Serving:
    """[serve], read and checked."""

    port: int
    replay_port: int
    replay_url: str
    pywb: str
    token: str


def serving() -> Serving:
    """The section [serve], or BadConfig."""
    keys = sections.read(serve)
    for key, port in (("port", keys.port), ("replay_port", keys.replay_port)):
        if not 0 < port < 1 << 16:
            raise BadConfig(f"[serve] {key}", f"is {port}, not a port from 1 to 65535")
    if keys.port == keys.replay_port:
        raise BadConfig("[serve] replay_port", f"is {keys.port}, as port; replay needs a port of its own")
    return Serving(keys.port, keys.replay_port, _url(keys.replay_url), keys.pywb, _token())


def index_of(config: Settings) -> Path:
    """The link to the current version of the CDX, or BadConfig."""
    if not config.index:
        raise BadConfig("[warcmill] index", f"is not set, {NO_INDEX}")
    return Path(config.index) / FOLDER / cdx.NAME / CURRENT


def replay_folder(config: Settings) -> Path:
    """Where `warcmill serve --get-replay` installs pywb."""
    return Path(config.state).resolve().parent / replay.FOLDER


def program_of(config: Settings, asked: Serving) -> Path:
    """The pywb that replays: of [serve] pywb, else of `--get-replay`, else on PATH. BadConfig if none fits."""
    installed = None if asked.pywb else replay.program(replay_folder(config))
    return replay.command(str(installed) if installed else asked.pywb)


@contextmanager
def warcs(config: Settings, store: Store) -> Iterator[str]:
    """Where pywb finds the store's WARCs while the block runs: in its folder, or at a server for it on loopback."""
    if is_remote(config.store):
        with serving_warcs(store) as address:
            yield address
    else:
        yield f"{config.store.rstrip('/')}/{WARCS}"


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        wrong = text and (parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment)
    except ValueError:
        wrong = True
    if wrong:
        raise BadConfig("[serve] replay_url", f"is {text!r}, not an address such as https://replay.library.example")
    return text.rstrip("/")


def _token() -> str:
    token = sections.secret("serve", "token")
    if token and not (_TOKEN.fullmatch(token) and len(token) >= SHORTEST):
        raise BadConfig("[serve] token", f"is not {SHORTEST} or more letters, digits and . _ ~ -")
    return token
