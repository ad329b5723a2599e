"""The page on mirroring a package index is followed as printed, on an index on loopback with real files; what each
command prints is compared with the page, and pip installs as the page says."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from operating.documented import PAGES, PRINTED, Printed, is_as_shown, shell

from servers import distributions, packages, pins, serving
from servers.package_index import PackageIndex
from warcmill.crawl.launch import folders, job_log

PAGE, JOB = "start/mirror-a-package-index.md", "pypi"
SECONDS = 300


class Followed:
    """The page's `/srv/mirror`, in a folder of the test's own, and its index."""

    def __init__(self, base: Path, index: PackageIndex) -> None:
        self.folder, self.index = base / "mirror", index
        self.folder.mkdir()
        self.config = self.folder / "luigi.cfg"

    def here(self, text: str) -> str:
        """The page's words, with its folder, month and index put where this test has them."""
        text = text.replace("/srv/mirror", str(self.folder)).replace("https://index.example", self.index.url)
        return text.replace("2026-11", f"{datetime.now(UTC):%Y-%m}")

    def run(self, command: Printed) -> None:
        """Run a command of the page, and compare what it prints."""
        done = shell(self.here(command.command), self.folder, self.config)
        assert done.returncode == 0, f"{command.text}\n{done.stdout}"
        shown, printed = (re.sub(r"\b20\d{12}\b", "LAUNCH", text) for text in (command.shown, done.stdout))
        assert is_as_shown(printed, shown), f"{command.text}\n{printed}\nThe page:\n{command.shown}"

    def process(self) -> int:
        found = folders.holder(folders.state_of(self.folder / "jobs", JOB))
        return found.pid if found else 0

    def wait(self) -> None:
        """Until the crawl has ended, as the page says."""
        deadline = time.monotonic() + SECONDS
        while not ((last := job_log.last(self.folder / "jobs" / JOB)) and last.ended and not self.process()):
            assert time.monotonic() < deadline, "the crawl does not end"
            time.sleep(0.05)


@pytest.fixture
def followed(tmp_path: Path) -> Iterator[Followed]:
    index = PackageIndex(tmp_path / "index", pins.free(pins.PACKAGE_INDEX))
    with index.running():
        index.populate()
        made = Followed(tmp_path, index)
        yield made
        if pid := made.process():
            os.kill(pid, signal.SIGKILL)


def test_the_page_is_followed_from_an_empty_folder(followed: Followed, tmp_path: Path) -> None:
    index = followed.index
    commands = [one for one in PRINTED if one.page == PAGE and one.bare.startswith("warcmill ")]
    added, own = re.findall(r"^```ini\n(.*?)^```$", PAGES[PAGE], re.DOTALL | re.MULTILINE)
    on_loopback = followed.here(added).replace("kind=warcmill\n", "kind=warcmill\nallow_private=127.0.0.0/8\n")
    for command in commands:
        if command.bare == "warcmill serve":
            break
        if command.bare.startswith("warcmill pypi trigger_incremental"):
            index.upload(distributions.wheel(tmp_path, "six", "1.18.0"))
            index.yank("six", "1.17.0", "it broke the build")
        if not command.bare.startswith("warcmill pulse"):
            followed.run(command)
        if command.bare.startswith("warcmill init"):
            with followed.config.open("a") as config:
                config.write(f"\n{on_loopback}")
        elif "trigger_" in command.bare:
            followed.wait()
    installs(followed, tmp_path / "installed")
    begin = followed.config.read_text().partition("[engine.packages]")[0]
    place = re.search(r"^index=(.*)$", own, re.MULTILINE)
    assert place
    followed.config.write_text(begin + own.replace(place[1], index.simple))
    done = shell("warcmill pypi lag", followed.folder, followed.config)
    assert done.stdout.splitlines()[0].split() == ["index", str(index.serial)], done.stdout


def installs(followed: Followed, target: Path) -> None:
    """pip installs by the page's command, from the address that serve prints."""
    (install,) = (one for one in PRINTED if one.page == PAGE and one.bare.startswith("pip install --index-url"))
    (port,) = pins.free({"port": 0}).values()
    with followed.config.open("a") as config:
        config.write(f"\n[serve]\nport={port}\nreplay=false\n")
    added = shell("warcmill serve token add again --role reader", followed.folder, followed.config)
    token = added.stdout.split()[-1]
    with serving.serving(followed.config, target.with_name("serve.log"), token):
        words = install.command.replace("TOKEN", token).replace("127.0.0.1:8090", f"127.0.0.1:{port}").split()
        python = packages.bin_folder("package-index") / "python"
        pip = [python, "-m", "pip", "--isolated", "--disable-pip-version-check", "--no-cache-dir"]
        done = subprocess.run([*pip, *words[1:], "--target", target], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert (target / "six-1.17.0.dist-info").is_dir()
