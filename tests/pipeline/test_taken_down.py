"""The drill of a takedown: no reader gets what was hidden, and it stays hidden when the state is lost."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path

import pytest
import sample
from line import DAY, Line
from operating.web_site import WebSite

from warcmill.stores.file import FileStore
from warcmill.versions import hidden_list
from warcmill.web.access import Role
from warcmill.web.routes import GET, ROUTES

HIDDEN, SHOWN = "http://assets.gov.example/uploads/10502/bzip2.pdf", "http://docs.example/"
DECISION = "decisions/access/000001.json"


LAUNCH = f"/launches/{sample.JOB}/{sample.LAUNCH_ID}"
NAMED = re.compile(r"assets\.gov\.example|gov,assets|bzip2\.pdf", re.IGNORECASE)
# The addresses below each route that a reader may ask, with their fields; of logs, those on the page of the launch.
ADDRESSES: Mapping[str, tuple[tuple[str, Mapping[str, str]], ...]] = {
    "/": (("/", {}),),
    "/search": (
        ("/search", {"q": "paper", "type": "pdf"}),
        ("/search", {"q": "zlib"}),
        ("/search", {"q": "http://docs.example/"}),
    ),
    "/capture": (),  # the way to a page that is shown: below
    "/captures": (("/captures", {"url": HIDDEN}), ("/captures", {"url": SHOWN})),
    "/record": (("/record", {"url": HIDDEN, "warc": "a.warc.gz", "offset": "0"}),),
    "/status": (("/status", {"from": DAY}), ("/status", {"from": DAY, "by": "day"})),
    "/launches/{job}/{launch_id}": ((LAUNCH, {}),),
    "/launches/{job}/{launch_id}/pages": (
        (f"{LAUNCH}/pages", {}),
        (f"{LAUNCH}/pages", {"view": "all", "words": "bzip2"}),
        (f"{LAUNCH}/pages", {"view": "not-got"}),
        (f"{LAUNCH}/pages", {"view": "changed"}),
        (f"{LAUNCH}/pages", {"view": "sites"}),
    ),
    "/launches/{job}/{launch_id}/compare": (
        (f"{LAUNCH}/compare", {"url": HIDDEN}),
        (f"{LAUNCH}/compare", {"url": SHOWN}),
    ),
    "/launches/{job}/{launch_id}/quality": ((f"{LAUNCH}/quality", {}),),  # with a check: tests/unit/web/test_quality.py
    "/launches/{job}/{launch_id}/quality/{name}": ((f"{LAUNCH}/quality/1-0.jpg", {}),),
    "/launches/{job}/{launch_id}/files": ((f"{LAUNCH}/files", {}),),
    "/launches/{job}/{launch_id}/reports/{stage}/{name:path}": (),
    "/jobs": (("/jobs", {}),),
    "/calendar": (("/calendar", {}),),
    "/jobs/{job}": ((f"/jobs/{sample.JOB}", {}),),
    "/jobs/{job}/watch": ((f"/jobs/{sample.JOB}/watch", {}),),  # of a crawl of ours: tests/unit/web/test_watch.py
    "/jobs/{job}/queue": ((f"/jobs/{sample.JOB}/queue", {}),),
    "/jobs/{job}/targets": ((f"/jobs/{sample.JOB}/targets", {}),),  # of a feed: tests/unit/web/test_targets.py
    # A job with scripts, tests/unit/web: test_script_pages.py and test_script_editor.py.
    **{
        f"/jobs/{{job}}/{part}": ((f"/jobs/{sample.JOB}/{part.format(name='shop', key='1')}", {}),)
        for part in (
            "tasks",
            "results",
            "scripts/{name}",
            "scripts/{name}/tasks",
            "scripts/{name}/tasks/{key}",
            "scripts/{name}/results",
        )
    },
    # The desk, tests/unit/web/test_documents.py.
    "/documents": (("/documents", {}),),
    "/documents/{id}": (("/documents/00000000", {}),),
    # A group, tests/services/test_clusters_pages.py.
    "/groups": (("/groups", {}),),
    "/groups/{group}": (("/groups/web", {}),),
    "/groups/{group}/clusters/{cluster}": (("/groups/web/clusters/east", {}),),
    "/groups/{group}/hosts/{host:path}": (("/groups/web/hosts/a.example", {}),),
    "/groups/{group}/uri": (("/groups/web/uri", {}),),
    "/groups/{group}/uri/history": (("/groups/web/uri/history", {}),),
    "/groups/{group}/uris": (("/groups/web/uris", {}),),
    "/groups/{group}/orders": (("/groups/web/orders", {}),),
    "/groups/{group}/orders/{number}": (("/groups/web/orders/1", {}),),
    "/as-of/{serial}/simple/": (("/as-of/1/simple/", {}),),
    "/as-of/{serial}/simple/{project}/": (("/as-of/1/simple/a/", {}),),
    "/as-of/{serial}/files/{project}/{filename}": (("/as-of/1/files/a/b", {}),),
    "/packages/provides/{module}": (("/packages/provides/a", {}),),
    "/packages/requires/{filename}": (("/packages/requires/a-1.zip", {}),),
    "/packages/required-by/{project}": (("/packages/required-by/a", {}),),
    "/sign-in": (("/sign-in", {}),),
    "/static/{name}": (("/static/warcmill.css", {}),),
    "/metrics": (("/metrics", {}),),
    "/healthz": (("/healthz", {}),),
}


@pytest.fixture
def published(done: Line) -> Line:
    """The sample in the store, and both indexes published."""
    index = done.config.parent / "index"
    assert done.warcmill("init", str(done.config.parent / "other")).returncode in (0, 1)
    shutil.copytree(done.config.parent / "other/index", index)
    text = done.config.read_text().replace("[warcmill]\n", f"[warcmill]\nindex={index}\n")
    done.config.write_text(f"{text}\n[index]\nsince=2026-11-01\n[text]\nsince=2026-11-01\n")
    assert fold(done)[0] == 0
    assert found(done) == [HIDDEN]
    assert "uploads/10502/bzip2.pdf" in cdx(done)
    return done


@pytest.fixture
def line(published: Line) -> Line:
    """The same, with assets.gov.example hidden."""
    told = published.warcmill("versions", "hide", "example,gov,assets", "--reason", "order of a court")
    assert told.returncode == 0, told.stderr
    assert (published.folders["store"] / "state/_archive" / DECISION).exists()
    assert fold(published)[0] == 0
    assert published.warcmill("pages", sample.JOB, sample.LAUNCH_ID).returncode == 0
    return published


def fold(line: Line) -> tuple[int, str]:
    told = line.luigi("--module", "tasks.index", "index.ScanForIndexing", "--date-interval", DAY)
    return told.returncode, told.stderr


def found(line: Line) -> list[str]:
    """What a search for a word of the hidden paper finds."""
    told = line.warcmill("search", "zlib", "--json")
    return [one["url"] for one in json.loads(told.stdout)["found"]] if told.stdout else [told.stderr]


def cdx(line: Line) -> str:
    """The lines of the current version, as pywb reads them."""
    current = line.config.parent / "index/versions/cdx/current"
    return "".join(gzip.decompress(path.read_bytes()).decode() for path in current.glob("*.cdx.gz"))


def site_of(line: Line) -> WebSite:
    return WebSite(line, line.audited, index=FileStore("index", line.config.parent / "index"))


def asked_as(site: WebSite, role: str) -> Iterator[tuple[str, str]]:
    """All that someone with a role gets by GET, each answer in both forms, with its address."""
    launch = site.get(LAUNCH, role=role).text
    logs = [(unescape(path), {"begin": begin}) for path in re.findall(rf'href="({LAUNCH}/reports/[^"]+)"', launch)
            for begin in ("0", "40", "2000", "9001")]  # fmt: skip
    routes = [one for one in ROUTES if set(GET) <= set(one.methods) and one.role <= Role.READER]
    assert logs
    for route in routes:
        for path, fields in ADDRESSES[route.path] or logs:
            for form in ({}, {"format": "json"}):
                answer = site.get(path, {**fields, **form}, role=role)
                assert answer.status < 500 or path.startswith(("/as-of/", "/packages/", "/documents", "/healthz")), path
                yield f"{path} {fields} {form}", unescape(answer.text) + str(answer.headers)


def test_no_route_gives_a_reader_a_name_or_a_word_of_what_is_hidden(published: Line) -> None:
    site = site_of(published)
    before = {address for address, text in asked_as(site, "reader") if NAMED.search(text)}
    assert {address.partition(" ")[0].removeprefix(LAUNCH).split("/")[-1] for address in before} >= {
        "search", "", "crawl.log", "hosts-report.txt",
    }  # fmt: skip
    told = published.warcmill("versions", "hide", "example,gov,assets", "--reason", "order of a court")
    assert told.returncode == 0, told.stderr
    assert [(address, NAMED.findall(text)) for address, text in asked_as(site, "reader") if NAMED.search(text)] == []
    assert site.get("/search", {"q": HIDDEN, "format": "json"}, role="reader").document["captures"] == 0
    assert site.get("/capture", {"time": "20261121000000", "url": HIDDEN}, role="reader").status == 404
    marked = {address for address, text in asked_as(site, "operator") if re.search(r"\[hidden\].*gov", text)}
    assert {address.partition(" ")[0].split("/")[-1] for address in marked} >= {"crawl.log", "hosts-report.txt"}


def test_with_the_state_lost_and_restored_nothing_that_was_hidden_is_found(line: Line) -> None:
    assert (found(line), HIDDEN in cdx(line), "docs.example" in cdx(line)) == ([], False, True)
    shutil.rmtree(line.folders["state"])
    told = line.warcmill("restore", "--new-state")
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[1] == "versions, decisions and editions: 1 file restored"
    assert line.scan(DAY) == [0, 0]
    code, log = fold(line)
    assert code == 0, log
    assert (found(line), HIDDEN in cdx(line), "docs.example" in cdx(line)) == ([], False, True)
    shutil.rmtree(line.config.parent / "index/versions")
    assert fold(line)[0] == 0
    assert (found(line), HIDDEN in cdx(line), "docs.example" in cdx(line)) == ([], False, True)


def test_with_the_state_lost_and_not_restored_no_version_is_published(line: Line) -> None:
    before = cdx(line)
    shutil.rmtree(line.folders["state"])
    (line.folders["state"]).mkdir()
    (line.folders["state"] / ".warcmill.json").write_text('{"roots": ["state"], "schema": 1}\n')
    assert line.scan(DAY) == [0, 0]
    code, log = fold(line)
    assert code == 30
    assert f"store:state/_archive/{DECISION}: the state lacks this decision: run 'warcmill restore'" in log
    assert cdx(line) == before
    assert "run 'warcmill restore'" in found(line)[0]
    told = line.warcmill("versions", "hide", "example,docs", "--reason", "another")
    assert (told.returncode, "run 'warcmill restore'" in told.stderr) == (1, True)
    assert line.warcmill("restore").returncode == 0
    assert fold(line)[0] == 0
    assert (found(line), HIDDEN in cdx(line)) == ([], False)


NONE_SHOWN = "  version 3, the current one, shows 0 captures of it"


def test_with_the_store_away_hide_says_so_and_the_same_again_copies_it(line: Line) -> None:
    store, away = line.folders["store"], line.config.parent / "away"
    store.rename(away)
    for _ in range(2):
        told = line.warcmill("versions", "hide", "example,docs", "--reason", "another")
        assert (told.returncode, "Decision 2 stands in the state" in told.stderr) == (4, True), told.stderr
    away.rename(store)
    told = line.warcmill("versions", "hide", "example,docs", "--reason", "another")
    assert (told.returncode, told.stdout.splitlines()[1:]) == (
        0, ["decision 2 was in the state alone: it is in the store now", "published:", NONE_SHOWN],
    )  # fmt: skip


def test_two_decisions_of_one_number_are_named_by_restore_and_by_the_fold(line: Line, tmp_path: Path) -> None:
    path = line.folders["state"] / DECISION
    ours = tmp_path / "000001.json"
    state, store = line.state.store, line.store  # so they are decided, and not published yet
    hidden_list.decide(state, lambda: store, "example,docs", "another", hides=True)
    second = path.with_name("000002.json")
    theirs = second.read_bytes()
    second.rename(ours)
    kept = line.folders["store"] / "state/_archive/decisions/access/000002.json"
    kept.rename(tmp_path / "kept.json")
    hidden_list.decide(state, lambda: store, "example,weekly", "one more", hides=True)
    kept.unlink()
    kept.write_bytes(theirs)
    told = line.warcmill("restore")
    assert told.returncode == 1
    assert "000002.json differs from the backup; left as it is: two decisions have one number" in told.stdout
    code, log = fold(line)
    assert (code, "000002.json: the store has another decision of this number" in log) == (30, True)
    second.unlink()
    assert line.warcmill("restore").returncode == 0
    assert fold(line)[0] == 0
    assert "docs.example" not in cdx(line)
