"""[requests]: the job that applications' requests are fed to, and the bus that they come by."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from tasks.config import engines, sections
from tasks.config.folders import config_file
from tasks.config.kafka import kafka_access
from tasks.config.sections import Section, TextKey, WholeKey
from warcmill.clients.bus import check_name
from warcmill.clients.bus.opening import open_bus
from warcmill.clients.bus.spool import DAYS
from warcmill.errors import BadConfig, BadInput
from warcmill.model import parse_job
from warcmill.requests.settings import RequestsPlace
from warcmill.web.access import ROLES, SHORTEST, Role, digest_of

LOOPBACK, PORT = "127.0.0.1", 5343
SPOOL = "spool"
"""The folder of the bus of this name, in the state."""


class requests(Section):  # noqa: N801 - the section has the name of the class
    """[requests]: `warcmill run requests`."""

    job = TextKey(default="", description="the endless job that requests are fed to; empty: none is taken")
    prefix = TextKey(default="demo", description="what the names of the topics begin with")
    bus = TextKey(default="spool", description="spool: files below the state; or kafka://HOST:PORT,HOST:PORT")
    settings = TextKey(
        default="", description="a settings file of Scrapy Cluster, beside luigi.cfg: read, never executed"
    )
    spool_days = WholeKey(default=DAYS, description="days for which the spool keeps messages")
    rest_listen = TextKey(
        default=LOOPBACK, description="address to listen at with the REST service; beyond loopback only with tokens"
    )
    rest_port = WholeKey(default=PORT, description="port of the REST service")
    token_file = TextKey(
        default="", description="tokens of the REST service besides those of serve token, a line each: ROLE TOKEN"
    )


class RestAddress(Struct, frozen=True):
    """The address of the REST service; and the roles of the tokens of its own, by the SHA-256 of each."""

    listen: str
    port: int
    tokens: Mapping[str, Role]

    @property
    def is_loopback(self) -> bool:
        """True if only this machine can ask."""
        return ipaddress.ip_address(self.listen).is_loopback


def rest_address() -> RestAddress:
    """The keys of the REST service in [requests], or BadConfig."""
    keys = sections.read(requests)
    if not 0 < keys.rest_port < 1 << 16:
        raise BadConfig("[requests] rest_port", f"is {keys.rest_port}, not a port from 1 to 65535")
    try:
        listen = str(ipaddress.ip_address(keys.rest_listen))
    except ValueError as error:
        raise BadConfig("[requests] rest_listen", f"is {keys.rest_listen!r}; it takes an IP address") from error
    return RestAddress(listen, keys.rest_port, _tokens(keys.token_file) if keys.token_file else {})


def _tokens(path: str) -> dict[str, Role]:
    try:
        words = [line.split() for line in Path(path).read_text("ascii").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise BadConfig("[requests] token_file", f"{path} cannot be read: {error}") from error
    for number, line in enumerate(words, 1):
        if len(line) != 2 or line[0] not in ROLES or len(line[1]) < SHORTEST:
            why = f"{path}:{number} is not a role and token of {SHORTEST} letters: operator a1b2..."
            raise BadConfig("[requests] token_file", why)
    return {digest_of(secret): ROLES[role] for role, secret in words}


def requests_place(given_file: str = "", given: Mapping[str, Any] | None = None) -> RequestsPlace:
    """The section [requests], or BadConfig. `given_file` and `given`: a settings file, and settings, of the command
    line."""
    keys = sections.read(requests)
    if not keys.job:
        raise BadConfig("[requests] job", "is not set: the endless job that requests are fed to")
    try:
        job = parse_job(keys.job)
        check_name("topic", f"{keys.prefix}.incoming")
    except BadInput as error:
        raise BadConfig("[requests]", str(error)) from error
    if not 1 <= keys.spool_days <= 3660:
        raise BadConfig("[requests] spool_days", f"is {keys.spool_days}; days, from 1 to 3660")
    folder = Path(sections.needed("warcmill", "state")) / SPOOL  # a worker has no other root
    access = kafka_access()
    open_bus(keys.bus, folder, keys.spool_days, access=access).close()  # an invalid name, or access, is refused here
    file = given_file or keys.settings
    if file and not given_file:
        file = str(Path(config_file()).parent / file)
    section = engines.section_of(job)
    redis = engines.frontier_of(section) if section else None
    return RequestsPlace(job, keys.prefix, keys.bus, file, folder, keys.spool_days, dict(given or {}), redis, access)
