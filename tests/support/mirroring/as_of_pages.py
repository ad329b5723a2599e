"""The pages of a package index as it was, asked of the server of an archive without a socket."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from indexing.searchable import Searchable
from operating.web_client import WebAnswer, ask
from starlette.applications import Starlette

from warcmill.formats.pypi.simple_pages import PageKind
from warcmill.pypi.answers import PublishedData
from warcmill.replay.pywb import OFF, NoReplay
from warcmill.stores import LocalStore
from warcmill.web import access
from warcmill.web.access import WebAccess
from warcmill.web.app import application
from warcmill.web.archive import Archive
from warcmill.web.served import PackageHistory, Served

JSON = str(PageKind.JSON_V1)


def served(
    archive: Searchable,
    history: PackageHistory | None,
    index: LocalStore | None = None,
    data: PublishedData | None = None,
) -> Starlette:
    """The server of an archive, with the history and the data sets of a package index; None: none is published."""
    state, replay = archive.state, NoReplay("", "http://localhost", OFF)
    shown = Archive(state.store, lambda: index or archive.index, lambda: archive.store)
    digest = access.digest_of("the-token-of-anna")
    token = {"made": "2016-10-19T23:44:28Z", "role": "reader", "sha256": digest, "until": ""}
    state.store.replace(f"{access.FOLDER}/anna.json", json.dumps(token).encode())
    opened = WebAccess(state.store, "warcmill-8090")
    packages: dict[str, Any] = {"packages": lambda: history, "package_data": lambda: data}
    return application(Served(state, shown, replay, opened, lambda: archive.audited, **packages))


def get(server: Starlette, path: str, accept: str = JSON, fields: Mapping[str, str] | None = None) -> WebAnswer:
    """The answer that a reader gets."""
    return ask(server, path, fields, headers={"authorization": "Bearer the-token-of-anna", "accept": accept})
