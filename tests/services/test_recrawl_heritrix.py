"""Pages that change, stay, come back or share one content, crawled again and again by a real engine: nothing is lost.

What the web gave out is compared with what is in the WARCs: each payload is in a response, and what a revisit
refers to is there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from records.warcs import sha1
from sites.several_hosts import Page, page, serve, swift_profile
from warcio.archiveiterator import ArchiveIterator

from servers.heritrix import HeritrixServer as Server
from warcmill.clients.heritrix.engine import HeritrixEngine
from warcmill.clients.heritrix.http import EngineHttp
from warcmill.clients.heritrix.job import TARGETS_HERE
from warcmill.clients.heritrix.rest import CONFIGURATION, Heritrix
from warcmill.clients.heritrix.xml import JobState
from warcmill.errors import BadConfig
from warcmill.formats.profile import faults

HOST = "again.example"
WEBS = 4
FORGET = '<ref bean="forgetOldDigest"/>'
URL_ALONE = {
    FORGET: "",
    '<ref bean="contentDigestHistoryLoader"/>': "",
    '<ref bean="contentDigestHistoryStorer"/>': "",
}
DIGEST_ALONE = {FORGET: "", '<ref bean="persistLoad"/>': "", '<ref bean="persistStore"/>': ""}
LOSING = {FORGET: "", "uri_history2": "uri_history", "contentDigestHistory2": "contentDigestHistory"}
FOLDERS = {kind: f"{kind}/${{launchId}}" for kind in ("warcs", "viral", "logs", "reports")}
ENGINE_S = {"robots.txt", "favicon.ico"}  # asked of the host by the engine itself
STAYS = {"same/0", "same/1", "same/2"}
NOT_SENT = {"tagged/same"}


def text(content: str) -> Page:
    return Page(f"<title>{content}</title>{content * 20}".encode())


def tagged(content: str) -> Page:
    """A page that its server knows by an ETag, and that is not sent twice."""
    return Page(text(content).body, etag=f'"{content}"')


def web_of(launch: int) -> dict[str, Page]:
    """What the host has at a launch: 0, 1, 2 or 3."""
    back, third = "ABAB"[launch], "AABA"[launch]
    pages = {f"/changes/{number}": text(f"content {number} of launch {launch}") for number in range(5)}
    pages |= {f"/same/{number}": text(f"content {number}") for number in range(3)}
    pages |= {f"/twin/{number}": text("one content of two URLs") for number in range(2)}
    pages |= {f"/twins-change/{number}": text(f"one content of launch {launch}") for number in range(2)}
    pages |= {f"/swap/{number}": text(f"swapped {(number + launch) % 2}") for number in range(2)}
    return pages | {
        "/back": text(f"back {back}"),
        "/became-another": text("content 0" if launch else "its own content"),
        "/emptied": text("not empty") if launch in (0, 3) else Page(b"", "text/plain"),
        "/error": Page(f"trouble {back}".encode(), "text/plain", 404),
        "/tagged/same": tagged("tagged"),
        "/tagged/changes": tagged(f"tagged of launch {launch}"),
        "/tagged/back": tagged(f"tagged {back}"),
        "/tagged/later": tagged(f"tagged later {third}"),
    }


@dataclass
class Stored:
    """Records of one launch's WARCs: payload digests of responses by URL, the revisits, and the ids of all."""

    responses: dict[str, str] = field(default_factory=dict)
    revisits: dict[str, dict[str, str]] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)


@dataclass
class Recrawled:
    """A job's launches: what the web had, and what was stored, each in order."""

    web: list[dict[str, Page]]
    stored: list[Stored]

    def lost(self) -> set[tuple[int, str]]:
        """Launch and path of each page whose content is in no response of that launch or an earlier one."""
        known: set[str] = set()
        found = set()
        for launch, (pages, stored) in enumerate(zip(self.web, self.stored, strict=True)):
            known |= set(stored.responses.values())
            found |= {(launch, path) for path, page in pages.items() if page.body and sha1(page.body) not in known}
        return found

    def orphans(self) -> list[str]:
        """Revisits of which the original is in no response of that launch or an earlier one, or is another's."""
        known: set[str] = set()
        ids: dict[str, str] = {}
        found = []
        for stored in self.stored:
            known |= set(stored.responses.values())
            ids |= stored.ids
            for path, headers in stored.revisits.items():
                digest, refers = headers.get("WARC-Payload-Digest", ""), headers.get("WARC-Refers-To", "")
                if digest not in known or (refers and ids.get(refers) != digest):
                    found.append(f"{path}: {headers}")
        return found

    def revisited(self, launch: int) -> set[str]:
        """Paths of pages that a launch stored as revisits, and not what the engine asks for itself."""
        return set(self.stored[launch].revisits) - ENGINE_S - {""}


def stored(folder: Path) -> Stored:
    found = Stored()
    for path in sorted(folder.glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                headers = dict(record.rec_headers.headers)
                url = headers.get("WARC-Target-URI", "")
                if record.rec_type == "response" and url.startswith("http:"):
                    payload = sha1(record.content_stream().read())
                    found.responses[url] = found.ids[headers["WARC-Record-ID"]] = payload
                elif record.rec_type == "revisit":
                    found.revisits[url.partition(HOST)[2].partition("/")[2]] = headers
    return found


def recrawled(heritrix: Server, base: Path, job: str, *launches: tuple[int, dict[str, str]]) -> Recrawled:
    """Launches of one job: of which web, and by the shipped profile with which of its text replaced."""
    heritrix.resolve(HOST)
    client = Heritrix(EngineHttp(heritrix.url, heritrix.user, heritrix.password, heritrix.certificate), patience=120)
    found = Recrawled([web_of(number) for number, _ in launches], [])
    web: dict[tuple[str, str], Page] = {}
    try:
        with serve(web) as port:
            client.create(job)
            for pages, (_, changes) in zip(found.web, launches, strict=True):
                web.clear()
                web[HOST, "/"] = page(list(pages))
                web |= {(HOST, path): one for path, one in pages.items()}
                configure(client, base, job, port, changes)
                found.stored.append(stored(base / "warcs" / launched(client, job)))
    finally:
        client.teardown(job)
        client.close()
    return found


def configure(client: Heritrix, base: Path, job: str, port: int, changes: dict[str, str]) -> None:
    folders = {kind: f"{base}/{folder}" for kind, folder in FOLDERS.items()}
    client.put(job, CONFIGURATION, profile(changes, {**folders, "job": job}).encode())
    client.put(job, "seeds.txt", f"http://{HOST}:{port}/\n".encode())
    client.put(job, "surts.txt", f"+http://(example,again,:{port})/\n".encode())
    client.put(job, "exclude.txt", b"")


def profile(changes: dict[str, str], values: dict[str, str]) -> str:
    made = swift_profile().replace("minDelayMs=40", "minDelayMs=0").replace("maxDelayMs=40", "maxDelayMs=0")
    for old, new in changes.items():
        assert old in made
        made = made.replace(old, new)
    for name, value in {**values, "contact": "http://archive.example/", "capped_kb": "-1"}.items():
        made = made.replace(f"@{name}@", value)
    return made.replace(TARGETS_HERE, "")


def launched(client: Heritrix, job: str, checkpoint: str | None = None) -> str:
    launch = client.launch(job, checkpoint)
    client.wait(job, frozenset({JobState.PAUSED}))
    client.unpause(job)
    assert client.wait(job, frozenset({JobState.FINISHED})).exit_status == "FINISHED"
    client.teardown(job)
    return launch


def each(changes: dict[str, str]) -> list[tuple[int, dict[str, str]]]:
    return [(number, changes) for number in range(WEBS)]


@pytest.fixture(scope="module")
def shipped(heritrix: Server, tmp_path_factory: pytest.TempPathFactory) -> Recrawled:
    return recrawled(heritrix, tmp_path_factory.mktemp("again"), "again", *each({}))


def test_by_the_shipped_profile_each_new_payload_is_stored_and_each_revisit_s_original(shipped: Recrawled) -> None:
    assert shipped.lost() == set()
    assert shipped.orphans() == []


def test_by_the_shipped_profile_what_is_known_is_stored_once(shipped: Recrawled) -> None:
    assert shipped.revisited(0) == {"twin/1", "twins-change/1"}
    known = STAYS | NOT_SENT | {"twin/0", "twin/1", "twins-change/1", "swap/0", "swap/1"}
    assert shipped.revisited(1) == known | {"became-another", "tagged/later"}
    came_back = {"back", "error", "tagged/back"}
    assert shipped.revisited(2) == known | {"became-another", "emptied"} | came_back
    assert shipped.revisited(3) == known | {"became-another", "emptied", "tagged/later"} | came_back


def test_what_the_server_calls_not_modified_is_known_by_its_digest(shipped: Recrawled) -> None:
    for stored_then in shipped.stored[1:]:
        headers = stored_then.revisits["tagged/same"]
        assert headers["WARC-Profile"].endswith("/server-not-modified")
        assert headers["WARC-Payload-Digest"] == sha1(tagged("tagged").body)


@pytest.mark.parametrize(("job", "changes"), [("again-urls", URL_ALONE), ("again-digests", DIGEST_ALONE)])
def test_one_history_alone_loses_nothing_and_is_accepted(
    heritrix: Server, tmp_path: Path, job: str, changes: dict[str, str]
) -> None:
    assert list(faults(profile(changes, FOLDERS).encode(), job)) == []
    found = recrawled(heritrix, tmp_path, job, *each(changes))
    assert found.lost() == set()
    assert found.orphans() == []
    assert found.revisited(1) >= STAYS | {"twin/0", "twin/1"}


def test_what_the_losing_profile_has_lost_is_stored_by_the_shipped_one(heritrix: Server, tmp_path: Path) -> None:
    """The first two launches show the fault, so that these pages are known to find it."""
    found = recrawled(heritrix, tmp_path, "again-mended", (0, LOSING), (1, LOSING), (1, {}), (1, {}))
    changed = {(1, path) for path in web_of(1) if "change" in path or path in ("/back", "/error", "/tagged/back")}
    assert found.lost() == changed
    assert {line.partition(":")[0] for line in found.orphans()} == {path.strip("/") for _, path in changed}
    assert found.revisited(3) >= {path.strip("/") for _, path in changed}


def test_an_engine_is_not_asked_to_launch_what_would_lose_pages(heritrix: Server, tmp_path: Path) -> None:
    client = Heritrix(EngineHttp(heritrix.url, heritrix.user, heritrix.password, heritrix.certificate))
    engine = HeritrixEngine(client)
    client.create("again-refused")
    configure(client, tmp_path, "again-refused", 80, LOSING)
    with pytest.raises(BadConfig, match="lose each page that has changed"):
        engine.start("again-refused")
    assert client.launch_id("again-refused") is None
    configure(client, tmp_path, "again-refused", 80, {})
    assert engine.start("again-refused")
    engine.stop("again-refused")
    engine.close()


def test_a_configuration_under_another_name_is_the_engine_s_alone_to_read(heritrix: Server) -> None:
    client = Heritrix(EngineHttp(heritrix.url, heritrix.user, heritrix.password, heritrix.certificate))
    engine = HeritrixEngine(client)
    folder = heritrix.jobs / "again-named"
    folder.mkdir()
    (folder / "mine.cxml").write_text(profile({}, {**FOLDERS, "job": "again-named"}))
    for name in ("seeds.txt", "surts.txt", "exclude.txt"):
        (folder / name).touch()
    assert not client.create("again-named"), "it is there, and is found"
    assert engine.start("again-named")
    engine.stop("again-named")
    engine.close()


def test_a_checkpoint_of_the_losing_profile_is_resumed_by_the_shipped_one(heritrix: Server, tmp_path: Path) -> None:
    """It has a bean more, and other histories, than the checkpoint knows."""
    heritrix.resolve(HOST)
    client = Heritrix(EngineHttp(heritrix.url, heritrix.user, heritrix.password, heritrix.certificate), patience=120)
    paths = [f"/{number}" for number in range(60)]
    web = {(HOST, "/"): page(paths), **{(HOST, path): text(f"content {path}") for path in paths}}
    slow = {"disposition.minDelayMs=0": "disposition.minDelayMs=200", "maxDelayMs=0": "maxDelayMs=200"}
    with serve(web) as port:
        client.create("again-resumed")
        configure(client, tmp_path, "again-resumed", port, {**LOSING, **slow})
        first = client.launch("again-resumed")
        client.unpause("again-resumed")
        client._until("again-resumed", "crawl", lambda seen: seen if seen.downloaded > 5 else None)
        checkpoint = client.checkpoint("again-resumed")
        client.terminate("again-resumed")
        client.teardown("again-resumed")
        configure(client, tmp_path, "again-resumed", port, {})
        second = launched(client, "again-resumed", checkpoint)
    both = [stored(tmp_path / "warcs" / launch) for launch in (first, second)]
    found = {url.partition(f":{port}")[2] for one in both for url in one.responses}
    assert set(paths) <= found
    client.close()
