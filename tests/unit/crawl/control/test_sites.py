"""The file of what persons want of sites: it is written when they ask, and another frontier begins with it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from warcmill.crawl.control.frontier import FrontierControl
from warcmill.crawl.control.messages import Subject
from warcmill.crawl.control.sites import KeptSites
from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.crawl.uri import make
from warcmill.errors import BadInput

SITE = "slow.example:8443"


def test_what_is_asked_of_a_site_holds_in_another_frontier(tmp_path: Path) -> None:
    sites = KeptSites(tmp_path / "sites.json")

    async def steer() -> None:
        frontier = SqliteFrontier(tmp_path / "one.sqlite")
        control = FrontierControl(frontier, sites=sites)
        await control.suspend(Subject(site=SITE))
        await control.suspend(Subject(site="gone.example"))
        await control.rate({"site": SITE, "hits": 1, "window": 60.0})
        await control.rate({"site": "gone.example", "hits": 1})
        with pytest.raises(BadInput):
            await control.rate({"site": SITE, "hits": -1})
        await control.release(Subject(site="gone.example"))
        await control.rate({"site": "gone.example", "none": True})
        await frontier.close()

    async def begin() -> list[str]:
        frontier = SqliteFrontier(tmp_path / "another.sqlite")
        await frontier.offer([make(f"http://{host}/{n}") for n in range(2) for host in (SITE, "gone.example")])
        await sites.apply(frontier)
        suspended = await frontier.suspended([SITE, "gone.example"])
        leased = [lease.uri.queue for lease in await frontier.lease("holder", 10)]
        await frontier.close()
        return [*suspended, *leased]

    asyncio.run(steer())
    wanted = {SITE: {"rate": {"at_once": 1, "hits": 1, "window": 60.0}, "suspended": True}}
    assert json.loads((tmp_path / "sites.json").read_bytes()) == wanted
    assert asyncio.run(begin()) == [SITE, "gone.example"]


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', "{"])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "sites.json").write_text(text)
    with pytest.raises(BadInput, match="Move it away, then suspend sites and set rates again"):
        KeptSites(tmp_path / "sites.json").suspend(SITE)
