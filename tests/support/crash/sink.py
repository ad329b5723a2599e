"""A CDX server beside a run that is broken: a double, which dies with the run and keeps what it had on its own disk."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from indexing.outbackcdx_double import Double, serving

from tasks import sinks
from warcmill.clients.cdx_server import CdxServer

URL = "http://cdx.example:8081/main"  # the same in every run, though each has a port of its own
FIRST = "server.json"  # in the folder of the line: what the server had before the run


Collections = dict[str, dict[tuple[str, ...], dict[str, str]]]


def write(path: Path, collections: Collections) -> None:
    """Write what a server has, whole or not at all."""
    rows = [[name, key, fields] for name, kept in collections.items() for key, fields in kept.items()]
    path.with_name(f"{path.name}.new").write_text(json.dumps(rows))
    os.replace(path.with_name(f"{path.name}.new"), path)


def read(path: Path) -> Collections:
    """What a server has."""
    found: Collections = {}
    for name, key, fields in json.loads(path.read_text()):
        found.setdefault(name, {})[tuple(key)] = fields
    return found


def disk_of(folder: Path) -> Path:
    """Where the server of a line keeps what it has: beside the folder, where no call is broken."""
    return folder.with_name(f"{folder.name}.server")


@contextmanager
def beside(folder: Path) -> Iterator[Double]:
    """A server that has what it had when its last run ended, however that was; the line finds it at URL."""
    disk = disk_of(folder)
    with serving() as double:
        if not disk.exists() and (folder / FIRST).exists():
            write(disk, read(folder / FIRST))
        double.collections = read(disk) if disk.exists() else {}
        double.on_kept = lambda: write(disk, double.collections)
        kept, sinks.CdxServer = sinks.CdxServer, partial(_Near, double.url)  # type: ignore[misc,assignment]
        try:
            yield double
        finally:
            sinks.CdxServer = kept  # type: ignore[misc]


class _Near(CdxServer):
    """Asks the double in place of the host that the line names."""

    def __init__(self, near: str, url: str) -> None:
        super().__init__(url)
        self._near = near

    def _ask(self, method: str, url: str, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        return super()._ask(method, url.replace(URL.rpartition("/")[0], self._near), *args, **kwargs)
