"""WACZ files as warcmill writes them, judged by `wacz validate`: each case, and one that was changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import preloaded
import pytest
from indexing.indexed import Archive
from launches import chain as steps
from launches.engine import Engine, line_of
from packing.packages import HOSTILE
from packing.wacz_judge import VALID, validate
from records.captures import response, revisit
from records.warcs import WEEKLY, sha1, warc_gz, warcinfo

from servers import packages
from warcmill.extracts.extracts import Extracts
from warcmill.model import FINAL, Stage
from warcmill.package.wacz import WaczSources, contents, write
from warcmill.versions import hidden_list

CP = Stage.parse("cp00001-20161020000000")
NAMES = [f"BL-20161019234430000-0000{serial}-1~crawler~8443.warc.gz" for serial in range(2)]


def two_stages(made: Engine) -> tuple[Stage, ...]:
    made.logs(line_of("http://news.example/", NAMES[0]).replace(" L http", " - http"), stage=str(CP))
    made.logs(line_of("http://b.example/", NAMES[1]))
    for name in NAMES:
        made.warc(name, WEEKLY.read_bytes())
    return (CP, FINAL)


def hostile_names(made: Engine) -> tuple[Stage, ...]:
    made.logs(*(line_of("http://a.example/", name) for name in HOSTILE))
    for name in HOSTILE:
        made.warc(name, WEEKLY.read_bytes())
    return (FINAL,)


def without_captures(made: Engine) -> tuple[Stage, ...]:
    made.logs()
    made.warc(NAMES[0], warc_gz(warcinfo()))
    return (FINAL,)


def made(folder: Path, lay_out: Callable[[Engine], tuple[Stage, ...]]) -> Path:
    engine = Engine(folder / "line")
    stages = lay_out(engine)
    engine.finish()
    for stage in stages:
        steps.assembled(engine, stage)
        steps.upto(engine, "Verify", stage)
    path = folder / "made.wacz"
    what = contents(engine.state, engine.launch, None)
    with path.open("wb") as file:
        write(WaczSources(engine.state, engine.store, None, folder), what, file, lambda _: None)
    return path


@pytest.mark.parametrize("lay_out", [two_stages, hostile_names, without_captures])
def test_it_is_valid(lay_out: Callable[[Engine], tuple[Stage, ...]], tmp_path: Path) -> None:
    assert validate(made(tmp_path, lay_out)) == (0, VALID)


def test_one_that_wacz_create_made_comes_in_and_goes_out(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "crawl-1.log").write_text('{"logLevel": "info"}\n')
    theirs, ours, line = tmp_path / "theirs.wacz", tmp_path / "ours.wacz", tmp_path / "line"
    program = packages.bin_folder("wacz") / "wacz"
    options = ["--detect-pages", "--text", "-l", tmp_path / "logs"]
    subprocess.run([program, "create", "-o", theirs, *options, WEEKLY], check=True, capture_output=True)
    environment = {**os.environ, "LUIGI_CONFIG_PATH": str(line / "luigi.cfg")}

    def warcmill(*words: str) -> str:
        done = preloaded.run("commands.main", *words, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    warcmill("init", str(line))
    taken = json.loads(warcmill("import", str(theirs), "--job", "theirs", "--json"))
    assert (taken["files"], taken["missing"], taken["remarks"], len(taken["papers"])) == (1, [], [], 4)
    warcmill("scan", taken["launch"].partition("/")[2][:4])
    warcmill("wacz", "theirs", "-o", str(ours))
    assert validate(ours) == (0, VALID)
    listed = [set[str](), set[str]()]
    for urls, path in zip(listed, (theirs, ours), strict=True):
        with ZipFile(path) as archive:
            urls |= {json.loads(page)["url"] for page in archive.read("pages/pages.jsonl").splitlines()[1:]}
    assert listed[0] == listed[1]


def test_one_with_originals_and_without_what_is_hidden_is_valid(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    page = response("http://a.example/", b"Content-Type: text/html", WARC_Payload_Digest=sha1(b"x"))
    archive.add("20161001000000", {"first.warc.gz": warc_gz(warcinfo(), page)})
    again = revisit("http://a.example/", sha1(b"x"))
    launch = archive.add(
        "20161101000000", {"second.warc.gz": warc_gz(warcinfo(), again, response("http://b.example/"))}
    )
    archive.fold()
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,b", "asked for", hides=True)
    path = tmp_path / "made.wacz"
    with path.open("wb") as file:
        sources = WaczSources(archive.state, archive.store, Extracts(archive.index), tmp_path)
        written = write(sources, contents(archive.state, launch, None), file, lambda _: None)
    assert (written.originals.total(), written.hidden.total(), written.lost) == (1, 1, [])
    assert validate(path) == (0, VALID)


def test_the_judge_sees_a_page_that_was_added(tmp_path: Path) -> None:
    path = made(tmp_path, two_stages)
    changed = tmp_path / "changed.wacz"
    with ZipFile(path) as source, ZipFile(changed, "w") as target:
        for one in source.infolist():
            more = b'{"url": "http://x.example/", "ts": "2016-10-19T23:44:28Z"}\n' if "pages" in one.filename else b""
            target.writestr(one, source.read(one) + more)
    assert validate(changed)[0] == 1
    shutil.copy(path, changed)
    assert validate(changed) == (0, VALID)
