"""[text]: the launches whose documents are extracted for a text index."""

from __future__ import annotations

import luigi

from warcmill.errors import BadConfig
from warcmill.formats.text import tools

SWITCH = "text"  # as `Row.due` names it


class text(luigi.Config):  # noqa: N801 - Luigi names the section after the class
    """[text]: the words of stored documents; off unless `since` is set. It needs `[warcmill] index`, and the extra."""

    since = luigi.Parameter(default="", description="extract the launches from this day on, by their ids; empty: off")
    jobs = luigi.Parameter(default="", description="extract only these jobs, separated by commas; empty: all")
    solr = luigi.Parameter(default="", description="URL of a Solr's collection that gets the text too; empty: none")


def check_installed() -> None:
    """BadConfig if a package of the extra is missing."""
    if missing := tools.missing():
        how = f"pip install '{tools.EXTRA}', or empty it"
        raise BadConfig("[text] since", f"is set, and {' and '.join(missing)} cannot be found: {how}")
