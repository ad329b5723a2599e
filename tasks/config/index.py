"""[index]: the launches whose WARCs are indexed."""

from __future__ import annotations

import luigi


class index(luigi.Config):  # noqa: N801 - Luigi names the section after the class
    """[index]: CDXJ lines of stored WARCs; off unless `since` is set. It needs `[warcmill] index`, their folder."""

    since = luigi.Parameter(default="", description="index the launches from this day on, by their ids; empty: off")
    jobs = luigi.Parameter(default="", description="index only these jobs, separated by commas; empty: all")
