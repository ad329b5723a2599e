"""Large pages are read in worker processes: one that reaches a limit costs its own links, and nothing else."""

from __future__ import annotations

import asyncio
import base64
import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from crawls import crawled
from msgspec.structs import replace
from sites.several_hosts import Page, page, serve

from warcmill.base.worker import WorkerLimits
from warcmill.crawl.extract import html
from warcmill.crawl.launch.launch import Running
from warcmill.crawl.visit import extraction
from warcmill.model import Launch

WORDS = b"<p>some words and more</p>" * 12_000
SITE = {
    ("a.example", "/"): page(["/large", "/small"]),
    ("a.example", "/large"): Page(WORDS + b"<a href=/end>x</a>"),
    ("a.example", "/small"): page(["/other"]),
    ("a.example", "/end"): page([]),
    ("a.example", "/other"): page([]),
    ("a.example", "/map.xml"): Page(b"<urlset>" + b"<loc>/end</loc>" * 20_000 + b"</urlset>", "text/xml"),
}


def notes(folder: Path) -> dict[str, tuple[str, ...]]:
    return {
        crawled.plain(line.uri).removeprefix("http://a.example"): line.annotations for line in crawled.lines(folder)
    }


def summary(folder: Path) -> Any:
    return crawled.json_of(folder / "jobs/news" / crawled.LAUNCH.id / "summary.json")


def uri_of(folder: Path, path: str) -> str:
    return next(line.uri for line in crawled.lines(folder) if line.uri.endswith(path))


def test_the_links_of_a_large_page_are_found_by_a_worker(tmp_path: Path) -> None:
    begun = []

    def act(running: Running) -> None:
        begun.append(running.kit.readers)

    with serve(dict(SITE)) as port:
        crawled.crawl(tmp_path, crawled.job(port, "a.example"), act)
    assert notes(tmp_path)["/large"] == ()
    assert crawled.statuses(tmp_path)["http://a.example/end"] == 200
    assert all(worker.has_ended() for worker in begun[0]._workers.all)


def test_a_page_that_takes_all_memory_costs_its_links_and_its_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction, "LIMITS", WorkerLimits(cpu=10, wall=15, memory=1 << 20))
    site = {**SITE, ("a.example", "/large"): Page(b"<a href=/end>x</a>" + b"<p title=x>" * 1_000_000)}
    with serve(site) as port:
        crawled.crawl(tmp_path, crawled.job(port, "a.example"))
    (lost,) = notes(tmp_path)["/large"]
    assert lost.startswith("linksLost:")
    found = summary(tmp_path)
    assert (found["cut"], found["cut_first"]["linksLost"]) == (
        {"linksLost": 1},
        f"{uri_of(tmp_path, '/large')}: {lost.partition(':')[2]}",
    )
    found = crawled.statuses(tmp_path)
    assert (found["http://a.example/large"], found["http://a.example/other"]) == (200, 200)
    assert "http://a.example/end" not in found
    assert crawled.unbalanced(tmp_path) == []


BASE = b"<base href='http://a.example/" + b"b" * 16_000 + b"/'>"


@pytest.mark.parametrize("number", [5_000, 12_000], ids=["read at once", "by a worker"])
def test_links_that_a_limit_left_out_are_named_in_the_log_and_counted(tmp_path: Path, number: int) -> None:
    with serve({**SITE, ("a.example", "/large"): Page(BASE + b"<a href=1>x</a>" * number)}) as port:
        crawled.crawl(tmp_path, crawled.job(port, "a.example"))
    assert notes(tmp_path)["/large"] == ("linksTrunc",)
    assert notes(tmp_path)["/small"] == ()
    assert summary(tmp_path)["cut"] == {"linksTrunc": 1}


@pytest.mark.parametrize(
    ("page", "is_cut"),
    [
        (b"<a href=/" + b"x" * 17_000 + b">", True),
        (b"<img src=data:image/gif;base64," + b"x" * 17_000 + b">", False),
        (b"<script type=application/ld+json>[" + b" " * (1 << 20) + b"]</script>", True),
    ],
    ids=["a longer link than any server takes", "a picture in a link", "a long JSON-LD"],
)
def test_what_is_too_long_to_be_read_is_named_too(page: bytes, is_cut: bool) -> None:
    assert html.links(page, "http://a.example/").cut == is_cut


def test_a_small_file_that_unpacks_to_a_large_sitemap_is_read_by_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = gzip.compress(b"<urlset>" + b"<url><loc>/end</loc></url>" * 200_000 + b"</urlset>")
    assert len(packed) < extraction.SMALL
    seed = f"data:application/gzip;base64,{base64.b64encode(packed).decode()}"
    monkeypatch.setattr(extraction, "COMMAND", ("/bin/false",))
    with serve({**SITE, ("a.example", "/large"): Page(packed, "application/gzip")}) as port:
        job = crawled.job(port, "a.example")
        crawled.crawl(tmp_path, replace(job, seeds=(*job.seeds, seed)))
    found = notes(tmp_path)
    assert [found["/large"], found[seed]] == [("linksLost:it_did_not_begin",)] * 2


def test_a_large_robots_txt_is_read_and_judged_beside_the_loop(tmp_path: Path) -> None:
    rules = [f"Disallow: /*/none{number}\n" for number in range(30_000)]
    text = "".join(["User-agent: *\nDisallow: /large\nSitemap: /map.xml\n", *rules]).encode()
    long = f"/{'x' * 1_900}"
    site = {**SITE, ("a.example", "/robots.txt"): Page(text, "text/plain"), ("a.example", "/"): page(["/large", long])}
    with serve(site) as port:
        crawled.crawl(tmp_path, crawled.job(port, "a.example"))
    found = crawled.statuses(tmp_path)
    assert (found["http://a.example/large"], found["http://a.example/end"]) == (-9998, 200)
    assert notes(tmp_path)["/robots.txt"] == ("decodedTrunc",), "what is beyond 500 KiB is not read, and named"
    assert found[f"http://a.example{long}"] == -9998, "so many rules are too much work for so long a URI"
    assert "robots.txt says more than can be judged for a URI of this length" in crawled.told(
        tmp_path, "nonfatal-errors.log"
    )


def test_workers_that_do_not_begin_cost_links_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction, "COMMAND", ("/bin/false",))
    with serve(dict(SITE)) as port:
        crawled.crawl(tmp_path, crawled.job(port, "a.example"))
    assert notes(tmp_path)["/large"] == ("linksLost:it_did_not_begin",)


def test_a_worker_that_others_have_ended_costs_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "worker"
    real = " ".join(extraction.COMMAND)
    script.write_text(f'for n in 1 2; do mkdir "$0.$n" 2>&1 && kill -TERM $$; done; exec {real} "$@"')
    monkeypatch.setattr(extraction, "COMMAND", ("/bin/sh", str(script)))
    with serve(dict(SITE)) as port:
        crawled.crawl(tmp_path, crawled.job(port, "a.example"))
    assert notes(tmp_path)["/large"] == ()
    assert crawled.statuses(tmp_path)["http://a.example/end"] == 200


def test_small_pages_start_no_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction, "COMMAND", ("/bin/false",))
    site = {**SITE, ("a.example", "/large"): page(["/end"])}
    with serve(site) as port:
        crawled.crawl(tmp_path, crawled.job(port, "a.example"))
    assert crawled.statuses(tmp_path)["http://a.example/end"] == 200


def test_a_large_file_that_has_no_links_is_sent_to_no_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction, "COMMAND", ("/bin/false",))
    film = Page(b"\x00film" * (1 << 22), "video/mp4")
    with serve({**SITE, ("a.example", "/large"): film}) as port:
        crawled.crawl(tmp_path, crawled.job(port, "a.example"))
    assert notes(tmp_path)["/large"] == ()


def test_the_type_that_a_server_names_is_one_word_of_the_log(tmp_path: Path) -> None:
    site = {
        ("a.example", "/"): Page(b"x", '{"a": "b"} text/html'),
    }
    with serve(site) as port:
        crawled.crawl(tmp_path, crawled.job(port, "a.example"))
    assert {line.mime for line in crawled.lines(tmp_path) if crawled.plain(line.uri) == "http://a.example/"} == {
        "unknown"
    }


WAITS = """
import sys
from warcmill.base.worker import WorkerLimits
from warcmill.base.workers import Workers
from warcmill.crawl.visit.extraction import COMMAND, _failed, _found
workers = Workers(COMMAND, WorkerLimits(), 1)
question = {
    "uri": "http://a.example/", "status": 200, "fields": [["content-type", "text/html"]], "names": ["html"],
    "payload": "", "limits": [50_000, 20_000, 1 << 24],
}
assert workers.ask(question, b"<a href=/b>x</a>", _found, _failed, 1 << 20).links
print(next(iter(workers.all)).pid, flush=True)
sys.stdin.read()
"""


def test_a_crawler_that_is_killed_leaves_no_worker() -> None:
    with subprocess.Popen([sys.executable, "-c", WAITS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        pid = int(process.stdout.readline())
        gone = os.pidfd_open(pid)
        process.send_signal(signal.SIGKILL)
        process.wait()

    async def ended() -> None:
        done = asyncio.Event()
        asyncio.get_running_loop().add_reader(gone, done.set)
        await asyncio.wait_for(done.wait(), 60)
        asyncio.get_running_loop().remove_reader(gone)

    asyncio.run(ended())
    os.close(gone)


@pytest.mark.parametrize("case", ["its reader died", "it was cut"])
def test_a_page_whose_links_were_lost_is_asked_for_whole_by_the_next_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    large = replace(SITE["a.example", "/large"], etag='"one"')
    with serve({**SITE, ("a.example", "/large"): large}) as port:
        job = crawled.job(port, "a.example", conditional="all")
        with monkeypatch.context() as broken:
            if case == "its reader died":
                broken.setattr(extraction, "COMMAND", (sys.executable, "-c", "raise SystemExit(1)"))
            cut = job if case == "its reader died" else replace(job, limits=replace(job.limits, decoded=1_000))
            crawled.crawl(tmp_path, cut)
        assert "http://a.example/end" not in crawled.statuses(tmp_path)
        for launch, status in (("20261121081845", 200), ("20261121081846", 304)):
            crawled.crawl(tmp_path, job, launch=Launch("news", launch))
            lines = crawled.lines(tmp_path, Launch("news", launch))
            found = {crawled.plain(line.uri): line for line in lines}
            assert found["http://a.example/large"].status == status
            if status == 200:
                assert "duplicate:digest" in found["http://a.example/large"].annotations
                assert "http://a.example/end" in found
