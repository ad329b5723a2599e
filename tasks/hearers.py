"""Who listens while files.Checksum reads a WARC: the makers of extracts, by the switches of the configuration."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from tasks.step import OpenRoots
from warcmill import chain
from warcmill.errors import BadConfig, Unavailable
from warcmill.files.checksum import Listen, nobody
from warcmill.formats.warc.hearers import Hearer
from warcmill.launches.cdx_extracts import CdxHearer
from warcmill.launches.extracts import Extracts
from warcmill.launches.format_extracts import FormatsHearer
from warcmill.model import FileRef, Launch

log = logging.getLogger(__name__)


def listen(line: OpenRoots, launch: Launch) -> Listen:
    """The hearers of a launch's WARCs: for an index its lines, not of viral WARCs; for packages the formats, of all.

    Nobody where nothing is switched on, or while the index root cannot be reached: the steps then read the store.
    """
    rows, wanted = chain.by_word(chain.ROWS), line.wanted
    has_index, has_packages = (chain.is_wanted(rows[word], launch, wanted) for word in ("cdx", "package"))
    extracts = _extracts(line, has_index, has_packages) if has_index or has_packages else None
    if extracts is None:
        return nobody
    roots = line.roots_of(launch.job)

    def makers(file: FileRef) -> Iterator[Hearer]:
        if has_index and roots.kind_of(file) != "viral":
            yield CdxHearer(extracts)
        if has_packages:
            yield FormatsHearer(extracts)

    return lambda file: tuple(makers(file))


def _extracts(line: OpenRoots, has_index: bool, has_packages: bool) -> Extracts | None:
    """The extracts, or None with a warning: without them nothing but indexes and packages has to wait."""
    try:
        return line.extracts
    except (Unavailable, BadConfig) as error:
        what = " and ".join(["indexed"] * has_index + ["packaged"] * has_packages)
        log.warning("%s; WARCs are read again from the store to be %s", error, what)
        return None
