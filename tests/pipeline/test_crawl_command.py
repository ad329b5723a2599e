"""`warcmill crawl` as a person types it, on a real site: from a URL to an archive in which nothing is missing."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import preloaded
import pytest
from sites.fed_web import site_of
from sites.name_server import SILENT, name_server
from sites.several_hosts import Page, page, serve
from storing import full_disk

from commands.console import crawl as crawl_launch
from warcmill.base import clock
from warcmill.crawl.control import control
from warcmill.crawl.engine import OUTPUT
from warcmill.crawl.fetch import addresses
from warcmill.crawl.launch import folders, job_log
from warcmill.crawl.launch.folders import CONTROL
from warcmill.formats.logs import crawllog

PAGES = 80
HERE = ["--allow-private", "127.0.0.0/8", "--no-delay", "--resolve", "a.example=127.0.0.1"]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    site = {("a.example", f"/{n or ''}"): page([f"/{m}" for m in (2 * n + 1, 2 * n + 2) if m < PAGES], "/i.png")
            for n in range(PAGES)}  # fmt: skip
    site["a.example", "/i.png"] = Page(b"png", "image/png")
    site["a.example", "/robots.txt"] = Page(b"User-agent: *\nDisallow: /private\n", "text/plain")
    with serve(site) as port:
        yield port


def begun(folder: Path, *words: str) -> tuple[preloaded.Process, int]:
    """The command, in a folder of a person who has set nothing up, and the terminal that it prints to."""
    env = {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"}
    ours, theirs = pty.openpty()
    process = preloaded.start("commands.main", "crawl", *words, env=env, folder=folder, out=theirs, err=theirs)
    os.close(theirs)
    return process, ours


def printed(terminal: int, last: bytes = b"") -> str:
    """What is printed to a terminal, up to some words, else until nobody has it open any more."""
    told = b""
    with suppress(OSError):
        while not (last and last in told):
            told += os.read(terminal, 1 << 16)
    return told.decode()


def crawl(folder: Path, *words: str) -> tuple[int, str, str]:
    """The same, without a signal."""
    env = {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"}
    done = preloaded.run("commands.main", "crawl", *words, env=env, folder=folder)
    return done.returncode, done.stdout, done.stderr


def warcmill(folder: Path, *words: str) -> tuple[int, str]:
    env = {**os.environ, "LUIGI_CONFIG_PATH": str(folder / "archive/luigi.cfg")}
    done = preloaded.run("commands.main", *words, env=env)
    return done.returncode, done.stdout


def logged(folder: Path, job: str) -> list[str]:
    found: list[str] = []
    for path in (folder / "archive/output/logs" / job).rglob("crawl.log*"):
        if path.suffix != ".orphan":
            with path.open("rb") as stream:
                found += [line.uri for line in crawllog.lines(stream) if isinstance(line, crawllog.CrawlRecord)]
    return found


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def job(folder: Path, name: str) -> Path:
    return folder / "archive/jobs" / name


def until_it_runs(folder: Path, name: str) -> None:
    deadline = time.monotonic() + 300
    while not ((holder := folders.holder(job(folder, name) / "state")) and holder.launch):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def until_it_has_fetched(folder: Path, name: str) -> folders.Holder:
    deadline = time.monotonic() + 300
    while True:
        holder = folders.holder(job(folder, name) / "state")
        if holder and holder.launch and len(logged(folder, name)) > 5:
            return holder
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_url_becomes_an_archive_in_which_nothing_is_missing_with_ctrl_c_on_the_way(tmp_path: Path, port: int) -> None:
    words = (f"http://a.example:{port}/", *HERE)
    process, terminal = begun(tmp_path, *words)
    with process, closing(os.fdopen(terminal)):
        until_it_has_fetched(tmp_path, "a-example")
        told = printed(terminal, b" queued, ")  # it shows progress: from now on, Ctrl-C is for the crawl
        control.ask(job(tmp_path, "a-example") / "state" / CONTROL, "pause")
        assert crawl(tmp_path, *words)[0] == 5, "it runs already"
        process.send_signal(signal.SIGINT)
        told += printed(terminal)
    assert (process.returncode, "the same command continues" in told) == (130, True), told
    assert f"made a new archive: {tmp_path}/archive" in told
    last = job_log.last(job(tmp_path, "a-example"))
    assert last
    assert (last.word, bool(last.checkpoint), last.empty) == ("FINISHED", True, False)
    code, out, err = crawl(tmp_path, *words)
    assert (code, f"a-example: continues from {last.checkpoint}" in out) == (0, True), err
    assert "no gap" in out
    assert f"archive: {tmp_path}/archive/store\nlook at it: warcmill serve\n" in out
    found = logged(tmp_path, "a-example")
    assert len(found) == len(set(found)) == PAGES + 3
    warcs = [str(path) for path in (tmp_path / "archive/store").rglob("*.warc.gz")]
    assert len(warcs) == 2
    assert warcmill(tmp_path, "check", *warcs)[0] == 0
    assert subprocess.run([Path(sys.executable).with_name("warcio"), "check", *warcs], check=False).returncode == 0
    code, said = warcmill(tmp_path, "pulse", "status", "--json")
    (known,) = json.loads(said)["jobs"]
    assert (code, known["job"], known["state"], known["running"]) == (0, "a-example", "FINISHED", False)


def test_on_a_terminal_a_bar_is_followed_by_ten_lines_at_most(tmp_path: Path, port: int) -> None:
    process, terminal = begun(tmp_path, f"http://a.example:{port}/", "http://b.invalid/", *HERE, "--limit", "3")
    with process, closing(os.fdopen(terminal)):
        told = printed(terminal)
    _, _, after = told.rpartition("\x1b[?25h")  # it shows the cursor again
    last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", after).strip().splitlines()
    assert "look at it: warcmill serve" in last, told
    assert len(last) <= 10, told
    assert "verified" not in told, "the table of the scan"


def test_ctrl_c_while_a_crawl_is_started_leaves_none_that_runs(tmp_path: Path, port: int) -> None:
    words = (f"http://a.example:{port}/", *HERE, "--job", "early", "--no-line")
    process, terminal = begun(tmp_path, *words)
    with process, closing(os.fdopen(terminal)):
        until_it_runs(tmp_path, "early")
        process.send_signal(signal.SIGINT)
        told = printed(terminal)
    assert (process.returncode, "the same command continues" in told) == (130, True), told
    assert folders.holder(job(tmp_path, "early") / "state") is None
    code, _, err = crawl(tmp_path, *words)
    assert code == 0, err
    found = logged(tmp_path, "early")
    assert len(found) == len(set(found)) == PAGES + 3


def test_a_crawl_whose_process_is_killed_goes_on(tmp_path: Path, port: int) -> None:
    words = (f"http://a.example:{port}/", *HERE, "--job", "news", "--no-line")
    process, terminal = begun(tmp_path, *words)
    with process, closing(os.fdopen(terminal)):
        holder = until_it_has_fetched(tmp_path, "news")
        printed(terminal, b" queued, ")
        with (job(tmp_path, "news") / "state" / OUTPUT).open("a") as output:
            output.write("/full: No space left on device\n")
        os.kill(holder.pid, signal.SIGKILL)
        told = printed(terminal)
    assert (process.returncode, "(/full: No space left on device); the next start" in told) == (1, True), told
    code, out, err = crawl(tmp_path, *words)
    assert (code, "continues from cp00001-" in out) == (0, True), err
    found = logged(tmp_path, "news")
    assert len(found) == len(set(found)) == PAGES + 3


def test_a_full_disk_is_named_and_with_room_again_the_same_command_continues(tmp_path: Path, port: int) -> None:
    words = (f"http://a.example:{port}/", *HERE, "--job", "full", "--no-line")
    full = tmp_path / "full"
    path = os.pathsep.join(str(Path(full_disk.__file__).parent / one) for one in ("full_disk_from_the_start", "."))
    env = {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"}
    env |= {"PYTHONPATH": path, full_disk.VARIABLE: str(full)}
    command = [sys.executable, "-m", "commands.main", "crawl", *words]
    with subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as process:
        until_it_has_fetched(tmp_path, "full")
        full.touch()
        told = process.communicate()[1]
    named = "is unavailable: No space left on device; make room on its disk, and do the same again"
    assert (process.returncode, told.count(named), "the same command" in told) == (4, 1, True), told
    for log in (job(tmp_path, "full") / "job.log", job(tmp_path, "full") / "latest/job.log"):
        last = log.read_text().splitlines()[-1]
        assert (" SEVERE BROKE-OFF " in last, named in last) == (True, True), last
    code, said = warcmill(tmp_path, "why", "full")
    assert (code, named in " ".join(said.split())) == (4, True), said
    full.unlink()
    code, out, err = crawl(tmp_path, *words)
    assert (code, "continues from cp00001-" in out) == (0, True), err
    found = logged(tmp_path, "full")
    assert len(found) == len(set(found)) == PAGES + 3
    assert not (job(tmp_path, "full") / "state/ballast").exists()


@pytest.mark.parametrize(
    ("gone", "why"),
    [
        ("output/warcs/NAME", "output/warcs/NAME/LAUNCH is unavailable: it was deleted while the crawl used it"),
        ("jobs/NAME", "jobs/NAME is unavailable: launch LAUNCH is not in its job.log any more: the folder was deleted"),
        ("jobs/NAME/state/lock", "jobs/NAME/state/lock is unavailable: it was deleted while the crawl used it"),
    ],
)
def test_a_crawl_whose_folder_or_lock_is_deleted_ends_and_names_it(
    tmp_path: Path, port: int, gone: str, why: str
) -> None:
    name = f"lost-{len(gone)}"
    process, terminal = begun(tmp_path, f"http://a.example:{port}/", *HERE, "--job", name, "--no-line")
    with process, closing(os.fdopen(terminal)):
        holder = until_it_has_fetched(tmp_path, name)
        control.ask(job(tmp_path, name) / "state" / CONTROL, "pause")
        told = printed(terminal, b" queued, ")
        lost = tmp_path / "archive" / gone.replace("NAME", name)
        shutil.rmtree(lost) if lost.is_dir() else lost.unlink()
        told += printed(terminal)
    assert (process.returncode, why.replace("NAME", name).replace("LAUNCH", holder.launch) in told) == (4, True), told
    while Path(f"/proc/{holder.pid}/exe").exists():
        time.sleep(0.02)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, port: int) -> Path:
    """A folder with an archive, and one job in it."""
    folder = tmp_path_factory.mktemp("archive")
    assert crawl(folder, f"http://a.example:{port}/", *HERE, "--limit", "1", "--no-line")[0] == 0
    return folder


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 2, "URL"),
        (("SITE", "--no-delay"), 2, "--no-delay is for the addresses that --allow-private names"),
        (("SITE", "--allow-private", "inside"), 2, "--allow-private"),
        (("SITE", "--resolve", "a.example"), 2, "HOST=ADDRESS"),
        (("ftp://a.example/",), 2, "ftp: is not fetched"),
        (("SITE", "--config", "wrong.toml"), 3, "did you mean workers?"),
        (("SITE", "--config", "none.toml"), 3, "none.toml"),
        (("SITE", "--config", "pages.toml"), 3, "--config pages: --scope decides it, which is root"),
        (("SITEprivate", *HERE, "--job", "robots"), 1, "robots.txt says Disallow: /private"),
    ],
)
def test_what_it_refuses(archive: Path, port: int, words: tuple[str, ...], code: int, message: str) -> None:
    (archive / "wrong.toml").write_text("wrkers = 3\n")
    (archive / "pages.toml").write_text("[pages]\n'http://a.example/' = 'plus1'\n")
    before = (archive / "archive/luigi.cfg").read_text()
    got, _, err = crawl(archive, *(word.replace("SITE", f"http://a.example:{port}/") for word in words))
    assert (got, message in err) == (code, True), err
    assert code == 1 or (archive / "archive/luigi.cfg").read_text() == before


INSIDE = "127.0.0.1 is not dialled: loopback; to crawl it, add --allow-private 127.0.0.1"
REFUSED = [
    (("ftp://a.example/",), 2, "ftp: is not fetched"),
    (("https://a.example/", "https://a b/"), 2, "not a URI with scheme and host"),
    (("http://127.0.0.1/",), 1, f"http://127.0.0.1/: {INSIDE}"),
    (("http://[::1]/", "--allow-private", "10.0.0.0/8"), 1, "to crawl it, add --allow-private ::1"),
    (("http://a.example/", "--resolve", "a.example=127.0.0.1"), 1, f"http://a.example/: {INSIDE}"),
    (("http://a.example/", "--config", "none.toml"), 3, "none.toml"),
    (("http://a.example/", "--config", "wrong.toml"), 3, "did you mean workers?"),
]


@pytest.mark.parametrize(("words", "code", "message"), REFUSED)
@pytest.mark.parametrize("is_there", [False, True])
def test_a_start_that_is_refused_leaves_nothing(
    tmp_path: Path, words: tuple[str, ...], code: int, message: str, is_there: bool
) -> None:
    if is_there:
        assert preloaded.run("commands.main", "init", str(tmp_path / "archive"), env=dict(os.environ)).returncode == 0
    (tmp_path / "wrong.toml").write_text("wrkers = 3\n")
    before = everything(tmp_path)
    got, out, err = crawl(tmp_path, *words)
    assert (got, message in err, out) == (code, True, ""), err
    assert code != 1 or "no URL can be fetched; nothing was begun" in err
    assert everything(tmp_path) == before


@pytest.mark.parametrize(
    ("zone", "code", "message"),
    [
        ({}, 1, "http://a.example/: a.example: no such name"),
        ({"a.example": ["60 TXT none"]}, 1, "a.example: it has no address"),
        ({"a.example": ["60 A 10.1.2.3"]}, 1, "10.1.2.3 is not dialled: private; to crawl it, add --allow-private"),
        ({"a.example": [SILENT]}, 4, "a.example: no name server answered in 0.2 s"),
        ({"b.example": ["60 A 93.184.216.34"]}, 0, ""),
    ],
)
def test_a_name_without_an_address_begins_nothing(
    zone: dict[str, list[str]], code: int, message: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(addresses, "LIFETIME", 0.2)

    async def refused() -> int:
        async with name_server(zone) as server:
            settings = f'name_servers = ["127.0.0.1:{server.port}"]\n'.encode()
            files = {"crawl.toml": settings, "seeds.txt": b"http://a.example/\nhttp://b.example/\n"}
            return await asyncio.to_thread(crawl_launch.refused, crawl_launch.CrawlPlan("a", files))

    assert asyncio.run(refused()) == code
    err = capsys.readouterr().err
    assert message in err
    assert code == 0 or err.endswith("a: no URL can be fetched; nothing was begun\n")


def test_a_url_that_cannot_be_fetched_beside_one_that_can_is_crawled_and_dead(tmp_path: Path, port: int) -> None:
    words = (f"http://a.example:{port}/", "http://10.1.2.3/", *HERE, "--hops", "0", "--no-line")
    code, out, err = crawl(tmp_path, *words)
    assert (code, "http://10.1.2.3/" in out + err) == (1, True), "a dead seed is named"
    assert "http://10.1.2.3/" in logged(tmp_path, "a-example")


def test_the_exit_code_is_of_its_own_launch_whatever_else_the_day_holds(tmp_path: Path, port: int) -> None:
    site = f"http://a.example:{port}/"
    assert crawl(tmp_path, site, *HERE, "--job", "cut", "--limit", "1", "--no-line")[0] == 0
    (warc,) = (tmp_path / "archive/output/warcs/cut").rglob("*.warc.gz")
    os.truncate(warc, warc.stat().st_size - 10)
    code, out, err = crawl(tmp_path, site, *HERE, "--job", "whole", "--limit", "1")
    assert code == 0, out + err
    assert "what is, is of other crawls of its day" in out
    assert warcmill(tmp_path, "reconcile", clock.stamp_text(warc.parent.name)[:10])[0] == 1


def test_a_crawl_toml_of_a_person_is_not_written_over(archive: Path, port: int) -> None:
    own = job(archive, "a-example") / "crawl.toml"
    before = own.read_text()
    own.write_text("hops = 2\n")
    code, _, err = crawl(archive, f"http://a.example:{port}/", *HERE)
    assert (code, "has one of its own" in err, own.read_text()) == (3, True, "hops = 2\n"), err
    own.write_text(before)


def test_after_a_limit_the_same_command_goes_on(archive: Path, port: int) -> None:
    words = (f"http://a.example:{port}/", *HERE, "--job", "some", "--limit", "3", "--no-line")
    for _ in range(2):
        code, out, err = crawl(archive, *words)
        assert (code, "3 documents" in out) == (0, True), err
    found = logged(archive, "some")
    assert len(found) == len(set(found)) == 2 + 3 + 3
    first, second = sorted((job(archive, "some") / "checkpoints").iterdir())
    os.truncate(second / "books.sqlite", 4096)
    code, out, err = crawl(archive, *words)
    assert (code, f"some: continues from {first.name}" in out) == (0, True), err
    assert f"some: checkpoint {second.name}: books.sqlite should have" in err


def test_of_two_commands_at_once_one_crawls_and_the_other_names_its_launch(archive: Path, port: int) -> None:
    slow = ("--allow-private", "127.0.0.0/8", "--resolve", "a.example=127.0.0.1", "--job", "twice", "--limit", "2")
    words = [f"http://a.example:{port}/", *slow, "--no-line"]
    config = (archive / "archive/luigi.cfg").rename(archive / "luigi-of-the-host.cfg")
    (archive / "archive/luigi.cfg").symlink_to(config)
    with ThreadPoolExecutor() as both:
        done = [both.submit(crawl, archive, *words) for _ in range(2)]
    (first, out, _), (second, _, err) = sorted(one.result() for one in done)
    assert (first, second, "2 documents" in out, "job twice: launch 20" in err) == (0, 5, True, True), out + err
    assert config.read_text().count("twice") == 1, "the file itself, where luigi.cfg is a link"


def test_no_hops_are_the_page_and_what_it_embeds(tmp_path: Path, port: int) -> None:
    code, out, err = crawl(tmp_path, f"http://a.example:{port}/", *HERE, "--hops", "0", "--no-line")
    assert code == 0, out + err
    fetched = {uri.rpartition("/")[2] for uri in logged(tmp_path, "a-example") if uri.startswith("http")}
    assert fetched == {"", "robots.txt", "i.png"}


@pytest.mark.parametrize("word", ["page", "resource"])
def test_a_page_is_fetched_with_all_its_parts_and_nothing_else(tmp_path: Path, word: str) -> None:
    site = {name: found for name, found in site_of("a.example", 80).items() if name[0] == "img.example"}
    with serve(site) as parts:
        away = f"http://img.example:{parts}/a.example"
        body = f'<link rel=stylesheet href="{away}.css"><iframe src="{away}.html"></iframe><a href="/1">x</a>'
        site["a.example", "/"] = Page(body.encode())
        words = (f"http://a.example:{parts}/", *HERE, "--resolve", "img.example=127.0.0.1", "--no-line")
        code, out, err = crawl(tmp_path, *words, "--scope", word)
    assert (code, "6 documents (6 x 200)" in out) == (0, True), out + err
    fetched = {uri.rpartition("/")[2] for uri in logged(tmp_path, "a-example") if uri.startswith("http")}
    parts_of_it = {"a.example.css", "a.example-more.css", "a.example.woff", "a.example.html", "a.example-3.png"}
    assert fetched == {"", "robots.txt", *parts_of_it}


def test_a_job_is_added_to_a_luigi_cfg_as_a_person_wrote_it(tmp_path: Path, port: int) -> None:
    assert warcmill(tmp_path, "init", str(tmp_path / "archive"))[0] == 0
    config = tmp_path / "archive/luigi.cfg"
    top, of_alpha = "  # Ours.\n", "\n[engine.crawl]\nkind=warcmill\njobs: alpha\n# The end."
    written = f"{top}{config.read_text()}{of_alpha}".replace("\n", "\r\n").encode()
    config.write_bytes(written)
    code, _, told = crawl(tmp_path, f"http://a.example:{port}/", "--job", "third", "--limit", "1", *HERE)
    assert code == 0, told
    assert config.read_bytes() == written.replace(b"jobs: alpha", b"jobs: alpha,third")
