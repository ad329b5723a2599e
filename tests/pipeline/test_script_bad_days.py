"""Bad days of a job of scripts: one that loops, processes that are killed, a disk that is full, a frontier in Redis.

Each is named, and the others and what is kept do not suffer.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import preloaded
import pytest
from requesting.job_of_scripts import HEAD, alerts, pulse, running, workers
from requesting.scrapy_runs import responses
from requesting.script_runs import HERE, RUN, environment, line_for, results, script
from sites import several_hosts
from sites.several_hosts import Page
from waiting import wait_for

from warcmill.scripts.folder import SCRIPTS

GOOD = """
class Handler(BaseHandler):
    @every(seconds=1)
    def on_start(self):
        self.crawl("SITE/news", callback=self.page, force_update=True)
    def page(self, response):
        return {"title": response.doc("title").text()}
"""
LOOPS = """
class Handler(BaseHandler):
    @every(seconds=1)
    def on_start(self):
        for number in range(20):
            self.crawl("SITE/loop/%d" % number, callback=self.page)
        while True: pass
    def page(self, response):
        while True: pass
"""
NEVER_LOADS = "while True: pass\n"
LONGEST = 15.0  # seconds: a callback that loops has 30


def test_a_script_that_loops_does_not_hold_up_the_others(tmp_path: Path) -> None:
    line, asked = line_for(tmp_path / "line"), list[tuple[float, str, str]]()
    web = {(HERE, "/news"): Page(b"<title>T</title>")}
    web |= {(HERE, f"/loop/{number}"): Page(b"x") for number in range(20)}
    with several_hosts.serve(web, asked) as port:
        texts = {"good": GOOD, "loops": LOOPS, "never": NEVER_LOADS}
        with running(line, tmp_path / "here", port, texts):
            wait_for(lambda: any(path == "/news" for _, _, path in asked), lambda: "the good one begins")
            time.sleep(40)
            ended = time.monotonic()
        moments = [moment for moment, _, path in asked if path == "/news" and moment < ended]
        gaps = [after - before for before, after in zip(moments, [*moments[1:], ended], strict=True)]
    assert max(gaps) < LONGEST, f"nothing of the good one for {max(gaps):.1f} s"
    assert "script never cannot be loaded: timeout" in alerts(line)
    assert {one["script"] for one in results(line, "papers")} == {"good"}


def test_a_frontier_in_redis_is_refused_by_name(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    here.mkdir()
    assert script(line, here, "new", "papers/shop", "--start", "a.example").returncode == 0
    text = line.config.read_text()
    start = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    line.config.write_text(
        text.replace("kind=warcmill", "kind=warcmill\nfrontier=redis://127.0.0.1:1")
        + f"\n[job.papers]\nfrequency=daily\nstart={start}\n"
    )
    why = "a job of scripts runs on one machine, and has a frontier of its own"
    assert why in pulse(line, here, "start", code=3)
    done = script(line, here, "new", "others/shop", "--start", "a.example")
    assert (done.returncode, why in done.stderr) == (3, True), done.stderr
    done = script(line, here, "run", str(line.folders["jobs"] / "papers" / SCRIPTS / "shop.py"), "--job", "papers")
    assert (done.returncode, why in done.stderr) == (3, True), done.stderr


CHAIN = """
class Handler(BaseHandler):
    def on_start(self):
        self.crawl("SITE/0", callback=self.page)
    def page(self, response):
        time.sleep(0.02)
        for link in response.doc("a").items():
            self.crawl(link.attr.href, callback=self.page)
        return {"title": response.doc("title").text()}
"""
NUMBER, KILLS = 150, 4


@pytest.mark.parametrize("seed", [1, 2])
def test_processes_that_are_killed_at_random_moments_lose_nothing(seed: int, tmp_path: Path) -> None:
    line, here, dice = line_for(tmp_path / "line"), tmp_path / "here", random.Random(seed)
    here.mkdir()
    asked = list[tuple[float, str, str]]()
    links = {number: [f"/{(number * 3 + more) % NUMBER}" for more in range(1, 4)] for number in range(NUMBER)}
    web = {(HERE, f"/{number}"): several_hosts.page(found) for number, found in links.items()}
    with several_hosts.serve(web, asked) as port:
        (here / "chain.py").write_text(HEAD + CHAIN.replace("SITE", f"http://{HERE}:{port}"))
        (here / "crawl.toml").write_text("[politeness]\nleast = 0.03\nfactor = 0.0\n")
        words = ("run", str(here / "chain.py"), "--allow-private", "127.0.0.0/8", "--config", str(here / "crawl.toml"))
        for _ in range(KILLS):
            before = len(asked)
            with (here / "out").open("ab") as out:
                process = preloaded.start(
                    "commands.main", "script", *words, env=environment(line), folder=here, out=out.fileno(),
                    err=out.fileno(),
                )  # fmt: skip
            wait_for(lambda before=before: len(asked) > before + dice.randint(5, 25))
            for pid in dice.sample(found := workers(line, process.pid), dice.randint(0, len(found))):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(dice.random() / 2)
            process.send_signal(signal.SIGKILL)
            process.wait()
        done = script(line, here, *words)
        while "the same command continues" in done.stderr and "some tasks wait" in done.stderr:
            time.sleep(5)  # one of those that were killed two times in a callback
            done = script(line, here, *words)
        site = f"http://{HERE}:{port}"
    values = results(line, "chain")
    assert sorted(one["url"] for one in values) == sorted(f"{site}/{number}" for number in range(NUMBER))
    records = responses(line, "chain")
    assert {url for url in records if url.startswith("http")} == {f"{site}/{number}" for number in range(NUMBER)}
    times = Counter(path for _, _, path in asked)
    assert all(times[url.removeprefix(site)] >= number for url, number in records.items()), "no record without request"
    assert sum(times.values()) - sum(records.values()) <= 60 * KILLS, "what was under way at a kill is asked for again"
    listed = json.loads(script(line, here, "list", "chain", "--json").stdout)
    assert listed["scripts"][0]["name"] == "chain"


def test_a_full_disk_of_the_book_is_named_and_costs_no_result(tmp_path: Path) -> None:
    line, here, disk = line_for(tmp_path / "line"), tmp_path / "here", tmp_path / "disk"
    here.mkdir()
    disk.mkdir()
    state = line.folders["jobs"] / "chain" / "state"
    state.mkdir(parents=True)
    (state / "tasks.sqlite").symlink_to(disk / "tasks.sqlite")
    web = {(HERE, f"/{number}"): several_hosts.page([f"/{number + 1}"]) for number in range(NUMBER)}
    with several_hosts.serve(web) as port:
        (here / "chain.py").write_text(HEAD + CHAIN.replace("SITE", f"http://{HERE}:{port}"))
        words = [sys.executable, "-m", "commands.main", "script", "run", str(here / "chain.py"), *RUN]
        mounted = [
            *("unshare", "--mount", "--map-root-user", "--propagation", "private", "sh", "-ec"),
            f'mount -t tmpfs -o size=200k none {disk}\nexec "$@"', "sh", *words,
        ]  # fmt: skip
        done = subprocess.run(mounted, env=environment(line), cwd=here, capture_output=True, text=True, check=False)
        assert done.stdout.count("\n") == NUMBER, done.stderr
        assert alerts(line, "chain").count("the pages of scripts are not up to date") == 1
        assert "full" in alerts(line, "chain")
        (state / "tasks.sqlite").unlink()
        assert script(line, here, "run", str(here / "chain.py"), *RUN).returncode in (0, 1)
    assert len(script(line, here, "results", "chain").stdout.splitlines()) == NUMBER, "it is made again from the logs"


def test_a_full_disk_keeps_what_is_set_of_scripts(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    here.mkdir()
    assert script(line, here, "new", "papers/shop", "--start", "a.example").returncode == 0
    job = line.folders["jobs"] / "papers"
    words = [sys.executable, "-m", "commands.main", "script", "set", "papers/shop", "--group"]
    steps = f"""
        cp -a {job} {tmp_path / "kept"}
        mount -t tmpfs -o size=40k none {job}
        cp -a {tmp_path / "kept"}/. {job}
        "$@" first
        dd if=/dev/zero of={job / "filler"} bs=1k 2> /dev/null || true
        "$@" {"x" * 60} && exit 99 || code=$?
        cat {job / "scripts.toml"}
        exit $code
    """
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "--propagation", "private", "sh", "-ec", steps, "sh", *words],
        env=environment(line), cwd=here, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 4, done.stderr
    assert "No space left on device" in done.stderr
    assert 'group = "first"' in done.stdout


def test_a_pipe_that_is_closed_ends_a_run_and_loses_nothing(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    here.mkdir()
    web = {(HERE, f"/{number}"): several_hosts.page([f"/{number + 1}"]) for number in range(NUMBER)}
    with several_hosts.serve(web) as port:
        (here / "chain.py").write_text(HEAD + CHAIN.replace("SITE", f"http://{HERE}:{port}"))
        words = [sys.executable, "-m", "commands.main", "script", "run", str(here / "chain.py"), *RUN]
        process = subprocess.Popen(
            words, env=environment(line), cwd=here, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert process.stdout
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) != 0
        assert script(line, here, "run", str(here / "chain.py"), *RUN).returncode in (0, 1)
    assert len(results(line, "chain")) == NUMBER
