"""The page "Follow a site" is followed as printed, in an empty folder, with a newspaper on loopback that changes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from pathlib import Path

import preloaded
from loopback_site import gazette
from operating.documented import PAGES, PRINTED, Printed, is_as_shown
from requesting.requests_line import SWIFT, kill
from waiting import wait_for

from warcmill.crawl.launch import folders
from warcmill.scripts import answers
from warcmill.scripts.taskbook import TaskReader

PAGE, HOST = "start/follow-a-site.md", "gazette.example"
ARTICLES, MORE = 12, 6
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def plain(text: str) -> str:
    """Without what every run has its own of: ids, days, places, counts of five minutes, the site's port."""
    text = re.sub(r"\b20\d{12}\b", "20261124170213", text)
    text = re.sub(r"\b20\d\d-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?", "2026-11-24", text)
    text = re.sub(rf"{HOST}:\d+", HOST, text)
    text = re.sub(r'"(offset|updatetime|taskid)": [^,]+|"papers-[^"]+"|\d+/\d/\d', "~", text)
    return re.sub(r"Day \d+|example/\d+", "~", text)


def test_the_page_is_followed_from_an_empty_folder(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"} | {"COLUMNS": "120"}
    job, (script,) = tmp_path / "archive/jobs/papers", PYTHON.findall(PAGES[PAGE])
    started, listed = 0, 0
    with gazette(ARTICLES) as (site, port):
        here = f"http://{HOST}:{port}/"
        try:
            for command in [one for one in PRINTED if one.page == PAGE and not one.bare.startswith("pip ")]:
                if command.bare.startswith("sed"):
                    subprocess.run(shlex.split(command.bare), check=True, cwd=tmp_path)
                    continue
                if "script list" in command.bare:
                    listed += 1
                    if listed == 2:  # the story goes on: a new template
                        site.change(MORE)
                        time.sleep(1)
                        _run(Printed(PAGE, "warcmill script start papers/gazette"), env, tmp_path, here)
                    wait_for(lambda listed=listed: bool(_watch(job)) == (listed == 2), lambda: str(_watch(job)))
                if "script results" in command.bare:
                    wait_for(lambda: len(TaskReader(job / "state").tasks(status="success")) == ARTICLES + 2)
                printed = _run(command, env, tmp_path, here)
                if "script new" in command.bare:
                    _for_loopback(tmp_path / "archive", job)
                    text = script.replace(f"http://{HOST}/", here).replace("age=60", "age=0")
                    (job / "scripts/gazette.py").write_text(text)
                shown = plain(command.shown)
                printed = plain(printed.replace(str(tmp_path), "/srv/museum"))
                assert is_as_shown(printed, shown), f"{command.text}\n{printed}\nThe page:\n{shown}"
                started += "pulse start" in command.bare
        finally:
            holder = folders.holder(job / "state") if (job / "state").exists() else None
            kill(holder.pid if holder else 0)
    assert started == 1


def _run(command: Printed, env: dict[str, str], folder: Path, here: str) -> str:
    words = shlex.split(command.bare.replace(f"http://{HOST}/", here))
    done = preloaded.run("commands.main", *words[1:], env=env, folder=folder)
    assert done.returncode == 0, f"{command.text}\n{done.stdout}{done.stderr}"
    return done.stdout if words[1] == "pulse" else done.stderr + done.stdout


def _watch(job: Path) -> list[object]:
    found: list[object] = []
    for one in answers.listed(job, time.time())["scripts"]:  # type: ignore[union-attr]
        found += one["watch"]  # type: ignore[index, call-overload, operator]
    return found


def _for_loopback(archive: Path, job: Path) -> None:
    """Let the job fetch from a site on loopback, fast, by scripts without walls: those take a program."""
    more = SWIFT.format(hosts=f'"{HOST}=127.0.0.1"')
    crawl = job / "crawl.toml"
    crawl.write_text(crawl.read_text() + more)
    with (archive / "luigi.cfg").open("a") as config:
        config.write("\n[scripts]\nwalls=none\n")
