"""The whole line with roots on other hosts: the archive in HDFS, in S3 or behind SSH, engines' folders behind SSH."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import sample
from line import DAY, REPORTS, SCANS, without_dead_seed, without_index

from servers.hdfs import Hdfs
from servers.sshd import Sshd
from servers.versitygw import ACCESS_KEY, BUCKET, SECRET_KEY, Versitygw
from warcmill import layout
from warcmill.markers.state import MarkerStore
from warcmill.stores.file import FileStore


class Line:
    """A line made by `warcmill init`, and driven by the commands that an operator types."""

    def __init__(self, base: Path, *options: str) -> None:
        self.base = base
        self.environment = {**os.environ, "LUIGI_CONFIG_PATH": str(base / "luigi.cfg")}
        self.run("commands.main", "init", str(base), *options)
        without_index(base / "luigi.cfg")

    def run(self, module: str, *words: str) -> str:
        command = [sys.executable, "-m", module, *words]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def scan(self) -> None:
        for module, task in (*SCANS, REPORTS):
            self.run("luigi", "--module", module, task, "--date-interval", DAY)

    @property
    def state(self) -> MarkerStore:
        return MarkerStore(FileStore("state", self.base / "state"))


def verified_by(line: Line) -> set[str]:
    """By which digests the stored files of the bundled launch were compared."""
    (path,) = (line.base / "state").rglob("files.verified.*.final")
    key = layout.parse_marker_path(str(path.relative_to(line.base / "state")))
    assert key
    return {str(item.facts["by"]).partition("-")[0] for item in line.state.require(key).claim.items}


def proven(line: Line) -> None:
    """Twice scanned, verified byte for byte, and reconciled."""
    line.scan()
    line.scan()
    found = json.loads(line.run("commands.main", "verify", DAY, "--json"))
    assert found["findings"] == []
    assert found["files"] > 0
    line.run("commands.main", "doctor")


def restored(line: Line) -> None:
    """The state is lost, luigi.cfg is not as `warcmill init` wrote it, and the archive elsewhere brings it back."""
    line.run("luigi", "--module", "tasks.state", "state.BackupState", "--date", DAY)
    config = line.base / "luigi.cfg"
    config.write_text(f"# edited\n{config.read_text()}\n[job.weekly]\nfrequency=weekly\nstart=2026-11-01T06:00:00Z\n")
    shutil.rmtree(line.base / "state")
    assert ": 0 files restored" not in line.run("commands.main", "restore", "--new-state")
    line.run("commands.main", "reconcile", DAY, "--json")


def test_an_archive_in_hdfs_is_verified_by_the_checksum_of_hdfs(tmp_path: Path, hdfs: Hdfs) -> None:
    without_dead_seed(sample.lay_out(tmp_path / "output"))
    url = f"webhdfs://{hdfs.namenode_http}/{tmp_path.parent.name}?user={hdfs.user}"
    line = Line(tmp_path, "--jobs", str(tmp_path / "output/jobs"), "--store", url)
    proven(line)
    assert "MD5" in verified_by(line)
    restored(line)


def test_an_archive_in_s3_is_verified_by_other_reads(tmp_path: Path, versitygw: Versitygw) -> None:
    without_dead_seed(sample.lay_out(tmp_path / "output"))
    url, secret = f"s3://{BUCKET}/{tmp_path.parent.name}", str(versitygw.secret_key_file)
    reached = "--endpoint", versitygw.endpoint, "--access-key", ACCESS_KEY, "--secret-key-file", secret
    line = Line(tmp_path, "--jobs", str(tmp_path / "output/jobs"), "--store", url, *reached)
    proven(line)
    assert verified_by(line) == {"sha512"}
    assert "replaces nothing" in line.run("commands.main", "doctor", "--json")
    restored(line)
    written = [path.read_text("utf-8", "replace") for path in tmp_path.rglob("*") if path.is_file()]
    assert not [text for text in written if SECRET_KEY in text]


def test_the_whole_line_runs_over_ssh(tmp_path: Path, sshd: Sshd) -> None:
    there = sshd.root / f"{tmp_path.parent.name}-{tmp_path.name}"
    without_dead_seed(sample.lay_out(there / "output"))
    (there / "store").mkdir()
    url = f"sftp://{sshd.user}@127.0.0.1:{sshd.port}{there}"
    line = Line(
        tmp_path, "--output", f"{url}/output", "--jobs", f"{url}/output/jobs", "--store", f"{url}/store",
        "--known-hosts", str(sshd.known_hosts), "--key-file", str(sshd.key),
    )  # fmt: skip
    proven(line)
    assert verified_by(line) == {"sha512"}
    assert not (tmp_path / "output").exists()
    assert list((there / "store" / "warcs").rglob("*.warc.gz"))
    restored(line)


def test_links_on_an_ssh_host_are_named_and_not_followed(tmp_path: Path, sshd: Sshd) -> None:
    there = sshd.root / f"{tmp_path.parent.name}-{tmp_path.name}"
    output = without_dead_seed(sample.lay_out(there / "output"))
    (there / "disk").mkdir()
    url = f"sftp://{sshd.user}@127.0.0.1:{sshd.port}{there}"
    reached = "--known-hosts", str(sshd.known_hosts), "--key-file", str(sshd.key)
    roots = "--output", f"{url}/output", "--jobs", f"{url}/output/jobs"
    line = Line(tmp_path, *roots, *reached)
    config = tmp_path / "luigi.cfg"
    config.write_text(config.read_text().replace("[warcmill]\n", f"[warcmill]\nfollow_links={there}/disk\n"))
    (output / "warcs" / sample.JOB).rename(there / "disk" / "job")
    (output / "warcs" / sample.JOB).symlink_to(there / "disk" / "job")
    words = [sys.executable, "-m", "commands.main", "reconcile", DAY]
    done = subprocess.run(words, env=line.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert f"{url}/output/warcs/{sample.JOB}: a link; on sftp none is followed" in done.stdout


def test_a_folder_that_is_not_there_on_an_ssh_host_is_refused(tmp_path: Path, sshd: Sshd) -> None:
    url = f"sftp://{sshd.user}@127.0.0.1:{sshd.port}{sshd.root}/{tmp_path.name}-gone"
    reached = "--known-hosts", str(sshd.known_hosts), "--key-file", str(sshd.key)
    words = [sys.executable, "-m", "commands.main", "init", str(tmp_path), "--output", url, *reached]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, "there is no such folder" in done.stderr) == (4, True)
