"""[viruses]: the clamd that scans what is stored."""

from __future__ import annotations

from dataclasses import dataclass

import luigi

from tasks.config import sections
from warcmill.clients import clamd
from warcmill.clients.clamd import Clamd
from warcmill.errors import BadConfig
from warcmill.files.payload_scan import Limits


class viruses(luigi.Config):  # noqa: N801 - Luigi names the section after the class
    """[viruses]: the scan of stored WARCs; off unless `since` is set."""

    clamd = luigi.Parameter(default="", description="where clamd listens: the path of its socket, or HOST:PORT")
    since = luigi.Parameter(default="", description="scan the launches from this day on, by their ids; empty: off")
    jobs = luigi.Parameter(default="", description="scan only these jobs, separated by commas; empty: all")
    stream_max_length = luigi.IntParameter(default=100 << 20, description="bytes; StreamMaxLength of clamd.conf")
    max_file_size = luigi.IntParameter(default=100 << 20, description="bytes; MaxFileSize of clamd.conf")


@dataclass(frozen=True, slots=True)
class Scanner:
    """A clamd, and the limits that it is configured with."""

    clamd: Clamd
    limits: Limits


def is_configured() -> bool:
    """True if a clamd is named, or its step is switched on."""
    return bool(sections.value("viruses", "clamd") or sections.value("viruses", "since"))


def scanner() -> Scanner:
    """The configured clamd, or BadConfig. It is not asked for anything."""
    keys = sections.read(viruses)
    try:
        address = clamd.parse(sections.needed("viruses", "clamd"))
    except ValueError as error:
        raise BadConfig("[viruses] clamd", str(error)) from error
    for key, limit in (("stream_max_length", keys.stream_max_length), ("max_file_size", keys.max_file_size)):
        if limit < 1:
            raise BadConfig(f"[viruses] {key}", f"is {limit}; bytes, as in clamd.conf, where there must be a limit")
    return Scanner(Clamd(address), Limits(keys.stream_max_length, keys.max_file_size))
