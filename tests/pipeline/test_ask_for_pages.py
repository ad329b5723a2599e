"""The page "Ask for pages" is followed as printed, in an empty folder, on a museum's site on loopback."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import preloaded
from loopback_site import windmills
from operating.documented import PRINTED, is_as_shown
from preloaded import Process
from requesting.requests_line import SWIFT, kill
from waiting import wait_for

from servers import pins
from warcmill.crawl.launch import folders

PAGE, HOST = "start/ask-for-pages.md", "windmills.example"
BESIDE = ("warcmill run requests", "warcmill run rest", "warcmill request dump")
"""The commands that run beside the rest, until they are ended."""


def plain(text: str) -> str:
    """Without what every run has its own of: ids, days, times, the site's port."""
    text = re.sub(r"\b20\d{12}\b", "20261124170213", text)
    text = re.sub(r"\b20\d\d-\d\d-\d\d( \d\d:\d\d:\d\d,\d{3})?", "2026-11-24", text)
    return re.sub(rf"{HOST}:\d+", HOST, text)


@contextmanager
def beside(words: list[str], folder: Path, env: dict[str, str], log: Path) -> Iterator[Process]:
    with log.open("wb") as out:
        process = preloaded.start("commands.main", *words, env=env, folder=folder, out=out.fileno(), err=out.fileno())
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def test_the_page_is_followed_from_an_empty_folder(tmp_path: Path) -> None:
    commands = [one for one in PRINTED if one.page == PAGE]
    env = {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"}
    rest = pins.free({"rest": 0})["rest"]
    state = tmp_path / "archive/jobs/ondemand/state"
    running: list[Any] = []
    logs = [tmp_path / f"{number}.log" for number in range(len(BESIDE))]
    with windmills() as port:
        try:
            for command in commands:
                text = command.bare.replace(f"{HOST}/", f"{HOST}:{port}/").replace(":5343/", f":{rest}/")
                if text.startswith("curl"):
                    done = subprocess.run(shlex.split(text), capture_output=True, text=True, check=True)
                    assert json.loads(done.stdout)["data"]["uuid"] == "u4"
                    continue
                words = shlex.split(text)[1:]
                if text.startswith(BESIDE):
                    log = logs[len(running)]
                    one = beside([*words, *(["--port", str(rest)] if "rest" in words else [])], tmp_path, env, log)
                    one.__enter__()
                    running.append(one)
                    wait_for(lambda text=text, log=log: "requests" in text or "Ctrl-C" in log.read_text())
                    continue
                printed = preloaded.run("commands.main", *words, env=env, folder=tmp_path)
                assert printed.returncode == 0, printed.stdout + printed.stderr
                if words[0] == "init":
                    for_loopback(tmp_path / "archive")
                else:
                    shown = plain(command.shown)
                    assert is_as_shown(plain(printed.stdout), shown), f"{text}\n{printed.stdout}\nThe page:\n{shown}"
                if '"c1", "maxdepth"' in text:
                    dump = logs[1]
                    wait_for(lambda dump=dump: dump.read_text().count('"crawlid": "c1"') > 1, dump.read_text)
                    assert '"status_code": 200' in dump.read_text()
                    assert '"warc": {' in dump.read_text()
        finally:
            for one in reversed(running):
                one.__exit__(None, None, None)
            holder = folders.holder(state) if state.exists() else None
            kill(holder.pid if holder else 0)


def for_loopback(archive: Path) -> None:
    """Let the job fetch from a site on loopback, fast."""
    crawl = archive / "jobs/ondemand/crawl.toml"
    more = SWIFT.format(hosts=f'"{HOST}=127.0.0.1"')
    crawl.write_text(crawl.read_text().replace("\n[retries]", f"{more}\n[retries]"))
    (archive / "localsettings.py").write_text("QUEUE_HITS = 1000\nQUEUE_WINDOW = 1\nQUEUE_MODERATED = False\n")
