"""warcmill doctor: check the CDX server of [index], where one is configured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from tasks.config import switches
from tasks.config.index import cdx_server
from warcmill.audit.health import Check, Level
from warcmill.clients.cdx_server import CdxServer
from warcmill.errors import BadConfig, Unavailable
from warcmill.index.acknowledged import FOLDER
from warcmill.index.sink_cdx import name_of

NAME = "cdx server"
NOWHERE = ("http://warcmill.invalid/", "20000101000000")


def check_sinks() -> Iterator[Check]:
    """Check [index] cdx_server; nothing where none is set. Only questions are asked."""
    try:
        url, switch = cdx_server(), switches.read("index")
    except BadConfig as error:
        yield Check(NAME, Level.FAIL, str(error), "correct luigi.cfg")
        return
    if not url:
        return
    if switch is None:
        yield Check(NAME, Level.WARN, "the index is off: since is not set", "set [index] since, or remove cdx_server")
    yield _answers(url)


def _answers(url: str) -> Check:
    try:
        with closing(CdxServer(url)) as server:
            names = server.collections()
            server.captures(*NOWHERE)
    except Unavailable as error:
        todo = "start it, or correct [index] cdx_server; until then nothing is posted to it, and no stage is verified"
        return Check(NAME, Level.FAIL, str(error), todo)
    is_there = url.rstrip("/").rpartition("/")[2] in names
    what = "" if is_there else "; the first post makes its collection"
    text = f"{url} answers{what}; its acknowledgements are in {FOLDER}/{name_of(url)} of the index root"
    return Check(NAME, Level.OK, text)
