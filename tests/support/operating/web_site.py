"""The pages over four roots, asked in any role: tokens of each, and forms that are fetched and then posted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import unescape
from typing import Any

from launches.engine import FourRoots
from msgspec.structs import replace
from operating.web_client import WebAnswer, ask
from starlette.applications import Starlette

from warcmill.audit.answers.line import AuditedLine
from warcmill.base import clock
from warcmill.replay.pywb import NoReplay
from warcmill.stores import LocalStore
from warcmill.web import access
from warcmill.web.access import ROLES, WebAccess
from warcmill.web.actions import Actions
from warcmill.web.app import application
from warcmill.web.archive import Archive
from warcmill.web.served import Served

_FORM = re.compile(r'name="form" value="([^"]+)"')


def _secret(role: str) -> str:
    return f"the-token-of-the-{role}"


@dataclass
class WebSite:
    """The pages of a line. `program` stands before the words of an action."""

    roots: FourRoots
    audited: AuditedLine
    program: tuple[str, ...] = ("true",)
    index: LocalStore | None = None
    has_walls: bool = True  # those of scripts
    proxies: access.Proxies = field(default_factory=access.Proxies)
    more: dict[str, Any] = field(default_factory=dict)  # parts of what is served
    actions: Actions = field(init=False)
    refreshed: list[str] = field(default_factory=list)  # when engines were to be asked

    def __post_init__(self) -> None:
        for word in ROLES:
            digest = access.digest_of(_secret(word))
            token = {"made": "2016-10-19T23:44:28Z", "name": word, "role": word, "sha256": digest, "until": ""}
            self.state.replace(f"{access.FOLDER}/{word}.json", json.dumps(token).encode())
        self.actions = Actions(self.program)

    @property
    def state(self) -> LocalStore:
        return self.roots.state.store

    @cached_property
    def app(self) -> Starlette:
        index = self.index
        archive = Archive(self.state, (lambda: index) if index else None, lambda: self.roots.store)
        entry = WebAccess(self.state, "warcmill-8090", proxies=self.proxies)
        replay = NoReplay("there is no replay here", "http://localhost:8091")
        parts = (self.roots.state, archive, replay, entry)
        served = Served(*parts, lambda: self.audited, refresh=self._refresh, actions=self.actions)
        return application(replace(served, has_walls=lambda: self.has_walls, **self.more))

    def _refresh(self) -> None:
        self.refreshed.append(clock.now())

    def headers(self, role: str, **more: str) -> dict[str, str]:
        """The headers of someone with a role; '': of nobody."""
        return {**({"authorization": f"Bearer {_secret(role)}"} if role else {}), **more}

    def get(self, path: str, fields: Mapping[str, str] | None = None, role: str = "operator") -> WebAnswer:
        """The answer to GET."""
        return ask(self.app, path, fields, headers=self.headers(role))

    def send_get(self, path: str, role: str, **more: str) -> WebAnswer:
        """The answer to GET with these headers."""
        return ask(self.app, path, headers=self.headers(role, **more))

    def post(
        self, path: str, posted: Mapping[str, str] | None = None, role: str = "operator", **more: str
    ) -> WebAnswer:
        """The answer to POST, with these headers too; `posted` has the form's token, or it comes from its page."""
        fields = dict(posted or {})
        fields.setdefault("form", "" if "form" in fields else self.form(path, role))
        return ask(self.app, path, posted=fields, headers=self.headers(role, **more))

    def send(
        self, path: str, document: bytes, role: str = "operator", type_: str = "application/json", **more: str
    ) -> WebAnswer:  # fmt: skip
        """The answer to what a program posts."""
        headers = {name.replace("_", "-"): text for name, text in more.items()}
        return ask(self.app, path, document=document, headers=self.headers(role, **{"content-type": type_, **headers}))

    def form(self, path: str, role: str = "operator") -> str:
        """The one-time token in the form of a page; '' if there is none."""
        found = _FORM.search(self.get(path, role=role).text)
        return unescape(found[1]) if found else ""
