"""Job-confs as warcmill writes them, judged by brozzler's own schema and by the rules of its urlcanon."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest

from servers import packages
from warcmill.crawl.job import brozzler, file
from warcmill.crawl.job.text import files
from warcmill.crawl.policies.scope import CrawlScope, Patterns
from warcmill.crawl.uri import Uri
from warcmill.formats import job_conf
from warcmill.formats.feed import TargetScope

DATA = Path(__file__).resolve().parents[1] / "data" / "brozzler"
JUDGE = """
import json, sys
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlparse
import cerberus, urlcanon, yaml

class Judge(cerberus.Validator):
    def _validate_type_url(self, value):
        return urlparse(value).scheme in ("http", "https", "ftp")

asked = json.load(sys.stdin)
conf = yaml.safe_load(asked["conf"])
place = Path(find_spec("brozzler").submodule_search_locations[0])
judge = Judge(yaml.safe_load((place / "job_schema.yaml").read_text()))
judge.validate(conf, normalize=False)
scope = conf.get("scope", {})
def some(rules, url):
    return any(urlcanon.MatchRule(**rule).applies(urlcanon.semantic(url)) for rule in rules)
accepts = scope.get("accepts", []) + ([{"surt": scope["surt"]}] if "surt" in scope else [])
taken = [url for url in asked["urls"] if some(accepts, url) and not some(scope.get("blocks", []), url)]
print(json.dumps({"errors": judge.errors, "taken": taken}))
"""
URLS = [
    f"{scheme}://{host}{port}{path}"
    for scheme in ("http", "https")
    for host in ("example.org", "www.example.org", "bad.example.org", "host.net", "www.host.net", "pages.net",
                 "a.pages.net", "xn--bcher-kva.example", "older.net", "example.com", "1.2.3.4")
    for port in ("", ":8080", ":8443")
    for path in ("/", "/a/b", "/a/b/c?q=1", "/c/", "/calendar/x", "/xa+b?y", "/x?a+b?")
]  # fmt: skip


@cache
def judged(conf: bytes) -> dict[str, Any]:
    asked = json.dumps({"conf": conf.decode(), "urls": URLS})
    command: list[str | Path] = [packages.bin_folder("brozzler") / "python", "-W", "ignore", "-c", JUDGE]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return cast("dict[str, Any]", json.loads(done.stdout))


def edited(data: bytes) -> tuple[bytes, dict[str, bytes]]:
    """An import that was edited, so that its papers alone are exported; and the papers, without the page of a seed."""
    made = brozzler.papers(job_conf.read(data, "conf"), "conf")
    papers = {**made.papers, "crawl.toml": made.papers["crawl.toml"] + b"\n# edited\n"}
    return job_conf.write(brozzler.conf(papers, made.name).conf), papers


@pytest.mark.parametrize("name", ["all", "lossy"])
def test_its_schema_takes_what_comes_back(name: str) -> None:
    data = (DATA / f"{name}.yaml").read_bytes()
    same, changed = job_conf.write(job_conf.read(data, name)), edited(data)[0]
    assert changed != same
    assert judged(same)["errors"] == judged(changed)["errors"] == {}


def test_its_rules_take_what_ours_take() -> None:
    conf, papers = edited((DATA / "all.yaml").read_bytes())
    job = file.parse(papers, "all-of-it")
    scope, patterns = cast("CrawlScope", job.scope), Patterns(job.patterns)
    ours = [
        url for url in URLS
        if scope.sites.covering((uri := Uri(url, url, "")).surt)
        and not scope.excluded.covering(uri.surt) and not patterns.judge(uri)
    ]  # fmt: skip
    assert 50 < len(ours) < len(URLS) - 50
    assert judged(conf)["taken"] == ours


@pytest.mark.parametrize("scope", list(TargetScope))
def test_its_schema_takes_jobs_of_ours(scope: TargetScope) -> None:
    ours = files({"contact": "https://library.example/bot"}, ["https://www.example.org/a/", "http://1.2.3.4/"], scope)
    assert judged(job_conf.write(brozzler.conf(ours, "ours").conf))["errors"] == {}
