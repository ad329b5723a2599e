"""The report of a trial, from the logs that a crawl has left: in, out, by which rule; a report that is broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from records.captures import capture, response
from records.warcs import warc_gz, warcinfo

from warcmill.crawl import trial
from warcmill.crawl.launch.folders import Places
from warcmill.crawl.launch.job_log import JobLog
from warcmill.errors import BadConfig, Unavailable
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.model import Launch
from warcmill.reports import page_trial
from warcmill.reports.page_trial import AnsweredPage

LAUNCH, SEED = Launch("daily", "20161019234428"), "http://a.example/"
PAPERS = {
    "crawl.toml": b"patterns = ['(?i).*\\Qcalendar\\E.*']\n", "seeds.txt": f"{SEED}\n".encode(),
    "surts.txt": b"+http://(example,a,)/\n",
}  # fmt: skip
LIMITS = PAPERS["crawl.toml"] + b"[limits]\ndocuments = 9\n"


def line(uri: str, hops: str = "L", via: str = SEED, status: int = 200, notes: tuple[str, ...] = ()) -> bytes:
    return crawllog.render(
        CrawlRecord("2016-10-19T23:44:28.003Z", status, 9, uri, hops, via, "text/html", "#001", "20161019234428000+9",
                    "sha1:X", SEED, notes)
    )  # fmt: skip


def link(uri: str, policy: str = "scope", verdict: str = "REJECT") -> bytes:
    about = json.dumps({"hopPath": "L", "via": SEED, "seed": SEED, "why": "of no site of the crawl"})
    return f"2016-10-19T23:44:28.003Z 0 {policy} {verdict} {uri} {about}\n".encode()


LOG = [
    line("http://a.example/robots.txt", "P"),
    line(SEED, "", "-"),
    line("http://a.example/old", status=301),
    line("http://a.example/busy", status=503, notes=("askedAgain",)),
    line("http://a.example/busy"),
    line("http://a.example/part.css", "LE"),
    line("http://a.example/calendar/9", status=-5000),
    line("http://a.example/no", status=-9998),
    line("http://a.example/away", status=-2),
    b"no line of a log\n",
]
LINKS = [
    link("http://c.example/"), link("http://c.example/"), link("http://a.example/calendar/1"),
    link("http://a.example/<script>", "nofollow"), link("http://a.example/later", verdict="DEFER"),
    b"2016 0 scope REJECT http://a.example/x {\n",
]  # fmt: skip


@pytest.fixture
def places(tmp_path: Path) -> Places:
    found = trial.places(tmp_path / "crawl")
    folders = found.folders(LAUNCH)
    folders.make()
    JobLog(folders.job, folders.own, LAUNCH).launched()
    for name, data in {**PAPERS, "crawl.toml": LIMITS}.items():
        (folders.own / name).write_bytes(data)
    half = len(LOG) // 2
    (folders.logs / "crawl.log.cp00001-20161019234500").write_bytes(b"".join(LOG[:half]))
    (folders.logs / "crawl.log").write_bytes(b"".join(LOG[half:]))
    (folders.logs / "scope.log").write_bytes(b"".join(LINKS))
    return found


def test_a_report_is_made_while_it_crawls(places: Places) -> None:
    found = page_trial.so_far(places, LAUNCH.job)
    assert found
    assert [(one.url, one.status) for one in found.pages] == [
        (SEED, 200), ("http://a.example/old", 301), ("http://a.example/busy", 200),
    ]  # fmt: skip
    assert [(one.rule, one.number, one.first[0]) for one in found.left_out] == [
        ("calendar", 2, "http://a.example/calendar/9"), ("nofollow", 1, "http://a.example/<script>"),
        ("what to keep", 1, "http://c.example/"),
    ]  # fmt: skip
    assert (found.robots.first, found.parts) == (["http://a.example/no"], 1)
    assert [one.url for one in found.failed] == ["http://a.example/away"]
    assert found.words == [
        "2 of at most 9 pages so far",
        "left out 4 links: 2 by calendar, 1 by nofollow, 1 by what to keep",
        "robots.txt forbids 1 more", "1 got no answer", "its browser asked for 1 parts of pages",
    ]  # fmt: skip


def test_a_report_is_kept_and_one_that_is_broken_is_named(tmp_path: Path, places: Places) -> None:
    assert page_trial.read(tmp_path) is None
    assert page_trial.so_far(trial.places(tmp_path / "other"), LAUNCH.job) is None
    found = page_trial.so_far(places, LAUNCH.job)
    assert found
    found.ended = "it was stopped"
    (tmp_path / "trial.json").write_text(json.dumps(found.json()))
    assert page_trial.read(tmp_path) == found
    for broken in ("", "[]", '{"job": 1}', "[" * 100_000):
        (tmp_path / "trial.json").write_text(broken)
        with pytest.raises(Unavailable, match="it cannot be read"):
            page_trial.read(tmp_path)


def test_a_trial_has_the_papers_of_its_job_with_smaller_limits() -> None:
    toml = b"# ours\nendless = true\ncontact = 'http://x.example/'\n[recrawl]\nage = 60\n[limits]\nseconds = 5\n"
    found = trial.papers({**PAPERS, "crawl.toml": toml}, "daily", 7)
    text = found["crawl.toml"].decode()
    assert (text.startswith("# ours\nendless = false\n"), "recrawl" in text, found["seeds.txt"]) == (
        True, False, PAPERS["seeds.txt"],
    )  # fmt: skip
    assert all(one in text for one in ("scope_log = true", "documents = 7", "seconds = 5", "contact = 'http://x"))
    for service in ("requests", "scripts"):
        with pytest.raises(BadConfig, match="no pages to try"):
            trial.papers({"crawl.toml": f"{service} = true\n".encode()}, "daily", 7)


def test_titles_and_three_pictures_are_taken_out_of_a_warc(tmp_path: Path) -> None:
    urls = [f"http://a.example/{number}" for number in range(5)]
    titles = [response(url, b"Content-Type: text/html", body=b"<title>Bees %s</title>" % url.encode()) for url in urls]
    views = [capture("resource", f"urn:view:{url}", b"png " + url.encode(), "image/png") for url in urls]
    (tmp_path / "a.warc.gz").write_bytes(warc_gz(warcinfo(), *titles, *views))
    pages = {url: AnsweredPage(url, 200) for url in urls}
    page_trial.look_into(tmp_path / "a.warc.gz", pages, tmp_path)
    assert [(one.title, one.picture) for one in pages.values()] == [
        (f"Bees {url}", number) for url, number in zip(urls, (1, 2, 3, 0, 0), strict=True)
    ]
    assert sorted(path.name for path in tmp_path.glob("*.png")) == ["1.png", "2.png", "3.png"]
    assert (tmp_path / "2.png").read_bytes() == b"png http://a.example/1"
