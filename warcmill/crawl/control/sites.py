"""The wishes of persons for sites of an endless job: which are suspended, and their rates, in a file of its folder.

It stands alone as both ends need it: a person's request writes it, and each launch begins with it, before its first
lease. So it holds over launches, when Redis was emptied, and when a frontier was built again. Writes to disk.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warcmill.base import disk
from warcmill.crawl import durable
from warcmill.crawl.frontier import Frontier, Gate, Rate
from warcmill.crawl.uri import FOREVER
from warcmill.errors import BadInput, Unavailable
from warcmill.model import Json

NAME = "sites.json"


class KeptSites:
    """The file at `path`; none is there before the first request."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def suspend(self, site: str) -> None:
        """Note that a site is suspended."""
        found = self.read()
        found[site] = {**found.get(site, {}), "suspended": True}
        self._write(found)

    def release(self, site: str) -> None:
        """Note that it is not."""
        found = self.read()
        if found.get(site, {}).pop("suspended", None):
            self._write(found)

    def rate(self, site: str, rate: Mapping[str, Json] | None) -> None:
        """Note the rate of a site, as the fields of a `Rate`; None: it has none of its own."""
        found = self.read()
        found[site] = {**found.get(site, {}), "rate": rate}
        self._write(found)

    async def apply(self, frontier: Frontier) -> None:
        """Have a frontier do as it says."""
        for site, wanted in self.read().items():
            if wanted.get("rate"):
                await frontier.set_rate(Gate(site), Rate(**wanted["rate"]))
            if wanted.get("suspended"):
                await frontier.block(Gate(site), FOREVER)

    def read(self) -> dict[str, dict[str, Any]]:
        """Return it: of each site, if it is `suspended`, and its `rate`."""
        try:
            found = json.loads(self._path.read_bytes())
            if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
                raise ValueError("it has other values than objects")
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise Unavailable(str(self._path), disk.reason(error, self._path)) from error
        except ValueError as error:
            why = f"it is damaged: {error}. Move it away, then suspend sites and set rates again"
            raise BadInput(str(self._path), why) from error
        return found

    def _write(self, found: Mapping[str, Mapping[str, Any]]) -> None:
        kept = {site: {name: one for name, one in wanted.items() if one} for site, wanted in sorted(found.items())}
        text = json.dumps({site: wanted for site, wanted in kept.items() if wanted}, sort_keys=True, indent=1)
        durable.replace(self._path, f"{text}\n".encode())
