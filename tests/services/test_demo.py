"""What README's first command does, that doing it again does nothing, and that a page can be opened at its end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import HTTPCookieProcessor, build_opener, urlopen

from loopback_site import PAGES

from servers.serving import SECONDS
from warcmill.formats.logs import crawllog

DEMO = Path(__file__).parent.parent.parent / "scripts" / "demo"


def demo(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([DEMO, folder], capture_output=True, text=True, check=False)


def files(folder: Path) -> dict[str, bytes]:
    found = [path for path in folder.rglob("*") if path.is_file() and ".locks" not in path.parts]
    logs = ("serve.log", "scan.log")
    found = [path for path in found if path.name not in logs and not {"looked", "status"} & {*path.parts}]  # scans' own
    return {str(path): path.read_bytes() for path in found if not path.name.startswith("status.")}  # days' summaries


def pages(folder: Path) -> Counter[int]:
    """The pages of the site that crawl logs have, each with how often."""
    found: Counter[int] = Counter()
    for path in (folder / "output/logs/site").rglob("crawl.log*"):
        if path.suffix != ".orphan":
            with path.open("rb") as stream:
                uris = [line.uri for line in crawllog.lines(stream) if isinstance(line, crawllog.CrawlRecord)]
            ends = [uri.rpartition("/")[2] for uri in uris if uri.startswith("http:")]
            found.update(int(end or 0) for end in ends if end != "robots.txt")
    return found


def test_the_demo_reconciles_and_a_second_run_does_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "a new folder"
    first = demo(folder)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "no gap" in first.stdout
    assert "1 capture found" in first.stderr
    lines = first.stdout.splitlines()  # stderr has more: on a slow machine a line of progress now and then
    assert len([line for line in lines if not line.startswith("scripts/setup: ")]) <= 66, first.stdout
    assert first.stdout.endswith("    200 OK: Chapter 1. Getting started The Right Way\n"), "a page was replayed"
    assert "kill -KILL" in first.stdout
    assert "warning" not in (first.stdout + first.stderr).lower()
    before = files(folder)
    stored = [path for path in before if "/store/" in path]
    assert len([path for path in stored if "weekly/" in path]) == 4  # two WARCs, the zip, the SIP
    sips = [path for path in before if "/preservation/" in path and path.endswith(".tar")]
    assert {before[sip] for sip in sips} == {before[path] for path in stored if path.endswith("/final.tar")}
    assert len(sips) == 3  # of the launch that was killed, of the one that continued it, of the bundled one
    assert pages(folder) == Counter(range(PAGES))
    markers = {Path(path).name.partition(".weekly")[0] for path in before}
    assert {"05.packaged", "06.submitted", "07.verified", "08.indexed"} <= markers
    code, said = on_a_terminal(folder)
    assert code == 0
    assert "begins" not in said
    assert files(folder) == before


def on_a_terminal(folder: Path) -> tuple[int, str]:
    """Run the demo on a terminal, open the address that it prints, and press Ctrl-C; its exit code and its words."""
    ours, its = os.openpty()
    said = ""
    with subprocess.Popen([DEMO, folder], stdout=its, stderr=its, start_new_session=True) as process:
        os.close(its)
        while "Ctrl-C ends it" not in said:
            said += os.read(ours, 1 << 16).decode("utf-8", "replace")
        (address,) = re.findall(r"Open it in a browser: (\S+)", said)
        with build_opener(HTTPCookieProcessor()).open(address, timeout=SECONDS) as answer:
            assert "Newest launches" in answer.read().decode()
        with urlopen((folder / "output/jobs/site/seeds.txt").read_text().strip(), timeout=SECONDS) as answer:
            assert b"Page 0" in answer.read(), "its site is there, to be crawled once more"
        (day,) = re.findall(r"A curator's day: .* at (\S+)", said)
        with urlopen(parse_qs(urlsplit(day).query)["url"][0], timeout=SECONDS) as answer:
            assert b"The Windmill Museum" in answer.read()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it: to the demo and to what it has started
        code = process.wait(SECONDS)
    os.close(ours)
    return code, said


def test_the_demo_takes_one_folder(tmp_path: Path) -> None:
    wrong = subprocess.run([DEMO, tmp_path, "more"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    forms = "[--servers | --pypi [--s3] | --render | --workers | --requests [--services] | --studio | --clusters]"
    assert f"usage: scripts/demo {forms} [FOLDER]" in wrong.stderr
