"""Edits of a job's files while it is crawled: they hold from the next lease on.

What is asked at a lease, at an offer, and after a visit counts at once. The rest (workers, addresses, WARCs, seeds) was
read when the launch began, and counts for the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from warcmill.crawl import job_file
from warcmill.crawl.durable import failed
from warcmill.crawl.job import Live
from warcmill.crawl.launch_folders import PAPERS
from warcmill.errors import WarcmillError

Signature = tuple[tuple[int, int, int] | None, ...]


class Edits:
    """The files in a job's folder, beside those in `own` that its launch began with."""

    def __init__(self, folder: Path, own: Path, live: Live) -> None:
        self._folder, self._live = folder, live
        self._known = _read(own)
        self._seen: Signature = ()

    def take(self) -> str:
        """Let edits count, and say which; '' when there are none. BadConfig, once for each edit, when they have a
        fault: then what counted before still does."""
        if (signature := _signature(self._folder)) == self._seen:
            return ""
        self._seen, found = signature, _read(self._folder)
        edited = [name for name in PAPERS if found.get(name) != self._known.get(name)]
        if not edited:
            return ""
        before = self._live.job
        job = job_file.parse(found, before.name)
        self._known, self._live.job = found, replace(job, allow_private=before.allow_private)
        return f"{', '.join(edited)} edited: counts from now on; see docs/configuration.md for what waits for a launch"


def unfit(error: WarcmillError) -> str:
    """What is said of an edit that has a fault."""
    return f"an edit does not count, and what was there before does: {error}"


def _signature(folder: Path) -> Signature:
    return tuple(_stat(folder / name) for name in PAPERS)


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise failed(path, error) from error
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read(folder: Path) -> Mapping[str, bytes]:
    found = {}
    for name in PAPERS:
        try:
            found[name] = (folder / name).read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise failed(folder / name, error) from error
    return found
