"""warcmill doctor: check what extracts text, and the Solr that gets it, where [text] is on."""

from __future__ import annotations

from collections.abc import Iterator

from tasks.config import collections, switches, text
from warcmill.audit.health import Check, Level
from warcmill.clients.solr import Solr
from warcmill.errors import BadConfig, Unavailable, WarcmillError
from warcmill.formats.text import tools
from warcmill.formats.text.document import Kind
from warcmill.index.sink_solr import Place
from warcmill.index.solr_document import FIELDS
from warcmill.launches.tika import Tika, TikaWorkers, java, java_version

_SECONDS = 10  # for an answer
_WORD, _SMALL = "Zymurgy", rb"{\rtf1\ansi\pard Zymurgy\par}"
_JAVA = "it needs a JDK, Java 17 or later (apt-get install openjdk-17-jdk-headless), and a tika-app of version 3"


def check_text() -> Iterator[Check]:
    """Check [text]; nothing where it is off."""
    try:
        if switches.read(text.SWITCH) is None:
            return
        text.check_installed()
        yield Check("text", Level.OK, f"{tools.tool_of(Kind.HTML)} and {tools.tool_of(Kind.PDF)} extract it")
        place, tika = collections.solr(), text.tika()
    except BadConfig as error:
        yield Check("text", Level.FAIL, str(error), "without it no scan starts")
    else:
        yield _check_tika(tika)
        if place:
            yield from _check_solr(place)


def _check_tika(tika: Tika | None) -> Check:
    """It begins, and extracts a word."""
    if tika is None:
        why = "office documents are counted, and have no text"
        return Check("tika", Level.OK, f"[text] tika is not set: {why}")
    try:
        with TikaWorkers(tika, 1) as workers:
            found = workers.submit(Kind.OFFICE, _SMALL, "").result()
            tool = workers.tool
    except Unavailable as error:
        return Check("tika", Level.FAIL, str(error), _JAVA)
    if found.text != _WORD:
        return Check("tika", Level.FAIL, f"{tika.jar} extracts no word of a small document: {found.why}", _JAVA)
    return Check("tika", Level.OK, f"{tool}, by {java_version(java())}, extracts office documents")


def _check_solr(place: Place) -> Iterator[Check]:
    """Each collection answers, has our fields, and takes documents by our update chain. Nothing is changed."""
    todo = "start Solr, or make the collection with the configuration in config/solr; the next scan posts what it lacks"
    with Solr(place.server, _SECONDS) as solr:
        for collection in place.routing.collections:
            name = f"solr {collection}"
            try:
                missing = sorted(FIELDS - solr.fields(collection).keys())
                solr.check_chain(collection)
                number = solr.count(collection)
            except WarcmillError as error:
                yield Check(name, Level.FAIL, str(error), todo)
                continue
            if missing:
                why = f"its schema has no {', '.join(missing)}: it would refuse every document"
                yield Check(name, Level.FAIL, why, "give it the schema in config/solr, or add these fields")
            else:
                yield Check(name, Level.OK, f"{solr.name(collection)} has {number:,} documents and the fields of ours")
