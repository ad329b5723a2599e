"""A crawl that was cut short and continued: for a person one crawl, in its WACZ, its report and its page."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import preloaded
import pytest
from sites.several_hosts import page, serve

from tasks.config.folders import VARIABLE
from warcmill.launches import crawl_parts
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch
from warcmill.stores.file import FileStore

PAGES = 20
JOB = "a-example"
HERE = ("--allow-private", "127.0.0.0/8", "--no-delay", "--resolve", "a.example=127.0.0.1")


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    pages = {("a.example", f"/{n or ''}"): page([f"/{m}" for m in (2 * n + 1, 2 * n + 2) if m < PAGES], "")
             for n in range(PAGES)}  # fmt: skip
    for n in (1, PAGES - 1):  # of the first part, and of the last
        pages["a.example", f"/{n}"] = page([f"/{m}" for m in (3, 4) if n == 1] + ["http://out.example/"], "")
    with serve(pages) as port:
        yield f"http://a.example:{port}/"


def warcmill(folder: Path, *words: str) -> tuple[int, str, str]:
    env = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = preloaded.run("commands.main", *words, env=env, folder=folder)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory, site: str) -> Path:
    """An archive with a crawl in three parts, and before it another one of the same job."""
    folder = tmp_path_factory.mktemp("parts")
    for more in (("--no-line",), ("--limit", "4", "--no-line"), ("--limit", "5", "--no-line"), ()):
        code, out, err = warcmill(folder, "crawl", site, *HERE, *more)
        assert code == 0, out + err
    return folder


@pytest.fixture
def folder(crawled: Path, tmp_path: Path) -> Path:
    """A copy of it, whose luigi.cfg names the copy."""
    copied = tmp_path / "parts"
    shutil.copytree(crawled, copied, symlinks=True, ignore=shutil.ignore_patterns("*.wacz"))
    config = copied / "archive/luigi.cfg"
    config.write_text(config.read_text().replace(str(crawled), str(copied)))
    return copied


def launches(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "archive/output/warcs" / JOB).iterdir())


def state(folder: Path) -> MarkerStore:
    return MarkerStore(FileStore("state", folder / "archive/state"))


def pages_of(wacz: Path) -> list[str]:
    with zipfile.ZipFile(wacz) as archive:
        lines = b"".join(archive.read(f"pages/{name}.jsonl") for name in ("pages", "extraPages")).splitlines()
    return [row["url"] for row in map(json.loads, lines) if "url" in row]


def test_the_wacz_of_the_last_part_has_all_pages_and_that_of_a_part_names_the_last(crawled: Path, site: str) -> None:
    whole, first, second, last = launches(crawled)
    assert crawl_parts.of(state(crawled), Launch(JOB, last)).before == (Launch(JOB, first), Launch(JOB, second))
    assert crawl_parts.of(state(crawled), Launch(JOB, first)).before == (), "what it follows in time is another crawl"
    code, out, err = warcmill(crawled, "wacz")
    assert code == 0, err
    assert f"with 2 launches that it continues: {first}, {second}\n" in out
    found = pages_of(crawled / f"{JOB}-{last}.wacz")
    assert found[0] == site, "the home page is a seed"
    assert sorted(found) == sorted(f"{site}{n or ''}" for n in range(PAGES))
    code, out, _ = warcmill(crawled, "wacz", JOB, first)
    assert code == 0
    assert f"launch {last} continues it: warcmill wacz {JOB} {last} has all of it" in out
    assert len(pages_of(crawled / f"{JOB}-{first}.wacz")) == 4
    assert "continues" not in warcmill(crawled, "wacz", JOB, whole)[1]


def test_the_report_is_of_all_parts_and_compares_with_the_crawl_before(crawled: Path, site: str) -> None:
    whole, first, second, _ = launches(crawled)
    code, out, err = warcmill(crawled, "report", "--json")
    assert code == 0, err
    known = json.loads(out)
    assert known["continues"] == [first, second]
    assert known["crawl"]["by_status"] == {"200": PAGES, "404": 1, "1001": 1}
    assert [(seed["seed"], seed["state"]) for seed in known["seeds"]["seeds"]] == [(site, "alive")]
    assert known["before"]["before"] == whole
    assert known["before"]["counts"]["gone"] == 0
    left_out = [(one["bound"], one["number"], one["first"]) for one in known["bounds"]]
    assert left_out == [("scope", 2, "http://out.example/")], "the last part got what the limits of the others left"
    cut = json.loads(warcmill(crawled, "report", JOB, second, "--json")[1])["bounds"]
    assert [(one["bound"], one["value"], one["number"] > 0) for one in cut] == [
        ("documents", 5, True),
        ("scope", 0, True),
    ]
    assert f"one crawl with {first}, {second}, which it continues" in warcmill(crawled, "report")[1]


def test_a_part_without_markers_is_named_and_the_code_is_1(folder: Path) -> None:
    _, first, second, last = launches(folder)
    (lost,) = (folder / "archive/state").glob(f"*/{JOB}/{first}")
    shutil.rmtree(lost)
    code, out, err = warcmill(folder, "wacz", JOB, last, "-o", "lost.wacz")
    missing = f"{second} continues {first}, which has no marker in the state"
    assert (code, f"missing: the crawl before: {missing}" in out) == (1, True), out + err
    assert len(pages_of(folder / "lost.wacz")) == PAGES - 4
    assert f"a part of the crawl is missing: {missing}" in warcmill(folder, "report", JOB, last)[1]


@pytest.mark.parametrize("named", [True, False])
def test_parts_that_another_line_takes_up_are_counted_as_one_crawl(crawled: Path, tmp_path: Path, named: bool) -> None:
    _, first, second, last = launches(crawled)
    no_state = shutil.ignore_patterns(".warcmill.json", "state")
    for name in ("output", "jobs"):
        shutil.copytree(crawled / "archive" / name, tmp_path / name, symlinks=True, ignore=no_state)
    assert warcmill(tmp_path, "init", ".", "--output", "output", "--jobs", "jobs")[0] == 0
    if not named:
        (tmp_path / "jobs" / JOB / last / "continues").unlink()
    code, out, err = warcmill(tmp_path, "scan", f"{last[:4]}-{last[4:6]}-{last[6:8]}")
    before = (Launch(JOB, first), Launch(JOB, second)) if named else ()
    assert crawl_parts.of(MarkerStore(FileStore("state", tmp_path / "state")), Launch(JOB, last)).before == before
    assert "other count" not in out, err
    assert (code, "no gap\n" in out) == ((0, True) if named else (1, False)), "a seed is of an earlier part"


def test_a_part_of_which_a_stored_warc_is_gone_is_named_and_nothing_is_written(folder: Path) -> None:
    _, first, _, last = launches(folder)
    (warc,) = (folder / "archive/store/warcs" / JOB / first).glob("*.warc.gz")
    warc.unlink()
    code, _, err = warcmill(folder, "wacz", JOB, last)
    assert (code, warc.name in err) == (1, True), err
    assert not [*folder.glob("*.wacz")]


def test_a_chain_that_leads_to_a_later_launch_ends_there(folder: Path) -> None:
    _, first, _, last = launches(folder)
    store = state(folder)
    (started,) = (folder / "archive/state").glob(f"*/{JOB}/{first}/01.jobs*started")
    claim = next(one.claim for name, one in store.folder(Launch(JOB, first)).items() if name == started.name)
    started.unlink()
    facts = {**claim.facts, "continues": {"launch_id": last, "checkpoint": "cp00009-20300101000000"}}
    claim.facts.clear()
    claim.facts.update(facts)
    store.publish(claim.key, claim)
    known = crawl_parts.of(state(folder), Launch(JOB, last))
    assert known.before[0] == Launch(JOB, first)
    assert known.broken == f"{first} should continue {last}, which did not begin before it"


def test_the_report_names_seeds_and_scope_that_were_taken_away_by_hand(tmp_path: Path, site: str) -> None:
    code, out, err = warcmill(tmp_path, "crawl", f"{site}3", f"{site}4", *HERE, "--hops", "1")
    assert code == 0, out + err
    seeds = tmp_path / "archive/jobs" / JOB / "seeds.txt"
    seeds.write_text(f"# one is enough\n{site}3\n")
    configuration = seeds.with_name("crawl.toml")
    configuration.write_text(configuration.read_text().replace("hops = 1", "hops = 0"))
    assert warcmill(tmp_path, "pulse", "start", JOB, "--again")[0] == 0
    assert warcmill(tmp_path, "pulse", "stop", JOB)[0] == 0
    assert warcmill(tmp_path, "scan")[0] == 0
    first, second = launches(tmp_path)
    gone, hops = f"1 of 2 seeds are gone: {site}4", "at most 0 hops from a seed, not 1"
    told = warcmill(tmp_path, "report")[1].splitlines()
    assert told[:3] == [
        f"{JOB}/{second}", f"asked for less than launch {first}: {gone}", f"asked for less than launch {first}: {hops}"
    ]  # fmt: skip
    assert json.loads(warcmill(tmp_path, "report", "--json")[1])["less"] == {"than": first, "what": [gone, hops]}
    assert "less" not in json.loads(warcmill(tmp_path, "report", JOB, first, "--json")[1])


def test_a_launch_that_runs_becomes_no_wacz(tmp_path: Path, site: str) -> None:
    code, out, err = warcmill(tmp_path, "crawl", site, *HERE)
    assert code == 0, out + err
    (ended,) = launches(tmp_path)
    slow = tmp_path / "archive/jobs" / JOB / "crawl.toml"
    slow.write_text(f"{slow.read_text().replace('no_delay = true', '')}\n[politeness]\nleast = 3600\nmost = 3600\n")
    assert warcmill(tmp_path, "pulse", "start", JOB, "--again")[0] == 0
    _, running = launches(tmp_path)
    code, _, err = warcmill(tmp_path, "wacz", JOB, running)
    assert (code, f"{JOB}/{running} is not ready: it has not ended, and its WACZ would lack" in err) == (1, True), err
    code, out, err = warcmill(tmp_path, "wacz")
    assert (code, out.startswith(f"{JOB}-{ended}.wacz")) == (0, True), err
    assert f"{JOB}/{running} has not ended; the newest launch that has is {JOB}/{ended}" in err
    assert warcmill(tmp_path, "pulse", "stop", JOB)[0] == 0
    code, _, err = warcmill(tmp_path, "wacz", "-o", "later.wacz")
    assert (code, f"it is not in the store yet; run: warcmill scan {running[:4]}-" in err) == (1, True), err


def test_a_crawl_that_was_cut_when_it_had_all_ends_well_with_a_part_that_gets_nothing(
    tmp_path: Path, site: str
) -> None:
    for documents in (f"{PAGES} documents", "0 documents"):
        code, out, err = warcmill(tmp_path, "crawl", site, *HERE, "--limit", str(PAGES))
        assert (code, documents in out) == (0, True), out + err
    code, _, err = warcmill(tmp_path, "wacz", "-o", "all.wacz")
    assert (code, len(pages_of(tmp_path / "all.wacz"))) == (0, PAGES), err
