"""`warcmill request` and `run rest` beside the roles that take requests: a page asked for comes back, at least once."""

from __future__ import annotations

import http.client
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import preloaded
from requesting.requests_line import APP, HOSTS, RequestsLine, requests_line, role, served
from sites.several_hosts import Page, page
from waiting import wait_for

from servers import pins

PAGES = "crawled_firehose"


def pages(line: RequestsLine, crawlid: str) -> list[dict[str, Any]]:
    """The messages of a crawl's pages."""
    return [one for one in line.told(PAGES) if one["crawlid"] == crawlid]


def request(line: RequestsLine, *words: str) -> Any:
    return preloaded.run("commands.main", "request", *words, env=line.env)


@contextmanager
def dumping(line: RequestsLine, *words: str) -> Iterator[Path]:
    """The file that has what a dump prints, which has begun."""
    printed, told = line.folder / "dump.out", line.folder / "dump.err"
    with printed.open("wb") as out, told.open("wb") as err:
        process = preloaded.start(
            "commands.main", "request", "dump", *words, env=line.env, out=out.fileno(), err=err.fileno()
        )
        wait_for(lambda: "from now on" in told.read_text(), told.read_text)
        try:
            yield printed
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 0, told.read_text()


def test_a_page_that_is_fed_comes_to_who_dumps_the_topic(tmp_path: Path) -> None:
    with requests_line(tmp_path) as line, served(line), dumping(line, "-t", f"demo.{PAGES}") as printed:
        fed = request(line, "feed", json.dumps(line.crawl("/3", "c-min", attrs={"k": 1})))
        assert fed.returncode == 0, fed.stderr
        assert "Feeding JSON into demo.incoming" in fed.stdout
        assert "Successfully fed item to Kafka" in fed.stdout
        wait_for(printed.read_text, line.log)
        (message,) = map(json.loads, printed.read_text().splitlines())
        assert (message["url"], message["crawlid"], message["attrs"]) == (line.url("/3"), "c-min", {"k": 1})
        assert message["body"].startswith("<title>x</title>")
        assert {"demo.crawled_firehose", "demo.incoming"} <= set(request(line, "list").stdout.split())


def test_what_is_no_json_is_not_fed(tmp_path: Path) -> None:
    with requests_line(tmp_path) as line:
        done = request(line, "feed", "{nope")
        assert (done.returncode, "JSON failed to parse" in done.stdout) == (1, True)
        assert line.told("incoming") == []


def test_redirects_give_one_message(tmp_path: Path) -> None:
    web = {
        (HOSTS[0], "/moved"): Page(b"/moved-again", status=301),
        (HOSTS[0], "/moved-again"): Page(b"/here", status=301),
        (HOSTS[0], "/here"): page([]),
        (HOSTS[0], "/last"): page([]),
    }
    with requests_line(tmp_path, web) as line, served(line):
        line.feed(line.crawl("/moved", "c-redirect"))
        wait_for(lambda: pages(line, "c-redirect"), line.log)
        line.feed(line.crawl("/last", "c-last"))
        wait_for(lambda: pages(line, "c-last"), line.log)
        (message,) = pages(line, "c-redirect")
        assert (message["url"], message["response_url"]) == (line.url("/here"), line.url("/here"))


def test_rates_and_bans_of_a_file_replace_what_there_was(tmp_path: Path) -> None:
    policy = tmp_path / "rates.yml"
    with requests_line(tmp_path / "line") as line, served(line):
        policy.write_text("domains:\n  a.example: {hits: 60, window: 60, scale: 0.5}\nblacklist: [b.example]\n")
        assert request(line, "policy", str(policy)).returncode == 0
        wait_for(lambda: len(line.told()) == 2, line.log)
        policy.write_text("domains:\n  c.example: {hits: 5, window: 60}\n")
        done = request(line, "policy", str(policy))
        assert done.stdout.startswith("3 changes are sent")
        wait_for(lambda: len(line.told()) == 5, line.log)
        assert {(one["action"], one["domain"]) for one in line.told()[2:]} == {
            ("domain-update", "c.example"), ("domain-remove", "a.example"), ("blacklist-remove", "b.example"),
        }  # fmt: skip
        policy.write_text("domains: [no, table]\n")
        assert request(line, "policy", str(policy)).returncode == 1


def test_a_deployment_is_tried_part_by_part(tmp_path: Path) -> None:
    with requests_line(tmp_path) as line:
        alone = request(line, "test")
        assert alone.returncode == 1
        assert "monitors: fails: " in alone.stdout
        assert "start: warcmill run requests" in alone.stdout
        with served(line):
            wait_for(lambda: request(line, "test").returncode == 0, line.log)
            parts = [one.partition(":")[0] for one in request(line, "test").stdout.splitlines()]
            assert parts == ["settings", "bus", "monitors", "crawler", "results", "rest"]


def test_a_client_of_the_rest_service_gets_its_answer(tmp_path: Path) -> None:
    with requests_line(tmp_path, WAIT_FOR_RESPONSE_TIME=60) as line, served(line):
        port = pins.free({"rest": 0})["rest"]
        with (tmp_path / "rest.log").open("wb") as log:
            rest = preloaded.start(
                "commands.main", "run", "rest", "--port", str(port), env=line.env, out=log.fileno(), err=log.fileno()
            )
        try:
            wait_for(lambda: "answers; Ctrl-C" in (tmp_path / "rest.log").read_text())
            action = {"action": "info", "appid": APP, "spiderid": "link", "uuid": "u1"}
            status, found = ask(port, "/feed", action)
            assert (status, found["status"], found["data"]["uuid"]) == (200, "SUCCESS", "u1")
            assert found["data"]["total_pending"] == 0
            stats = ask(port, "/feed", {"appid": APP, "uuid": "u2", "stats": "rest"})[1]["data"]
            assert sum(map(len, stats["nodes"].values())) == 1
            assert ask(port, "/", None, Host="evil.example")[0] == 403
        finally:
            rest.send_signal(signal.SIGTERM)
            rest.wait()


def test_both_roles_in_one_process_answer_and_end_together(tmp_path: Path) -> None:
    with requests_line(tmp_path, WAIT_FOR_RESPONSE_TIME=60) as line:
        line.start()
        port = pins.free({"rest": 0})["rest"]
        both = line.role("rest", "--port", str(port), "--log-level", "DEBUG")
        try:
            wait_for(lambda: "answers; Ctrl-C" in line.log(), line.log)
            taken = line.role("rest", "--port", str(port))
            assert taken.wait() == 4, "the port is the other one's, and that ends both roles"
            assert "set another port: --port" in line.log()
            fed = ask(port, "/feed", line.crawl("/3", "c-both"))
            assert (fed[0], fed[1]["status"]) == (200, "SUCCESS")
            wait_for(lambda: pages(line, "c-both"), line.log)
            action = {"action": "info", "appid": APP, "spiderid": "link", "uuid": "u1"}
            assert ask(port, "/feed", action)[1]["data"]["uuid"] == "u1"
        finally:
            both.send_signal(signal.SIGTERM)
            assert both.wait() == 0, line.log()


def test_a_role_that_cannot_send_results_ends_by_that(tmp_path: Path) -> None:
    with requests_line(tmp_path) as line:
        line.start()
        (tmp_path / "state" / "results-sent.json").write_text("{}")
        with role(line) as process:
            wait_for(lambda: process.poll() is not None, line.log)
        assert process.returncode == 1, line.log()
        assert "results-sent.json: it is not a place in results" in line.log()
        assert "no result is sent until that is corrected" in line.log()


def ask(port: int, path: str, message: Any, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
    body = None if message is None else json.dumps(message)
    connection.request("POST", path, body, {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def test_every_page_is_on_the_topic_whatever_is_killed(tmp_path: Path) -> None:
    with requests_line(tmp_path) as line:
        line.start()
        with role(line) as process:
            line.feed(*(line.crawl(f"/{number}", f"c{number}") for number in range(40)))
            wait_for(lambda: len(line.told(PAGES)) > 3, line.log)
            process.send_signal(signal.SIGKILL)
            line.kill_crawler()
        line.restart()
        with role(line):
            wait_for(lambda: len({one["crawlid"] for one in line.told(PAGES)}) == 40, line.log)
        sent = line.told(PAGES)
        assert {one["url"] for one in sent} == {line.url(f"/{number}") for number in range(40)}
        assert len({one["id"] for one in sent}) == 40, "a repeat has the id of the first"
        for one in sent:
            found = (tmp_path / "output" / "warcs").rglob(f"{one['warc']['name']}*")
            (warc,) = (path for path in found if path.suffix != ".orphan")  # it was cut where the books end
            assert warc.stat().st_size > one["warc"]["offset"]
