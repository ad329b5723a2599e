"""The text in a real Solr: posted, searched, hidden, withdrawn; Solr killed, wiped, loading, or of another schema."""

from __future__ import annotations

import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from indexing.text_archive import ONE, TWO, TextArchive, warc
from line import DAY, Line, line_at, without_dead_seed
from sample import JOB, LAUNCH_ID, lay_out

from servers import process
from servers import solr as solr_server
from servers.solr import CORE, SolrServer
from warcmill import layout
from warcmill.clients import solr as client
from warcmill.errors import NotReady, Unavailable, Unsettled
from warcmill.extracts.text_workers import TextWorkers
from warcmill.index import sink_solr, verify_text
from warcmill.index.sink_solr import Routing, SolrTarget, routing
from warcmill.markers.claim import Claim
from warcmill.model import FINAL, Launch
from warcmill.versions import hidden_list

DOCUMENT = sink_solr.document  # the real one
OTHER = "gov"
LAUNCH, NEXT = Launch("daily", ONE), Launch("daily", TWO)
PAGES = {f"e{number % 3}.example/{number:02}": f"word{number} and quokkas" for number in range(40)}


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[TextArchive]:
    made = TextArchive(tmp_path)
    with TextWorkers(1) as made.workers:
        made.add(ONE, {"a~1.warc.gz": warc(PAGES), "b.warc.gz": warc({})})
        made.fold()
        yield made


@pytest.fixture
def empty(solr: SolrServer) -> Iterator[SolrServer]:
    """Two collections without documents."""
    solr.add(OTHER)
    yield solr
    if process.running(solr.folder, solr_server.NAME) is None:  # a test that failed has left it so
        solr.start()
        solr.wait_loaded(CORE)
        solr.wait_loaded(OTHER)
    for collection in (CORE, OTHER):
        wiping = urllib.request.Request(
            f"{solr.url}/{collection}/update?commit=true",
            b'{"delete": {"query": "*:*"}}',
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(wiping).close()


def place(solr: SolrServer, routes: Routing | None = None) -> SolrTarget:
    return SolrTarget(solr.url, routes or routing(CORE, {}), "solr-here")


def post(archive: TextArchive, at: SolrTarget) -> tuple[str, ...]:
    return sink_solr.post(archive.state, archive.index, at)


def verify(archive: TextArchive, at: SolrTarget | None, launch: Launch = LAUNCH) -> Claim:
    return verify_text.verify(archive.state, archive.index, at, launch, FINAL)


def found(solr: SolrServer, words: str, collection: str = CORE) -> list[str]:
    """The URLs that a search finds, asked as any other program would."""
    query = urllib.parse.urlencode({"q": words, "fl": "url", "rows": 100, "sort": "url asc"})
    with urllib.request.urlopen(f"{solr.url}/{collection}/select?{query}") as answer:
        return [one["url"] for one in json.loads(answer.read())["response"]["docs"]]


@pytest.fixture
def line(tmp_path: Path) -> Line:
    """The bundled launch, verified in the store, on a line with an index root."""
    without_dead_seed(lay_out(tmp_path / "output"))
    made = line_at(tmp_path)
    assert made.warcmill("init", "--adopt", "index").returncode == 0
    with made.config.open("a") as file:
        file.write(f"index={tmp_path}/index\n")
    assert made.scan() == [0, 0]
    return made


SCAN = ("--module", "tasks.index", "index.ScanForIndexing", "--date-interval", DAY)


def test_on_a_line_a_solr_that_is_down_gets_the_sample_from_the_next_scan(line: Line, empty: SolrServer) -> None:
    empty.stop()
    with line.config.open("a") as file:
        file.write(f"\n[text]\nsince=2026-11-01\nsolr={empty.core}\n\n[collection.{OTHER}]\nhosts=assets.gov.example\n")
    scanned = line.luigi(*SCAN)
    assert (scanned.returncode, "Solr does not answer" in scanned.stderr) == (30, True)
    assert line.warcmill("search", "zlib").returncode == 0, "the version is published"
    assert _doctor(line, f"solr {CORE}") == ("fail", True)
    empty.start()
    for collection in (CORE, OTHER):
        empty.wait_loaded(collection)
    scanned = line.luigi(*SCAN)
    assert scanned.returncode == 0, scanned.stderr
    marker = line.state.require(layout.step("verify-text", Launch(JOB, LAUNCH_ID), FINAL))
    assert marker.claim.counts == {"warcs": 1, "documents": 206}
    assert "solr" in marker.run.tools
    assert found(empty, "zlib", OTHER) == ["http://assets.gov.example/uploads/10502/bzip2.pdf"]
    assert found(empty, "zlib") == []
    assert _doctor(line, f"solr {CORE}") == ("ok", False)
    again = line.luigi(*SCAN)
    assert (again.returncode, "VerifySolr" in again.stderr) == (0, False)
    _lose_a_document(line, empty)
    assert line.warcmill("versions", "hide", "example,gov,assets", "--reason", "an order").returncode == 0
    assert line.luigi(*SCAN).returncode == 0
    assert found(empty, "zlib", OTHER) == []


def _lose_a_document(line: Line, solr: SolrServer) -> None:
    """Somebody deletes a document: a look at the copies outside names its WARC, and what it prints brings it back."""

    def look() -> tuple[int, list[str]]:
        done = line.warcmill("verify", "--outside", DAY)
        return done.returncode, done.stdout.splitlines()

    whole = "1 launch: 206 documents looked at: all as they were handed over"
    assert (look()[0], look()[1][-1]) == (0, whole)
    with client.Solr(solr.url) as other:
        other.delete(OTHER, [_id(solr, "zlib", OTHER)])
        other.commit(OTHER)
    code, rows = look()
    assert (code, rows[-1]) == (1, "1 launch: 206 documents looked at: 1 missing or different")
    assert rows[0].startswith(f"{JOB}/{LAUNCH_ID}: {JOB}/{LAUNCH_ID}/")
    assert f"/{OTHER}: expected " in rows[1]
    remove, _, again = rows[2].removeprefix("    -> ").partition(" && ")
    assert again == f"warcmill scan {DAY}"
    subprocess.run(remove.split(), check=True)
    assert line.luigi(*SCAN).returncode == 0
    assert (look()[0], look()[1][-1]) == (0, whole)
    solr.stop()
    code, rows = look()
    assert (code, rows[-1]) == (4, "1 launch: nothing looked at: 1 place does not answer")
    solr.start()
    for collection in (CORE, OTHER):
        solr.wait_loaded(collection)


def test_what_is_posted_is_found_and_the_claim_follows_from_the_stage(archive: TextArchive, empty: SolrServer) -> None:
    at = place(empty)
    with pytest.raises(NotReady, match=r"not posted to by this routing; run 'warcmill scan'"):
        verify(archive, at)
    assert post(archive, at) == ()
    assert found(empty, "word7") == ["http://e1.example/07"]
    assert len(found(empty, "quokkas")) == 40
    claim = verify(archive, at)
    assert claim.counts == {"warcs": 2, "documents": 40}
    assert [one.marker for one in claim.inputs] == [layout.marker_path(layout.step("text", LAUNCH, FINAL))]
    assert verify(archive, None) == claim
    assert post(archive, at) == ()


def test_what_is_hidden_or_withdrawn_is_deleted_and_comes_back(archive: TextArchive, empty: SolrServer) -> None:
    at = place(empty)
    post(archive, at)
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,e1", "order of a court", hides=True)
    archive.fold()
    with pytest.raises(NotReady, match="run 'warcmill scan'"):
        verify(archive, at)
    assert post(archive, at) == ()
    assert len(found(empty, "quokkas")) == 27
    assert found(empty, "word7") == []
    claim = verify(archive, at)
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,e1", "lifted", hides=False)
    archive.fold()
    assert post(archive, at) == ()
    assert found(empty, "word7") == ["http://e1.example/07"]
    assert verify(archive, at) == claim
    archive.scan(LAUNCH, {"a~1.warc.gz": len(warc({}))})
    archive.fold()
    assert post(archive, at) == ()
    assert found(empty, "word0") == []
    assert verify(archive, at) == claim
    archive.state.store.real(layout.marker_path(layout.step("text", LAUNCH, FINAL))).unlink()
    archive.fold()
    assert post(archive, at) == ()
    assert found(empty, "quokkas") == []


def test_hosts_and_prefixes_go_to_their_collections_and_nowhere_else(archive: TextArchive, empty: SolrServer) -> None:
    at = place(empty, routing(CORE, {OTHER: (["e2.example"], ["example,e0)/0"]), CORE: ([], ["example,e2)/2"])}))
    post(archive, place(empty))
    assert post(archive, at) == ()
    routed = ("e2.example/0", "e2.example/1", "e2.example/3", "e0.example/0")
    assert found(empty, "quokkas", OTHER) == sorted(f"http://{url}" for url in PAGES if url.startswith(routed))
    assert len(found(empty, "quokkas")) + len(found(empty, "quokkas", OTHER)) == 40
    assert verify_text.is_ready(archive.state, archive.index, at, LAUNCH, FINAL)
    with client.Solr(empty.url) as other:
        (one,) = other.documents(CORE, [_id(empty, "word7")]).values()
        other.post(OTHER, [{name: value for name, value in one.items() if name != "_version_"}])
        other.commit(OTHER)
    with pytest.raises(Unsettled, match=r"documents of daily/.*/a~1.warc.gz in http://.*/gov"):
        verify(archive, at)


def test_a_solr_that_is_killed_in_the_middle_of_posting_gets_the_rest_from_the_next_scan(
    archive: TextArchive, empty: SolrServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, posted = place(empty), 0
    archive.add(TWO, {"a~1.warc.gz": warc({"new.example/": "new"})})
    archive.fold()
    batches = client._batches

    def dying(documents: object) -> Iterator[bytes]:
        nonlocal posted
        for batch in batches(documents):  # type: ignore[arg-type]
            posted += 1
            if posted == 2:
                empty.kill()
            yield batch

    with monkeypatch.context() as patched:
        patched.setattr(client, "_batches", dying)
        (why,) = post(archive, at)
    assert "Solr does not answer" in why
    assert "wait for the next scan" in why
    (why,) = post(archive, at)
    assert "Solr does not answer" in why
    assert verify_text.is_ready(archive.state, archive.index, at, LAUNCH, FINAL)
    assert not verify_text.is_ready(archive.state, archive.index, at, NEXT, FINAL)
    empty.start()
    while (told := post(archive, at)) and "(503)" in told[0]:
        pass  # its cores are loading
    assert told == ()
    verify(archive, at)
    verify(archive, at, NEXT)
    assert found(empty, "new") == ["http://new.example/"]


def test_a_wiped_solr_is_noticed_and_filled_again(archive: TextArchive, empty: SolrServer) -> None:
    at = place(empty)
    post(archive, at)
    empty.remove(CORE)
    (why,) = post(archive, at)
    assert "there is no such collection (404); make it with the configuration in config/solr" in why
    empty.add(CORE)
    with pytest.raises(Unsettled, match="expected 40, found 0"):
        verify(archive, at)
    assert post(archive, at) == ()
    assert len(found(empty, "quokkas")) == 40
    verify(archive, at)


def test_a_document_that_the_schema_refuses_is_named_until_it_is_taken(
    archive: TextArchive, empty: SolrServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = place(empty)
    with monkeypatch.context() as patched:
        patched.setattr("warcmill.index.sink_solr.document", _spoilt)
        (why,) = post(archive, at)
    assert "expected all taken, found 1 refused" in why
    assert "unknown field 'nobody_has_this'" in why
    assert "Correct its schema, then run the scan again" in why
    assert len(found(empty, "quokkas")) == 39, "the others are there"
    with pytest.raises(NotReady, match="not acknowledged"):
        verify(archive, at)
    assert post(archive, at) == ()
    verify(archive, at)


def test_a_document_that_is_not_as_it_was_posted_is_named(archive: TextArchive, empty: SolrServer) -> None:
    at = place(empty)
    post(archive, at)
    first = _id(empty, "word0")
    with client.Solr(empty.url) as other:
        (one,) = other.documents(CORE, [first]).values()
        same = {name: value for name, value in one.items() if name != "_version_"}
        other.post(CORE, [{**same, "content": "something else"}])
        other.commit(CORE)
        with pytest.raises(Unsettled, match="something else"):
            verify(archive, at)
        other.delete(CORE, [first])
        other.commit(CORE)
    with pytest.raises(Unsettled, match="expected 40, found 39"):
        verify(archive, at)


def test_solr_s_answers_as_the_client_reads_them(empty: SolrServer) -> None:
    good = {"id": "1+/=/x-1", "url": "http://e.x/", "source_file": "j/1/a~b.warc.gz"}
    bad = [
        {"id": "2", "crawl_date": "no"},
        {"url": "http://no.id/"},
        {"id": "3", "nosuch": 1},
        {"id": "4", "url": "x" * 40_000},
    ]
    with client.Solr(empty.url) as asked:
        refused = asked.post(CORE, [bad[0], good, *bad[1:], {"id": "5", "title": "\x00 \ud800"}])
        assert [one.id for one in refused] == ["2", "(unknown)", "3", "4"]
        assert asked.count(CORE) == 0, "nothing is committed"
        asked.commit(CORE)
        assert (asked.count(CORE), asked.count(CORE, source_file="j/1/a~b.warc.gz")) == (2, 1)
        assert asked.facet(CORE, "source_file") == {"j/1/a~b.warc.gz": 1}
        assert asked.documents(CORE, ["1+/=/x-1", "nobody"])["1+/=/x-1"]["url"] == "http://e.x/"
        asked.check_chain(CORE)
        with pytest.raises(Unavailable, match=r"no such collection \(404\)"):
            asked.count("nobody")


def _doctor(line: Line, name: str) -> tuple[str, bool]:
    """What doctor says of a collection, and whether it could not ask."""
    checks = json.loads(line.warcmill("doctor", "--json").stdout)["checks"]
    (one,) = [check for check in checks if check["name"] == name]
    return one["level"], "does not answer" in one["text"]


def _spoilt(line: dict[str, object], name: str) -> dict[str, object]:
    made = DOCUMENT(line, name)
    return {**made, "nobody_has_this": 1} if made["url"] == "http://e0.example/03" else made


def _id(solr: SolrServer, words: str, collection: str = CORE) -> str:
    query = urllib.parse.urlencode({"q": words, "fl": "id"})
    with urllib.request.urlopen(f"{solr.url}/{collection}/select?{query}") as answer:
        return str(json.loads(answer.read())["response"]["docs"][0]["id"])
