"""The documents in a real Solr: as the desk has them, by 200 questions; decided, withdrawn, lost, refused, killed."""

from __future__ import annotations

import json
import random
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from indexing.desks import DeskPlace, entry, id_of

from servers import process
from servers import solr as solr_server
from servers.solr import DOCUMENTS, SolrServer
from warcmill.clients.solr import Solr
from warcmill.documents.decided import STATUSES
from warcmill.documents.looking import DeskQuery, each
from warcmill.documents.sinks import SolrDocuments, bring
from warcmill.formats.feed import Target

CORE = "documents"
TYPES = ("application/pdf", "application/epub+zip", "application/msword", "application/vnd.ms-excel", "image/png")
HOSTS = ("www.one.example", "two.example", "docs.two.example", "three.example:8080")
WORDS = ("annual", "report", "Überblick", "Straße", "2026", "water-quality", "of", "rivers", "café")
TARGETS = tuple(Target(str(17 + at), name, (f"http://{name}/",), watched=True) for at, name in enumerate(HOSTS[:2]))


@pytest.fixture
def core(solr: SolrServer) -> Iterator[SolrServer]:
    """An empty core of the schema of documents."""
    solr.add(CORE, DOCUMENTS)
    yield solr
    if process.running(solr.folder, solr_server.NAME) is None:
        solr.start()
        solr.wait_loaded(CORE)
    solr.remove(CORE)


@pytest.fixture
def place(tmp_path: Path) -> DeskPlace:
    """A desk of 300 documents of several sites, types, words and statuses."""
    chosen = random.Random(43)
    made = DeskPlace(tmp_path)
    for number in range(300):
        name, host = f"n{number}", chosen.choice(HOSTS)
        path = chosen.choice(("news", "news/2026", "Reports", "a b"))
        title = " ".join(chosen.sample(WORDS, 3))
        one = entry(
            name, url=f"http://{host}/{path}/{name}.pdf", type_=chosen.choice(TYPES), title=title,
            publisher=chosen.choice(("", "Ministry of Rivers", "Café Überblick")),
        )  # fmt: skip
        made.entries[one.id] = one
    made.watched = TARGETS
    for number in range(0, 300, 7):
        made.decide(f"n{number}", STATUSES[number % 5], title="annual decision" if number % 2 else None)
    return made


def bring_to(place: DeskPlace, core: SolrServer) -> list[str]:
    with place.opened() as desk, Solr(core.url, 60) as client:
        return [*bring(place.index, desk, SolrDocuments(client, CORE))]


def asked(core: SolrServer, *filters: str) -> set[str]:
    """The ids that Solr finds, asked as any other program would."""
    query = urllib.parse.urlencode({"q": "*:*", "fl": "id", "rows": 1000, "fq": filters}, doseq=True)
    with urllib.request.urlopen(f"{core.url}/{CORE}/select?{query}") as answer:
        return {one["id"] for one in json.loads(answer.read())["response"]["docs"]}


def question(chosen: random.Random) -> tuple[DeskQuery, list[str]]:
    """A question to the desk, and the same to Solr. Not for `strasse`, by which Solr finds `straße` too."""
    fields, filters = dict[str, str](), list[str]()
    for name in chosen.sample(("status", "target", "type", "prefix", "words", "publisher"), chosen.randint(1, 3)):
        if name == "status":
            fields[name] = chosen.choice(STATUSES)
            filters.append(f"status:{fields[name]}")
        elif name == "target":
            fields[name] = chosen.choice(("17", "18", "watched"))
            filters.append("target_id:*" if fields[name] == "watched" else f"target_id:{fields[name]}")
        elif name == "type":
            fields[name] = chosen.choice(("pdf", "epub", "text", "sheet", "slides", "other"))
            filters.append(f"family:{fields[name]}")
        elif name == "prefix":
            fields[name], surt = chosen.choice((
                ("example,one)/news", "example,one)/news"), ("http://two.example/reports", "example,two)/reports"),
                ("http://two.example/a%20b/n1", "example,two)/a%20b/n1"), ("example,three", "example,three"),
            ))  # fmt: skip
            filters.append(f"{{!prefix f=surt}}{surt}")
        else:
            words = chosen.choice((*WORDS, "annual decision", "ministry of", "cafe", "n12", "pdf two"))
            fields[name] = f'"{words}"'
            filters.append(f"{{!field f={name}}}{words}")
    return DeskQuery(**fields), filters  # type: ignore[arg-type]


def test_solr_and_sqlite_answer_200_questions_alike(place: DeskPlace, core: SolrServer) -> None:
    assert bring_to(place, core) == []
    chosen, sizes = random.Random(200), list[int]()
    with place.opened() as desk:
        for _ in range(200):
            query, filters = question(chosen)
            ours = {one.entry.id for one in each(desk, query)}
            assert asked(core, *filters) == ours, (query, filters)
            sizes.append(len(ours))
    assert len(set(sizes)) > 30
    assert asked(core, "family:pdf", "status:NEW", "{!prefix f=surt}example,one)/news") != set()


def test_a_decision_reaches_it_and_what_leaves_is_withdrawn(place: DeskPlace, core: SolrServer) -> None:
    bring_to(place, core)
    before = asked(core, "status:IGNORED")
    place.decide("n1", "IGNORED", title="Quokkas of Rottnest")
    assert bring_to(place, core) == []
    assert asked(core, "status:IGNORED") == before | {id_of("n1")}
    assert asked(core, "{!field f=title}quokkas") == {id_of("n1")}
    place.publish(gone=["n1", "n2"])
    assert bring_to(place, core) == []
    assert len(asked(core)) == 298
    assert asked(core, "{!field f=title}quokkas") == set()


def test_what_solr_has_lost_is_sent_again(place: DeskPlace, core: SolrServer) -> None:
    bring_to(place, core)
    core.remove(CORE)
    assert "there is no such collection (404)" in bring_to(place, core)[0]
    core.add(CORE, DOCUMENTS)
    assert bring_to(place, core) == []
    assert len(asked(core)) == 300


def test_solr_killed_gets_it_later(place: DeskPlace, core: SolrServer) -> None:
    core.kill()
    (trouble,) = bring_to(place, core)
    assert "Solr does not answer: ConnectionError; the next scan sends what is missing" in trouble
    core.start()
    core.wait_loaded(CORE)
    assert bring_to(place, core) == []
    assert len(asked(core)) == 300


def test_another_schema_is_named(place: DeskPlace, core: SolrServer) -> None:
    core.remove(CORE)
    core.add(CORE)  # that of the text
    (trouble,) = bring_to(place, core)
    assert "300 documents are refused" in trouble
    assert "unknown field" in trouble
