"""The feed of an index without a changelog: what a list and its pages ask for, and what no sick index takes away."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from warcmill import layout
from warcmill.clients.package_index import IndexClient
from warcmill.errors import BadInput, NotReady, Unavailable
from warcmill.formats.pypi import simple_page
from warcmill.formats.pypi.dump import ListedFile
from warcmill.formats.pypi.lives import DistributionLife, StatusInterval
from warcmill.formats.pypi.projects import ProjectRecord
from warcmill.markers.claim import Claim
from warcmill.markers.facts.pulse import Fed
from warcmill.markers.state import MarkerStore
from warcmill.pypi import feed
from warcmill.pypi.feed import EarlierDump, IndexSource, LackedProject
from warcmill.pypi.survey import listing
from warcmill.stores.file import FileStore
from warcmill.stores.sentinel import adopt

FIRST, SECOND, THIRD = (layout.feed_key("pypi", f"202611{day}160000") for day in (26, 27, 28))
JSON = "application/vnd.pypi.simple.v1+json"


class Site:
    """An index in memory: documents by path, and the requests that it got."""

    def __init__(self) -> None:
        self.pages: dict[str, Any] = {}
        self.asked: list[tuple[str, int]] = []
        self.url = ""

    def list(self, serial: Any, **projects: Any) -> None:
        rows = [{"name": name, **({"_last-serial": at} if at else {})} for name, at in projects.items()]
        meta = {"api-version": "1.1", **({"_last-serial": serial} if serial else {})}
        self.pages["/simple/"] = {"meta": meta, "projects": rows}

    def page(self, name: str, *files: str, serial: int | None = None, **more: Any) -> None:
        rows = [{"filename": one, "url": f"/f/{one}", "hashes": {"sha256": "0" * 64}} for one in files]
        meta = {"api-version": "1.4", "_last-serial": serial}
        self.pages[f"/simple/{name}/"] = {"meta": meta, "name": name, "files": rows, **more}

    def paths(self) -> list[str]:
        found, self.asked = self.asked, []
        return [path.removeprefix("/simple/").strip("/") for path, _ in found if path != "/simple/"]


@contextmanager
def serving(site: Site) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = site.pages.get(self.path, 404)
            body = found if isinstance(found, bytes) else json.dumps(found).encode()
            etag = f'"{hash(body)}"'
            status = found if isinstance(found, int) else 304 if self.headers["If-None-Match"] == etag else 200
            site.asked.append((self.path, status))
            self.send_response(status)
            self.send_header("Content-Type", JSON)
            self.send_header("ETag", etag)
            self.end_headers()
            if status == 200:
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


class Known:
    """What is published of an index: its records, and the files that its projects have."""

    def __init__(self, newest: int) -> None:
        self.newest, self.kept = newest, dict[str, tuple[ProjectRecord, list[DistributionLife]]]()

    def add(self, name: str, *files: str, serial: int | None = None, url: str = "", **more: Any) -> None:
        lives = [
            DistributionLife(ListedFile(one, f"{url}/f/{one}", "0" * 64, None, None, None, None), 1, None, None)
            for one in files
        ]
        self.kept[name] = ProjectRecord((StatusInterval(1, "active"),), serial, **more), lives

    def records(self, after: str = "") -> Iterator[tuple[str, ProjectRecord]]:
        return ((name, record) for name, (record, _) in sorted(self.kept.items()) if name > after)

    def lives(self, project: str) -> Iterator[DistributionLife]:
        return iter(self.kept[project][1] if project in self.kept else [])


@pytest.fixture
def site() -> Iterator[Site]:
    found = Site()
    with serving(found):
        yield found


@pytest.fixture
def state(tmp_path: Path) -> MarkerStore:
    adopt({"state": tmp_path / "state"})
    return MarkerStore(FileStore("state", tmp_path / "state"))


def source(site: Site, *projects: str) -> IndexSource:
    client = IndexClient(site.url, "http://archive.example/", lambda _seconds: None, html=True)
    return IndexSource(client, frozenset(projects) or None, has_changelog=False)


def targets(state: MarkerStore, claim: Claim) -> dict[str, tuple[str, ...] | None]:
    if not state.holds(claim.key):
        state.publish(claim.key, claim)
    return {one.project: one.files for one in feed.targets(state, claim.key)}


def faulty(claim: Claim) -> str:
    return "\n".join(Fed.from_claim(claim).faulty)


def test_of_a_list_with_serials_the_changed_pages_are_asked_for(state: MarkerStore, site: Site) -> None:
    site.list(30, alpha=10, beta=30, gamma=12, role=29, slow=28)
    for name, serial in (("role", 29), ("slow", 11)):  # of one no file has changed, of the other the page lags
        site.page(name, f"{name}-1.zip", serial=serial)
    site.page("beta", "beta-1.zip", "beta-2.zip", serial=30)
    site.page("gamma", "gamma-1.zip", serial=12)
    known = Known(20)
    known.add("alpha", "alpha-1.zip", serial=10, url=site.url)
    known.add("beta", "beta-1.zip", serial=15, url=site.url)
    for name in ("role", "slow"):
        known.add(name, f"{name}-1.zip", serial=11, url=site.url)
    claim = listing.increment(state, SECOND, source(site), EarlierDump(20), known)
    assert (claim.facts["serial_from"], claim.facts["serial_to"], claim.facts["changes"]) == (20, 30, "simple")
    assert site.paths() == ["beta", "gamma", "role", "slow"]
    assert targets(state, claim) == {"beta": ("beta-2.zip",), "gamma": None, "role": ()}
    assert faulty(claim) == ""


@pytest.mark.parametrize(("serial", "fault"), [
    (5, "alpha: its serial is 5, and its page was of 10"), (float("nan"), "alpha'.*not a whole number: 'nan'"),
    (-3, "alpha'.*not a whole number: '-3'"), ("7", "alpha'.*not a whole number: '7'"),
    (31, "alpha: its serial is 31, beyond the last one, 30"),
])  # fmt: skip
def test_of_a_serial_that_cannot_be_its_row_alone_is_named(
    state: MarkerStore, site: Site, serial: Any, fault: str
) -> None:
    site.list(30, alpha=serial, beta=30)
    site.page("alpha", "alpha-1.zip", serial=10)
    site.page("beta", "beta-1.zip", serial=30)
    known = Known(20)
    known.add("alpha", "alpha-1.zip", serial=10, url=site.url)
    claim = listing.increment(state, SECOND, source(site), EarlierDump(20), known)
    assert targets(state, claim) == {"beta": None}
    with pytest.raises(AssertionError, match=fault):
        raise AssertionError(faulty(claim))


def test_serials_of_the_list_that_jump_back_ask_for_nothing(state: MarkerStore, site: Site) -> None:
    for serial in (19, None, -1):
        site.list(serial, alpha=5)
        with pytest.raises(BadInput, match="nothing is asked for"):
            listing.increment(state, SECOND, source(site), EarlierDump(20), Known(20))


def test_without_serials_each_page_is_asked_for_by_its_etag(state: MarkerStore, site: Site) -> None:
    newest = EarlierDump(20261126160000)
    site.list(None, alpha=None, beta=None)
    site.page("alpha", "alpha-1.zip")
    site.page("beta", "beta-1.zip")
    known = Known(newest.up_to)
    known.add("alpha", "alpha-1.zip", url=site.url, etag=f'"{hash(json.dumps(site.pages["/simple/alpha/"]).encode())}"')
    known.add("beta", "beta-1.zip", url=site.url)
    claim = listing.increment(state, SECOND, source(site), newest, known)
    assert (claim.facts["serial_to"], targets(state, claim)) == (20261127160000, {})
    assert site.asked[1:] == [("/simple/alpha/", 304), ("/simple/beta/", 200)]
    site.page("beta", "beta-1.zip", **{"project-status": {"status": "archived"}})
    known.kept["alpha"] = (ProjectRecord((), etag=known.kept["alpha"][0].etag, missed=True), known.kept["alpha"][1])
    claim = listing.increment(state, THIRD, source(site), newest, known)
    assert targets(state, claim) == {"alpha": (), "beta": ()}  # a page is read whole once more after one that lacked


def test_a_list_that_lost_most_projects_is_believed_the_second_time(state: MarkerStore, site: Site) -> None:
    newest = EarlierDump(20261126160000)
    names = [f"p{number:02d}" for number in range(30)]
    known = Known(newest.up_to)
    for name in names:
        known.add(name, f"{name}-1.zip", url=site.url)
    site.list(None, p00=None)
    site.page("p00", "p00-1.zip")
    claim = listing.increment(state, SECOND, source(site), newest, known)
    assert "its list has lost 29 of 30 projects" in faulty(claim)
    assert (targets(state, claim), site.paths()) == ({}, ["p00"])
    claim = listing.increment(state, THIRD, source(site), newest, known)
    assert "so had the one before" in faulty(claim)
    assert targets(state, claim) == dict.fromkeys(names[1:], ())
    assert site.paths() == names


def test_a_list_that_has_not_changed_names_nothing_new(state: MarkerStore, site: Site) -> None:
    site.list(30, alpha=10)
    site.page("alpha", "alpha-1.zip", serial=10)
    first = listing.full(state, FIRST, source(site))
    assert (first.facts["serial_to"], targets(state, first)) == (30, {"alpha": None})
    known = Known(30)
    known.add("alpha", "alpha-1.zip", serial=10, url=site.url)
    claim = listing.increment(state, SECOND, source(site), EarlierDump(30, feed=FIRST), known)
    assert (targets(state, claim), site.asked[1:]) == ({}, [("/simple/", 304)])
    assert claim.facts["listed"] == first.facts["listed"]


@pytest.mark.parametrize("page", ["away", "lags", "is not there yet", "left the list"])
def test_a_list_is_read_anew_while_a_page_that_it_names_waits(state: MarkerStore, site: Site, page: str) -> None:
    site.list(40, **({} if page == "left the list" else {"alpha": 35}), beta=10)
    site.page("alpha", "alpha-1.zip", serial=10)
    known = Known(30)
    known.add("beta", "beta-1.zip", serial=10, url=site.url)
    if page != "is not there yet":
        known.add("alpha", "alpha-1.zip", serial=10, url=site.url)
    if page != "lags":
        site.pages["/simple/alpha/"] = 404 if page == "is not there yet" else 500
    claim = listing.increment(state, FIRST, source(site), EarlierDump(30), known)
    assert (targets(state, claim), "listed" in claim.facts, site.paths()) == ({}, False, ["alpha"])
    known.newest = 40
    site.page("alpha", "alpha-1.zip", "alpha-2.zip", serial=35)
    claim = listing.increment(state, SECOND, source(site), EarlierDump(40, feed=FIRST), known)
    assert list(targets(state, claim)) == ["alpha"]
    listed = claim.facts["listed"]
    claim = listing.increment(state, THIRD, source(site), EarlierDump(40, feed=SECOND), known)
    assert (claim.facts["listed"], site.asked[-1]) == (listed, ("/simple/", 304))


def test_nothing_is_asked_of_what_a_list_has_lost_the_first_time(state: MarkerStore, site: Site) -> None:
    names = [f"p{number:02d}" for number in range(30)]
    known = Known(20)
    for name in names:
        known.add(name, f"{name}-1.zip", serial=10, url=site.url, missed=name == "p29")
    site.list(20, p00=10)
    site.page("p00", "p00-1.zip", serial=10)
    for projects in ((), names):
        claim = listing.increment(state, SECOND, source(site, *projects), EarlierDump(20), known, sweep=2)
        assert "its list has lost 29 of 30 projects" in faulty(claim)
        assert (targets(state, claim), site.paths(), claim.facts["swept"]) == ({}, ["p00"], "p01")
    claim = listing.increment(state, THIRD, source(site), EarlierDump(20), known)
    assert (list(targets(state, claim)), site.paths()) == (names[1:], names[1:])


def test_a_page_that_has_not_changed_is_not_compared(
    state: MarkerStore, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.list(None, alpha=None)
    site.page("alpha", "alpha-1.zip")
    known = Known(20261126160000)
    known.add("alpha", "alpha-1.zip", etag=f'"{hash(json.dumps(site.pages["/simple/alpha/"]).encode())}"')
    read = list[str]()
    monkeypatch.setattr(known, "lives", lambda name: iter(read.append(name) or []))
    claim = listing.increment(state, SECOND, source(site), EarlierDump(known.newest), known)
    assert (targets(state, claim), site.asked[1:], read) == ({}, [("/simple/alpha/", 304)], [])


def test_a_sweep_asks_for_the_pages_that_were_not_the_longest(state: MarkerStore, site: Site) -> None:
    site.list(30, **dict.fromkeys("abcde", 10))
    known = Known(30)
    for name in "abcde":
        site.page(name, f"{name}-1.zip", serial=10)
        known.add(name, f"{name}-1.zip", serial=10, url=site.url)
    site.page("d", "d-1.zip", serial=10, **{"project-status": {"status": "archived", "reason": "done"}})
    asked = []
    for key in (FIRST, SECOND, THIRD):
        claim = listing.increment(state, key, source(site), EarlierDump(30), known, sweep=2)
        assert targets(state, claim) == ({"d": ()} if key == SECOND else {})
        asked.append(site.paths())
    assert asked == [["a", "b"], ["c", "d"], ["a", "e"]]
    found, facts = listing.swept(state, layout.feed_key("pypi", "20261201000000"), source(site), known, 3)
    assert (list(found), facts, site.paths()) == (["d"], {"swept": "d"}, ["b", "c", "d"])


def test_a_page_that_fails_takes_nothing_else_with_it(
    state: MarkerStore, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simple_page, "LARGEST", 10_000)
    site.list(30, new=30, bad=30, old=30, away=30, other=30, huge=30)
    site.page("huge", *(f"huge-{number}.zip" for number in range(1_000)), serial=30)
    site.page("new", "new-1.zip", serial=30)
    site.pages["/simple/bad/"] = b'{"meta": {"api-version": "2.0"}, "name": "bad", "files": []}'
    site.pages["/simple/old/"] = 404
    site.pages["/simple/away/"] = 500
    site.pages["/simple/other/"] = {"meta": {"api-version": "1.0"}, "name": "name-of-another", "files": []}
    known = Known(20)
    for name in ("bad", "old", "away"):
        known.add(name, f"{name}-1.zip", serial=7, url=site.url)
    newest = EarlierDump(20, {"away": LackedProject(7, ("away-1.zip",))})
    claim = listing.increment(state, SECOND, source(site), newest, known)
    assert targets(state, claim) == {"away": ("away-1.zip",), "new": None, "old": ()}
    for fault in (
        "huge/: it has more than 10,000 bytes",
        "of version '2.0'",
        "answered 500",
        "the page of name-of-another",
    ):
        assert fault in faulty(claim)


def test_an_index_that_is_away_asks_for_nothing(state: MarkerStore, site: Site) -> None:
    names = {f"p{number}": 30 for number in range(20)}
    site.list(30, **names)
    site.pages |= {f"/simple/{name}/": 500 for name in names}
    with pytest.raises(Unavailable, match="answered 500"):
        listing.increment(state, SECOND, source(site), EarlierDump(20), Known(20))
    with pytest.raises(NotReady, match="up to 10 are published, and up to 20 dumped"):
        listing.increment(state, SECOND, source(site), EarlierDump(20), Known(10))
    site.pages["/simple/"] = {"meta": {"api-version": "1.0"}, "projects": []}
    with pytest.raises(BadInput, match="lists no project"):
        listing.full(state, FIRST, source(site))
