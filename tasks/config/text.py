"""[text]: the launches whose documents are extracted for a text index."""

from __future__ import annotations

import os

import luigi

from tasks.config import sections
from warcmill.errors import BadConfig, Unavailable
from warcmill.formats.text import tools
from warcmill.launches.tika import Tika

SWITCH = "text"  # as `Row.due` names it


class text(luigi.Config):  # noqa: N801 - Luigi names the section after the class
    """[text]: the words of stored documents; off unless `since` is set. It needs `[warcmill] index`, and the extra."""

    since = luigi.Parameter(default="", description="extract the launches from this day on, by their ids; empty: off")
    jobs = luigi.Parameter(default="", description="extract only these jobs, separated by commas; empty: all")
    tika = luigi.Parameter(default="", description="path of tika-app's jar, for office documents; empty: not extracted")
    solr = luigi.Parameter(default="", description="URL of a Solr's collection that gets the text too; empty: none")


def tika() -> Tika | None:
    """The Tika that is configured, or BadConfig; None if there is none. It is not started."""
    path = sections.value(SWITCH, "tika")
    if not path:
        return None
    found = Tika(os.path.abspath(path))
    try:
        found.check()
    except Unavailable as error:
        raise BadConfig("[text] tika", f"is set, and {error}") from error
    return found


def check_installed() -> None:
    """BadConfig if a package of the extra is missing, or what extracts office documents."""
    if missing := tools.missing():
        how = f"pip install '{tools.EXTRA}', or empty it"
        raise BadConfig("[text] since", f"is set, and {' and '.join(missing)} cannot be found: {how}")
    tika()
