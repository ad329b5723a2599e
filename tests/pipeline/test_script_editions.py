"""Editions of scripts by the commands: saved, edited by hand, without the store, named by a launch, brought back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from line import Line
from requesting.script_runs import HERE, RUN, crawling, line_for, script
from sites import several_hosts
from sites.several_hosts import Page

from commands.console.person import person

SCRIPT = """\
from pyspider.libs.base_handler import *


class Handler(BaseHandler):
    def on_start(self):
        self.crawl("http://127.0.0.1:PORT/", callback=self.page)

    def page(self, response):
        return {"title": response.doc("title").text()}
"""


def said(line: Line, *words: str) -> str:
    """The output of a command that ends with 0."""
    done = script(line, line.config.parent, *words)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def history(line: Line, name: str = "papers/shop") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(said(line, "history", name, "--json"))["editions"]
    return found


def shop(line: Line) -> Path:
    return line.folders["jobs"] / "papers" / "scripts" / "shop.py"


def away(line: Line, *, is_away: bool = True) -> None:
    here, there = line.folders["store"], line.config.parent / "elsewhere"
    (here if is_away else there).rename(there if is_away else here)


def test_a_new_script_edits_by_hand_and_one_that_is_deleted(tmp_path: Path) -> None:
    line = line_for(tmp_path / "line")
    said(line, "new", "papers/shop", "--start", "https://shop.example/")
    (first,) = history(line)
    text = shop(line).read_bytes()
    shown = {key: first[key] for key in ("number", "who", "why", "made_from")}
    assert shown == {"number": 1, "who": person(), "why": "warcmill script new", "made_from": 0}
    assert said(line, "show", "papers/shop").encode() == text
    shop(line).write_bytes(text + b"# mended\n")
    said(line, "list", "papers")
    newest, before = history(line)
    assert before == first
    assert (newest["number"], newest["who"], newest["why"], newest["made_from"]) == (2, "", "edited by hand", 1)
    assert said(line, "show", "papers/shop").endswith("# mended\n")
    assert said(line, "show", "papers/shop", "--edition", "1").encode() == text
    told = said(line, "history", "papers/shop").splitlines()
    assert told[0].startswith("     2  ")
    assert told[0].endswith("Z  -  from 1  edited by hand")
    assert told[1].endswith(f"Z  {person()}  warcmill script new")
    said(line, "new", "papers/news", "--start", "https://news.example/")
    assert [one["number"] for one in history(line)] == [2, 1]
    assert [one["number"] for one in history(line, "papers/news")] == [3]
    for words, why in [
        (("show", "papers/none"), "edition 3 has no such paper"),
        (("show", "papers/shop", "--edition", "9"), "there is none; the newest is 3"),
        (("show", "papers/news", "--edition", "1"), "edition 1 has no such paper"),
        (("history", "papers/none"), "no edition has such a script"),
    ]:
        done = script(line, line.config.parent, *words)
        assert (done.returncode, why in done.stderr) == (1, True), done.stderr
    shop(line).unlink()
    assert [(one["number"], one["sha256"] == "") for one in history(line)] == [(4, True), (2, False), (1, False)]
    assert "  removed  edited by hand" in said(line, "history", "papers/shop")


def test_without_the_store_nothing_is_saved_and_looking_goes_on(tmp_path: Path) -> None:
    line = line_for(tmp_path / "line")
    said(line, "new", "papers/shop", "--start", "https://shop.example/")
    away(line)
    done = script(line, line.config.parent, "new", "papers/news", "--start", "https://news.example/")
    assert done.returncode == 4, done.stderr
    assert not shop(line).with_name("news.py").exists()
    shop(line).write_text("# by hand\n")
    done = script(line, line.config.parent, "list", "papers")
    assert (done.returncode, "shop" in done.stdout) == (0, True)
    assert "papers: what was edited by hand, if anything, is not kept as an edition yet: root 'store'" in done.stderr
    away(line, is_away=False)
    assert [one["why"] for one in history(line)] == ["edited by hand", "warcmill script new"]


def test_a_run_saves_its_scripts_and_its_launch_names_their_edition(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    here.mkdir()
    with several_hosts.serve({(HERE, "/"): Page(b"<title>One</title>")}) as port:
        (here / "shop.py").write_text(SCRIPT.replace("PORT", str(port)))
        for _ in range(2):
            done = script(line, here, "run", "shop.py", "--job", "papers", *RUN)
            assert done.returncode == 0, done.stderr
    (one,) = history(line)
    assert (one["number"], one["who"], one["why"]) == (1, person(), "warcmill script run")
    launches = sorted(path for path in (line.folders["jobs"] / "papers").iterdir() if path.name.isdigit())
    for launch in launches:
        named = json.loads((launch / "edition.json").read_bytes())
        assert (named["job"], named["number"]) == ("papers", 1)
        assert named["papers"]["scripts/shop.py"] == one["sha256"]
        assert (launch / "scripts" / "shop.py").read_bytes() == (here / "shop.py").read_bytes()
    day = f"{launches[0].name[:4]}-{launches[0].name[4:6]}-{launches[0].name[6:8]}"
    assert line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", day).returncode == 0
    packed = [path.read_bytes() for path in line.folders["state"].rglob("02.*.zip")]
    assert any(b"edition.json" in data for data in packed)


def test_a_launch_by_pulse_names_what_was_edited_by_hand_before_it(tmp_path: Path) -> None:
    line = line_for(tmp_path / "line")
    said(line, "new", "papers/shop", "--start", f"http://{HERE}:1/")
    shop(line).write_text(SCRIPT)
    with crawling(line, line.config.parent):
        (launch,) = (path for path in (line.folders["jobs"] / "papers").iterdir() if path.name.isdigit())
        named = json.loads((launch / "edition.json").read_bytes())
        assert named["number"] == 2
        assert [one["why"] for one in history(line)] == ["edited by hand", "warcmill script new"]
        assert history(line)[0]["sha256"] == named["papers"]["scripts/shop.py"]
        said(line, "delete", "papers/shop")
    assert not shop(line).exists()
    assert history(line)[0]["why"] == "warcmill script delete"
    assert said(line, "show", "papers/shop", "--edition", "2") == SCRIPT


def test_a_lost_state_gets_its_editions_back_before_one_is_made(tmp_path: Path) -> None:
    line = line_for(tmp_path / "line")
    said(line, "new", "papers/shop", "--start", "https://shop.example/")
    before = history(line)
    shutil.rmtree(line.folders["state"])
    done = line.warcmill("restore", "--new-state")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "versions, decisions and editions: 5 files restored" in done.stdout
    assert history(line) == before
    shop(line).write_text("# by hand\n")
    shutil.rmtree(line.folders["state"] / "editions")
    done = script(line, line.config.parent, "new", "papers/news", "--start", "https://news.example/")
    assert done.returncode == 1
    assert "edition 1 of papers is missing: bring it back: 'warcmill restore'" in done.stderr
    assert line.warcmill("restore").returncode == 0
    assert [one["number"] for one in history(line)] == [2, 1]


def test_a_damaged_edition_is_named_where_an_operator_looks_and_ends_no_crawl(tmp_path: Path) -> None:
    line = line_for(tmp_path / "line")
    said(line, "new", "papers/shop", "--start", f"http://{HERE}:1/")
    assert line.warcmill("reconcile", "2016-10-19").returncode == 0
    (line.folders["state"] / "editions/papers/000001/edition.json").write_bytes(b"cut")
    told = line.warcmill("reconcile", "2016-10-19")
    assert (told.returncode, "state:editions/papers/000001/edition.json" in told.stdout) == (1, True), told.stdout
    done = script(line, line.config.parent, "list", "papers")
    assert (done.returncode, "warcmill restore" in done.stderr) == (0, True)
    done = script(line, line.config.parent, "new", "papers/news", "--start", "https://news.example/")
    assert (done.returncode, "cut or altered; move it out of the state" in done.stderr) == (1, True)
    with crawling(line, line.config.parent):
        pass
    (line.folders["state"] / "editions/papers/000001/edition.json").unlink()
    assert line.warcmill("restore").returncode == 0
    assert [one["number"] for one in history(line)] == [1]
