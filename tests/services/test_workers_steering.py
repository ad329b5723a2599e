"""A crawl on a real Redis with workers, steered by who leads: pauses, edits, ceilings, sums; and a dead worker."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from crawls.redis_crawls import DEADLINE, HOSTS, JOB, Crawl, site
from redis import Redis
from sites.several_hosts import Page, page, serve

from servers.redis import RedisServer
from warcmill.crawl.control import control
from warcmill.crawl.frontier.crew import Crew, RetiredWorker
from warcmill.crawl.frontier.link import RedisLink, read_place
from warcmill.crawl.launch.folders import CONTROL
from warcmill.errors import Conflict, Foreign
from warcmill.model import Json

PAGES = 60
APART = 0.4  # seconds between two requests to one address
TOTAL = len(HOSTS) * (PAGES + 1)


@pytest.fixture
def crawl(redis: RedisServer, tmp_path: Path) -> Iterator[Crawl]:
    with site(PAGES) as port:
        found = Crawl(tmp_path, port, redis, tmp_path.name.replace("_", "-"), "workers = 3\n")
        yield found
        found.kill()


def ask(crawl: Crawl, verb: str, **fields: Json) -> Json:
    return control.ask(crawl.places.state(JOB) / CONTROL, verb, DEADLINE, **fields)


def configure(crawl: Crawl, toml: str) -> None:
    """Add to the job's crawl.toml."""
    path = crawl.places.job(JOB) / "crawl.toml"
    path.write_text(f"{path.read_text()}\n{toml}")


def summary(crawl: Crawl) -> dict[str, Json]:
    assert crawl.last
    found: dict[str, Json] = json.loads((crawl.places.job(JOB) / crawl.last.launch / "summary.json").read_bytes())
    return found


def report(crawl: Crawl, name: str) -> str:
    assert crawl.last
    return (crawl.folder / "output" / "reports" / JOB / crawl.last.launch / f"{name}.txt").read_text()


def until(holds: Callable[[], bool], crawl: Crawl) -> None:
    deadline = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < deadline, crawl.told()
        time.sleep(0.1)


def retire(crawl: Crawl, name: str) -> RetiredWorker:
    async def main() -> RetiredWorker:
        crew = Crew(RedisLink(read_place("u", crawl.url), JOB))
        try:
            return await crew.retire(name, "its disk is broken")
        finally:
            crew.close()

    return asyncio.run(main())


def ended(leader: subprocess.Popen[bytes], worker: subprocess.Popen[bytes], crawl: Crawl) -> None:
    """Wait for the end of the launch, and ask the worker to leave."""
    assert leader.wait(DEADLINE) == 0, crawl.told()
    worker.terminate()
    assert worker.wait(DEADLINE) == 0, crawl.told()


def test_a_leader_that_only_leads_fetches_nothing_and_reports_all(crawl: Crawl) -> None:
    crawl.query("leads_only=true")
    leader, worker = crawl.begin(), crawl.work("w1")
    ended(leader, worker, crawl)
    assert crawl.wrong(PAGES) == [], crawl.told()
    assert crawl.lines() == 0
    assert (summary(crawl)["documents"], summary(crawl)["statuses"]) == (TOTAL, {"200": TOTAL})
    assert f"URI successes: {crawl.lines('w1')}" in report(crawl, "crawl-report")
    assert f"seeds crawled: {len(HOSTS)}" in report(crawl, "crawl-report")


def test_the_reports_have_what_all_have_crawled_also_one_that_was_killed_or_left(crawl: Crawl) -> None:
    leader, first, second = crawl.begin(), crawl.work("w1"), crawl.work("w2")
    assert crawl.until(leader, 40, "w1"), crawl.told()
    first.kill()
    first.wait()
    first = crawl.work("w1")
    assert crawl.until(leader, 40, "w2"), crawl.told()
    second.terminate()
    assert second.wait(DEADLINE) == 0
    until(lambda: leader.poll() is not None or _done(crawl) > 300, crawl)
    ended(leader, first, crawl)
    assert crawl.wrong(PAGES) == [], crawl.told()
    assert summary(crawl)["documents"] == TOTAL
    lines = sum(crawl.lines(name) for name in ("", "w1", "w2"))
    assert re.search(r"URIs processed: (\d+)", report(crawl, "crawl-report"))[1] == str(lines)  # type: ignore[index]
    assert sum(int(row.split()[0]) for row in report(crawl, "responsecode-report").splitlines()[1:]) == lines


def _done(crawl: Crawl) -> int:
    found = ask(crawl, "state")
    assert isinstance(found, dict)
    return int(str(found["done"]))


def test_a_pause_holds_for_all(crawl: Crawl) -> None:
    leader, worker = crawl.begin(), crawl.work("w1")
    assert crawl.until(leader, 30, "w1"), crawl.told()
    ask(crawl, "pause")
    lines = [crawl.lines(), crawl.lines("w1")]
    time.sleep(3)  # in which hundreds would be fetched
    assert [crawl.lines(), crawl.lines("w1")] == lines
    ask(crawl, "resume")
    ended(leader, worker, crawl)
    assert crawl.wrong(PAGES) == [], crawl.told()


def test_an_edit_holds_for_all(crawl: Crawl) -> None:
    leader, worker = crawl.begin(), crawl.work("w1")
    assert crawl.until(leader, 30, "w1"), crawl.told()
    ask(crawl, "pause")
    (crawl.places.job(JOB) / "exclude.txt").write_text("".join(f"http://(example,{name[:-8]},\n" for name in HOSTS[1:]))
    logs = crawl.folder / "w1"
    until(lambda: any("were edited" in path.read_text() for path in logs.rglob("alerts.log")), crawl)
    before = (crawl.lines(), crawl.lines("w1"))
    ask(crawl, "resume")
    ended(leader, worker, crawl)
    assert crawl.last
    log = (logs / "output" / "logs" / JOB / crawl.last.launch / "crawl.log").read_text().splitlines()
    fetched = [line for line in log[before[1] :] if " 200 " in line and HOSTS[0] not in line]
    assert fetched == [], "the worker has fetched what the edit excludes"


def test_a_ceiling_is_that_of_the_whole_launch(crawl: Crawl) -> None:
    configure(crawl, "[limits]\ndocuments = 200")
    leader, worker = crawl.begin(), crawl.work("w1")
    assert crawl.until(leader, 30, "w1"), crawl.told()
    assert leader.wait(DEADLINE) == 0, crawl.told()
    found = summary(crawl)
    assert found["end"] == "Finished - Maximum number of documents limit hit"
    assert 200 <= int(str(found["documents"])) < 300
    worker.terminate()
    assert worker.wait(DEADLINE) == 0, crawl.told()


def test_the_end_waits_for_a_dead_worker_until_it_is_retired(crawl: Crawl) -> None:
    crawl.query("checkpoint_wait=5")
    leader, worker = crawl.begin(), crawl.work("w1")
    assert crawl.until(leader, 30, "w1"), crawl.told()
    worker.kill()
    worker.wait()
    crawl.until_alert("the launch ends when it has closed its files; if it is dead, 'warcmill job killed retire w1")
    assert leader.poll() is None
    assert "worker w1 on" in crawl.alerts()
    dead = retire(crawl, "w1")
    assert 0 < dead.visits <= crawl.lines("w1")
    assert leader.wait(DEADLINE) == 0, crawl.told()
    assert f"{dead.visits} w1 {dead.host} {dead.at} its disk is broken" in report(crawl, "retired-workers")
    assert "was retired (its disk is broken)" in crawl.alerts()
    assert crawl.work("w1").wait(DEADLINE) == Conflict.exit_code
    assert "worker w1: was retired at" in crawl.told()


def test_a_worker_of_another_version_of_the_keys_is_refused(crawl: Crawl, redis: RedisServer) -> None:
    leader = crawl.begin()
    assert crawl.until(leader, 30), crawl.told()
    prefix = read_place("u", crawl.url).keys(JOB)
    Redis(port=redis.port).hset(f"{prefix}about", "version", 2)
    assert crawl.work("w1").wait(DEADLINE) == Foreign.exit_code
    assert "its keys are of version 2, not 1" in crawl.told()


def test_a_name_whose_files_are_open_elsewhere_is_refused(crawl: Crawl) -> None:
    leader, worker = crawl.begin(), crawl.work("w1")
    assert crawl.until(leader, 20, "w1"), crawl.told()
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    assert crawl.work("w1", "elsewhere").wait(DEADLINE) == 5
    assert "which has files of the launch (start it there, or retire it)" in crawl.told()
    worker = crawl.work("w1")
    ended(leader, worker, crawl)
    assert crawl.wrong(PAGES) == [], crawl.told()


def test_all_keep_one_politeness_by_the_site_s_own_log(redis: RedisServer, tmp_path: Path) -> None:
    hosts, asked = HOSTS[:6], list[tuple[float, str, str]]()
    web = {(host, f"/{n}" if n else "/"): page([f"/{m}" for m in range(1, 5)]) for host in hosts for n in range(5)}
    web |= {(host, "/robots.txt"): Page(b"User-agent: *\nDisallow: /none\n", "text/plain") for host in hosts}
    with serve(web, asked) as port:
        crawl = Crawl(tmp_path, port, redis, "polite", hosts=hosts)
        toml = crawl.places.job(JOB) / "crawl.toml"
        toml.write_text(toml.read_text().replace("no_delay = true", ""))
        configure(crawl, f"[politeness]\nfactor = 0\nleast = {APART}\nmost = 1\nrespected = 0")
        leader, worker = crawl.begin(), crawl.work("w1")
        try:
            ended(leader, worker, crawl)
        finally:
            crawl.kill()
    assert Counter(path for _, _, path in asked) == {"/": 6, "/robots.txt": 6, **{f"/{n}": 6 for n in range(1, 5)}}
    times = sorted(moment for moment, _, _ in asked)
    least = min(after - before for before, after in pairwise(times))
    assert least > 0.8 * APART, "two processes asked one address at the same time"
    assert crawl.lines("w1") > 0
