"""The pages in docs/start that begin with `warcmill crawl` are followed as printed, in an empty folder, on a museum's
site on loopback; what each command prints is compared with the page."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import preloaded
import pytest
from loopback_site import windmills
from operating.documented import PAGES as TEXTS
from operating.documented import Printed, is_as_shown, printed
from sites.name_server import names

PAGES = ("start/archive-a-site.md", "start/one-article.md", "start/what-was-missed.md")
ROW = re.compile(r"^\| .* \| (.*) \|$", re.MULTILINE)
SITE = "http://windmills.example/"
# What a site on loopback needs besides, and a name server that knows no `watermills.example`.
ADDED = ["--allow-private", "127.0.0.0/8", "--no-delay", "--resolve", "windmills.example=127.0.0.1"]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with windmills() as port:
        yield port


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("settings") / "names.toml"
    with names({}) as server:
        path.write_text(f'name_servers = ["127.0.0.1:{server}"]\n')
        yield path


def run(command: Printed, folder: Path, port: int, settings: Path) -> str:
    """A command of the page, and what it printed on either stream, with the page's names in it."""
    program, verb, *words = shlex.split(command.command.replace(SITE, f"{SITE[:-1]}:{port}/"))
    assert program == "warcmill"
    env = {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"}
    env |= {"COLUMNS": "120"}
    more = [*ADDED, "--config", str(settings)] if verb == "crawl" else []
    done = preloaded.run("commands.main", verb, *words, *more, env=env, folder=folder)
    assert done.returncode in (0, 1), f"{command.text}\n{done.stderr}"
    assert "Traceback" not in done.stdout + done.stderr
    return plain(done.stdout.replace(f":{port}/", "/").replace(str(folder), "/srv/museum"))


def plain(text: str) -> str:
    """Without what every run has its own of: ids, days, times, figures that a port's digits change."""
    text = re.sub(r"\b20\d{12}\b", "20261124170213", text)
    return re.sub(r"\b20\d\d-\d\d-\d\d\b", "2026-11-24", text)


def commands_of(page: str) -> Iterator[Printed]:
    """The commands of a page: of its blocks, and of the right column of its tables.

    One that a section has in its table, and with its output below, is one."""
    for section in re.split(r"^## ", TEXTS[page], flags=re.MULTILINE):
        text = ROW.sub(lambda row: "\n".join(["```", *re.findall(r"`(warcmill [^`]+)`", row[1]), "```"]), section)
        found = [one for one in printed(text, page) if one.bare.startswith("warcmill ")]
        shown = {one.command: one for one in found if one.shown}
        yield from dict.fromkeys(one if one.shown else shown.get(one.command, one) for one in found)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_followed_from_an_empty_folder(page: str, tmp_path: Path, port: int, settings: Path) -> None:
    commands = [*commands_of(page)]
    assert any(one.bare.startswith("warcmill crawl") for one in commands)
    for command in commands:
        if command.bare.startswith(("warcmill serve", "warcmill quality")):
            continue  # tests/services/test_serve.py serves, and looks; test_quality.py beside it checks
        said = run(command, tmp_path, port, settings)
        assert is_as_shown(said, plain(command.shown)), f"{command.text}\n{said}\nThe page:\n{command.shown}"
