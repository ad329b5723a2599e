"""[requests]: the job that applications' requests are fed to, and the bus that they come by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import luigi

from tasks.config import sections
from tasks.config.folders import config_file
from tasks.config.settings import settings
from warcmill.clients.bus import check_name
from warcmill.clients.bus.opening import open_bus
from warcmill.clients.bus.spool import DAYS
from warcmill.cluster.settings import RequestsPlace
from warcmill.errors import BadConfig, BadInput
from warcmill.model import parse_job

SPOOL = "spool"
"""The folder of the bus of this name, in the state."""


class requests(luigi.Config):  # noqa: N801 - Luigi names the section after the class
    """[requests]: `warcmill run requests`."""

    job = luigi.Parameter(default="", description="the endless job that requests are fed to; empty: none is taken")
    prefix = luigi.Parameter(default="demo", description="what the names of the topics begin with")
    bus = luigi.Parameter(default="spool", description="spool: files below the state; or kafka://HOST:PORT,HOST:PORT")
    settings = luigi.Parameter(
        default="", description="a settings file of Scrapy Cluster, beside luigi.cfg: read, never executed"
    )
    spool_days = luigi.IntParameter(default=DAYS, description="days for which the spool keeps messages")


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
    folder = Path(settings().state) / SPOOL
    open_bus(keys.bus, folder, keys.spool_days).close()  # a name that is none is refused here
    file = given_file or keys.settings
    if file and not given_file:
        file = str(Path(config_file()).parent / file)
    return RequestsPlace(job, keys.prefix, keys.bus, file, folder, keys.spool_days, dict(given or {}))
