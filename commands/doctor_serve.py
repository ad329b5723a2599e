"""warcmill doctor: check that `warcmill serve` can serve, where [serve] is in luigi.cfg."""

from __future__ import annotations

from collections.abc import Iterator

from tasks.config import sections
from tasks.config.serve import index_of, program_of, serving
from tasks.config.settings import Settings
from warcmill.audit.health import Check, Level
from warcmill.errors import BadConfig, WarcmillError
from warcmill.stores.opening import open_folder
from warcmill.web.archive import Archive


def check_serve(config: Settings) -> Iterator[Check]:
    """Check [serve]; nothing where there is none."""
    if not sections.named("serve"):
        return
    try:
        asked = serving()
        index_of(config)
        program = program_of(config, asked)
    except BadConfig as error:
        yield Check("serve", Level.FAIL, str(error), "warcmill serve does not replay without it")
        return
    yield Check("serve", Level.OK, f"{program} replays")
    yield from _published(config)


def _published(config: Settings) -> Iterator[Check]:
    """Check that there is something to search, and to replay."""
    try:
        state, index = open_folder("state", config.state), open_folder("index", config.index)
        versions = Archive(state, index, config.open_store()).versions()
    except WarcmillError as error:
        yield Check("serve", Level.FAIL, str(error), "make the root reachable")
        return
    for name in sorted(name for name, number in versions.items() if number is None):
        todo = f"set [{'index' if name == 'cdx' else name}] since, then run index.ScanForIndexing"
        yield Check("serve", Level.WARN, f"no version of {name} is published: there is nothing to serve of it", todo)
