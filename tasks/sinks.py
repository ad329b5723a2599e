"""The servers that have the CDX as well, [index] cdx_server, the documents, [documents] solr and w3act, or the state of
launches, [register] url."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from tasks.config import chains, register
from tasks.config.chains import cdx_server
from tasks.config.settings import NO_INDEX, settings
from tasks.line import OpenRoots
from warcmill.clients.cdx_server import CdxServer
from warcmill.errors import BadConfig
from warcmill.index.sink_cdx import CdxSink, settle
from warcmill.index.sinks import bring
from warcmill.model import Launch
from warcmill.stores import LocalStore
from warcmill.versions.cdx import NAME
from warcmill.versions.inputs import Lists
from warcmill.versions.publication import Payloads

if TYPE_CHECKING:
    from warcmill.documents.desk import Desk

log = logging.getLogger(__name__)
DOCUMENTS_SECONDS = 60.0  # in which Solr has to answer


@contextmanager
def of_cdx(line: OpenRoots, index: LocalStore) -> Iterator[tuple[CdxSink, ...]]:
    """The sinks of the CDX: none or one. Or BadConfig."""
    url = cdx_server()
    if not url:
        yield ()
        return
    with closing(CdxServer(url)) as server:
        yield (CdxSink(line.state.store, line.store, index, server),)


def check_configured() -> None:
    """BadConfig on a line without an index, or without a CDX server."""
    if not settings().index:
        raise BadConfig("[warcmill] index", f"is not set, {NO_INDEX}")
    if not cdx_server():
        raise BadConfig(
            "[index] cdx_server", "is not set: the collection of an OutbackCDX, http://HOST:PORT/COLLECTION"
        )


def tell_register(line: OpenRoots, launches: Iterable[Launch]) -> None:
    """Have the register know the state of these launches, if there is one. Troubles are logged, and the next scan tries
    it again."""
    url, token = register.place()
    if not url:
        return
    from warcmill.audit.answers import register as answers
    from warcmill.clients.register import WarcRegister

    with closing(WarcRegister(url, token)) as server:
        for trouble in answers.tell(line.state, line.rootmap, server, launches, line.wanted):
            log.error("%s", trouble)


def bring_documents(index: LocalStore, desk: Desk) -> tuple[str, ...]:
    """Have Solr and W3ACT have what the desk has, those that are configured. Returns what went wrong, of which nothing
    is lost. One that is away keeps nothing from the other."""
    from warcmill.clients.solr import Solr
    from warcmill.clients.w3act import W3act
    from warcmill.documents.sinks import SolrDocuments, W3actDocuments
    from warcmill.documents.sinks import bring as bring_to

    troubles: list[str] = []
    server, core = chains.documents_solr()
    if core:
        with Solr(server, DOCUMENTS_SECONDS) as solr:
            troubles += bring_to(index, desk, SolrDocuments(solr, core))
    if login := chains.w3act():
        with closing(W3act(login.url, login.user, login.password)) as w3act:
            troubles += bring_to(index, desk, W3actDocuments(w3act))
    for trouble in troubles:
        log.error("%s", trouble)
    return tuple(troubles)


def bring_cdx(line: OpenRoots, index: LocalStore) -> tuple[str, ...]:
    """Have each sink have what the current version has. Returns what went wrong, of which nothing is lost."""
    current = Payloads(index, NAME).current()
    if current is None:
        return ()
    troubles: list[str] = []
    with of_cdx(line, index) as sinks:
        for sink in sinks:
            troubles += bring(index, sink, Lists(line.state.store, NAME).read(current.number))
            troubles += settle(line.state, index, sink)
    for trouble in troubles:
        log.error("%s", trouble)
    return tuple(troubles)
