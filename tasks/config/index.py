"""[index]: the launches whose WARCs are indexed."""

from __future__ import annotations

import luigi

from tasks.config import sections
from warcmill.clients import cdx_server as clients
from warcmill.errors import BadConfig


class index(luigi.Config):  # noqa: N801 - Luigi names the section after the class
    """[index]: CDXJ lines of stored WARCs; off unless `since` is set. It needs `[warcmill] index`, their folder."""

    since = luigi.Parameter(default="", description="index the launches from this day on, by their ids; empty: off")
    jobs = luigi.Parameter(default="", description="index only these jobs, separated by commas; empty: all")
    cdx_server = luigi.Parameter(
        default="", description="OutbackCDX that gets the lines as well, http://HOST:PORT/COLLECTION; empty: none"
    )


def cdx_server() -> str:
    """The URL of the collection of a CDX server; '' if none is set. Or BadConfig."""
    url = str(sections.read(index).cdx_server).strip()
    if url and not clients.is_url(url):
        why = f"is {clients.shown(url)}; it must be http://HOST:PORT/COLLECTION, or https, without a user or a query"
        raise BadConfig("[index] cdx_server", why)
    return url
