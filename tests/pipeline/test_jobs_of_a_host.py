"""Several crawls of one host, as persons type them: none rewrites the job of another, and none continues it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import preloaded
import pytest
from sites.several_hosts import page, serve

from warcmill.crawl.launch import job_log

PAGES = 15
HERE = (
    "--allow-private",
    "127.0.0.0/8",
    "--no-delay",
    "--resolve",
    "a.example=127.0.0.1",
    "--resolve",
    "b.example=127.0.0.1",
    "--no-line",
)


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    pages = {(host, f"/{n or ''}"): page([f"/{m}" for m in (2 * n + 1, 2 * n + 2) if m < PAGES], "")
             for n in range(PAGES) for host in ("a.example", "b.example")}  # fmt: skip
    with serve(pages) as port:
        yield f"http://a.example:{port}/"


def warcmill(folder: Path, *words: str) -> tuple[int, str, str]:
    env = {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"}
    done = preloaded.run("commands.main", *words, env=env, folder=folder)
    return done.returncode, done.stdout, done.stderr


def crawl(folder: Path, *words: str) -> str:
    code, out, err = warcmill(folder, "crawl", *words, *HERE)
    assert code == 0, out + err
    return out


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def jobs(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "archive/jobs").iterdir() if path.is_dir())


def papers(folder: Path, name: str) -> dict[str, str]:
    return {path.name: path.read_text() for path in (folder / "archive/jobs" / name).glob("*.t*")}


def launches(folder: Path, name: str) -> list[str]:
    return sorted(path.name for path in (folder / "archive/jobs" / name).glob("20*"))


def test_another_list_or_scope_is_another_job_and_the_same_ones_are_the_same(tmp_path: Path, site: str) -> None:
    assert "a-example:" in crawl(tmp_path, site)
    whole = papers(tmp_path, "a-example")
    first = crawl(tmp_path, f"{site}3", "--scope", "page").splitlines()[0]
    assert first == "a-example-2: a new job, as a-example has other seeds and another scope"
    first = crawl(tmp_path, site, "--hops", "1").splitlines()[0]
    assert first == "a-example-3: a new job, as a-example has another scope"
    for words in ((f"{site}3", f"{site}3", "--scope", "page"), (f"{site}3", "--scope", "page", "--limit", "1")):
        first = crawl(tmp_path, *words).splitlines()[0]
        assert (
            first
            == "a-example-2: the job with these seeds and this scope, as a-example has other seeds and another scope"
        )
    crawl(tmp_path, site[:-1].upper().replace("HTTP", "http"), "--scope", "root", "--hops", "20")
    assert jobs(tmp_path) == ["a-example", "a-example-2", "a-example-3"]
    assert [len(launches(tmp_path, name)) for name in jobs(tmp_path)] == [2, 3, 1]
    assert papers(tmp_path, "a-example") == whole | {"crawl.toml": f"{whole['crawl.toml']}hops = 20\n"}
    crawl(tmp_path, f"{site}4", f"{site}5")
    crawl(tmp_path, f"{site}5", f"{site}4")
    assert len(launches(tmp_path, "a-example-4")) == 2
    both = (site, site.replace("a.example", "b.example"))
    for words in (both, both[::-1]):
        crawl(tmp_path, *words, "--hops", "2", "--resolve", "b.example=127.0.0.1")
    assert (len(launches(tmp_path, "a-example-5")), "b-example" in jobs(tmp_path)) == (2, False)


def test_a_job_that_is_named_is_replaced_only_with_a_word_and_its_checkpoint_is_left(tmp_path: Path, site: str) -> None:
    crawl(tmp_path, site, "--limit", "3")
    assert "a-example: continues from cp00001" in crawl(tmp_path, site, "--limit", "3")
    before = everything(tmp_path)
    words = (f"{site}3", "--scope", "page", "--job", "a-example")
    code, out, err = warcmill(tmp_path, "crawl", *words, *HERE)
    assert (code, out, everything(tmp_path) == before) == (1, "", True), err
    assert f"it has other seeds ({site}, not {site}3) and another scope" in err
    assert err.rstrip().endswith(f"warcmill crawl {' '.join((*words, *HERE))} --replace")
    out = crawl(tmp_path, *words, "--replace")
    assert out.startswith("a-example: its seeds and scope are replaced; until now it has other seeds"), out
    assert "a-example: begins afresh: checkpoint cp00002-" in out
    assert "1 document (1 x 200)" in out
    code, _, err = warcmill(tmp_path, "crawl", site, *HERE, "--replace")
    assert (code, "--replace is for the job that --job names" in err) == (2, True)


def test_a_checkpoint_is_not_continued_under_a_scope_that_was_edited(tmp_path: Path, site: str) -> None:
    crawl(tmp_path, site, "--limit", "3")
    folder = tmp_path / "archive/jobs/a-example"
    (checkpoint,) = (folder / "checkpoints").iterdir()
    (folder / "exclude.txt").write_text(f"http://(example,a,:{site.rpartition(':')[2][:-1]})/4\n")
    code, _, err = warcmill(tmp_path, "pulse", "start", "a-example", "--checkpoint", checkpoint.name)
    assert (code != 0, f"a-example {checkpoint.name}: it cannot be continued: it has another scope" in err) == (
        True,
        True,
    ), err
    assert len(launches(tmp_path, "a-example")) == 1
    code, out, err = warcmill(tmp_path, "pulse", "start", "a-example", "--again")
    assert code == 0, out + err


def test_of_two_crawls_of_one_host_that_begin_at_once_each_has_its_job(tmp_path: Path, site: str) -> None:
    assert warcmill(tmp_path, "init", "archive")[0] == 0
    with ThreadPoolExecutor() as both:
        done = [both.submit(crawl, tmp_path, *words) for words in ((site,), (f"{site}3", "--scope", "page"))]
    outs = [one.result() for one in done]
    assert jobs(tmp_path) == ["a-example", "a-example-2"], outs
    assert [len(launches(tmp_path, name)) for name in jobs(tmp_path)] == [1, 1]
    assert sum("a-example-2: a new job" in out for out in outs) == 1


HERITRIX = "[engine.h3]\nkind=heritrix\nurl=https://127.0.0.1:1\nuser=u\npassword=${HOME}\ncertificate=" + 32 * "ab"


@pytest.mark.parametrize(
    ("name", "config", "files", "why"),
    [
        ("another engine", f"{HERITRIX}\njobs=a-example\n", {}, "another engine crawls it"),
        ("a feed", "[feed]\njobs=a-example\n", {}, "its seeds are those of [feed] jobs"),
        (
            "broken",
            "",
            {"crawl.toml": "# Written by 'warcmill crawl', and no TOML\n=", "job.log": ""},
            "it is not TOML",
        ),
        ("no papers", "", {"seeds.txt": "http://a.example/\n"}, "crawl.toml: it is not in"),
        ("scheduled", "[job.a-example]\nfrequency=daily\nstart=2026-01-01\n", {}, "it is scheduled, and has no files"),
    ],
)
def test_a_name_that_something_else_has_is_left_to_it(
    tmp_path: Path, site: str, name: str, config: str, files: dict[str, str], why: str
) -> None:
    assert warcmill(tmp_path, "init", "archive")[0] == 0
    with (tmp_path / "archive/luigi.cfg").open("a") as text:
        text.write(f"\n{config}")
    folder = tmp_path / "archive/jobs/a-example"
    if files:
        folder.mkdir()
    for file, content in files.items():
        (folder / file).write_text(content)
    before = everything(folder)
    first = crawl(tmp_path, f"{site}3", "--scope", "page").splitlines()[0]
    assert first.startswith("a-example-2: a new job, as a-example cannot be compared: "), name
    assert why in first
    assert everything(folder) == before


def test_a_crawl_is_refused_before_a_scheduled_one_is_launched_and_writes_nothing(tmp_path: Path, site: str) -> None:
    crawl(tmp_path, site)
    with (tmp_path / "archive/luigi.cfg").open("a") as text:
        text.write("\n[job.a-example]\nfrequency=daily\nstart=2026-01-01T00:00:00Z\n")
    before = everything(tmp_path)
    code, out, err = warcmill(tmp_path, "crawl", site, *HERE, "--limit", "2")
    assert (code, out, everything(tmp_path) == before) == (1, "", True), err
    assert err.rstrip().endswith("is not launched yet; next: warcmill pulse start a-example")
    assert warcmill(tmp_path, "pulse", "start", "a-example")[0] == 0
    folder = tmp_path / "archive/jobs/a-example"
    while not (last := job_log.last(folder)) or not last.ended or not last.empty:
        time.sleep(0.02)
    papers = {path: path.read_bytes() for path in folder.glob("*.t*")}
    out = crawl(tmp_path, site, "--limit", "2")
    assert "a-example: for this crawl alone, not for those of its schedule: limits" in out
    assert "ended by --limit: 2 of " in out
    assert {path: path.read_bytes() for path in papers} == papers
    out = crawl(tmp_path, site, "--job", "a-example", "--limit", "1", "--replace")
    assert "documents = 1" in (folder / "crawl.toml").read_text(), out
