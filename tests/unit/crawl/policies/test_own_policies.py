"""Policies that an installed package brings: found by name, asked in the job's order; a fault costs one decision."""

from __future__ import annotations

from pathlib import Path

import pytest
from crawls import crawled
from sites.several_hosts import page, serve

from warcmill.crawl.job import file
from warcmill.crawl.policies.quotas import By, Quota
from warcmill.errors import BadConfig

CODE = """
from warcmill.crawl.policies.decision import Decision, Verdict

class Picky:
    def at_offer(self, uri):
        return Decision(Verdict.REJECT, why="odd") if uri.uri.endswith("/1") else None
    def at_lease(self, uri):
        return Decision(Verdict.REJECT, why="late, and odd") if uri.uri.endswith("/3") else None

class Slow:
    def at_offer(self, uri):
        return Decision(Verdict.DEFER, why="not today", until=1.0)

class Faulty:
    def at_lease(self, uri):
        raise KeyError(uri.uri)

class Chatty:
    def at_offer(self, uri):
        return "no"

class Empty:
    pass
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with policies, as pip would leave it."""
    names = ("Picky", "Slow", "Faulty", "Chatty", "Empty")
    info = tmp_path / "site/our_policies-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: our-policies\nVersion: 1.0\n")
    points = "".join(f"{name.lower()} = our_policies:{name}\n" for name in (*names, "Gone"))
    (info / "entry_points.txt").write_text(f"[warcmill.policies]\n{points}")
    (tmp_path / "site/our_policies.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


@pytest.mark.usefixtures("installed")
def test_they_are_asked_in_order_and_one_that_fails_costs_its_decision_alone(tmp_path: Path) -> None:
    site = {("a.example", "/"): page(["/1", "/2", "/3"]), ("a.example", "/2"): page([]), ("a.example", "/3"): page([])}
    with serve(site) as port:
        job = crawled.job(port, "a.example", policies=("faulty", "chatty", "picky"))
        _, running = crawled.crawl(tmp_path, job)
    found = crawled.statuses(tmp_path)
    assert "http://a.example/1" not in found
    assert (found["http://a.example/"], found["http://a.example/2"], found["http://a.example/3"]) == (200, 200, -5001)
    (line,) = (line for line in crawled.lines(tmp_path) if line.status == -5001)
    assert line.annotations == ("picky:late_and_odd",)
    summary = running.summary()
    assert summary["refused"] == {"picky": 2}
    assert summary["policies_failed"] == {"faulty": 3, "chatty": 4}
    alerts = crawled.told(tmp_path, "alerts.log").splitlines()
    assert sorted(one.split()[3] for one in alerts) == ["chatty", "faulty"], "each fault is said once"
    assert "KeyError" in crawled.told(tmp_path, "runtime-errors.log")
    assert "neither a Decision nor None" in crawled.told(tmp_path, "runtime-errors.log")


LINKED = ["/1", "/2", "/3", "http://b.example/1"]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("named", "refused", "status", "logged"),
    [
        (
            ("picky",), {"picky": 1, "scope": 1, "quotas": 1}, -5003,
            ["4 picky REJECT http://a.example/1", "0 scope REJECT http://b.example/1"],
        ),
        (
            ("slow", "scope", "picky"), {"picky": 1, "scope": 1, "quotas": 1}, -5003,
            ["3 slow DEFER http://a.example/", "5 picky REJECT http://a.example/1", "3 slow DEFER http://a.example/2",
             "3 slow DEFER http://a.example/3", "4 scope REJECT http://b.example/1"],
        ),
        (
            ("picky", "quotas", "scope"), {"picky": 3}, -5001,
            ["3 picky REJECT http://a.example/1", "3 picky REJECT http://b.example/1"],
        ),
    ],
)  # fmt: skip
def test_the_job_orders_the_built_in_ones_too_and_none_is_left_out(
    tmp_path: Path, named: tuple[str, ...], refused: dict[str, int], status: int, logged: list[str]
) -> None:
    """Picky is against /1 at any host, and against /3 when it is leased: by then the quota is reached."""
    site = {("a.example", "/"): page(LINKED), ("a.example", "/2"): page([]), ("a.example", "/3"): page([])}
    quotas = (Quota(By.HOST, documents=2),)
    with serve(site) as port:
        job = crawled.job(port, "a.example", policies=named, quotas=quotas, scope_log=True)
        _, running = crawled.crawl(tmp_path, job)
    assert dict(running.kit.offers.refused.counts) == refused
    assert crawled.statuses(tmp_path)["http://a.example/3"] == status
    assert [row[0] for row in crawled.left_out(tmp_path)] == logged
    about = crawled.left_out(tmp_path)[-1][1]
    assert (crawled.plain(about["via"]), about["hopPath"]) == ("http://a.example/", "L")
    assert about["why"] in ("odd", "of no site of the crawl")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pickie", r"crawl\.toml policies pickie: no package here has such a policy.*installed are .*picky"),
        (
            "robots",
            r"policies robots: no package here.*; built in are scope, traps, .*quotas$",
        ),
        ("picky', 'scope', 'picky", r"policies picky: is named twice"),
        ("scope', 'scope", r"policies scope: is named twice"),
        ("gone", r"policies gone: our_policies:Gone cannot be made: AttributeError"),
        ("empty", r"policies empty: our_policies:Empty has neither at_offer nor at_lease"),
    ],
)
def test_one_that_cannot_be_asked_is_refused_by_name(name: str, message: str) -> None:
    with pytest.raises(BadConfig, match=message):
        file.parse({"crawl.toml": f"policies = ['{name}']".encode(), "seeds.txt": b"http://a.example/"}, "news")


@pytest.mark.usefixtures("installed")
def test_a_package_has_no_policy_of_the_name_of_a_built_in_one(tmp_path: Path) -> None:
    points = tmp_path / "site/our_policies-1.0.dist-info/entry_points.txt"
    points.write_text(f"{points.read_text()}traps = our_policies:Picky\n")
    files = {"crawl.toml": b"policies = ['traps']", "seeds.txt": b"http://a.example/"}
    with pytest.raises(BadConfig, match="our_policies:Picky has the name of a built-in policy; rename it"):
        file.parse(files, "news")
