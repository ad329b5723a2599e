"""A real engine that is reached by REST and SFTP alone, a renderer's WARCs on yet another root, an archive over SSH."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sample
from line import DAY, without_dead_seed, without_index
from records.warcs import http, record, warc_gz, warcinfo
from sites.several_hosts import page, serve, swift_profile

from servers.heritrix import HeritrixServer as Server
from servers.sshd import Sshd
from warcmill import layout
from warcmill.clients.heritrix.http import EngineHttp
from warcmill.clients.heritrix.rest import Heritrix
from warcmill.clients.heritrix.xml import ACTIVE
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, FileRef, Launch, Stage
from warcmill.stores.file import FileStore

JOB, HOST = "elsewhere", "render.example"
PAGES = 200
NAMES_PREFIX = f'curi.addExtraInfo("warcPrefix", "{JOB}-web");'


@dataclass
class Everywhere:
    """A line whose engine, renderer and archive are on another host, as far as it knows."""

    base: Path
    there: Path
    client: Heritrix
    due: str

    def warcmill(self, *words: str) -> str:
        return self._run((0,), "commands.main", *words)

    def scan(self, interval: str, *codes: int) -> str:
        """The scans; the first may end with other codes than 0. What it said then."""
        words = ("--date-interval", interval)
        said = self._run(codes or (0,), "luigi", "--module", "tasks.output", "output.ScanForOutputs", *words)
        self._run((0,), "luigi", "--module", "tasks.files", "files.ScanForOutputFiles", *words)
        self._run((0,), "luigi", "--module", "tasks.reports", "reports.ScanForReports", *words)
        return said

    def _run(self, codes: tuple[int, ...], module: str, *words: str) -> str:
        environment = {**os.environ, "LUIGI_CONFIG_PATH": str(self.base / "luigi.cfg")}
        command = [sys.executable, "-m", module, *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode in codes, done.stdout + done.stderr
        return done.stdout + (done.stderr if done.returncode else "")

    @property
    def state(self) -> MarkerStore:
        return MarkerStore(FileStore("state", self.base / "state"))

    def renders(self, name: str) -> Path:
        """What a renderer would write now for the prefix that the engine's crawl log names."""
        folder = self.there / "render" / f"{datetime.now(UTC):%Y%m%d}"
        folder.mkdir(exist_ok=True)
        path = folder / f"{JOB}-web-{datetime.now(UTC):%Y%m%d%H%M%S}000-{name}"
        path.write_bytes(warc_gz(warcinfo(), record(block=http(b"rendered", b"Content-Length: 8"))))
        return path

    def crawls(self, pages: int) -> None:
        deadline = time.monotonic() + 300
        while self.client.job(JOB).downloaded < pages:  # type: ignore[union-attr]
            assert time.monotonic() < deadline
            time.sleep(0.2)

    def launch(self) -> Launch:
        return Launch(JOB, str(self.state.require(layout.due_key(JOB, self.due)).claim.facts["launch_id"]))

    def stored(self, stage: Stage) -> set[FileRef]:
        """The sources of a stage's verified files."""
        claim = self.state.require(layout.key("files.Verify", self.launch(), stage=stage)).claim
        return {item.file for item in claim.items}


@pytest.fixture
def everywhere(heritrix: Server, sshd: Sshd, tmp_path: Path) -> Iterator[Everywhere]:
    there = sshd.root / f"{tmp_path.parent.name}-{tmp_path.name}"
    for name in ("render", "store"):
        (there / name).mkdir(parents=True)
    without_dead_seed(sample.lay_out(tmp_path / "output"))
    (tmp_path / "profile.cxml").write_text(_naming_a_prefix(swift_profile()))
    url = f"sftp://{sshd.user}@127.0.0.1:{sshd.port}"
    line = Everywhere(
        tmp_path,
        there,
        Heritrix(EngineHttp(heritrix.url, heritrix.user, heritrix.password, heritrix.certificate), patience=60),
        f"{datetime.now(UTC) - timedelta(minutes=1):%Y%m%d%H%M%S}",
    )
    ssh = ("--known-hosts", str(sshd.known_hosts), "--key-file", str(sshd.key))
    line.warcmill(
        "init", str(tmp_path), "--jobs", str(tmp_path / "output/jobs"), "--store", f"{url}{there}/store", *ssh
    )
    without_index(tmp_path / "luigi.cfg")
    with (tmp_path / "luigi.cfg").open("a") as config:
        config.write(_sections(heritrix, url, there, tmp_path))
    line.warcmill("init", "--adopt", "engine.far", "--adopt", "writer.render")
    heritrix.resolve(HOST)
    yield line
    found = line.client.job(JOB)
    if found is not None and found.state in ACTIVE:
        line.client.terminate(JOB)
    if found is not None:
        line.client.teardown(JOB)
    line.client.close()


def _sections(heritrix: Server, url: str, there: Path, base: Path) -> str:
    return f"""
[engine.far]
kind=heritrix
url={heritrix.url}
user={heritrix.user}
password_file={heritrix.folder / "password"}
certificate={heritrix.certificate}
jobs={JOB}
output={url}{heritrix.jobs}
job_files={url}{heritrix.jobs}
output_layout=job-first
[writer.render]
root={url}{there}/render
jobs={JOB}
layout=prefix
[job.{JOB}]
frequency=daily
start=2099-01-01T00:00:00Z
[feed]
jobs={JOB}
source={base / "feed.jsonl"}
contact=http://archive.example/
profile={base / "profile.cxml"}
"""


def _naming_a_prefix(profile: str) -> str:
    """The engine itself writes the prefix into its crawl log, as a processor that has pages rendered does."""
    begin = profile.index('<bean id="annotateIp"')
    place = profile.index("address = ", begin)
    return f"{profile[:place]}{NAMES_PREFIX}{profile[place:]}"


def test_a_crawl_whose_engine_renderer_and_archive_are_behind_ssh_ends_verified(everywhere: Everywhere) -> None:
    line = everywhere
    web = {(HOST, "/"): page([f"/{number}" for number in range(PAGES)])}
    web |= {(HOST, f"/{number}"): page([], filler=number) for number in range(PAGES)}
    with serve(web) as port:
        target = {"id": 1, "seeds": [f"http://{HOST}:{port}/"]}
        schedules = [{"startDate": "2026-01-01", "frequency": "DAILY"}]
        (line.base / "feed.jsonl").write_text(json.dumps({**target, "schedules": schedules}))
        line.warcmill("pulse", "start", JOB, "--due", line.due)
        line.crawls(8)
        first = line.renders("00000-first.warc.gz")
        at_work = line.renders("00001-second.warc.gz.open")
        time.sleep(1)  # the checkpoint's stamp is in whole seconds
        line.warcmill("pulse", "checkpoint", JOB)
        launch = line.launch()
        interval = f"{DAY}-{launch.day + timedelta(days=1)}"
        line.scan(interval, 0, 30)  # the crawl may end by itself meanwhile
        line.warcmill("pulse", "stop", JOB)
    assert "has not closed it" in line.scan(interval, 30)
    at_work.rename(at_work.with_suffix(""))
    line.scan(interval)

    (checkpoint,) = line.state.stages(launch) - {FINAL}
    assert _rendered(line.stored(checkpoint)) == {first.name}
    assert _rendered(line.stored(FINAL)) == {at_work.stem}
    kept = line.there / "store" / "warcs" / JOB / launch.id
    assert (kept / first.name).read_bytes() == first.read_bytes()
    assert json.loads(line.warcmill("verify", interval, "--json"))["findings"] == []
    told = json.loads(line.warcmill("reconcile", interval, "--json"))
    assert {one["job"] for one in told["launches"]} == {JOB, sample.JOB}
    levels = {check["name"]: check["level"] for check in json.loads(line.warcmill("doctor", "--json"))["checks"]}
    assert levels["root writer.render [writer.render]"] == levels["root output [engine.far]"] == "ok"
    assert not (line.base / "output" / JOB).exists()


def _rendered(files: set[FileRef]) -> set[str]:
    return {file.name for file in files if file.root == "writer.render"}
