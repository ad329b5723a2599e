"""The list of what a launch asked for: its sums add up, its titles and changes are those of the site, and it is made
again when there is more."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import preloaded
import pytest
from sites.several_hosts import Page, serve

HOSTS = ("a.example", "b.example")
HERE = ["--allow-private", "127.0.0.0/8", "--no-delay"]
HERE += [word for host in HOSTS for word in ("--resolve", f"{host}=127.0.0.1")]


def titled(title: str, links: list[str]) -> Page:
    body = "".join(f'<a href="{link}">{link}</a>' for link in links)
    return Page(f"<html><head><title>{title}</title></head><body>{body}</body></html>".encode(), "text/html")


class Archive:
    """A folder with two launches of a job, each of which has the list of what it asked for."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port

    def crawl(self) -> None:
        words = ["crawl", f"http://a.example:{self.port}/", *HERE]
        run = preloaded.run("commands.main", *words, env=dict(os.environ), folder=self.folder)
        assert run.returncode == 0, run.stderr

    def pages(self, *words: str) -> Any:
        run = preloaded.run("commands.main", "pages", *words, env=dict(os.environ), folder=self.folder)
        assert run.returncode == 0, run.stderr
        return run

    def json(self, *words: str) -> dict[str, Any]:
        return json.loads(self.pages(*words, "--json").stdout)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    pages = {
        ("a.example", "/"): titled("Home <b>of</b> rivers", ["/1", "/2", "/gone", "/formula"]),
        ("a.example", "/1"): Page(
            b'<html><head><title>Annual report</title></head><body><img src="/p.png"></body></html>', "text/html"
        ),
        ("a.example", "/2"): titled("\u202eright to left, 水の年報", []),
        ("a.example", "/p.png"): Page(b"\x89PNG\r\n\x1a\n", "image/png"),
        ("a.example", "/formula"): titled("=cmd()", []),
    }
    with serve(pages) as port:
        found = Archive(tmp_path_factory.mktemp("pages"), port)
        found.crawl()
        pages["a.example", "/"] = titled("Home of rivers", ["/1", "/3"])
        pages["a.example", "/3"] = titled("Brand new", [])
        del pages["a.example", "/1"]
        found.crawl()
        yield found


def launches(archive: Archive) -> list[str]:
    return sorted(path.name for path in (archive.folder / "archive/output/warcs/a-example").iterdir())


def test_asked_is_got_and_not_got(archive: Archive) -> None:
    first, second = launches(archive)
    found = archive.json("a-example", first, "--all")
    sums = found["sums"]
    assert sums["asked"] == sums["got"] + sums["not_got"]
    assert sum(sums["why"].values()) == sums["not_got"] > 0
    assert len(found["urls"]) == sums["got"]
    assert found["lacking"] == []
    kinds = {one["url"].partition(str(archive.port))[2]: one for one in found["urls"]}
    assert kinds["/1"]["title"] == "Annual report"
    assert kinds["/p.png"]["type"] == "image/png"
    assert "/p.png" not in {
        one["url"].partition(str(archive.port))[2] for one in archive.json("a-example", first)["urls"]
    }
    missed = archive.json("a-example", first, "--not-got")["urls"]
    assert [one["status"] for one in missed if one["url"].endswith("/gone")] == [404]
    assert archive.json("a-example", second)["before"] == first


def test_changes_are_those_of_the_site(archive: Archive) -> None:
    found = archive.json("a-example", "--changed")
    kinds = {one["url"].partition(str(archive.port))[2]: one["change"] for one in found["urls"]}
    assert kinds["/3"] == "new"
    assert kinds["/"] == "changed"
    assert kinds["/1"] == "gone"
    assert kinds["/2"] == "not visited"
    only = archive.json("a-example", "--changed", "gone")["urls"]
    assert [one["url"].partition(str(archive.port))[2] for one in only] == ["/1"]


def test_words_find_titles_and_addresses_of_all_scripts(archive: Archive) -> None:
    first, _ = launches(archive)
    for words, path in (("annual", "/1"), ("年報", "/2"), ("rivers home", "/")):
        found = archive.json("a-example", first, "--words", words)["urls"]
        assert [one["url"].partition(str(archive.port))[2] for one in found] == [path], words
    assert archive.json("a-example", first, "--words", "annual nothing")["urls"] == []
    assert archive.json("a-example", first, "--host", "b.example")["urls"] == []
    assert archive.json("a-example", first, "--status", "404", "--not-got")["urls"]


def test_a_title_is_no_formula_and_no_command(archive: Archive) -> None:
    first, _ = launches(archive)
    rows = [*csv.DictReader(io.StringIO(archive.pages("a-example", first, "--csv").stdout))]
    assert "'=cmd()" in {row["title"] for row in rows}
    assert "\u202e" not in archive.pages("a-example", first).stdout


def test_a_list_is_made_once_and_again_when_it_is_lost_or_damaged(archive: Archive) -> None:
    first, _ = launches(archive)
    path = archive.folder / f"archive/index/pages/a-example/{first}.sqlite"
    archive.pages("a-example", first)
    made = path.stat()
    archive.pages("a-example", first)
    assert path.stat().st_ino == made.st_ino
    path.write_bytes(path.read_bytes()[:5000])
    assert archive.json("a-example", first)["sums"]["asked"]
    shutil.rmtree(path.parent)
    words = ["pages", "a-example", first, "--made-only"]
    run = preloaded.run("commands.main", *words, env=dict(os.environ), folder=archive.folder)
    assert run.returncode == 1
    assert "it is not made yet: warcmill pages" in run.stderr
    assert archive.json("a-example", first)["sums"]["asked"]


def test_a_list_without_text_names_what_it_lacks(archive: Archive) -> None:
    first, _ = launches(archive)
    extracts = archive.folder / "archive/index/extracts"
    kept = archive.folder / "extracts"
    extracts.rename(kept)
    (archive.folder / f"archive/index/pages/a-example/{first}.sqlite").unlink()
    try:
        found = archive.json("a-example", first)
    finally:
        kept.rename(extracts)
        (archive.folder / f"archive/index/pages/a-example/{first}.sqlite").unlink()
    assert found["lacking"] == ["the titles of WARCs without an extract of text: 1"]
    assert found["urls"]
