"""The maker of a line's extracts: the processes, or the cluster, of [scale]."""

from __future__ import annotations

from msgspec.structs import replace

from tasks.config import chains, scale
from tasks.config.settings import Settings
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.per_warc import Extractor, ExtractPlace, RemoteExtractor
from warcmill.scale import Runner
from warcmill.scale.opening import open_runner
from warcmill.stores.engine_folder import LinkRules
from warcmill.stores.opening import Access, open_folder


def runner() -> Runner:
    """The runner that is configured; or BadConfig."""
    return open_runner(*scale.run_on())


def place(config: Settings) -> ExtractPlace:
    """Where workers find the store and the index root; no symbolic link is followed there, and no secret goes there."""
    access = config.access
    s3 = replace(access.s3, secret_key="")
    reached = Access(access.block_size, access.known_hosts, access.key_file, s3, links=LinkRules())
    return ExtractPlace(config.store, reached, config.index, chains.tika())


def making(config: Settings, extracts: Extracts) -> Extractor:
    """Who makes the extracts of a line; or BadConfig."""
    return RemoteExtractor(runner(), place(config), extracts)


def probe(config: Settings) -> None:
    """Ask the workers whether they can work; raises what keeps one from it. Nothing is made."""
    RemoteExtractor(runner(), place(config), Extracts(open_folder("index", config.index))).at_once(1)
