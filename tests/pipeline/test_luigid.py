"""A real luigid on loopback: the line against it, with two workers, and two processes at once."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import preloaded
import pytest
import sample
from launches.bundled import enlarge
from line import DAY, REPORTS, SCANS, Line, new_line
from operating.documented import PAGES, PRINTED

from servers import pins
from warcmill import layout
from warcmill.model import FINAL, Launch

# As the operator's guide prints them.
(COMMAND,) = (one.command for one in PRINTED if one.bare.startswith("luigid "))
(SCHEDULER,) = re.findall(r"^```ini\n(\[scheduler\]\n.*?)^```$", PAGES["operate/growing.md"], re.DOTALL | re.MULTILINE)
LAUNCH = Launch(sample.JOB, sample.LAUNCH_ID)
STAGE_TASKS = (
    *("output.PackageLogs", "output.AssembleOutput", "files.Checksum", "files.Copy", "files.Verify"),
    "reports.GenerateCrawlLogReports",
)
LAUNCH_TASKS = ("output.CheckJobStopped", "output.ProcessOutputs", "reports.ListDeadSeeds")
MARKERS = {
    *(layout.marker_name(layout.key(task, LAUNCH)) for task in LAUNCH_TASKS),
    *(layout.marker_name(layout.key(task, LAUNCH, stage=FINAL)) for task in STAGE_TASKS),
}
PATIENCE = 300  # seconds for luigid to answer; it takes two, where nothing else runs


@dataclass(frozen=True)
class Server:
    """A luigid of our own."""

    process: subprocess.Popen[bytes]
    port: int
    base: Path

    def answers(self) -> bool:
        """Whether it is up: luigi waits over a minute for one that is not, so look first."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/graph?data=%7B%7D", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    base = tmp_path / "luigid"
    (base / "log").mkdir(parents=True)  # luigid does not make it
    (base / "luigi.cfg").write_text(SCHEDULER)
    port = pins.free({"luigid": 8082})["luigid"]
    command = COMMAND.replace("/srv/archive/luigid", str(base)).replace("8082", str(port))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    words = ["sh", "-c", re.sub(r" luigid ", " exec luigid ", command, count=1)]
    with (base / "out").open("wb") as out:
        process = subprocess.Popen(words, cwd=base, env=environment, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield wait_for(Server(process, port, base))
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)


def wait_for(server: Server) -> Server:
    until = time.monotonic() + PATIENCE
    while not server.answers():
        assert server.process.poll() is None, (server.base / "out").read_text()
        assert time.monotonic() < until, "luigid does not answer"
        time.sleep(0.1)
    return server


@pytest.fixture
def line(tmp_path: Path, server: Server) -> Line:
    """The bundled launch, and a luigi.cfg as an operator edits it for luigid."""
    made = new_line(tmp_path / "line")
    text = made.config.read_text()
    assert "local_scheduler=true" in text
    remote = f"scheduler_host=127.0.0.1\nscheduler_port={server.port}"
    made.config.write_text(text.replace("local_scheduler=true", remote))
    return made


def scan(line: Line, module: str, task: str, *more: str) -> subprocess.CompletedProcess[str]:
    return line.luigi("--module", module, task, "--date-interval", DAY, *more)


def markers(line: Line) -> dict[str, bytes]:
    folder = line.state.store.real(layout.state_folder(LAUNCH))
    return {path.name: path.read_bytes() for path in folder.iterdir() if layout.parse_marker_name(path.name)}


def test_the_line_runs_against_luigid_with_two_workers_and_then_has_nothing_to_do(line: Line, server: Server) -> None:
    for module, task in (*SCANS, REPORTS):
        done = scan(line, module, task, "--workers", "2")
        assert done.returncode == 0, done.stderr
        assert "This progress looks :)" in done.stderr
    left = markers(line)
    assert set(left) == MARKERS
    assert set(line.state.folder(LAUNCH)) == MARKERS  # each of them sound
    for module, task in (*SCANS, REPORTS):
        again = scan(line, module, task, "--workers", "2")
        assert again.returncode == 0, again.stderr
        assert "begins" not in again.stderr
    assert markers(line) == left
    assert line.warcmill("reconcile", DAY).returncode == 0
    assert str(LAUNCH.id) in graph(server)


def test_two_scans_at_once_share_the_work_and_leave_the_same_markers(line: Line) -> None:
    assert scan(line, *SCANS[0]).returncode == 0
    together = [("tasks.files", f"files.{name}") for name in ("CalculateLocalChecksum", "ScanForOutputFiles")]
    with ThreadPoolExecutor(len(together)) as threads:
        done = list(threads.map(lambda one: scan(line, *one), together))
    for one in done:
        assert one.returncode in (0, 10, 25), one.stderr  # 10, 25: the other process is doing, or did, a part
        assert "* 1 failed" not in one.stderr
        assert " ERROR " not in one.stderr
    for module, task in (*together, REPORTS):
        assert scan(line, module, task).returncode == 0
    assert set(line.state.folder(LAUNCH)) == MARKERS
    assert not (line.state.store.real(layout.state_folder(LAUNCH)) / "aside").exists()
    assert line.warcmill("reconcile", DAY).returncode == 0


def graph(server: Server, status: str = "DONE") -> str:
    """All tasks of a status that luigid knows, as it tells them to the visualiser."""
    query = urllib.parse.urlencode({"data": json.dumps({"status": status, "upstream_status": ""})})
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/api/task_list?{query}", timeout=PATIENCE) as answer:
        return str(answer.read().decode())


def test_the_page_shows_how_far_a_step_is_and_which_warcs_are_refused(line: Line, server: Server) -> None:
    warc = next((line.folders["output"] / "warcs" / LAUNCH.job / LAUNCH.id).iterdir())
    warc.write_bytes(warc.read_bytes()[:-1])
    done = line.warcmill("scan", DAY)
    assert done.returncode == 1, done.stderr
    messages = {one["name"]: one["status_message"] for one in json.loads(graph(server))["response"].values()}
    refused = f"1 refused: {warc.name}; warcmill why {LAUNCH.job} {LAUNCH.id}"
    assert [messages[f"files.{step}"] for step in ("Checksum", "Copy", "Verify")] == [refused] * 3
    assert messages["output.AssembleOutput"] is None


def test_a_long_step_shows_on_the_page_how_far_it_is(line: Line, server: Server) -> None:
    enlarge(line)
    assert scan(line, *SCANS[0]).returncode == 0
    words = ("--module", SCANS[1][0], SCANS[1][1], "--date-interval", DAY)
    environment = {**os.environ, "LUIGI_CONFIG_PATH": str(line.config)}
    with (
        open(os.devnull, "w") as nowhere,
        preloaded.start("luigi", *words, env=environment, out=nowhere.fileno(), err=nowhere.fileno()) as process,
    ):
        until = time.monotonic() + PATIENCE
        while not (shown := running(server)):
            assert process.poll() is None, "it has ended, and nothing was shown"
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
    assert re.fullmatch(r"[\d.]+ of \d+\.\d MB, \d+ MB/s(, .* left)?, at .*\.warc\.gz", shown[0])
    assert 0 <= shown[1] <= 100


def running(server: Server) -> tuple[str, int] | None:
    """Message and percentage of files.Checksum while it runs."""
    found = json.loads(graph(server, "RUNNING"))["response"].values()
    shown = [(one["status_message"], one["progress_percentage"]) for one in found if one["name"] == "files.Checksum"]
    return shown[0] if shown and None not in shown[0] else None
