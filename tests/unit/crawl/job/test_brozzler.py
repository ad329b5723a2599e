"""brozzler's job-conf as the papers of a job, and back: the same file, what is not kept, and hostile files."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from warcmill.crawl.job import brozzler, file
from warcmill.crawl.job.job import Job
from warcmill.crawl.job.text import files
from warcmill.crawl.policies.quotas import By, Quota
from warcmill.crawl.policies.scope import CrawlScope
from warcmill.crawl.uri import Uri
from warcmill.errors import BadConfig, BadInput
from warcmill.formats import job_conf
from warcmill.formats.feed import TargetScope
from warcmill.formats.job_conf import BrozzlerSeed
from warcmill.formats.targets import PageReach

DATA = Path(__file__).resolve().parents[3] / "data" / "brozzler"
ALL = (DATA / "all.yaml").read_bytes()


def imported(data: bytes) -> brozzler.ImportedJob:
    return brozzler.papers(job_conf.read(data, "conf"), "conf", "unnamed")


def prefixes(job: Job) -> tuple[list[str], list[str], dict[str, PageReach], int]:
    scope = cast("CrawlScope", job.scope)
    return [*scope.sites], [*scope.excluded], {**scope.pages}, scope.hops


def test_there_and_back_gives_the_same_file() -> None:
    made = imported(ALL)
    assert made.lost == ()
    back = brozzler.conf(made.papers, made.name)
    assert back.lost == ()
    assert job_conf.write(back.conf) == ALL


def test_the_job_crawls_as_it_says() -> None:
    job = file.parse(imported(ALL).papers, "all-of-it")
    assert job.seeds == (
        "https://www.example.org/", "http://two.example.org/x/y.html?q=1",
        "http://page.example.org/one", "http://page.example.org/two",
    )  # fmt: skip
    assert prefixes(job)[2:] == (
        {"http://page.example.org/one": PageReach.RESOURCE, "http://page.example.org/two": PageReach.PLUS1}, 3
    )  # fmt: skip
    assert job.quotas == (Quota(By.TARGET, seconds=3600),)
    assert job.robots
    assert job.contact == "https://library.example/bot"
    two = job.sheets.by_seed["http://two.example.org/x/y.html?q=1"]
    assert (two.robots, two.quotas) == (False, (Quota(By.TARGET, seconds=30),))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("surt: http://(org,x,", ["http://(org,x,"]),
        ("surt: https://(org,x,)/a", ["http://(org,x,)/a"]),
        ("surt: org,x)/", ["http://(org,x,)/"]),
        ("surt: org,x)/a", ["http://(org,x,)/a"]),
        ("surt: 'org,x,'", ["http://(org,x,"]),
        ("surt: (org,x,)/", ["http://(org,x,)/"]),
        ("surt: http://(org,x)/", ["http://(org,x,)/"]),
        ("surt: http://(org,x:8080)/", ["http://(org,x,:8080)/"]),
        ("surt: http://(1.2.3.4)/", ["http://(1.2.3.4)/"]),
        ("surt: http://(org,exam", ["http://(org,exam"]),
        ("ssurt: 'org,x,'", ["http://(org,x,"]),
        ("ssurt: org,x,//", ["http://(org,x,)", "http://(org,x,:"]),
        ("ssurt: org,x,//https:/a/", ["http://(org,x,)/a/"]),
        ("ssurt: org,x,//8443:https:/a/", ["http://(org,x,:8443)/a/"]),
        ("domain: x.org", ["http://(org,x,"]),
        ("domain: BÜCHER.example.", ["http://(example,xn--bcher-kva,"]),
        ("domain: 1.2.3.4", ["http://(1.2.3.4)/"]),
    ],
)
def test_every_spelling_of_a_prefix(rule: str, expected: list[str]) -> None:
    made = imported(f"seeds: [{{url: 'http://s.example/'}}]\nscope:\n  accepts:\n  - {rule}\n".encode())
    job = file.parse(made.papers, "unnamed")
    assert prefixes(job)[0] == sorted(["http://(example,s,)/", *expected])
    assert made.lost == ()


def test_what_is_not_kept_is_named() -> None:
    made = imported((DATA / "lossy.yaml").read_bytes())
    assert [line for line in made.lost if "PASSWORD" in line] == []
    assert made.lost == (
        "seed 'ftp://files.example.org/': url: it is not crawled: ftp: is not fetched, only data, dns, http, https",
        "seed https://www.example.org/: accepts: they count for every seed of the job",
        "seed https://www.example.org/: blocks: they count for no seed",
        'scope: accepts: a rule that is not kept: {"regex":".*/only/.*"}',
        'scope: accepts: a rule that is not kept: {"domain":"example.org","substring":"news"}',
        'scope: blocks: a rule that is not kept: {"parent_url_regex":".*"}',
        'scope: blocks: a rule that is not kept: {"regex":"(?=x)y"}',
        "the job: user_agent: the crawler names itself, and its contact",
        "scope: max_hops: it is at most 255",
        "seed https://www.example.org/: max_hops_off: nothing outside the scope is crawled",
        "seed https://b.example.org/: max_hops_off: nothing outside the scope is crawled",
        "the job: pdfs_only: the crawl has nothing of the kind",
        "seed https://www.example.org/: username: the crawl has nothing of the kind",
        "seed https://www.example.org/: password: the crawl does not log in; see [render] cookies of crawl.toml",
        "seed https://b.example.org/: video_capture: the crawl has nothing of the kind",
        "seed https://b.example.org/: time_limit: it is in whole seconds",
        "seed https://b.example.org/: user_agent: all seeds of a job have one",
    )
    assert brozzler.conf(made.papers, "lossy").conf == job_conf.read((DATA / "lossy.yaml").read_bytes(), "x")


def test_an_edited_job_is_exported_as_it_is_now() -> None:
    papers = dict(imported(ALL).papers)
    assert brozzler.is_as_imported(papers, "all-of-it")
    papers[file.SEEDS] += b"http://four.example/\n"
    papers[file.SURTS] += b"+http://(example,five,)/news/\n"
    assert brozzler.conf(papers, "all-of-it").lost == (
        "seed http://four.example/: it is of no site: brozzler takes all below its URL",
    )
    papers[file.SURTS] += b"+http://(example,four,)/\n"
    assert not brozzler.is_as_imported(papers, "all-of-it")
    back = brozzler.conf(papers, "all-of-it")
    assert back.lost == ()
    assert back.conf.metadata == {"owner": "Anna", "numbers": [1, 2.5], "since": "2026-01-01"}
    assert back.conf.seeds[1] == BrozzlerSeed(
        url="http://two.example.org/x/y.html?q=1", time_limit=30, ignore_robots=True, metadata={}
    )
    assert back.conf.seeds[4] == BrozzlerSeed(url="http://four.example/")
    again = brozzler.papers(back.conf, "again")
    assert again.lost == ()
    assert brozzler.conf(again.papers, again.name).conf == back.conf
    before, after = (file.parse(one, "all-of-it") for one in (papers, again.papers))
    assert prefixes(after) == prefixes(before)
    assert (after.quotas, after.seeds, after.patterns) == (before.quotas, before.seeds, before.patterns)


@pytest.mark.parametrize("scope", list(TargetScope))
def test_a_job_of_ours_comes_back(scope: TargetScope) -> None:
    """What `warcmill crawl` writes, there and back: the same seeds and scope."""
    ours = files({"contact": "https://library.example/bot", "robots": "ignore"}, ["https://www.example.org/a/"], scope)
    there = brozzler.conf(ours, "ours")
    assert there.lost == ()
    back = brozzler.papers(job_conf.read(job_conf.write(there.conf), "there"), "there")
    assert back.lost == ()
    before, after = file.parse(ours, "ours"), file.parse(back.papers, "ours")
    assert (after.contact, after.robots, after.seeds) == (before.contact, before.robots, before.seeds)
    for url in (
        "https://www.example.org/a/b",
        "http://example.org/a/",
        "https://x.example.org/",
        "https://else.example/",
    ):
        uri = Uri(url, url, "", hops="LL", source=before.seeds[0])
        assert bool(after.scope.judge(uri)) == bool(before.scope.judge(uri)), (scope, url)


def test_what_brozzler_has_not_is_named() -> None:
    ours = files({"workers": 3, "render": {"which": "pages"}}, ["https://www.example.org/"], TargetScope.ROOT)
    ours["crawl.toml"] += b'[[settings]]\nprefixes = ["http://(org,"]\nnofollow = "obey"\n'
    ours["crawl.toml"] += b'[[settings]]\nseeds = ["https://www.example.org/"]\nquotas = [{by = "host", bytes = 3}]\n'
    assert brozzler.conf(ours, "ours").lost == (
        "crawl.toml: workers: brozzler has nothing of the kind",
        "crawl.toml: render: brozzler has nothing of the kind",
        "crawl.toml: settings of prefixes: only seeds have some",
        "seed https://www.example.org/: quotas: only seconds by target are kept",
    )


BOMB = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (name, name, b",".join([b"*%c" % (name - 1)] * 9)) for name in b"bcdefghi"
)
SEED = b"seeds: [{url: 'http://a.example/'}]\n"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (BOMB, "an alias or a tag"),
        (b"id: !!python/object/apply:os.system ['id']\n" + SEED, "an alias or a tag"),
        (b"metadata: " + b"[" * 10_000, "more than 50 levels"),
        (b"id: a\nid: b\n" + SEED, "the key id twice"),
        (b"x" * ((1 << 20) + 1), "at most 1,048,576"),
        (b"\xff", "it is not UTF-8: byte 0"),
        (b"", "Expected `object`, got `null`"),
        (b"seeds: []\n", "it has none"),
        (b"seeds: x\n", "Expected `array`"),
        (b"seed: x\n" + SEED, "unknown field `seed`"),
        (b"scope: {max_hop: 1}\n" + SEED, "unknown field `max_hop`"),
        (b"id: 'a/b'\n" + SEED, "a/b"),
        (b"seeds: [{url: 'ftp://a.example/'}]\n", "none of its seeds"),
        (b"seeds: [{url: 'http://a.example/', password: secret}]\n", "put it into the environment"),
        (b"seeds: [{url: 'http://a.example/', password: [secret]}]\n", "put it into the environment"),
        (b"a: b: c\n", "not YAML"),
        (b"id: 2026-99-99\ntime_limit: .inf\n" + SEED, "time_limit"),
        (b"time_limit: -1\n" + SEED, "time_limit"),
        (b"? [a]\n: 1\n", "not YAML"),
    ],
)
def test_hostile_files_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(BadInput) as error:
        imported(data)
    assert why in str(error.value)
    assert "secret" not in str(error.value)


def test_what_a_terminal_would_obey_is_escaped() -> None:
    made = imported("metadata: {a: '\u202e'}\n".encode() + SEED)
    written = job_conf.write(brozzler.conf(made.papers, "unnamed").conf)
    assert written.isascii()
    assert job_conf.read(written, "x").metadata == {"a": "\u202e"}


def test_an_import_of_something_else_is_refused() -> None:
    with pytest.raises(BadConfig, match="imported"):
        brozzler.conf({"crawl.toml": b"[imported]\nx = 1\n", "seeds.txt": b"http://a.example/\n"}, "x")
