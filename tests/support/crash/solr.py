"""A Solr beside a run that is broken: a double, which dies with the run and keeps what it had on its own disk."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from crash.sink import disk_of
from indexing.solr_double import Double, serving

from warcmill.clients.solr import Solr
from warcmill.index import sink_solr, verify_text

HOST = "http://solr.example:8983"  # the same in every run, though each has a port of its own
COLLECTION = "discovery"
FIRST = "solr.json"  # in the folder of the line: what Solr had before the run


@contextmanager
def beside(folder: Path) -> Iterator[Double]:
    """A Solr that has what it had when its last run ended, however that was; the line finds it at HOST."""
    disk = disk_of(folder)
    with serving() as double:
        first = disk if disk.exists() else folder / FIRST
        if first.exists():
            double.kept, double.shown = json.loads(first.read_text())
        double.on_kept = lambda: _write(disk, double)
        sink_solr.Solr = verify_text.Solr = partial(_near, double.url)  # type: ignore[misc,assignment]
        try:
            yield double
        finally:
            sink_solr.Solr = verify_text.Solr = Solr  # type: ignore[misc]


def _write(path: Path, double: Double) -> None:
    """Write what Solr has, whole or not at all."""
    path.with_name(f"{path.name}.new").write_text(json.dumps([double.kept, double.shown]))
    os.replace(path.with_name(f"{path.name}.new"), path)


def _near(near: str, server: str) -> Solr:
    """Asks the double in place of the host that the line names."""
    return Solr(server.replace(HOST, near))
