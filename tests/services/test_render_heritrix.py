"""Seeds of a real Heritrix that `warcmill render serve` opens in a real Chromium: no seed is fetched twice, and their
WARCs belong to the launch."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from crawls import render_service
from crawls.render_service import HOST, Site, responses, serving
from line import line_at
from sites.several_hosts import swift_profile

from servers.heritrix import HeritrixServer as Server
from warcmill import layout
from warcmill.clients.heritrix.http import EngineHttp
from warcmill.clients.heritrix.job import TARGETS_HERE
from warcmill.clients.heritrix.rest import CONFIGURATION, Heritrix
from warcmill.clients.heritrix.xml import JobState
from warcmill.formats.logs.crawllog import CrawlRecord, lines
from warcmill.formats.profile import faults
from warcmill.model import FINAL, Launch

JOB = "seeds"
STATUSES = {"/": 200, "/moved": 302, "/leads": 302, "/gone": 404}
PAGES = tuple(STATUSES)


@pytest.fixture
def site() -> Iterator[Site]:
    with render_service.site() as served:
        yield served


@dataclass
class Crawled:
    launch: str
    log: dict[str, CrawlRecord]


def profile(base: Path, address: Path, *, on: bool) -> bytes:
    made = swift_profile().replace("/srv/rendered/.render-address", str(address))
    if on:
        made = made.replace("renderSeeds.enabled=false", "renderSeeds.enabled=true")
    values = {kind: f"{base}/{kind}/{JOB}/${{launchId}}" for kind in ("warcs", "viral", "logs", "reports")}
    for name, value in {**values, "job": JOB, "contact": "http://archive.example/", "capped_kb": "-1"}.items():
        made = made.replace(f"@{name}@", value)
    return made.replace(TARGETS_HERE, "").encode()


def crawled(
    heritrix: Server, base: Path, address: Path, port: int, *, on: bool, paths: Sequence[str] = PAGES
) -> Crawled:
    heritrix.resolve(HOST)
    client = Heritrix(EngineHttp(heritrix.url, heritrix.user, heritrix.password, heritrix.certificate), patience=120)
    try:
        client.create(JOB)
        client.put(JOB, CONFIGURATION, profile(base, address, on=on))
        client.put(JOB, "seeds.txt", "".join(f"http://{HOST}:{port}{path}\n" for path in paths).encode())
        client.put(JOB, "surts.txt", f"+http://(example,site,:{port})/\n".encode())
        client.put(JOB, "exclude.txt", b"")
        launch = client.launch(JOB)
        client.wait(JOB, frozenset({JobState.PAUSED}))
        client.unpause(JOB)
        assert client.wait(JOB, frozenset({JobState.FINISHED})).exit_status == "FINISHED"
    finally:
        client.teardown(JOB)
        client.close()
    with (base / "logs" / JOB / launch / "crawl.log").open("rb") as file:
        read = [line for line in lines(file) if isinstance(line, CrawlRecord)]
    return Crawled(launch, {line.uri.removeprefix(f"http://{HOST}:{port}"): line for line in read})


def test_no_seed_is_fetched_twice_and_each_is_named_by_its_prefix(heritrix: Server, site: Site, tmp_path: Path) -> None:
    assert list(faults(profile(tmp_path, tmp_path, on=True), "profile")) == []
    with serving(tmp_path / "root") as service:
        found = crawled(heritrix, tmp_path, service.root / ".render-address", site.port, on=True)
        prefix = f"{JOB}-rendered-{found.launch}"
        assert {path: found.log[path].status for path in PAGES} == STATUSES
        for path in PAGES:
            assert found.log[path].warc_prefix == prefix
            assert "rendered" in found.log[path].annotations
        assert {path: site.asked[path] for path in PAGES} == dict.fromkeys(PAGES, 1)
        assert (found.log["/landing"].warc_prefix, site.asked["/landing"]) == (prefix, 1), "it is a seed as well"
        assert {"/one", "/two", "/from-landing"} <= set(found.log), "the links of the rendered pages are crawled"
        assert all(found.log[path].warc_prefix is None for path in ("/one", "/two", "/from-landing"))
        assert [path.name.startswith(f"{prefix}-") for path in service.warcs] == [True] * (len(PAGES) + 1)
        kept = Counter(uri for path in service.warcs for uri in responses(path) if not uri.startswith("urn:"))
        assert {kept[f"{site.url}{path}"] for path in PAGES} == {1}
        own = [uri for path in (tmp_path / "warcs" / JOB / found.launch).iterdir() for uri in responses(path)]
        assert {f"{site.url}{path}" for path in PAGES}.isdisjoint(own)


def test_a_scan_claims_the_rendered_warcs_of_the_launch_and_nothing_is_missing(
    heritrix: Server, site: Site, tmp_path: Path
) -> None:
    """By a line as docs/operate/rendering.md has it."""
    line, paths = line_at(tmp_path), PAGES[:-1]  # the last is a dead seed, which is a gap
    with serving(tmp_path / "root") as service:
        found = crawled(
            heritrix, line.folders["output"], service.root / ".render-address", site.port, on=True, paths=paths
        )
        rendered = {f"writer.rendered:{path.name}" for path in service.warcs}
    assert len(rendered) == len(paths) + 1
    jobs = line.folders["jobs"] / JOB
    shutil.copytree(heritrix.jobs / JOB / found.launch, jobs / found.launch, symlinks=True)
    log = (heritrix.jobs / JOB / "job.log").read_text().splitlines(keepends=True)  # of other tests' launches, too
    (jobs / "job.log").write_text("".join(row for row in log if found.launch in row))
    with line.config.open("a") as config:
        config.write(f"\n[writer.rendered]\nroot={service.root}\njobs={JOB}\nlayout=prefix\n")
    assert line.warcmill("init", "--adopt", "writer.rendered").returncode == 0
    day = str(Launch(JOB, found.launch).day)
    scanned = line.warcmill("scan", day)
    assert scanned.returncode == 0, scanned.stdout + scanned.stderr
    claim = line.state.require(layout.key("files.Verify", Launch(JOB, found.launch), stage=FINAL)).claim
    assert {item.file.label for item in claim.items if item.file.root == "writer.rendered"} == rendered
    assert line.warcmill("reconcile", day).returncode == 0
    kept = {path.name for path in (line.folders["store"] / "warcs" / JOB / found.launch).iterdir()}
    assert {label.partition(":")[2] for label in rendered} <= kept


def test_what_cannot_be_rendered_is_logged_and_fetched(heritrix: Server, site: Site, tmp_path: Path) -> None:
    found = crawled(heritrix, tmp_path, tmp_path / "nothing", site.port, on=True)
    assert {path: found.log[path].status for path in PAGES} == STATUSES
    assert all("render:failed" in found.log[path].annotations for path in PAGES[1:])
    assert all(found.log[path].warc_filename for path in PAGES)


def test_it_is_off_by_default(heritrix: Server, site: Site, tmp_path: Path) -> None:
    found = crawled(heritrix, tmp_path, tmp_path / "nothing", site.port, on=False)
    assert not any("render" in note for path in PAGES for note in found.log[path].annotations)
    assert not any("rendered" in note for path in PAGES for note in found.log[path].annotations)
